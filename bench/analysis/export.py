"""Results as the JSON of pytest-benchmark 5, for `pytest-benchmark compare` and for dashboards that read it.

Follows pytest_benchmark/stats.py and plugin.py. A benchmark is a case that is ok; its data are the samples of the
visits that count (see `bench.analysis.cases`), in seconds. So its median is that of all samples; `latency_ms` in
extra_info is the median over visits.
"""

from __future__ import annotations

import json
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Any

import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT, cases, timed
from bench.analysis.groups import AXES, describe
from bench.analysis.text import length

VERSION = "5.3.1"  # of pytest-benchmark, whose JSON this is
_EXTRA = (
    *("latency_ms", "low_ms", "high_ms", "visits", "quiet", "canary_ms", "peak_bytes", "error", "error_budget"),
    *("kernel", "exact"),
)


def pytest_benchmark(frame: pd.DataFrame) -> dict[str, Any]:
    """The document, as what JSON has, of the visits of one file. Cases that are not ok are left out."""
    grouped = cases(frame)
    ok = grouped[grouped["status"] == "ok"].set_index(list(CASE))
    visits = timed(frame[frame["status"] == "ok"]).sort_values(["run", "visit"])
    by_case: dict[Hashable, pd.DataFrame] = dict(list(visits.groupby(list(CASE))))
    return {
        "machine_info": _machine(frame),
        "commit_info": _commit(frame),
        "benchmarks": [_benchmark(key, own, by_case[key]) for key, own in ok.to_dict("index").items()],
        "datetime": str(frame["started"].max()),
        "version": VERSION,
    }


def text(document: dict[str, Any]) -> str:
    """The document as pytest-benchmark writes it."""
    return json.dumps(document, indent=4, allow_nan=False) + "\n"


def _machine(frame: pd.DataFrame) -> dict[str, Any]:
    """Where the file was measured; what differs within it, all values in order."""
    known = {name: ", ".join(sorted({str(value) for value in frame[name]})) for name in ENVIRONMENT}
    return {
        "node": "",
        "machine": "",
        "processor": known["device_name"],
        "python_version": known["python"],
        "cpu": {"brand_raw": known["device_name"]},
        **known,
    }


def _commit(frame: pd.DataFrame) -> dict[str, Any]:
    commits = sorted(set(frame["commit"]))
    return {
        "id": ", ".join(commit.removesuffix("+") for commit in commits) or "unversioned",
        "time": None,
        "author_time": None,
        "dirty": any(commit.endswith("+") for commit in commits),
        "project": "attention-bench",
        "branch": "(unknown)",
    }


def _benchmark(key: Hashable, case: dict[Hashable, Any], visits: pd.DataFrame) -> dict[str, Any]:
    params = dict(zip(CASE, key, strict=True))  # type: ignore[call-overload]
    place = length(params["seq_q"], params["seq_kv"])
    where = f"{describe(params, AXES)} · {place}"
    calls = [int(count) for count in visits["calls_per_sample"].dropna()]
    return {
        "group": where,
        "name": f"{params['variant']} at {place}",
        "fullname": f"{params['variant']} · {where}",
        "params": params,
        "param": None,
        "extra_info": {name: _or_none(case[name]) for name in _EXTRA},
        "options": {"disable_gc": False, "timer": "perf_counter", "warmup": True},
        "stats": {
            **stats([ms / 1e3 for samples in visits["samples_ms"] for ms in samples]),
            "iterations": max(calls, default=1),
        },
    }


def _or_none(value: Any) -> Any:
    """NaN is no JSON."""
    return None if isinstance(value, float) and math.isnan(value) else value


def stats(seconds: list[float]) -> dict[str, Any]:
    """What pytest-benchmark tells of samples, in seconds; quartiles are means of the halves' medians, with and without
    the middle sample."""
    ordered, rounds, total = sorted(seconds), len(seconds), sum(seconds)
    mean = statistics.mean(seconds)
    deviation = statistics.stdev(seconds) if rounds > 1 else 0.0
    halves = (rounds + 1) // 2, max(1, rounds // 2)
    lower = statistics.mean(statistics.median(ordered[:half]) for half in halves)
    upper = statistics.mean(statistics.median(ordered[-half:]) for half in halves)
    fences = lower - 1.5 * (upper - lower), upper + 1.5 * (upper - lower)
    stray = sum(abs(sample - mean) > deviation for sample in seconds)
    outliers = sum(not fences[0] <= sample <= fences[1] for sample in seconds)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": rounds,
        "median": statistics.median(seconds),
        "iqr": upper - lower,
        "q1": lower,
        "q3": upper,
        "iqr_outliers": outliers,
        "stddev_outliers": stray,
        "outliers": f"{stray};{outliers}",
        "ld15iqr": ordered[bisect_left(ordered, fences[0])],
        "hd15iqr": ordered[bisect_right(ordered, fences[1]) - 1],
        "ops": rounds / total,
        "total": total,
        "data": seconds,
    }
