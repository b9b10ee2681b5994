"""Which panel of a figure a case is drawn in, and where on the x axis: its length, or its value of another axis."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from bench.analysis.groups import by, describe, groups, varying
from bench.analysis.text import plain
from variants.problem import DTYPES

SWEEPABLE = ("heads", "kv_heads", "batch", "head_dim", "dtype")  # what a figure may have on its x axis but the length

_MOST_COLUMNS, _MOST_ROWS = 3, 3
ROWS_BY_AXIS = 1  # one look at what heads, batch and so on do; the lengths are what matters


def by_length(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with the length they are drawn at as `x` and the title of their `panel`, in the order of the panels.

    A panel shows one problem; its title is the mask, and whatever else differs between panels. Where queries and
    keys differ in number, the length is whichever of the two was swept, and the title names the other.
    """
    return titled(cases.assign(x=cases["length"]))


def by_axis(cases: pd.DataFrame, axis: str) -> pd.DataFrame:
    """The cases of one length with their value of this axis as `x`, and `panel` as above; a dtype counts up from 0.

    The length is that at which the most cases are ok, and the longest of such. Panels with a single value of the axis
    say nothing about it and are left out.
    """
    ok = cases[cases["status"] == "ok"]
    oks = ok.groupby(["seq_q", "seq_kv"]).size()
    seq_q, seq_kv = max(oks.index, key=lambda sizes: (oks[sizes], sizes[0] * sizes[1], sizes))
    here = cases[(cases["seq_q"] == seq_q) & (cases["seq_kv"] == seq_kv)]
    values = here[axis].map(DTYPES.index) if axis == "dtype" else here[axis]
    tied = ["kv_heads"] if axis == "heads" and _one_kv_head_each(cases) else []
    data = titled(here.assign(x=values, fixed="").drop(columns=[axis, *tied]))
    return data[data["x"].where(data["status"] == "ok").groupby(data["panel"]).transform("nunique") > 1]


def swept(cases: pd.DataFrame) -> list[str]:
    """The axes besides the length that have several values among what is ok."""
    axes = varying(cases[cases["status"] == "ok"], SWEEPABLE)
    return [axis for axis in axes if axis != "kv_heads" or not _one_kv_head_each(cases)]


def titled(cases: pd.DataFrame) -> pd.DataFrame:
    """These, or any rows with a problem and `fixed` words, with the title of their `panel`, in the order of panels."""
    axes = [axis for axis in varying(cases) if axis != "mask"]
    parts = []
    for problem, group in groups(cases):
        for fixed, part in by(group, "fixed"):
            parts.append(part.assign(panel=_joined([plain(problem["mask"]), describe(problem, axes), fixed])))
    return pd.concat(parts, ignore_index=True)


def first_panels(data: pd.DataFrame, rows: int = _MOST_ROWS) -> tuple[pd.DataFrame, int]:
    """The cases of the first panels, as many as so many rows take, and how many panels that leaves out."""
    titles, most = data["panel"].unique(), rows * columns(data)
    return data[data["panel"].isin(titles[:most])], max(len(titles) - most, 0)


def columns(data: pd.DataFrame) -> int:
    """How many panels stand side by side: all masks of a problem if they fit, or else an even share of them."""
    masks, count = data["mask"].nunique(), data["panel"].nunique()
    if masks == 1:
        return int(min(count, _MOST_COLUMNS))
    return next((n for n in range(_MOST_COLUMNS, 1, -1) if masks % n == 0), _MOST_COLUMNS)


def _joined(words: Iterable[str]) -> str:
    return " · ".join(filter(None, words))


def _one_kv_head_each(cases: pd.DataFrame) -> bool:
    """Whether no case groups its heads, so that sweeping heads sweeps kv_heads."""
    return bool((cases["heads"] == cases["kv_heads"]).all())
