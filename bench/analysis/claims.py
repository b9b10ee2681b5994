"""Claims against what was measured: the value of each, its interval over races, and whether it is reached."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from bench.analysis.cases import CASE
from bench.analysis.statistics import log_t_interval, t_interval
from bench.analysis.tables import Cell, Table
from bench.analysis.text import TO, plain, significant, size, times
from bench.results.claims import KINDS, Claim, Kind, Term
from bench.results.columns import FAILURES, Case

REACHED, MISSED, CLOSE, UNKNOWN = "reached", "not reached", "too close to call", "not measured"

_WANTED = {
    "faster_at_least": "at least {}x as fast",
    "time_at_most": "at most {}x the time",
    "smaller_at_least": "at most 1/{} of the memory",
    "peak_at_most": "at most {}x the memory",
    "time_growth_at_most": "time as n^{} at most",
    "peak_growth_at_most": "memory as n^{} at most",
    "ms_at_most": "at most {} ms",
    "bytes_at_most": "at most {}",
    "bytes_exactly": "exactly {}",
}
_HEADER = ("variant", "than", "at", "wanted", "measured", "95 % interval", "peak memory", "outcome")


class Found(NamedTuple):
    """The value of a claim and its 95 % interval (NaN where there is none), the outcome, and why it is unknown."""

    value: float
    low: float
    high: float
    outcome: str
    reason: str = ""


class Measured:
    """Visits by case: medians of those that raced each other, peaks of all."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._rows: dict[Case, list[dict[str, object]]] = {}
        for row in frame.to_dict("records"):
            case = Case(**{name: row[name] for name in CASE})
            self._rows.setdefault(case, []).append(row)  # type: ignore[arg-type]

    def missing(self, case: Case) -> str | None:
        """Why there is no number of a case, or None."""
        rows = self._rows.get(case, [])
        if not rows:
            return f"{case.variant} was not measured"
        if any(row["status"] == "ok" for row in rows):
            return None
        return f"{case.variant}: {rows[0]['status']} ({plain(str(rows[0]['reason']))})"

    def failed(self, case: Case) -> bool:
        """Whether a case was wrong, raised or crashed."""
        return any(row["status"] in FAILURES for row in self._rows.get(case, []))

    def lost(self, case: Case) -> list[str]:
        """Why some of the races that a case was in have no numbers."""
        return [f"{row['status']}, {plain(str(row['reason']))}" for row in self._rows.get(case, []) if row["reason"]]

    def races(self, cases: Sequence[Case]) -> list[dict[Case, float]]:
        """Latency in ms of each case, race by race, of the first series of races in which all of them took part."""
        series: dict[object, dict[object, dict[Case, float]]] = {}
        for case in cases:
            for row in self._rows[case]:
                if row["status"] == "ok":
                    race = series.setdefault(row["run"], {}).setdefault(row["visit"], {})
                    race[case] = float(str(row["latency_ms"]))
        whole = [[race for race in races.values() if len(race) == len(set(cases))] for races in series.values()]
        return next((races for races in whole if races), [])

    def peak(self, case: Case) -> float:
        """The largest peak in bytes of a case."""
        return self._largest(case, "peak_bytes")

    def result(self, case: Case) -> float:
        """Bytes of what a case returns."""
        return self._largest(case, "result_bytes")

    def _largest(self, case: Case, column: str) -> float:
        return max(float(str(row[column])) for row in self._rows[case] if row["status"] == "ok")


def judge(claim: Claim, measured: Measured) -> Found:
    """What became of a claim."""
    missing = [reason for case in claim.cases if (reason := measured.missing(case))]
    if missing:
        return Found(math.nan, math.nan, math.nan, UNKNOWN, missing[0])
    kind = KINDS[claim.kind]
    if kind.quantity == "peak":
        value = _value(claim, kind, {case: measured.peak(case) for case in claim.cases}, measured)
        if math.isnan(value):
            return Found(math.nan, math.nan, math.nan, UNKNOWN, "its memory was not measured")
        return Found(value, math.nan, math.nan, _outcome(kind, claim.number, value, value))
    races = measured.races(claim.cases)
    if not races:
        return Found(math.nan, math.nan, math.nan, UNKNOWN, "its cases never raced each other")
    values = [_value(claim, kind, latencies, measured) for latencies in races]
    low, high = (t_interval if kind.unit == "exponent" else log_t_interval)(values)
    value = statistics.median(values)
    if math.isnan(low):  # of one race, which does not say how far the next would be from it
        return Found(value, low, high, CLOSE)
    return Found(value, low, high, _outcome(kind, claim.number, low, high))


