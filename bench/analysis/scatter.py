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

    The variance is moderated (`_moderated`); a case with one quiet visit has that of its variant's quiet visits.
    `pooled` is what all of it was read from: no interval is worth more. NaN where no case was visited twice, and for a
    case with a single visit that was disturbed.
    """
    visits = cases["quiet"].where(cases["quiet"] > 0, cases["visits"])
    repeats = (visits - 1).where(cases["low_ms"] > 0, 0)
    known = repeats > 0
    reach = np.log(cases["high_ms"] / cases["low_ms"])[known] / 2
    of_one_visit = visits[known] * (reach / repeats[known].map(lambda r: t_quantile(0.975, int(r)))) ** 2
    kinds = cases["variant"].where(cases["quiet"] > 0, cases["variant"] + ", disturbed")
    variance, freedom = _moderated(of_one_visit.reindex(cases.index).fillna(0.0), repeats, kinds)
    told = known | (cases["quiet"] > 0)
    centre = np.log(cases["low_ms"]).add(np.log(cases["high_ms"])) / 2
    pooled = float(repeats.sum())
    return cases.assign(
        centre=centre.fillna(np.log(cases["latency_ms"])),
        variance=(variance / visits.where(visits > 0)).where(told),
        freedom=freedom.clip(upper=pooled),
        pooled=pooled,
        repeats=repeats,
    )


def _moderated(own: pd.Series, repeats: pd.Series, kinds: pd.Series) -> tuple[pd.Series, pd.Series]:
    """The variance of one visit to each case, between its own and what is usual, and the degrees of freedom of that.

    Twice, for variants are far less alike in it than the lengths of one are, and quiet visits lie closer together than
    others: the variance of a kind of cases lies between that of all its visits and what is usual among kinds, that of a
    case between its own and its kind's. Either time what is usual counts like as many visits as it deserves by how
    alike the variances are.
    """
    sums = pd.DataFrame({"squares": repeats * own, "repeats": repeats}).groupby(kinds).sum()
    visited = sums[sums["repeats"] > 0]
    usual, weight = _usual(visited["squares"] / visited["repeats"], visited["repeats"])
    worth = sums["repeats"] + weight
    of_kind = ((sums["squares"] + weight * usual) / worth.where(worth > 0)).reindex(kinds).to_numpy()
    told = (repeats > 0) & (of_kind > 0)
    _, weight = _usual((own / of_kind)[told], repeats[told])
    freedom = repeats + weight
    variance = (repeats * own + weight * of_kind) / freedom.where(freedom > 0)
    return variance, np.minimum(freedom, worth.reindex(kinds).to_numpy())


def _usual(of: pd.Series[float], freedom: pd.Series[float]) -> tuple[float, float]:
    """The usual variance among these, and the degrees of freedom that it counts for: fewer, the less alike they are.

    Moments of the logarithms of variances whose true values scatter (Smyth, Linear Models and Empirical Bayes Methods,
    2004, https://doi.org/10.2202/1544-6115.1027, section 6.2); where they scatter no more than chance has it, the mean.
    """
    variances, freedoms = of.to_numpy(float), freedom.to_numpy(float)
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
    """Of cases of one problem and length, those that may be the fastest: whichever is clearly slower than no other.

    The level of the intervals is raised with the number of the others, so that where several are equally fast one is
    called the fastest alone in one case of twenty at most. (Of k, k - 1 must be found slower. Of their k (k - 1) / 2
    pairs 0.05 / (k - 1) are found unlike by chance, which is 0.025 k on average, and so k - 1 of them no more often
    than 0.025 k / (k - 1).)
    """
    level = 1 - 0.05 / max(1, len(cases) - 1)
    ranked = sorted(cases, key=lambda case: (case["latency_ms"], case["variant"]))
    return [case["variant"] for case in ranked if not any(ratio(case, other, level).low > 1 for other in ranked)]
