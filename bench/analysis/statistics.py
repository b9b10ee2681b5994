"""Intervals of measured times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache


@cache
def t_quantile(level: float, freedom: int) -> float:
    """The t that Student's variable of so many degrees of freedom is below with this probability, at least one half.

    By bisection of the distribution function, which is a finite sum (Abramowitz and Stegun, Handbook of Mathematical
    Functions, 26.7.3 and 26.7.4).
    """
    low, high = 0.0, 1.0
    while _t_below(high, freedom) < level:
        high *= 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _t_below(middle, freedom) < level else (low, middle)
    return high


def _t_below(t: float, freedom: int) -> float:
    angle = math.atan(t / math.sqrt(freedom))
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for i in range(2 + odd, freedom + 1, 2):
        total += term
        term *= (i - 1) / i * math.cos(angle) ** 2
    within = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + within) / 2


def log_t_interval(medians: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a time from its medians in several visits: Student's t on their logarithms.

    Visits differ by factors, not by milliseconds, hence the logarithms. One visit says nothing about the
    next: NaN.
    """
    if len(medians) < 2:
        return math.nan, math.nan
    logs = [math.log(median) for median in medians]
    centre = statistics.fmean(logs)
    reach = t_quantile(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(centre - reach), math.exp(centre + reach)
