"""Which files a file of Python is made of, by the imports written in it: what a change can affect."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

# What every variant is made of: a change here affects all of them, and so none above others.
CORE = {f"variants/{name}.py" for name in ("__init__", "machine", "masks", "oracle", "problem", "registry")}


def made_of(file: Path, roots: Sequence[Path]) -> set[Path]:
    """The file, and all that it imports from under these folders, directly or not.

    Imports are read, not run, wherever they stand in a file; one that is put together as text is not seen.
    """
    found: set[Path] = set()
    ahead = [file]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += _imported(path, roots)
    return found


def _imported(path: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """The files under these folders that a file imports; none of what cannot be read as Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for root in roots:
        within = path.relative_to(root).parent.parts if path.is_relative_to(root) else None
        for parts in filter(None, _modules(tree, within)):
            yield from _files(root, parts)


def _modules(tree: ast.AST, package: tuple[str, ...] | None) -> Iterator[tuple[str, ...]]:
    """Names of modules, or of what is in them, that are imported; relative ones only from within a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (package is not None or not node.level):
            above = package[: len(package) - node.level + 1] if package and node.level else ()
            module = above + tuple(node.module.split(".") if node.module else ())
            yield module
            yield from ((*module, alias.name) for alias in node.names)


def _files(root: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The module of that name, and the packages that it is in, as far as they are there."""
    packages = (root.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1))
    for candidate in (*packages, root.joinpath(*parts[:-1], f"{parts[-1]}.py")):
        if candidate.is_file():
            yield candidate
