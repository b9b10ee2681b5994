"""Whether cases became slower: from one number a pair of processes to a verdict, by rules that are fixed in advance.

A pair of processes measures base and new in turns, block by block, and yields one number a case
(`bench.results.paired`). Blocks of one pair share whatever sets these two processes apart from the next two, such as
where their memory lies, so pairs are the sample, and Student's t over them the interval.

Nothing here measures: `decide` asks for numbers where it needs more, and gets them from live processes, from a file, or
from a simulation, which states how often it is wrong (tests/analysis/test_error_rates.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.analysis.statistics import t_quantile

SLOWER, FASTER, SAME, INCONCLUSIVE, NOT_COMPARABLE = VERDICTS = (
    "SLOWER",
    "FASTER",
    "SAME",
    "INCONCLUSIVE",
    "NOT COMPARABLE",
)

_NOTHING = np.array("", dtype=f"<U{max(map(len, VERDICTS))}")

Floats = NDArray[np.float64]
Draw = Callable[[NDArray[np.intp], int, bool], Floats | None]
"""(which cases, how many pairs, whether to confirm) -> that many more numbers of each (cases, pairs), or None where no
more are to be had."""


@dataclass(frozen=True)
class Rules:
    """What decides.

    threshold    the change that matters, as a fraction: 0.03 is 3 %
    looks        a case is judged after so many pairs, and again while it is undecided
    confirming   the same of fresh pairs, which alone decide on a case that stood out
    error        how often each look, or all looks at fresh pairs together, may be wrong on either side
    """

    threshold: float = 0.03
    looks: tuple[int, ...] = (8, 16, 32)
    confirming: tuple[int, ...] = (8, 16)
    error: float = 0.01


@dataclass(frozen=True)
class Found:
    """What became of each case, in arrays of equal length.

    ratio     new / base; geometric mean over pairs
    low, high 95 % interval of it
    visible   the smallest change that would have stood out, as a fraction
    pairs     how many pairs these numbers are of
    suspected SLOWER or FASTER where it stood out, and so was to be measured by fresh pairs
    verdict   one of VERDICTS
    """

    ratio: Floats
    low: Floats
    high: Floats
    visible: Floats
    pairs: NDArray[np.int64]
    suspected: NDArray[np.str_]
    verdict: NDArray[np.str_]

    def put(self, at: NDArray[np.intp], other: Found) -> None:
        """Replaces what is known of these cases."""
        for name in vars(self):
            getattr(self, name)[at] = getattr(other, name)


def judge(numbers: Floats, threshold: float, error: float = 0.01) -> Found:
    """The verdict on each row of numbers (cases, pairs), which are logarithms of ratios.

    SLOWER where the ratio is at or above the threshold and its one-sided lower bound above 1, FASTER the other way
    round, SAME where both one-sided bounds lie within the threshold. `error` is that of a bound.
    """
    count = numbers.shape[1]
    limit = math.log1p(threshold)
    with np.errstate(invalid="ignore"):
        mean = numbers.mean(1)
        deviation = numbers.std(1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(numbers), np.inf)
    reach = t_quantile(0.975, max(count - 1, 1)) * deviation
    bound = t_quantile(1 - error, max(count - 1, 1)) * deviation
    stands_out = (np.abs(mean) >= limit) & (np.abs(mean) > bound)
    within = np.abs(mean) + bound < limit
    verdict = np.select(
        [~np.isfinite(mean), stands_out & (mean > 0), stands_out, within],
        [NOT_COMPARABLE, SLOWER, FASTER, SAME],
        INCONCLUSIVE,
    )
    with np.errstate(over="ignore", invalid="ignore"):
        ratio, low, high = np.exp(mean), np.exp(mean - reach), np.exp(mean + reach)
        visible = np.expm1(np.maximum(bound, limit))
    return Found(ratio, low, high, visible, np.full(len(numbers), count), np.full(len(numbers), _NOTHING), verdict)


def decide(draw: Draw, cases: int, rules: Rules) -> Found:
    """Looks at each case after more and more pairs until it is decided or the schedule ends, then has what stands out
    confirmed by fresh pairs: these alone are told, for the first were picked for standing out."""
    found = _unknown(cases)
    _look(draw, np.arange(cases), found, rules.looks, False, rules.threshold, rules.error)
    suspects = np.flatnonzero(np.isin(found.verdict, (SLOWER, FASTER)))
    suspected = found.verdict[suspects]
    found.verdict[suspects] = INCONCLUSIVE  # and so it stays where no fresh pairs are to be had
    _look(draw, suspects, found, rules.confirming, True, rules.threshold, rules.error / len(rules.confirming))
    found.suspected[suspects] = suspected
    now = found.verdict[suspects]
    found.verdict[suspects[np.isin(now, (SLOWER, FASTER)) & (now != suspected)]] = INCONCLUSIVE
    return found


def _look(
    draw: Draw,
    undecided: NDArray[np.intp],
    found: Found,
    looks: tuple[int, ...],
    confirming: bool,
    threshold: float,
    error: float,
) -> None:
    """Judges these cases by new numbers, of more and more pairs, and puts what comes of it where they are found."""
    numbers = np.empty((len(undecided), 0))
    for pairs in looks:
        more = draw(undecided, pairs - numbers.shape[1], confirming) if len(undecided) else None
        if more is None:
            return
        numbers = np.concatenate((numbers, more), axis=1)
        now = judge(numbers, threshold, error)
        found.put(undecided, now)
        open_ = now.verdict == INCONCLUSIVE
        undecided, numbers = undecided[open_], numbers[open_]


def _unknown(cases: int) -> Found:
    nan = np.full(cases, np.nan)
    verdict = np.full(cases, INCONCLUSIVE, dtype=_NOTHING.dtype)
    return Found(nan, nan.copy(), nan.copy(), nan.copy(), np.zeros(cases, np.int64), np.full(cases, _NOTHING), verdict)
