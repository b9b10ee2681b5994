"""What `bench.compare --fail-on` finds: a verdict on each case by each criterion, and the exit status that follows.

latency   SLOWER where the time ratio is at or above the threshold and its 95 % interval above 1x, FASTER the other way
          round, SAME where the interval lies inside the threshold both ways, else INCONCLUSIVE. Where both files have
          canaries, the ratio by canary is judged alike: SLOWER and FASTER need both, for a machine that was slower as a
          whole is no change of the code. SAME by canary is SAME; so is SAME in time which the canary leaves open.
memory    worse where the peak grew by more than the threshold and by more than 1 MiB.
accuracy  worse where a case has become wrong, or its error takes over half of its budget and over twice the share that
          it took before; of an approximation, which has no budget, where the error grew by over a tenth.
status    worse where a case went from ok to anything else, or down to a failure, or is missing in the new file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.comparison import Comparison
from bench.analysis.criteria import Criteria
from bench.analysis.decision import FASTER, INCONCLUSIVE, NOT_COMPARABLE, SAME, SLOWER, VERDICTS
from bench.analysis.differences import between, got_worse, listed, time_ratio_of
from bench.analysis.groups import PROBLEM, describe, groups, records
from bench.analysis.tables import Cell, Table
from bench.analysis.text import length, percent, plain, size, times
from bench.errors import UserError

WORSE, OPEN = 1, 3  # exit statuses
SLACK_BYTES = 2**20  # growth of a peak up to here never counts
SLACK_ERROR = 0.1  # nor does growth of an approximation's error up to this share

_ONE_AFTER_THE_OTHER = (
    "runs made one after the other called identical code slower or faster in 14 to 40 % of comparisons on a shared "
    "machine, so bench.gate is the tool for a decision"
)
_STYLES = {SLOWER: "bad", FASTER: "good", NOT_COMPARABLE: "bad"}


class Outcome(NamedTuple):
    """Of one criterion: how many cases it compared, how many are worse, how many are open, and what is to be told."""

    criterion: str
    compared: int
    worse: int
    open: int
    notes: list[Cell]


def verdict(ratio: float, low: float, high: float, threshold: float) -> str:
    """On a ratio of times and its 95 % interval (NaN where there is none), by a threshold such as 0.05."""
    limit = 1 + threshold
    if math.isnan(ratio):
        return NOT_COMPARABLE
    if low > 1 and ratio >= limit:
        return SLOWER
    if high < 1 and ratio <= 1 / limit:
        return FASTER
    return SAME if 1 / limit <= low and high <= limit else INCONCLUSIVE


def combined(time: str, steady: str) -> str:
    """The verdict of that on the time and that by canary, which is NOT COMPARABLE where there are no canaries."""
    if steady in (time, NOT_COMPARABLE):
        return time
    return SAME if steady == SAME or (time, steady) == (SAME, INCONCLUSIVE) else INCONCLUSIVE


def with_verdicts(comparison: Comparison, threshold: float) -> pd.DataFrame:
    """The cases that were ok in base, the reference aside, with `verdict` and `visible`: the smallest change, as a
    fraction, that would have been called one. Their ratios need intervals (see `bench.analysis.unpaired`)."""
    cases = comparison.cases
    judged = cases[(cases["status_base"] == "ok") & (cases["variant"] != comparison.reference)]
    rows = records(judged)
    verdicts = [
        combined(
            verdict(case["time_ratio"], case["time_low"], case["time_high"], threshold),
            verdict(case["steady_ratio"], case["steady_low"], case["steady_high"], threshold),
        )
        for case in rows
    ]
    visible = [_visible(case, threshold) for case in rows]
    return pd.DataFrame(rows, columns=judged.columns).assign(verdict=verdicts, visible=visible)


def _visible(case: dict[str, Any], threshold: float) -> float:
    """NaN where nothing would have been."""
    if math.isnan(case["time_low"]):
        return math.nan
    reaches: list[float] = [
        case["time_high"] / case["time_ratio"],
        case["steady_high"] / case["steady_ratio"],
        1 + threshold,
    ]
    return max(reach for reach in reaches if not math.isnan(reach)) - 1


def tables(judged: pd.DataFrame, reference: str | None) -> list[Table]:
    """The verdicts on latency, a table a problem."""
    intervals = (time_ratio_of(reference), "95 % interval", "by canary", "its interval")
    header = ("length", "variant", *intervals, "visible change", "verdict")
    found = []
    for problem, part in groups(judged):
        at_length = groupby(records(part), key=lambda case: (case["seq_q"], case["seq_kv"]))
        sections = [[_row(case) for case in same] for _, same in at_length]
        found.append(Table(f"verdicts: {describe(problem, PROBLEM)}", header, sections, []))
    return found


def _row(case: dict[str, Any]) -> tuple[Cell, ...]:
    texts = (
        length(case["seq_q"], case["seq_kv"]),
        plain(case["variant"]),
        times(case["time_ratio"]),
        between(case["time_low"], case["time_high"]),
        times(case["steady_ratio"]),
        between(case["steady_low"], case["steady_high"]),
        percent(case["visible"]),
    )
    return *map(Cell, texts), Cell(case["verdict"], _STYLES.get(case["verdict"], ""))


def outcomes(comparison: Comparison, judged: pd.DataFrame, criteria: Criteria) -> list[Outcome]:
    """Of each criterion that was asked for; `judged` are the cases `with_verdicts`."""
    found = []
    if criteria.latency is not None:
        found.append(_latency(judged, criteria.latency))
    if criteria.memory is not None:
        found.append(_memory(comparison, criteria.memory))
    if criteria.accuracy:
        found.append(_accuracy(comparison))
    if criteria.status:
        found.append(_status(comparison))
    return found


def _latency(judged: pd.DataFrame, threshold: float) -> Outcome:
    count = judged["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    told = ", ".join(f"{number} {name}" for name, number in count.items() if number)
    notes = [Cell(f"latency, {100 * threshold:g} %: {told or 'no case'}", "bad" if count[SLOWER] else "")]
    alone = int((judged["time_ratio"].notna() & judged["time_low"].isna()).sum())
    if alone:
        notes.append(Cell(f"one visit in a file: {alone}; no interval over processes, so nothing is decided"))
    if count[INCONCLUSIVE] > alone:
        notes.append(Cell("visible change: a smaller one would not have been called; more visits make it smaller"))
    notes.append(Cell(_ONE_AFTER_THE_OTHER))
    unsure = int(count[INCONCLUSIVE] + count[NOT_COMPARABLE])
    return Outcome("latency", len(judged) - int(count[NOT_COMPARABLE]), int(count[SLOWER]), unsure, notes)


def _memory(comparison: Comparison, threshold: float) -> Outcome:
    ok = comparison.cases[(comparison.cases["status_base"] == "ok") & (comparison.cases["status_new"] == "ok")]
    base, new = ok["peak_bytes_base"], ok["peak_bytes_new"]
    known = base.notna() & new.notna()
    grown = ok[(new > base * (1 + threshold)) & (new - base > SLACK_BYTES)]
    lost = int((base.notna() & new.isna()).sum())
    notes = [
        Cell(f"memory: {where}: {size(case['peak_bytes_base'])} → {size(case['peak_bytes_new'])}", "bad")
        for case, where in _each(grown, comparison.axes)
    ]
    if lost:
        notes.append(Cell(f"memory: {lost} with a peak in base and none in new", "bad"))
    told = Cell(f"memory, {100 * threshold:g} % and 1 MiB: {len(grown)} of {known.sum()} grew")
    return Outcome("memory", int(known.sum()), len(grown), lost, [told, *notes])


def _accuracy(comparison: Comparison) -> Outcome:
    cases = comparison.cases
    ran = cases[cases["status_base"].isin(("ok", "wrong")) & cases["status_new"].isin(("ok", "wrong"))]
    base, new = ran["error_base"], ran["error_new"]
    used_base, used_new = base / ran["error_budget_base"], new / ran["error_budget_new"]
    drifted = (used_new > 0.5) & (used_new > 2 * used_base)
    without_budget = ran["error_budget_base"].isna() & ran["error_budget_new"].isna()
    grown = without_budget & (new > (1 + SLACK_ERROR) * base)
    wrong = cases[(cases["status_new"] == "wrong") & (cases["status_base"] != "wrong")]
    judged = ran[used_base.notna() & used_new.notna() | without_budget & base.notna() & new.notna()]
    worse = cases.loc[wrong.index.union(ran.index[drifted | grown])]
    notes = [
        Cell(f"accuracy: {where}: error {_error(case, 'base')} → {_error(case, 'new')}", "bad")
        for case, where in _each(worse, comparison.axes)
    ]
    compared = len(judged.index.union(wrong.index))
    return Outcome("accuracy", compared, len(worse), 0, [Cell(f"accuracy: {len(worse)} of {compared} worse"), *notes])


def _error(case: dict[str, Any], side: str) -> str:
    """E.g. "1.2e-06, 57 % of its budget"."""
    error, budget = case[f"error_{side}"], case[f"error_budget_{side}"]
    if math.isnan(error):
        return "unknown"
    return f"{error:.1e}" + ("" if math.isnan(budget) else f", {percent(error / budget)} of its budget")


def _status(comparison: Comparison) -> Outcome:
    pairs = zip(comparison.cases["status_base"], comparison.cases["status_new"], strict=True)
    worse = sum(got_worse(base, new) for base, new in pairs)
    gone = comparison.only_base
    notes = [Cell(f"status: vanished: {what}", "bad") for what in listed(gone, comparison.axes)]
    told = Cell(f"status: {worse} of {len(comparison.cases)} got worse, {len(gone)} vanished")
    return Outcome("status", len(comparison.cases) + len(gone), worse + len(gone), 0, [told, *notes])


def _each(cases: pd.DataFrame, axes: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """(case, its name and place in words)."""
    for problem, part in groups(cases):
        for case in records(part):
            place = length(case["seq_q"], case["seq_kv"])
            yield case, f"{plain(case['variant'])} at {place}, {describe(problem, axes)}"


def exit_status(found: Sequence[Outcome], allow_inconclusive: bool) -> int:
    """1 where anything is worse, else 3 where anything is open and that is not allowed, else 0. UserError where a
    criterion had nothing to compare."""
    if any(outcome.worse for outcome in found):
        return WORSE
    empty = [outcome.criterion for outcome in found if not outcome.compared]
    if empty:
        raise UserError(f"--fail-on: nothing to compare by {', '.join(empty)}: no case has a value in both files")
    return OPEN if not allow_inconclusive and any(outcome.open for outcome in found) else 0
