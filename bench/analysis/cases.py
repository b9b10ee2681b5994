"""Visits grouped into cases: one status, one latency with its interval, one peak, one error each.

Visits are pooled over runs, but only where the whole environment is the same: the device, torch, the threads,
the commit and the rest. Whatever differs there keeps two cases apart. Times come from a case's quiet visits, if it has
any.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from bench.analysis.statistics import log_t_interval
from bench.results.columns import FAILURES, STATUSES, Case, Ceiling, Environment, disturbed

CASE = tuple(f.name for f in fields(Case))
ENVIRONMENT = tuple(f.name for f in fields(Environment))
KEY = [*CASE, "exact", *ENVIRONMENT]

# The worst visit decides, so ok means that every visit was. A skip comes last: it tells that nobody tried, so it does
# not undo what another run measured.
BADNESS = (*FAILURES, *(s for s in reversed(STATUSES) if s not in (*FAILURES, "ok", "skipped")), "ok", "skipped")

_OF_QUIET = ["latency_ms", "canary_ms", "canary_ratio", "spread", "tflops", "plan_ms", "first_call_ms"]
_BYTES = ["peak_bytes", "peak_rss_bytes", "workspace_bytes", "saved_bytes", "result_bytes"]
_CEILING = [f.name for f in fields(Ceiling)]
_ONLY_IF_OK = [*_OF_QUIET, "low_ms", "high_ms", "ceiling_share", *_BYTES]


def cases(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a case and environment, sorted by them, whatever the order of the visits:

    status, reason       the worst visit's
    visits, quiet        how many there were, skips aside, and how many of these were ok and quiet
    latency_ms           median over visits of each visit's median
    low_ms, high_ms      95 % interval of the geometric mean of the visits' medians; of many visits with strays it may
                         lie beside latency_ms
    canary_ms            median over visits of each visit's canary
    canary_ratio         median over visits of latency over canary: it moves less than either from run to run
    spread               interquartile range over median of a visit's samples; the median over visits
    tflops               the rate at that latency
    ceiling_share        that rate over ceiling_tflops
    plan_ms, first_call_ms   medians over visits
    declared_exponent    of the variant, as it is registered
    ceiling_tflops, copy_gb_s   the device's ceilings, the largest of what the runs measured
    peak_bytes, peak_rss_bytes, workspace_bytes, saved_bytes, result_bytes   the largest
    error, error_budget  of the visit that used most of its budget
    kernel               all that ran

    From latency_ms to first_call_ms, quiet visits alone count where there are any.
    Numbers are NaN where the status is not ok, except visits, quiet, declared_exponent, ceiling_tflops, copy_gb_s,
    error and error_budget.
    """
    visits = frame.assign(
        case=frame.groupby(KEY, dropna=False).ngroup(),
        badness=frame["status"].map(BADNESS.index),
        visited=frame["status"] != "skipped",
        quiet=_quiet(frame),
        canary_ratio=frame["latency_ms"] / frame["canary_ms"],
        work=frame["tflops"] * frame["latency_ms"],
        budget_used=(frame["error"] / frame["error_budget"]).fillna(frame["error"]),
    )
    grouped = visits.groupby("case")
    result = grouped.agg(
        visits=("visited", "sum"), quiet=("quiet", "sum"), declared_exponent=("declared_exponent", "max")
    )
    result[[*_BYTES, *_CEILING]] = grouped[[*_BYTES, *_CEILING]].max()
    counted = timed(visits)
    times = counted.groupby("case")
    result[_OF_QUIET] = times.agg(dict.fromkeys(_OF_QUIET, "median") | {"tflops": "max"})
    result["tflops"] = times["work"].max() / result["latency_ms"]
    result["ceiling_share"] = result["tflops"] / result["ceiling_tflops"]
    medians = _collected(counted, "latency_ms")
    result[["low_ms", "high_ms"]] = np.array([log_t_interval([ms for ms in own if ms > 0]) for own in medians])
    result["kernel"] = [" / ".join(sorted(set(kernels) - {""})) for kernels in _collected(visits, "kernel")]
    result[["status", "reason"]] = _first(visits.sort_values(["badness", "run", "visit"]), ["status", "reason"])
    errors = ["error", "error_budget"]
    result[errors] = _first(visits.sort_values("budget_used", ascending=False), errors)
    result.loc[result["status"] != "ok", _ONLY_IF_OK] = np.nan
    return pd.concat([_first(visits, KEY), result], axis="columns").reset_index(drop=True)


def timed(frame: pd.DataFrame) -> pd.DataFrame:
    """The visits whose times count: a case's quiet ones, or all of its where none was quiet."""
    quiet = _quiet(frame)
    any_quiet = quiet.groupby([frame[axis] for axis in KEY], dropna=False).transform("any")
    return frame[quiet | ~any_quiet]


def _quiet(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which visits were ok and not disturbed: by others, or by the best canary of their own run, there and then."""
    ok = frame[frame["status"] == "ok"]
    best_ms = ok.groupby(["run", "cache", *ENVIRONMENT], dropna=False)["canary_ms"].transform("min")
    quiet: pd.Series[bool] = ~disturbed(ok["canary_ms"], best_ms, ok["crowding"])
    return quiet.reindex(frame.index, fill_value=False)


def _collected(visits: pd.DataFrame, column: str) -> list[list[Any]]:
    """This column's values of each case, case by case, in a tenth of the time that iterating over groups takes."""
    found: dict[int, list[Any]] = {}
    for case, value in zip(visits["case"].tolist(), visits[column].tolist(), strict=True):
        found.setdefault(case, []).append(value)
    return [found[case] for case in sorted(found)]


def _first(visits: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """These columns of each case's first visit."""
    return visits.drop_duplicates("case").set_index("case")[columns].sort_index()
