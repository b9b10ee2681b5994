"""How right the variants are: the error as a multiple of its budget, by dtype and length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd

from bench.analysis.groups import Group, records
from bench.analysis.lengths import titles
from bench.analysis.tables import Cell, Table
from bench.analysis.text import plain, times

_WHO = ("apart", "variant", "dtype")
_NOTE = "of its budget: above 1 it is wrong"
_APPROXIMATE = "≈ approximations have no budget: their relative error itself is shown"


def tables(series: Sequence[Group]) -> list[Table]:
    """A table for each series in all its dtypes: a row a variant and dtype, a column a length."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for title, (_, part) in zip(titles(series, without="dtype"), series, strict=True):
        judged = part[part["error"].notna()]
        if len(judged):
            parts.setdefault(title, []).append(judged)
    return [_table(f"error · {title}", pd.concat(found)) for title, found in parts.items()]


def _table(title: str, cases: pd.DataFrame) -> Table:
    lengths = sorted(cases["length"].unique())
    rows = []
    for (_, variant, dtype), own in groupby(records(cases.assign(apart=~cases["exact"]), *_WHO), key=itemgetter(*_WHO)):
        at = {case["length"]: case for case in own}
        name = ("" if all(case["exact"] for case in at.values()) else "≈ ") + plain(variant)
        rows.append((Cell(name), Cell(dtype), *(_cell(at[n]) if n in at else Cell("") for n in lengths)))
    header = ("variant", "dtype", *map(str, lengths))
    return Table(title, header, [rows], [Cell(_NOTE), *([] if cases["exact"].all() else [Cell(_APPROXIMATE)])])


def _cell(case: dict[str, Any]) -> Cell:
    if math.isnan(case["error_budget"]):
        return Cell(f"{case['error']:.1e}")
    used = case["error"] / case["error_budget"] if case["error_budget"] else math.inf
    return Cell(times(used), "bad" if used > 1 else "")
