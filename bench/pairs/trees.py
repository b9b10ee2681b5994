"""The folders in which the two sides run: the repository at a revision, and as it is now.

Both are copies, so that they are alike in all but what is compared, and stay as they are while somebody goes on
working. Timing, checks and the oracle are those of the suite that runs, on either side. In a checkout of the suite the
variants, and all that they are made of, are the side's own; elsewhere the modules that --import names are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import bench
from bench.errors import UserError
from bench.pairs.process import Side

_SUITE = Path(bench.__file__).parents[1]


def repository() -> Path | None:
    """The top folder of the repository that the current folder is in."""
    try:
        return Path(_git(Path.cwd(), "rev-parse", "--show-toplevel").decode().strip())
    except (OSError, subprocess.CalledProcessError):
        return None


def commit_of(repo: Path, revision: str) -> str:
    """The full name of the commit that a revision stands for."""
    try:
        found = _git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError:
        raise UserError(
            f"--against: {revision!r} is no revision of {repo}; accepted: a branch, tag or commit that was fetched"
        ) from None
    return found.decode().strip()


def describe(repo: Path, revision: str | None) -> str:
    """A short name of a commit, or of the working tree: with + where tracked files differ from its commit."""
    if revision is not None:
        return revision[:7]
    try:
        return _git(repo, "describe", "--always", "--exclude=*", "--dirty=+").decode().strip()
    except subprocess.CalledProcessError:  # there is no commit yet
        return ""


def changed(repo: Path, revision: str) -> set[str]:
    """The files, from the top of the repository, in which the working tree differs from a revision."""
    differ = _git(repo, "diff", "--name-only", "--no-renames", "-z", revision, "--")
    return _names(differ) | _names(_git(repo, "ls-files", "--others", "--exclude-standard", "-z"))


def is_suite(repo: Path) -> bool:
    """Whether a repository is a checkout of the suite that runs."""
    return _SUITE.resolve() == repo.resolve()


def module(name: str, repo: Path | None) -> str:
    """A module to import, as both sides are to be told of it: a file of the repository by its path from the current
    folder, so that each side takes its own; another file by its whole path."""
    if not name.endswith(".py"):
        return name
    path = Path(name).resolve()
    if repo is not None and path.is_relative_to(repo.resolve()):
        return os.path.relpath(path, Path.cwd().resolve())
    return str(path)


def side(name: str, python: str, into: Path, repo: Path | None, revision: str | None) -> Side:
    """A side, in a new folder: of a repository, at a revision or as it is now; of the installed suite and the current
    folder where there is no repository."""
    packages = into / name / "suite"
    if repo is None:
        _lay_out(_SUITE, packages)
        return Side(name, python, Path.cwd(), packages, Path.cwd(), further=_further(None, Path.cwd()))
    tree = into / name / "tree"
    tree.mkdir(parents=True)
    if revision is None:
        _copy(repo, tree)
    else:
        _extract(repo, revision, tree)
    own = is_suite(repo)
    _lay_out(tree if own else _SUITE, packages)
    folder = tree / Path.cwd().resolve().relative_to(repo.resolve())
    folder.mkdir(parents=True, exist_ok=True)
    return Side(name, python, folder, packages, tree, own, _further(repo, tree))


def _lay_out(variants_of: Path, packages: Path) -> None:
    """The suite that runs, with the variants of a tree."""
    if not (variants_of / "variants" / "registry.py").exists():
        raise UserError("--against: at this revision there are no variants yet")
    only_code = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_SUITE / "bench", packages / "bench", ignore=only_code)
    shutil.copytree(variants_of / "variants", packages / "variants", ignore=only_code)
    shutil.copy(_SUITE / "variants" / "oracle.py", packages / "variants" / "oracle.py")


def _extract(repo: Path, revision: str, into: Path) -> None:
    """All files of a revision, through an index of its own: git archive would leave out what is not to be released."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GIT_INDEX_FILE": str(Path(folder, "index"))}
        _git(repo, "read-tree", revision, environment=environment)
        _git(repo, "checkout-index", "--all", f"--prefix={into}/", environment=environment)


def _copy(repo: Path, into: Path) -> None:
    """What git knows of, and what it does not ignore."""
    for name in sorted(_names(_git(repo, "ls-files", "--cached", "--others", "--exclude-standard", "-z"))):
        source, target = repo / name, into / name
        through_a_link = any((repo / folder).is_symlink() for folder in Path(name).parents)
        if not through_a_link and (source.is_symlink() or source.is_file()):  # neither deleted nor a submodule
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _names(output: bytes) -> set[str]:
    return set(filter(None, output.decode(errors="surrogateescape").split("\0")))


def _further(repo: Path | None, tree: Path) -> tuple[Path, ...]:
    """The folders of PYTHONPATH; of those in the repository, the side's own."""
    found = []
    for entry in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        path = Path(entry).resolve()
        inside = repo is not None and path.is_relative_to(repo.resolve())
        found.append(tree / path.relative_to(repo.resolve()) if repo is not None and inside else path)
    return tuple(found)


def _git(repo: Path, *words: str, environment: Mapping[str, str] | None = None) -> bytes:
    command = ["git", "-C", str(repo), *words]
    return subprocess.run(command, capture_output=True, check=True, env=environment).stdout
