"""What the page shows, as plain values: cases, visits and growths by column, the words around them, variants' looks.

A column of words is a list of the different ones and, for each row, which it is: most repeat in every row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

import pandas as pd

from bench.analysis.cases import KEY, timed
from bench.analysis.contents import Contents
from bench.analysis.groups import AXES, varying
from bench.analysis.identity import BUILT_IN, looks
from bench.analysis.roofline import intensity
from bench.analysis.scatter import SCATTER
from bench.analysis.tables import WORDS, Cell, Table
from bench.results.columns import COLUMNS, FAILURES, Case
from bench.results.command import command

MOST_VISITS, MOST_SAMPLES = 1_000, 300_000  # whose samples are embedded; some 2 MB of text

# The largest that any visit to a case saw; where memory was read from is the same for all.
_OF_VISITS = ["plan_bytes", "reserved_bytes", "memory_source"]
_OF_VISIT = ("run", "visit", "started", "visit_s", "status", "reason", "latency_ms", "spread", "canary_ms", "crowding")

# The fields of a growth that the figure shows; its scale is not among them.
_OF_GROWTH = ["variant", "exact", "quantity", "lengths", "exponent", "low", "high", "fixed_cost", "strays", "reason"]


def content(contents: Contents) -> dict[str, Any]:
    """All that the page's script reads, ready for JSON: no NaN, no infinity, no pandas."""
    visits, shown = contents.visits, _cases(contents)
    axes = varying(shown, AXES)
    return {
        "baseline": contents.baseline,
        "heading": _cells(contents.heading),
        "answer": [{"title": paragraph.title, "lines": _cells(paragraph.lines)} for paragraph in contents.answer],
        "tables": [_table(table) for table in (*contents.wholes, *contents.derived)],
        "words": WORDS,
        "failures": FAILURES,
        "meanings": {name: column.meaning for name, column in COLUMNS.items()},
        "looks": _looks(shown["variant"].unique()),
        "axes": axes,
        "environment": [axis for axis in AXES if axis not in (f.name for f in fields(Case))],
        "cases": _columns(shown),
        "visits": _columns(_visits(visits, shown)),
        "samples": _samples(visits),
        "growths": _columns(contents.growths[[*_problem(axes), *_OF_GROWTH]]),
    }


def _problem(axes: Iterable[str]) -> list[str]:
    """What tells the problems apart; the mask always, for titles begin with it."""
    return [*dict.fromkeys(("mask", *axes)), "fixed"]


def _cases(contents: Contents) -> pd.DataFrame:
    """The cases with what follows from them and their visits."""
    shown = contents.cases.drop(columns=[*SCATTER, "budget_used"])
    known = contents.visits.groupby(KEY, dropna=False, as_index=False)[_OF_VISITS].max()
    shown = shown.merge(known, on=KEY, how="left", validate="one_to_one")
    asked = [Case(*values) for values in zip(*(shown[f.name].tolist() for f in fields(Case)), strict=True)]
    return shown.assign(
        error_share=shown["error"] / shown["error_budget"],
        intensity=[intensity(asdict(case)) for case in asked],
        command=[command(case, threads) or "" for case, threads in zip(asked, _threads(shown), strict=True)],
    )


def _threads(cases: pd.DataFrame) -> list[int | None]:
    """The threads to ask for: those of the run on a CPU, where they decide; elsewhere whatever is usual there."""
    on_cpu = cases["device"] == "cpu"
    return [threads if asked else None for threads, asked in zip(cases["threads"].tolist(), on_cpu, strict=True)]


def _visits(visits: pd.DataFrame, cases: pd.DataFrame) -> pd.DataFrame:
    """The visits, each with the number of its case and whether its time counts there."""
    numbered = visits[KEY].merge(cases[KEY].assign(case=range(len(cases))), how="left", on=KEY)
    counts = visits.index.isin(timed(visits).index) & (visits["status"] == "ok")
    return visits[list(_OF_VISIT)].assign(case=numbered["case"].to_numpy(), counts=counts)


def _samples(visits: pd.DataFrame) -> list[list[float]] | None:
    """Each visit's samples in ms, in order, to five digits; None where all of them are too many for one page."""
    samples = visits["samples_ms"].tolist()
    if len(samples) > MOST_VISITS or sum(map(len, samples)) > MOST_SAMPLES:
        return None
    return [[float(f"{ms:.5g}") for ms in own] for own in samples]


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    """Column name -> its values, or for words {"words": the different ones, "at": which of them each row has}."""
    return {str(name): _values(column) for name, column in frame.items()}


def _values(column: pd.Series[Any]) -> Any:
    """Truths as they are, numbers with None for what is none, and words as said above."""
    kind = column.dtype.kind
    return column.tolist() if kind == "b" else _numbers(column) if kind in "iuf" else _words(column)


def _words(column: pd.Series[Any]) -> dict[str, list[Any]]:
    at, words = pd.factorize(column)
    return {"words": [str(word) for word in words], "at": at.tolist()}


def _numbers(column: pd.Series[Any]) -> list[Any]:
    """Whole numbers stay whole, as bytes are, for they are shorter so."""
    return [_number(value) for value in column.tolist()]


def _number(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _looks(variants: Iterable[str]) -> list[dict[str, Any]]:
    """How each variant is drawn, in the order of a legend: built-in ones in their order, then the others by name."""
    look = looks(variants)
    order = [name for name in BUILT_IN if name in look] + [name for name in look if name not in BUILT_IN]
    return [{"variant": name, **look[name]._asdict(), "line": _dash(look[name].line)} for name in order]


def _dash(line: str | tuple[int, tuple[float, ...]]) -> list[float]:
    """Lengths of dashes and gaps in widths of the line, none for a solid one."""
    return [] if isinstance(line, str) else list(line[1])


def _table(table: Table) -> dict[str, Any]:
    sections = [[_cells(row) for row in section] for section in table.sections]
    return {"title": table.title, "header": table.header, "sections": sections, "notes": _cells(table.notes)}


def _cells(cells: Iterable[Cell]) -> list[dict[str, str]]:
    return [{"text": cell.text, "style": cell.style} for cell in cells]
