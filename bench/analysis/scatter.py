"""How far the visits to a case lie apart, and with that the ratio of two cases with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import polygamma, psi

from bench.analysis.statistics import t_quantile

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
    degrees of `freedom`, and `repeats`: how many visits beyond the first it was read from.

    The variance is moderated: it lies between the case's own, as its 95 % interval tells it, and what is usual among
    these cases, which counts like as many visits as it deserves by how alike their variances are. A case that was
    visited once has the usual one alone. NaN where no case was visited twice.
    """
    visits = cases["quiet"].where(cases["quiet"] > 0, cases["visits"])
    repeats = (visits - 1).where(cases["low_ms"] > 0, 0)
    known = repeats > 0
    reach = np.log(cases["high_ms"] / cases["low_ms"])[known] / 2
    of_one_visit = visits[known] * (reach / repeats[known].map(lambda r: t_quantile(0.975, int(r)))) ** 2
    usual, weight = _usual(of_one_visit.to_numpy(), repeats[known].to_numpy(dtype=float))
    own = of_one_visit.reindex(cases.index).fillna(0.0)
    freedom = repeats + weight
    variance = (repeats * own + weight * usual) / freedom.where(freedom > 0)
    centre = np.log(cases["low_ms"]).add(np.log(cases["high_ms"])) / 2
    return cases.assign(
        centre=centre.fillna(np.log(cases["latency_ms"])),
        variance=variance / visits.where(visits > 0),
        freedom=freedom,
        repeats=repeats,
    )


def _usual(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The usual variance among these, and the degrees of freedom that it counts for: fewer, the less alike they are.

    Moments of the logarithms of variances whose true values scatter (Smyth, Linear Models and Empirical Bayes Methods,
    2004, https://doi.org/10.2202/1544-6115.1027, section 6.2).
    """
    above = variances > 0
    logs, halves = np.log(variances[above]), freedoms[above] / 2
    if len(logs) < 2:
        return (float(variances.mean()), float(freedoms.min(initial=0))) if len(variances) else (math.nan, 0.0)
    centred = logs - psi(halves) + np.log(halves)
    excess = centred.var(ddof=1) - polygamma(1, halves).mean()
    weight = 2 * _inverse_trigamma(excess) if excess > 0 else math.inf
    weight = min(weight, float(freedoms.sum()))  # it never counts for more than it was made of
    return math.exp(centred.mean() + psi(weight / 2) - math.log(weight / 2)), weight


def _inverse_trigamma(value: float) -> float:
    """The x above zero whose trigamma this is; trigamma(x) lies between 1 / x and 1 / x + 1 / x ** 2."""
    return float(brentq(lambda x: float(polygamma(1, x)) - value, 0.5 / value, 1 / value + 1 / math.sqrt(value)))


def ratio(one: Mapping[str, Any], other: Mapping[str, Any], level: float = 0.95) -> Ratio:
    """The latency of one case over that of another, with the interval of this level by Welch's t on logarithms."""
    value = one["latency_ms"] / other["latency_ms"]
    variance = one["variance"] + other["variance"]
    if math.isnan(variance):
        return Ratio(value, math.nan, math.nan)
    if variance == 0:
        return Ratio(value, value, value)
    freedom = variance**2 / sum(case["variance"] ** 2 / case["freedom"] for case in (one, other))
    reach = t_quantile((1 + level) / 2, max(1, int(freedom))) * math.sqrt(variance)
    centre = one["centre"] - other["centre"]
    return Ratio(value, min(value, math.exp(centre - reach)), max(value, math.exp(centre + reach)))
