"""The series of a run, and what each is called: cases that differ in length alone, be it that of queries and keys alike
or of whichever of the two was swept."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bench.analysis.groups import PROBLEM, Group, by, describe, groups, varying
from bench.analysis.scatter import with_scatter


def series(cases: pd.DataFrame) -> list[Group]:
    """The cases of each problem that differ in length alone, with `length` and what `with_scatter` adds.

    The problem has `fixed` beside its axes: the queries or keys, in words, where they are not of that length. A mask
    without a window comes before the same mask with one.
    """
    return [
        Group({**problem, "fixed": fixed}, part)
        for problem, group in groups(cases)
        for fixed, part in by(with_scatter(_with_lengths(group)), "fixed")
    ]


def titles(parts: Sequence[Group], without: str = "") -> list[str]:
    """What each of these series is called: its problem, but for this axis, what else varies, and what is fixed."""
    axes = [axis for axis in (*PROBLEM, *varying(pd.DataFrame(problem for problem, _ in parts))) if axis != without]
    return [" · ".join(filter(None, (describe(problem, axes), problem["fixed"]))) for problem, _ in parts]


def _with_lengths(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases of one problem with their `length` and, where queries and keys differ, the `fixed` one in words."""
    crossed = cases["seq_q"] != cases["seq_kv"]
    keys_swept = _keys_swept(cases[crossed]).reindex(cases.index, fill_value=True)
    queries, keys = "seq_q " + cases["seq_q"].astype(str), "seq_kv " + cases["seq_kv"].astype(str)
    return cases.assign(
        length=cases["seq_kv"].where(keys_swept, cases["seq_q"]),
        fixed=queries.where(keys_swept, keys).where(crossed, ""),
    )


def _keys_swept(cases: pd.DataFrame) -> pd.Series[bool]:
    """Which of these cases belong to a series with their number of queries, rather than to one with that of keys.

    All of a grid go the way that makes fewer and longer series of it, but for those that would be left alone there.
    """
    grid = _grids(cases)
    keys = cases["seq_kv"].groupby(grid).transform("nunique") >= cases["seq_q"].groupby(grid).transform("nunique")
    alone_by_keys = cases.groupby("seq_q")["seq_kv"].transform("nunique") == 1
    alone_by_queries = cases.groupby("seq_kv")["seq_q"].transform("nunique") == 1
    swept: pd.Series[bool] = keys.where(alone_by_keys == alone_by_queries, alone_by_queries)
    return swept


def _grids(cases: pd.DataFrame) -> pd.Series[int]:
    """Which grid each is of: what shares its queries or its keys, be it through others, is of one."""
    grid = pd.Series(range(len(cases)), index=cases.index)
    while True:
        wider = grid.groupby(cases["seq_q"]).transform("min").groupby(cases["seq_kv"]).transform("min")
        if wider.equals(grid):
            return grid
        grid = wider
