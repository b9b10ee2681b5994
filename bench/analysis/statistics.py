"""Intervals of measured times, and the functions that they need, where SciPy would take a second to load."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache

_ASYMPTOTIC = 12.0  # from here on the first terms of the series are right to twelve digits


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


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of what these are samples of, by Student's t; NaN of one value, which says nothing
    about the next."""
    if len(values) < 2:
        return math.nan, math.nan
    centre = statistics.fmean(values)
    reach = t_quantile(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return centre - reach, centre + reach


def log_t_interval(medians: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a time from its medians in several visits, by their logarithms: visits differ by factors,
    not by milliseconds."""
    low, high = t_interval([math.log(median) for median in medians])
    return math.exp(low), math.exp(high)


def digamma(x: float) -> float:
    """The derivative of the gamma function's logarithm, for x above zero; Abramowitz and Stegun, 6.3.5 and 6.3.18."""
    below = 0.0
    while x < _ASYMPTOTIC:
        below, x = below + 1 / x, x + 1
    square = x**-2
    return math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240))) - below


def trigamma(x: float) -> float:
    """The derivative of digamma, for x above zero; Abramowitz and Stegun, 6.4.6 and 6.4.12."""
    below = 0.0
    while x < _ASYMPTOTIC:
        below, x = below + x**-2, x + 1
    square = x**-2
    series = square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return (1 + 0.5 / x + series) / x + below


def inverse_trigamma(value: float) -> float:
    """The x at which trigamma, which falls, has this value above zero; by bisection."""
    low, high = 0.5 / value, 1 / value + 1 / math.sqrt(value)  # trigamma lies between 1 / x and 1 / x + 1 / x ** 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return high
