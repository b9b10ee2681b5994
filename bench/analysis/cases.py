"""Visits grouped into cases: one status, one latency with its interval, one peak, one error each.

Visits are pooled over runs, but only where the whole environment is the same: the device, torch, the threads,
the commit and the rest. Whatever differs there keeps two cases apart.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd

from bench.analysis.statistics import log_t_interval, relative_spread
from bench.results.columns import FAILURES, STATUSES, Case, Environment

CASE = tuple(f.name for f in fields(Case))
ENVIRONMENT = tuple(f.name for f in fields(Environment))
KEY = [*CASE, "exact", *ENVIRONMENT]

# The worst visit decides, so ok means that every visit was. A skip comes last: it tells that nobody tried, so it does
# not undo what another run measured.
BADNESS = (*FAILURES, *(s for s in reversed(STATUSES) if s not in (*FAILURES, "ok", "skipped")), "ok", "skipped")

_ONLY_IF_OK = ["latency_ms", "low_ms", "high_ms", "spread", "tflops", "plan_ms", "first_call_ms", "peak_bytes"]


def cases(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a case and environment, sorted by them, whatever the order of the visits:

    status, reason       the worst visit's
    visits               how many there were, skips aside
    latency_ms           median over visits of each visit's median
    low_ms, high_ms      95 % interval of it over visits
    spread               interquartile range over median of a visit's samples; the median over visits
    tflops               the rate at that latency
    plan_ms, first_call_ms   medians over visits
    peak_bytes           the largest
    error, error_budget  of the visit that used most of its budget
    kernel               all that ran

    Numbers are NaN where the status is not ok, except error and error_budget.
    """
    visits = frame.assign(
        case=frame.groupby(KEY, dropna=False).ngroup(),
        badness=frame["status"].map(BADNESS.index),
        visited=frame["status"] != "skipped",
        spread=frame["samples_ms"].map(relative_spread).astype(float),
        work=frame["tflops"] * frame["latency_ms"],
        budget_used=(frame["error"] / frame["error_budget"]).fillna(frame["error"]),
    )
    grouped = visits.groupby("case")
    result = grouped.agg(
        visits=("visited", "sum"),
        latency_ms=("latency_ms", "median"),
        spread=("spread", "median"),
        tflops=("work", "max"),
        plan_ms=("plan_ms", "median"),
        first_call_ms=("first_call_ms", "median"),
        peak_bytes=("peak_bytes", "max"),
    )
    result["tflops"] /= result["latency_ms"]
    intervals = [log_t_interval(times.dropna().to_list()) for _, times in grouped["latency_ms"]]
    result[["low_ms", "high_ms"]] = np.array(intervals)
    result["kernel"] = [" / ".join(sorted(set(kernels) - {""})) for _, kernels in grouped["kernel"]]
    result[["status", "reason"]] = _first(visits.sort_values(["badness", "run", "visit"]), ["status", "reason"])
    errors = ["error", "error_budget"]
    result[errors] = _first(visits.sort_values("budget_used", ascending=False), errors)
    result.loc[result["status"] != "ok", _ONLY_IF_OK] = np.nan
    return pd.concat([_first(visits, KEY), result], axis="columns").reset_index(drop=True)


def _first(visits: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """These columns of each case's first visit."""
    return visits.drop_duplicates("case").set_index("case")[columns].sort_index()
