"""Which panel of a figure a case is drawn in, and at which length."""

from __future__ import annotations

import textwrap

import pandas as pd

from bench.analysis.groups import by, describe, groups, varying
from bench.analysis.text import plain

_MOST_COLUMNS = 3
_TITLE_WIDTH = 42  # characters


def panels(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with the `length` they are drawn at and the title of their `panel`, in the order of the panels.

    A panel shows one problem; its title is the mask, and whatever else differs between panels. Where queries and
    keys differ in number, the length is whichever of the two was swept, and the title names the other.
    """
    axes = [axis for axis in varying(cases) if axis != "mask"]
    parts = []
    for problem, group in groups(cases):
        for fixed, part in by(_with_lengths(group), "fixed"):
            words = filter(None, (plain(problem["mask"]), describe(problem, axes), fixed))
            parts.append(part.assign(panel=textwrap.fill(" · ".join(words), _TITLE_WIDTH)))
    return pd.concat(parts, ignore_index=True)


def columns(cases: pd.DataFrame) -> int:
    """How many panels stand side by side: all masks of a problem if they fit, or else an even share of them."""
    masks, count = cases["mask"].nunique(), cases["panel"].nunique()
    if masks == 1:
        return min(count, _MOST_COLUMNS)
    return next((n for n in range(_MOST_COLUMNS, 1, -1) if masks % n == 0), _MOST_COLUMNS)


def _with_lengths(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with `length` and, where queries and keys differ in number, the `fixed` one of the two in words."""
    crossed = cases["seq_q"] != cases["seq_kv"]
    lengths_of_keys = cases[crossed].groupby("seq_q")["seq_kv"].nunique()
    lengths_of_queries = cases[crossed].groupby("seq_kv")["seq_q"].nunique()
    keys_swept = cases["seq_q"].map(lengths_of_keys) >= cases["seq_kv"].map(lengths_of_queries)
    queries, keys = "seq_q " + cases["seq_q"].astype(str), "seq_kv " + cases["seq_kv"].astype(str)
    return cases.assign(
        length=cases["seq_kv"].where(keys_swept, cases["seq_q"]),
        fixed=queries.where(keys_swept, keys).where(crossed, ""),
    )
