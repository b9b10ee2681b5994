"""Which variants a gate compares, by what both sides tell of themselves and by the files that changed."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from bench.errors import UserError
from bench.pairs.match import Match
from bench.pairs.process import Side
from bench.plan.affected import CORE, made_of
from bench.plan.contests import Names


def versus(match: Match, base: str, new: str) -> Names:
    """One variant against another."""
    _check_imports(match)
    for option, name, about in (("--base-variant", base, match.about[0]), ("--variant", new, match.about[1])):
        if name not in about.known:
            raise UserError(f"{option}: {name!r} is not registered; accepted: {', '.join(sorted(about.known))}")
    return Names(((base, new),))


def names_of(match: Match, asked: str, changed: Collection[str], only_own: bool) -> Names:
    """Each variant of a list, or all that either side has, against itself; if `only_own`, those alone that are made in
    the repository, for of others both sides would have the same code."""
    _check_imports(match)
    known = {**match.about[0].known, **match.about[1].known}
    names = sorted(known) if asked == "all" else [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in known:
            raise UserError(f"--variants: {name!r} is registered on neither side; accepted: {', '.join(sorted(known))}")
    files = {name: _files(match, name) for name in names}
    own = [name for name in names if files[name] or not only_own]
    if not own:
        raise UserError(
            f"--against: of {', '.join(names)} both sides would run the same code, for it is not in this repository; "
            "name the module that registers yours: --import"
        )
    for name in set(names) - set(own) if asked != "all" else ():
        print(f"left out: {name}, which both sides have from outside of this repository", file=sys.stderr)
    affected = [name for name in own if not (files[name] - CORE).isdisjoint(changed)]
    compiled = [name for name in own if known[name].compiled] if asked == "all" else []
    return Names(tuple((name, name) for name in own), affected, compiled, not CORE.isdisjoint(changed))


def _check_imports(match: Match) -> None:
    """UserError for a module that registers nothing on either side; a line for one that one side lacks."""
    base, new = match.about
    for name, reason in new.failed.items():
        if name in base.failed:
            raise UserError(f"--import: {reason}")
    for side, about in zip(match.sides, match.about, strict=True):
        for reason in about.failed.values():
            print(f"{side.name}: {reason}", file=sys.stderr)


def _files(match: Match, name: str) -> set[str]:
    """The files of the repository that a variant is made of on either side, named from its top."""
    found: set[str] = set()
    for side, about in zip(match.sides, match.about, strict=True):
        if name in about.known and about.known[name].file:
            file, roots = Path(about.known[name].file).resolve(), [root.resolve() for root in side.own]
            if any(file.is_relative_to(root) for root in roots):
                found |= {_name(path, side) for path in made_of(file, roots)}
    return found


def _name(path: Path, side: Side) -> str:
    """A file as it is called from the top of the repository, of which own packages are a part."""
    top = next(top.resolve() for top in (side.packages, side.tree) if path.is_relative_to(top.resolve()))
    return path.relative_to(top).as_posix()
