"""Checks that a variant is right: each a question of its own, asked of many problems, its failure named and shrunk."""
