"""What a run has learnt of each variant so far, and what that says of its longer lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bench.plan.forecast import Known, forecast
from bench.results.columns import Case, Facts, derive

_GIB = 2**30


@dataclass
class _Series:
    """One variant on problems that differ in length alone."""

    calls_s: list[Known] = field(default_factory=list)
    peaks: list[Known] = field(default_factory=list)
    stopped: tuple[int, str] | None = None


class Outlook:
    """Says, from shorter lengths, why a case is better not tried."""

    def __init__(self, max_call_s: float, free_bytes: Callable[[], int | None]) -> None:
        self._max_call_s = max_call_s
        self._free_bytes = free_bytes
        self._series: dict[Case, _Series] = defaultdict(_Series)
        self._visit_s: dict[Case, float] = {}

    def learn(self, case: Case, facts: Facts) -> None:
        """Takes in what a visit found."""
        series, scores = self._series[_family(case)], case.seq_q * case.seq_kv
        latency_ms = derive(case, facts).latency_ms
        if latency_ms is not None:
            pairs = case.problem().pairs
            _keep(series.calls_s, Known(scores, pairs, latency_ms / 1e3))
            _keep(series.peaks, Known(scores, pairs, float(facts.peak_bytes or 1)))
        elif facts.status in ("oom", "timeout") and series.stopped is None:
            series.stopped = scores, f"{_STOPS[facts.status]} at {_length(case)} already"

    def objection(self, case: Case) -> str | None:
        """Why the case would take too long or need too much; None where nothing speaks against it."""
        series, scores, pairs = self._series[_family(case)], case.seq_q * case.seq_kv, case.problem().pairs
        if series.stopped and scores > series.stopped[0]:
            return series.stopped[1]
        call_s = forecast(series.calls_s, scores, pairs)
        if call_s is not None and call_s > self._max_call_s:
            return (
                f"one call would take about {call_s:.2g} s"
                if call_s < 100
                else f"one call would take about {call_s:.0f} s"
            )
        need, free = forecast(series.peaks, scores, pairs), self._free_bytes()
        if need is not None and free is not None and need > free:
            return f"needs about {need / _GIB:.3g} GiB, {free / _GIB:.3g} GiB free"
        return None

    def took(self, case: Case, seconds: float) -> None:
        """Takes in how long a whole visit took."""
        self._visit_s[case] = seconds

    def visit_s(self, case: Case) -> float:
        """How long another visit to the case will take."""
        return self._visit_s.get(case, 0.0)


_STOPS = {"oom": "out of memory", "timeout": "timed out"}


def _family(case: Case) -> Case:
    """The case with its lengths taken out. Where the queries are fixed, as in decoding, the keys alone grow."""
    return replace(case, seq_q=0 if case.seq_q == case.seq_kv else case.seq_q, seq_kv=0)


def _keep(points: list[Known], new: Known) -> None:
    """One point a length: the first visit's."""
    if all(point.scores != new.scores for point in points):
        points.append(new)


def _length(case: Case) -> str:
    return str(case.seq_kv) if case.seq_q == case.seq_kv else f"{case.seq_q} x {case.seq_kv}"
