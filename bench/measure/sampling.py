"""When to stop sampling: the interval of the median is narrow enough, or the budget is spent."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Timer = Callable[[int], float]
"""(calls) -> milliseconds a call, over that many calls back to back."""

_Z_95 = 1.96


@dataclass(frozen=True)
class Policy:
    """How long to sample one case.

    budget_ms    sampling stops when the samples add up to this
    narrow       ... or when the 95 % interval of the median is within this fraction of it, either side
    block_ms     a sample is at least this long: shorter calls are timed in blocks
    least, most  samples; so calls over a third of a second are sampled three times
    longest_ms   ... but no further once they add up to this, so that a call of more than 5 s is sampled once
    """

    budget_ms: float = 300.0
    narrow: float = 0.01
    block_ms: float = 1.0
    least: int = 3
    most: int = 1000
    longest_ms: float = 5000.0


@dataclass(frozen=True)
class Samples:
    """Time of one call in milliseconds, sample by sample in order, and how many calls each is the mean of."""

    samples_ms: tuple[float, ...]
    calls_per_sample: int


def sample(timer: Timer, policy: Policy, blocks: bool = True) -> Samples:
    """Samples until the policy is content. `blocks=False` where each call is timed alone (device events, backward)."""
    first = timer(1)
    calls = _calls_per_sample(timer, first, policy) if blocks else 1
    samples = [first] if calls == 1 else []
    while not _enough(samples, calls, policy):
        samples.append(timer(calls))
    return Samples(tuple(round(ms, 6) for ms in samples), calls)  # to the nanosecond


def _calls_per_sample(timer: Timer, first: float, policy: Policy) -> int:
    """Under contention one try can read ten times too long, so the least of three tells how many calls fill a block."""
    if first >= 10 * policy.block_ms:
        return 1
    least = min(first, timer(1), timer(1))
    return max(1, math.ceil(policy.block_ms / max(least, 1e-6)))


def _enough(samples: Sequence[float], calls: int, policy: Policy) -> bool:
    if not samples:
        return False
    spent_ms = sum(samples) * calls
    if spent_ms > policy.longest_ms or len(samples) >= policy.most:
        return True
    if len(samples) < policy.least:
        return False
    return spent_ms > policy.budget_ms or interval_width(samples) <= policy.narrow


def interval_width(samples: Sequence[float]) -> float:
    """Half-width of the median's 95 % order-statistic interval, as a fraction of it; inf below six samples.

    The ranks come from the binomial distribution in its normal approximation (Conover, Practical Nonparametric
    Statistics, section 3.2); a test holds them to the exact one.
    """
    rank = interval_rank(len(samples))
    if rank < 1:
        return math.inf
    ordered = sorted(samples)
    return (ordered[-rank] - ordered[rank - 1]) / 2 / statistics.median(ordered)


def interval_rank(n: int) -> int:
    """The r for which the r-th smallest and the r-th largest of n samples hold the median 95 % of the time."""
    return math.floor((n + 1) / 2 - _Z_95 * math.sqrt(n) / 2)
