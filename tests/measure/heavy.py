"""Preloaded by a test's server, so that the process which each visit is forked from holds 500 MiB."""

held = b"x" * (500 * 2**20)
