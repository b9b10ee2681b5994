"""Several results files as a trend: a row a case, a column a file, oldest first, and the last over the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.cases import CASE
from bench.analysis.comparison import multiples
from bench.analysis.groups import PROBLEM, describe, groups, records
from bench.analysis.tables import Cell, Table
from bench.analysis.text import length, plain, significant, times


class File(NamedTuple):
    """A results file: where it is, its visits, and its cases."""

    path: Path
    visits: pd.DataFrame
    cases: pd.DataFrame

    @property
    def started(self) -> str:
        """When its first visit began."""
        return str(self.visits["started"].min())


def names(files: Sequence[File]) -> list[str]:
    """What the columns are called: the files' stems, or their paths where two share a stem."""
    stems = [plain(file.path.stem) for file in files]
    return stems if len(set(stems)) == len(stems) else [plain(str(file.path)) for file in files]


def heading(files: Sequence[File], reference: str | None) -> list[Cell]:
    """Which files these are, and what the table shows of them."""
    shown = "latency in ms" if reference is None else f"latency as a multiple of {plain(reference)}'s in the same file"
    return [
        *(Cell(f"{name}: {file.path}, from {file.started}") for name, file in zip(names(files), files, strict=True)),
        Cell(f"oldest first; {shown}; last/first: above 1x the last file is slower"),
    ]


def tables(files: Sequence[File], reference: str | None) -> list[Table]:
    """A table a problem, of the cases that are ok in any file; a status stands where a case is not."""
    columns = ["status", "multiple"]
    joined = pd.concat(
        [multiples(file.cases, reference)[[*CASE, *columns]].assign(file=at) for at, file in enumerate(files)]
    )
    ok = joined[joined["status"] == "ok"].groupby(list(CASE)).size()
    joined = joined.join(ok.rename("oks"), on=list(CASE)).dropna(subset="oks")
    header = ("length", "variant", *names(files), "last/first")
    found = []
    for problem, part in groups(joined[joined["variant"] != reference]):
        lines = groupby(records(part, "seq_q", "seq_kv", "variant", "file"), key=_place)
        rows = [(place, _row(place, list(own), len(files), reference)) for place, own in lines]
        sections = [[row for _, row in same] for _, same in groupby(rows, key=lambda row: row[0][:2])]
        found.append(Table(describe(problem, PROBLEM), header, sections, []))
    return found


def _place(case: dict[str, Any]) -> tuple[int, int, str]:
    return case["seq_q"], case["seq_kv"], case["variant"]


def _row(place: tuple[int, int, str], own: list[dict[str, Any]], files: int, reference: str | None) -> tuple[Cell, ...]:
    """The cells of one case from its values in the files that have it."""
    in_file = {case["file"]: case for case in own}
    value = {at: case["multiple"] for at, case in in_file.items()}
    shown = significant if reference is None else times
    cells = [_cell(in_file[at], shown(value[at]), reference) if at in in_file else Cell("") for at in range(files)]
    ratio = value.get(files - 1, math.nan) / value.get(0, math.nan)
    return Cell(length(*place[:2])), Cell(plain(place[2])), *cells, Cell(times(ratio))


def _cell(case: dict[str, Any], text: str, reference: str | None) -> Cell:
    """The value, or why there is none: the status, or that the reference is missing."""
    if text:
        return Cell(text)
    return Cell(case["status"] if case["status"] != "ok" else f"no {plain(str(reference))}")
