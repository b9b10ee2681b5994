"""What a figure of curves shows: its words, its columns in the cases, and how its axis counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT
from bench.analysis.groups import Group, records
from bench.analysis.scatter import Ratio, ratio
from bench.analysis.text import plain

_UNKNOWN = Ratio(math.nan, math.nan, math.nan)


class Quantity(NamedTuple):
    """A file's name, an axis' label, columns of value and interval, the unit (bytes, x or none), what 1 means."""

    name: str
    label: str
    column: str
    interval: tuple[str, ...] = ()
    unit: str = ""
    one: str = ""


LATENCY = Quantity("latency", "latency (ms)", "latency_ms", ("low_ms", "high_ms"))
MEMORY = Quantity("memory", "peak memory above inputs", "peak_bytes", unit="bytes")
ERROR = Quantity("error", "error over its budget", "budget_used", one="budget")


def speedup(baseline: str) -> Quantity:
    """The speed-up over a baseline."""
    label = f"speed-up over {plain(baseline, 30)}"
    return Quantity("speedup", label, "speedup", ("least_speedup", "most_speedup"), unit="x")


def quantified(series: Sequence[Group], baseline: str) -> pd.DataFrame:
    """The cases of all series as one, in their order, with all that figures show of them."""
    return with_budget_used(with_speedups(pd.concat([part for _, part in series]), baseline))


def with_speedups(cases: pd.DataFrame, baseline: str) -> pd.DataFrame:
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


def with_budget_used(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with `budget_used`, their error over its budget; NaN where there is none, and for an error of 0 or
    without bounds, which no logarithmic axis has a place for."""
    used = cases["error"] / cases["error_budget"]
    return cases.assign(budget_used=used.where((used > 0) & np.isfinite(used)))


def _problem(case: Mapping[Any, Any]) -> tuple[Any, ...]:
    """All that a case and the baseline's must share."""
    return tuple(case[axis] for axis in (*CASE, *ENVIRONMENT) if axis != "variant")