def _value(claim: Claim, kind: Kind, numbers: dict[Case, float], measured: Measured) -> float:
    of = _combined(claim.of, numbers)
    if kind.unit == "exponent":
        long, short = claim.of.cases
        return math.log(of) / math.log(long.seq_kv / short.seq_kv)
    if not kind.against:
        return of
    than = _combined(claim.than, numbers) if claim.than else measured.result(claim.of.cases[0])
    return than / of if kind.inverted else of / than


def _combined(term: Term, numbers: dict[Case, float]) -> float:
    values = [numbers[case] for case in term.cases]
    return values[0] / values[1] if term.operation == "/" else math.fsum(values)


def _outcome(kind: Kind, number: float, low: float, high: float) -> str:
    """Whether all of the interval keeps to the number, none of it, or some."""
    if kind.bound == "==":
        return REACHED if low == high == number else MISSED
    kept = [low >= number, high >= number] if kind.bound == ">=" else [low <= number, high <= number]
    return REACHED if all(kept) else CLOSE if any(kept) else MISSED


def judge_all(claims: Iterable[Claim], measured: Measured) -> list[tuple[Claim, Found]]:
    """Each claim with what became of it."""
    return [(claim, judge(claim, measured)) for claim in claims]


def tables(found: Sequence[tuple[Claim, Found]], measured: Measured) -> list[Table]:
    """A table of each subject, in the order in which they first come."""
    subjects: dict[str, list[tuple[Claim, Found]]] = {}
    for claim, result in found:
        subjects.setdefault(claim.about, []).append((claim, result))
    return [
        Table(
            about or "claims",
            _HEADER,
            [[_row(claim, result, measured) for claim, result in some]],
            _notes(some, measured),
        )
        for about, some in subjects.items()
    ]


def summary(found: Sequence[tuple[Claim, Found]]) -> str:
    """How many claims came to what."""
    outcomes = [result.outcome for _, result in found]
    counts = [(outcome, outcomes.count(outcome)) for outcome in (REACHED, CLOSE, MISSED, UNKNOWN)]
    return f"{len(found)} claims: " + ", ".join(f"{count} {outcome}" for outcome, count in counts if count)


def _row(claim: Claim, found: Found, measured: Measured) -> tuple[Cell, ...]:
    kind = KINDS[claim.kind]
    than = claim.than.text if claim.than else "its result" if kind.against else ""
    subject = claim.of.cases[0]
    texts = (
        plain(claim.of.text),
        plain(than),
        claim.at,
        _WANTED[claim.kind].format(_number(claim.number, kind)),
        "" if math.isnan(found.value) else _with_unit(found.value, kind),
        "" if math.isnan(found.low) else f"{significant(found.low)}{TO}{significant(found.high)}",
        "" if measured.missing(subject) else size(measured.peak(subject)),
    )
    style = {REACHED: "good", MISSED: "bad"}.get(found.outcome, "")
    return (*map(Cell, texts), Cell(found.outcome, style))


def _number(number: float, kind: Kind) -> str:
    return size(number) if kind.unit == "bytes" else f"{number:,g}"


def _with_unit(value: float, kind: Kind) -> str:
    if kind.unit == "bytes":
        return size(value)
    return {"x": times(value), "ms": f"{significant(value)} ms", "exponent": f"n^{significant(value)}"}[kind.unit]


def _notes(found: Sequence[tuple[Claim, Found]], measured: Measured) -> list[Cell]:
    """Why some are not measured, and what became of races that did not end."""
    unknown = [f"{UNKNOWN}: {result.reason}" for _, result in found if result.reason]
    cases = [case for claim, result in found if not result.reason for case in claim.cases]
    lost = [f"lost: {reason}" for case in cases for reason in measured.lost(case)]
    return [Cell(note) for note in dict.fromkeys(unknown + lost)]
