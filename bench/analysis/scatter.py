"""How far the visits to a case lie apart, and with that the ratio of two cases with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.analysis.statistics import digamma, inverse_trigamma, t_quantile, trigamma

SCATTER = ("centre", "variance", "freedom", "pooled", "repeats")  # what `with_scatter` adds

_ALIKE = 1e9  # degrees of freedom: as good as infinite
_ENOUGH = 100  # of them: more hardly change an interval
_WIDEST = 300.0  # of the logarithm of a bound, which must stay a number

Floats = NDArray[np.float64]


class Ratio(NamedTuple):
    """How many times as long one case takes as another, and an interval of that; NaN where visits do not tell it."""

    value: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether the interval leaves no doubt which of the two takes longer."""
        return self.low > 1 or self.high < 1


def with_scatter(cases: pd.DataFrame) -> pd.DataFrame:
    """Cases of one problem with `centre`, the mean over visits of the logarithm of the latency, its `variance` with
    degrees of `freedom`, and `repeats`: how many visits beyond the first tell how far its visits lie apart.

    The variance is moderated: it lies between the case's own, as its 95 % interval tells it, and what is usual among
    these cases, which counts like as many visits as it deserves by how alike their variances are. A case with one
    quiet visit has the usual one alone. `pooled` is what all of it was read from: no interval is worth more. NaN where
    no case was visited twice, and for a case with a single visit that was disturbed.
    """
    visits = cases["quiet"].where(cases["quiet"] > 0, cases["visits"])
    repeats = (visits - 1).where(cases["low_ms"] > 0, 0)
    known = repeats > 0
    reach = np.log(cases["high_ms"] / cases["low_ms"])[known] / 2
    of_one_visit = visits[known] * (reach / repeats[known].map(lambda r: t_quantile(0.975, int(r)))) ** 2
    usual, weight = _usual(of_one_visit.to_numpy(), repeats[known].to_numpy(dtype=float))
    own = of_one_visit.reindex(cases.index).fillna(0.0)
    pooled, freedom = float(repeats.sum()), repeats + weight
    variance = (repeats * own + weight * usual) / freedom.where(freedom > 0)
    told = known | (cases["quiet"] > 0)
    centre = np.log(cases["low_ms"]).add(np.log(cases["high_ms"])) / 2
    return cases.assign(
        centre=centre.fillna(np.log(cases["latency_ms"])),
        variance=(variance / visits.where(visits > 0)).where(told),
        freedom=freedom.clip(upper=pooled),
        pooled=pooled,
        repeats=repeats,
    )


def _usual(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The usual variance among these, and the degrees of freedom that it counts for: fewer, the less alike they are.

    Moments of the logarithms of variances whose true values scatter (Smyth, Linear Models and Empirical Bayes Methods,
    2004, https://doi.org/10.2202/1544-6115.1027, section 6.2); where they scatter no more than chance has it, the mean.
    """
    if not len(variances):
        return math.nan, 0.0
    mean = float(np.average(variances, weights=freedoms))
    above = variances > 0
    logs, halves = np.log(variances[above]), freedoms[above] / 2
    if len(logs) < 2:
        return mean, float(freedoms.sum())
    centred = logs - np.array([digamma(half) - math.log(half) for half in halves])
    excess = float(centred.var(ddof=1)) - fmean(map(trigamma, halves))
    if excess <= 1e-6:
        return mean, _ALIKE
    weight = 2 * inverse_trigamma(excess)
    return math.exp(centred.mean() + digamma(weight / 2) - math.log(weight / 2)), weight


def ratio(one: Mapping[str, Any], other: Mapping[str, Any], level: float = 0.95) -> Ratio:
    """The latency of one case over that of another, with the interval of this level by Welch's t on logarithms.

    The interval lies about the ratio of the means over visits, and is stretched to hold that of the medians.
    """
    value = one["latency_ms"] / other["latency_ms"]
    variance = one["variance"] + other["variance"]
    if math.isnan(variance) or (variance == 0 and value != 1):  # alike to the last digit is a coarse clock
        return Ratio(value, math.nan, math.nan)
    if variance == 0:
        return Ratio(value, value, value)
    freedom = variance**2 / sum(case["variance"] ** 2 / case["freedom"] for case in (one, other))
    freedom = int(min(freedom, one["pooled"], other["pooled"], _ENOUGH))
    if freedom < 1:
        return Ratio(value, math.nan, math.nan)
    reach = min(t_quantile((1 + level) / 2, freedom) * math.sqrt(variance), _WIDEST)
    centre = one["centre"] - other["centre"]
    return Ratio(value, min(value, math.exp(centre - reach)), max(value, math.exp(centre + reach)))


def leaders(cases: list[dict[str, Any]]) -> list[str]:
    """Of cases of one problem and length, those that may be the fastest: the one measured so, and whichever is not
    clear of it.

    The level of the intervals is raised with the number of the others, so that where several are equally fast one is
    called the fastest alone in one case of twenty at most.
    """
    best, *others = sorted(cases, key=lambda case: (case["latency_ms"], case["variant"]))
    level = 1 - 0.05 / max(1, len(others))
    return [best["variant"], *(case["variant"] for case in others if not ratio(case, best, level).decided)]
