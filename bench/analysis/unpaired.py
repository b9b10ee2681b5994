"""How uncertain a ratio of two cases is that were measured one after the other: a hierarchical block bootstrap.

A case's latency is the median over visits of each visit's median. It is redrawn by visits and, within a visit, by
moving blocks of its samples in order of time, each as long as the square root of their number, for samples that follow
each other are alike. What is kept of the redrawn latencies is the variance of their logarithm. n visits drawn from n
differ too little by (n - 1) / n, which is put right. The two sides are independent, so their variances add up, and
Student's t makes an interval of the sum, with the degrees of freedom of Welch and Satterthwaite.

Coverage of the 95 % interval in 1,000 simulated pairs of files each, over visits of 60 samples, visits and samples
each with a standard deviation of 2 %, the samples independent or with a correlation of 0.9 from one to the next, beside
that of plain percentiles of the same redrawn latencies (tests/analysis/test_unpaired.py repeats it with fewer):

    visits a side               2 and 2   2 and 4   3 and 3   4 and 4   6 and 6   12 and 12
    independent                   98.9      97.7      98.9      98.0      97.1      96.7 %
    correlated                    99.2      98.5      99.5      99.2      98.2      97.0 %
    percentiles, independent      68.6      84.2      90.3      92.2      94.1      96.7 %
    percentiles, correlated       74.2      83.7      91.3      93.2      96.1      97.1 %

Where visits do not differ at all it is nearer to 100 %. So with few visits the interval errs on the wide side, where
plain percentiles err on the narrow one; at two visits a side it reaches 14 % up in the median, at four 4.7 %.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.analysis.cases import CASE, timed
from bench.analysis.statistics import t_quantile

_MEDIANS = 100  # redrawn medians of a visit
_RESAMPLES = 1000  # redrawn latencies of a case

Floats = NDArray[np.float64]
CaseKey = tuple[Hashable, ...]


class Spread(NamedTuple):
    """The variance of the logarithm of a latency (NaN where one visit or none tells it), and over how many visits."""

    variance: float
    visits: int


class Uncertainty(NamedTuple):
    """Of the latency of a case in one file, as it is and divided by the canary's; `samples` tells them from others."""

    time: Spread
    steady: Spread
    samples: str


def uncertainties(frame: pd.DataFrame) -> dict[CaseKey, Uncertainty]:
    """Of each case that has times, from the visits of one file. The order of its rows does not matter."""
    visits = timed(frame[frame["status"] == "ok"]).sort_values(["run", "visit"])
    return {key: _uncertainty(key, part) for key, part in visits.groupby(list(CASE))}


def _uncertainty(key: CaseKey, visits: pd.DataFrame) -> Uncertainty:
    # Seeded by the case alone, so that nothing but its own samples decides.
    draw = np.random.default_rng(zlib.crc32(" ".join(map(str, key)).encode()))
    medians = np.log([redrawn_medians(np.array(samples), draw) for samples in visits["samples_ms"]])
    canary = np.log(visits["canary_ms"].to_numpy()[:, None])
    told = ~np.isnan(canary[:, 0])
    content = [*zip(visits["run"], visits["visit"], visits["samples_ms"], strict=True)]
    return Uncertainty(
        _spread(medians, draw),
        _spread((medians - canary)[told], draw),
        hashlib.sha256(repr(content).encode()).hexdigest(),
    )


def redrawn_medians(samples: Floats, draw: np.random.Generator) -> Floats:
    """Medians of a visit's samples, redrawn by moving blocks: `_MEDIANS` of them."""
    count = len(samples)
    block = math.ceil(math.sqrt(count))
    starts = draw.integers(count - block + 1, size=(_MEDIANS, math.ceil(count / block)))
    places = (starts[:, :, None] + np.arange(block)).reshape(_MEDIANS, -1)[:, :count]
    medians: Floats = np.median(samples[places], axis=1)
    return medians


def _spread(medians: Floats, draw: np.random.Generator) -> Spread:
    """Of the median over visits, from the logarithms of redrawn medians (visits, `_MEDIANS`)."""
    visits = len(medians)
    if visits < 2:
        return Spread(math.nan, visits)
    which = draw.integers(visits, size=(_RESAMPLES, visits))
    latencies = np.median(medians[which, draw.integers(_MEDIANS, size=which.shape)], axis=1)
    return Spread(float(latencies.var()) * visits / (visits - 1), visits)


def intervals(cases: pd.DataFrame, base: pd.DataFrame, new: pd.DataFrame, reference: str | None = None) -> pd.DataFrame:
    """The compared cases with the 95 % intervals of time_ratio and steady_ratio: time_low, time_high, steady_low and
    steady_high, NaN where there are not two visits a side. `base` and `new` are the visits of the two files.

    What is the very same measurement in both files adds no uncertainty to their ratio.
    """
    sides = uncertainties(base), uncertainties(new)
    variants = ["variant"] if reference is None else ["variant", "reference"]
    bounds = []
    for case in cases.assign(reference=reference).to_dict("records"):
        keys = [tuple(case[axis] for axis in (name, *CASE[1:])) for name in variants]
        terms = [term for key in keys for term in _terms(key, *sides)]
        bounds.append(
            (
                *interval(case["time_ratio"], [term.time for term in terms]),
                *interval(case["steady_ratio"], [term.steady for term in terms]),
            )
        )
    columns = ["time_low", "time_high", "steady_low", "steady_high"]
    return cases.join(pd.DataFrame(bounds, columns=columns, index=cases.index, dtype=float))


_UNKNOWN = Uncertainty(Spread(math.nan, 0), Spread(math.nan, 0), "")


def _terms(key: CaseKey, *sides: dict[CaseKey, Uncertainty]) -> Iterable[Uncertainty]:
    """What adds to the uncertainty of a case's ratio: both sides of it, or neither if they are one measurement."""
    both = [side.get(key, _UNKNOWN) for side in sides]
    return () if both[0].samples == both[1].samples != "" else both


def interval(ratio: float, spreads: Sequence[Spread]) -> tuple[float, float]:
    """The 95 % interval of a ratio to whose logarithm independent terms of these variances add up."""
    total = math.fsum(spread.variance for spread in spreads)
    if math.isnan(ratio) or math.isnan(total):
        return math.nan, math.nan
    freedom = math.fsum(spread.variance**2 / (spread.visits - 1) for spread in spreads)
    reach = _t(total**2 / freedom) * math.sqrt(total) if freedom else 0.0
    return ratio * math.exp(-reach), ratio * math.exp(reach)


def _t(freedom: float) -> float:
    """Student's t, two-sided 95 %, between whole degrees of freedom in proportion to their inverse."""
    freedom = max(freedom, 1.0)
    below = math.floor(freedom)
    share = (freedom - below) * (below + 1) / freedom
    return (1 - share) * t_quantile(0.975, below) + share * t_quantile(0.975, below + 1)
