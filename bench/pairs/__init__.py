"""Two sides, each an interpreter in a tree of its own, that take turns on the same cases."""
