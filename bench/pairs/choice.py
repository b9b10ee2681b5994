"""Which variants a gate compares, by what both sides tell of themselves and by the files that changed."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from bench.errors import UserError
from bench.pairs.match import Match
from bench.plan.affected import made_of
from bench.plan.contests import Names


def versus(match: Match, base: str, new: str) -> Names:
    """One variant against another."""
    _check_imports(match)
    for option, name, about in (("--base-variant", base, match.about[0]), ("--variant", new, match.about[1])):
        if name not in about.known:
            raise UserError(f"{option}: {name!r} is not registered; accepted: {', '.join(sorted(about.known))}")
    return Names(((base, new),))


def names_of(match: Match, asked: str, changed: Collection[str], same_tree: bool) -> Names:
    """Each variant of a list, or all that either side has, against itself. Unless both sides are of the same tree, only
    those that are made in the repository: of others both sides would have the same code."""
    _check_imports(match)
    known = {**match.about[0].known, **match.about[1].known}
    names = sorted(known) if asked == "all" else [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in known:
            raise UserError(f"--variants: {name!r} is registered on neither side; accepted: {', '.join(sorted(known))}")
    files = {name: _files(match, name) for name in names}
    own = [name for name in names if same_tree or files[name]]
    if not own:
        raise UserError(
            f"--against: of {', '.join(names)} both sides would run the same code, for it is not in this repository; "
            "name the module that registers yours: --import"
        )
    affected = [name for name in own if not files[name].isdisjoint(changed)]
    compiled = [name for name in own if known[name].compiled] if asked == "all" else []
    return Names(tuple((name, name) for name in own), affected, compiled)


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
        for root in (side.packages, side.tree) if side.own_variants else (side.tree,):
            file = Path(about.known[name].file).resolve() if name in about.known else None
            if file is not None and file.is_relative_to(root.resolve()):
                found |= made_of(file, root.resolve())
    return found
