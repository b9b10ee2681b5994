"""What a gate's rows say of each contest: the verdict on its time, and what else became worse or better."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.analysis.cases import BADNESS, CASE
from bench.analysis.comparison import environments
from bench.analysis.decision import FASTER, INCONCLUSIVE, NOT_COMPARABLE, SLOWER, Found, Rules, decide
from bench.analysis.differences import got_worse
from bench.analysis.text import percent, plain, size
from bench.analysis.verdicts import SLACK_BYTES, SLACK_ERROR
from bench.errors import UserError
from bench.results.paired import IN_TURNS, PAIRED_METHOD, PRESSING, SIDES, pair_number, threshold_of

# A peak is worse that grew by more than both of either pair: of a small one 1 MiB would be half.
MEMORY_SLACK = ((0.01, SLACK_BYTES), (0.10, 2**16))

WORSE, BETTER, OPEN, NOTED = "worse", "better", "open", "noted"


@dataclass(frozen=True)
class Finding:
    """Something that is to be told of a contest, and what it amounts to: WORSE, BETTER, OPEN or NOTED."""

    text: str
    amounts_to: str


@dataclass(frozen=True)
class Outcome:
    """What became of a contest. Times are medians over pairs; ratios, of new / base, are NaN where there are none."""

    base: dict[str, Any]
    new: dict[str, Any]
    verdict: str
    pairs: int
    base_ms: float = math.nan
    new_ms: float = math.nan
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    memory_ratio: float = math.nan
    findings: list[Finding] = field(default_factory=list)

    def amounts_to(self, what: str) -> bool:
        """Whether anything that was found amounts to this."""
        return any(finding.amounts_to == what for finding in self.findings)


def exit_status(outcomes: Sequence[Outcome], allow_inconclusive: bool = False) -> int:
    """1 where anything is worse, 2 where nothing was compared, 3 where something is open, else 0."""
    if any(outcome.amounts_to(WORSE) for outcome in outcomes):
        return 1
    if all(outcome.verdict == NOT_COMPARABLE for outcome in outcomes):
        return 2
    return 3 if not allow_inconclusive and any(outcome.amounts_to(OPEN) for outcome in outcomes) else 0


def outcomes(frame: pd.DataFrame, rules: Rules) -> list[Outcome]:
    """The outcome of each contest in the rows of one gate, by the same rules, in the same order as when it ran."""
    contests = [_Rows(rows) for rows in _contests(frame)]
    timed = [contest for contest in contests if contest.timed]
    found = decide(_Replay([contest.numbers for contest in timed]).draw, len(timed), rules)
    places = {id(contest): at for at, contest in enumerate(timed)}
    return [_outcome(contest, found, places.get(id(contest)), rules) for contest in contests]


def threshold_in(frame: pd.DataFrame) -> float | None:
    """The threshold that the gate was given whose rows these are."""
    return threshold_of(str(frame["run"].iloc[0]))


def environment_of(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """What differs between the environments of base and new: column -> (base, new)."""
    return environments(*(frame[frame["run"].str.endswith(f"-{side}")] for side in SIDES))


def _contests(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each contest, in the order of the file. UserError for rows that are no gate's, or of several."""
    if set(frame["method"]) != {PAIRED_METHOD}:
        raise UserError(f"these rows are not paired; accepted: a file that bench.gate wrote (method {PAIRED_METHOD})")
    parts = frame["run"].str.rpartition("-")
    if parts[0].nunique() != 1 or not set(parts[2]) <= set(SIDES):
        raise UserError(f"one run of bench.gate is expected, and these are {', '.join(sorted(frame['run'].unique()))}")
    rows = frame.assign(side=parts[2])
    variants = [set(rows.loc[rows["side"] == side, "variant"]) for side in SIDES]
    two_variants = all(len(names) == 1 for names in variants) and variants[0] != variants[1]
    axes = [axis for axis in CASE if axis != "variant" or not two_variants]
    for _, part in rows.groupby(axes, sort=False):
        yield part


class _Rows:
    """The rows of one contest: the worst of either side, and the numbers of its pairs."""

    def __init__(self, rows: pd.DataFrame) -> None:
        sides = [rows[rows["side"] == side].sort_values("visit") for side in SIDES]
        if not all(len(side) for side in sides) or sides[0]["visit"].to_list() != sides[1]["visit"].to_list():
            row = rows.iloc[0]
            raise UserError(
                f"{plain(row['variant'])}, {row['mask']}, {row['direction']}: a pair lacks one of its two rows"
            )
        self.base, self.new = (_worst(side) for side in sides)
        self.rows = [side.to_dict("records") for side in sides]
        self.timed = self.base["status"] == self.new["status"] == "ok"
        self.numbers = [_number(base, new) for base, new in zip(*self.rows, strict=True)] if self.timed else []

    def milliseconds(self, side: int, pairs: int) -> float:
        """The median over the last so many pairs."""
        return float(statistics.median(row["latency_ms"] for row in self.rows[side][-pairs:]))


def _worst(side: pd.DataFrame) -> dict[str, Any]:
    at = side["status"].map(BADNESS.index).argmin()
    return {str(name): value for name, value in side.iloc[at].to_dict().items()}


