"""What every command that measures does first: the variants that were asked for, a warm server, the commit."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError

if TYPE_CHECKING:
    from bench.measure.server import Server
    from bench.results.columns import Environment
    from variants.registry import Variant


def chosen(names: str, imports: Sequence[str], option: str = "--variants") -> dict[str, Variant]:
    """The variants in a list of names, or all; UserError repeats a name or module that is not to be had."""
    if names == "all":
        return dict(_known(imports))
    return named([name.strip() for name in names.split(",")], imports, option, also="all, ")


def named(names: Sequence[str], imports: Sequence[str], option: str, also: str = "") -> dict[str, Variant]:
    """The variants of exactly these names; UserError repeats a name or module that is not to be had."""
    known = _known(imports)
    for name in names:
        if name not in known:
            raise UserError(f"{option}: {name!r} is not registered; accepted: {also}{', '.join(sorted(known))}")
    return {name: known[name] for name in dict.fromkeys(names)}


def _known(imports: Sequence[str]) -> dict[str, Variant]:
    from variants import registry

    try:
        return registry.load(imports)
    except registry.ImportFailed as error:
        raise UserError(f"--import: {error}") from None


def server_for(variants: Iterable[Variant]) -> Server:
    """A server that has loaded what compiling needs where one of these variants is compiled."""
    from bench.measure.server import Server

    compiles = any(v.compiled for v in variants) and shutil.which("g++")
    return Server(preload=["bench.measure.compiler"] if compiles else [])


def run_name() -> str:
    """A name for a run that no other has: when it began, and a few letters of chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def commit() -> str:
    """The commit that this suite was run from, with + where tracked files differ from it; empty outside a checkout."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        git(
            "ls-files", "--error-unmatch", Path(__file__).name
        )  # installed into somebody else's checkout, it is not ours
        return git("describe", "--always", "--exclude=*", "--dirty=+")
    except (OSError, subprocess.CalledProcessError):
        return ""


def same_environment(there: Environment, here: Environment, path: Path, remedy: str = "name another --out") -> None:
    """Refuses to mix rows of two machines, torch releases, methods or commits in one file, naming what differs."""
    differs = [
        f"{f.name} is {getattr(here, f.name)!r} here, {getattr(there, f.name)!r} there"
        for f in fields(here)
        if getattr(here, f.name) != getattr(there, f.name)
    ]
    if differs:
        raise UserError(f"--resume: {path} was measured elsewhere: {'; '.join(differs)}; {remedy}")
