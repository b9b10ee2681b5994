"""Which files a file of Python is made of, by the imports written in it: what a change can affect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# What every variant is made of. A change here is looked for in all of them, and so in none above others.
CORE = {f"variants/{name}.py" for name in ("__init__", "machine", "masks", "oracle", "problem", "registry")}


def made_of(file: Path, root: Path) -> set[str]:
    """The file, and all that it imports from under the root, directly or not, each as named from there.

    Imports are read, not run, wherever they stand in a file; one that is put together as text is not seen.
    """
    found: set[str] = set()
    ahead = [file]
    while ahead:
        path = ahead.pop()
        name = path.relative_to(root).as_posix()
        if name not in found and name not in CORE:
            found.add(name)
            ahead += _imported(path, root)
    return found


def _imported(path: Path, root: Path) -> Iterator[Path]:
    """The files under the root that a file imports."""
    package = path.relative_to(root).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = above + tuple(node.module.split(".") if node.module else ())
            modules = [module, *((*module, alias.name) for alias in node.names)]
        else:
            continue
        for parts in modules:
            for candidate in (root.joinpath(*parts).with_suffix(".py"), root.joinpath(*parts, "__init__.py")):
                if parts and candidate.is_file():
                    yield candidate
