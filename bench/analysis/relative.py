"""Numbers of a case beside something else: its speed-up over the baseline, its error over its budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT
from bench.analysis.groups import Group, records
from bench.analysis.scatter import Ratio, ratio

_UNKNOWN = Ratio(math.nan, math.nan, math.nan)


def compared(series: Sequence[Group], baseline: str) -> pd.DataFrame:
    """The cases of all series as one, in their order, with speed-up over the baseline and share of the budget."""
    return _with_budget_used(_with_speedups(pd.concat([part for _, part in series]), baseline))


def _with_speedups(cases: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Cases that know their scatter with `speedup`, the baseline's latency over theirs on the same problem, and its
    95 % interval.

    NaN where the baseline has no latency, or is an approximation. The interval is NaN where one of the two was visited
    once, and for the baseline itself.
    """
    known = cases.assign(variance=cases["variance"].where(cases["low_ms"] > 0))  # with_scatter guesses others
    is_reference = (cases["variant"] == baseline) & cases["exact"] & (cases["status"] == "ok")
    reference = {_problem(case): case for case in records(known[is_reference])}
    rivals: Any = known.assign(variance=known["variance"].where(~is_reference)).to_dict("records")
    ratios = [ratio(reference[key], case) if (key := _problem(case)) in reference else _UNKNOWN for case in rivals]
    return cases.assign(
        **dict(zip(("speedup", "least_speedup", "most_speedup"), zip(*ratios, strict=True), strict=True))
    )


def _with_budget_used(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with `budget_used`, their error over its budget; NaN where there is none, and for an error of 0 or
    without bounds, which no logarithmic axis has a place for."""
    used = cases["error"] / cases["error_budget"]
    return cases.assign(budget_used=used.where((used > 0) & np.isfinite(used)))


def _problem(case: Mapping[Any, Any]) -> tuple[Any, ...]:
    """All that a case and the baseline's must share."""
    return tuple(case[axis] for axis in (*CASE, *ENVIRONMENT) if axis != "variant")