def _number(base: dict[Any, Any], new: dict[Any, Any]) -> float:
    return pair_number(base["samples_ms"], new["samples_ms"], base["canary_samples_ms"])


class _Replay:
    """Gives the decision the numbers that a run got, in the order in which it got them."""

    def __init__(self, numbers: Sequence[Sequence[float]]) -> None:
        self._numbers = numbers
        self._taken = [0] * len(numbers)

    def draw(self, at: NDArray[np.intp], pairs: int, confirming: bool) -> NDArray[np.float64] | None:
        taken = [self._numbers[i][self._taken[i] : self._taken[i] + pairs] for i in at]
        if any(len(numbers) < pairs for numbers in taken):
            return None
        for i in at:
            self._taken[i] += pairs
        return np.array(taken)


def _outcome(contest: _Rows, found: Found, place: int | None, rules: Rules) -> Outcome:
    base, new = contest.base, contest.new
    findings = [*_status(base, new), *_memory(base, new), *_accuracy(base, new)]
    memory_ratio = _ratio(new["peak_bytes"], base["peak_bytes"])
    if place is None:
        return Outcome(base, new, NOT_COMPARABLE, 0, memory_ratio=memory_ratio, findings=findings)
    ratio, low, high, visible = (float(getattr(found, name)[place]) for name in ("ratio", "low", "high", "visible"))
    verdict, pairs = str(found.verdict[place]), int(found.pairs[place])
    if base["variant"] == new["variant"] and base["kernel"] != new["kernel"]:
        findings.append(Finding(f"another kernel: {plain(base['kernel'])} → {plain(new['kernel'])}", OPEN))
        verdict = verdict if verdict == SLOWER else NOT_COMPARABLE  # slower it is, for whatever reason
    if math.isnan(ratio):
        findings.append(Finding("time: nothing is known of it", OPEN))
    else:
        told = f"time: {change(ratio)} ({change(low)} to {change(high)})"
        findings += _time(told, verdict, str(found.suspected[place]), high < 1 + rules.threshold, visible)
    return Outcome(
        base,
        new,
        verdict,
        pairs,
        contest.milliseconds(0, pairs),
        contest.milliseconds(1, pairs),
        ratio,
        low,
        high,
        memory_ratio,
        findings,
    )


def _status(base: dict[str, Any], new: dict[str, Any]) -> Iterator[Finding]:
    before, after = base["status"], new["status"]
    if before == after == "ok":
        return
    told = " → ".join(row["status"] + (f" ({plain(row['reason'])})" if row["reason"] else "") for row in (base, new))
    if before == after:
        amounts_to = OPEN if new["reason"] == PRESSING else NOTED
        yield Finding(f"{after} on both sides ({plain(new['reason'])})", amounts_to)
    elif _lost_by_chance(base) or (_lost_by_chance(new) and after == "oom"):
        yield Finding(f"status: {told}", OPEN)
    elif after == "ok":
        yield Finding(f"status: {told}", BETTER)
    else:
        yield Finding(f"status: {told}", WORSE if got_worse(before, after) else NOTED)


def _lost_by_chance(row: dict[str, Any]) -> bool:
    """Whether a side that is right by itself was lost while it was timed. Memory that does not do for both sides at
    once, or a base that dies, says nothing against new."""
    return str(row["reason"]).startswith(IN_TURNS)


def _memory(base: dict[str, Any], new: dict[str, Any]) -> Iterator[Finding]:
    before, after = base["peak_bytes"], new["peak_bytes"]
    for small, large, amounts_to in ((before, after, WORSE), (after, before, BETTER)):
        if any(large - small > max(slack_bytes, share * small) for share, slack_bytes in MEMORY_SLACK):
            grown = f" ({change(after / before)})" if before else ""
            yield Finding(f"peak memory: {size(before)} → {size(after)}{grown}", amounts_to)


def _accuracy(base: dict[str, Any], new: dict[str, Any]) -> Iterator[Finding]:
    """An exact variant is wrong or right; of an approximation the error itself is compared."""
    if not base["exact"] and not new["exact"] and new["error"] > (1 + SLACK_ERROR) * base["error"]:
        yield Finding(f"error: {base['error']:.1e} → {new['error']:.1e}", WORSE)


def _time(told: str, verdict: str, suspected: str, surely_not_slower: bool, visible: float) -> Iterator[Finding]:
    if verdict == SLOWER:
        yield Finding(told, WORSE)
    elif verdict == FASTER:
        yield Finding(told, BETTER)
    elif verdict == INCONCLUSIVE and suspected == SLOWER:
        yield Finding(f"{told}; it stood out as slower, and is not confirmed", OPEN)
    elif verdict == INCONCLUSIVE and surely_not_slower:
        yield Finding(f"{told}: the same or faster, and not slower by the threshold", NOTED)
    elif verdict == INCONCLUSIVE:
        yield Finding(f"{told}, not decided; a change of {percent(visible)} would have stood out", OPEN)


def change(ratio: float) -> str:
    """A ratio as a change: +5.1 %. A sign and one decimal, for a change is compared with a threshold."""
    return "" if math.isnan(ratio) else f"{100 * (ratio - 1):+.1f} %"


def _ratio(new: float, base: float) -> float:
    return new / base if base > 0 else math.nan
