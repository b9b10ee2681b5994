"""How attention variants are measured and how results are read; the commands are `python -m bench.<name>`."""
