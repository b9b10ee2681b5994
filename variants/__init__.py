"""Attention variants: what is measured. A file a variant, over one registry; nothing here imports `bench`."""
