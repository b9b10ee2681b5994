"""How a cost grows with the length: a fixed cost and a power law, fitted on logarithms, with the exponent's interval.

    cost(n) = fixed_cost + scale * n ** exponent,     fixed_cost >= 0

Least squares of the logarithms, reweighted so that a length far off the others' law counts the less the farther it is
off, and how many hardly count is told. The interval of the exponent is that of the profile: the exponents at which the
other two can be chosen so that the fit is not significantly worse. It needs no linear approximation, and is wide, as it
should be, where a fixed cost hides the growth. How far lengths are off their law is told by the fit and by the visits.
The larger counts: the fit's with its own degrees of freedom, the visits' with those of both, for then the law holds.
tests/analysis/test_growth.py holds the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.analysis.groups import Group, records
from bench.analysis.statistics import t_quantile

FEWEST_LENGTHS = 4

_PARAMETERS = 3
_STEEPEST = 4.0
_STRAY = 2.5  # times what is usual: residuals beyond weigh less
_REWEIGHTINGS = 5
_HARDLY = 0.25  # a weight below
_EXACT = 1e-9  # a residual below is none
_POINTS, _ROUNDS = 11, 5  # of a grid of exponents, and how often it is zoomed into
_STEPS, _LONGEST_STEP = 4, 1.2  # towards the best share; a factor of 3, as far as the grid's points are apart

Floats = NDArray[np.float64]


class Growth(NamedTuple):
    """fixed_cost and scale in the cost's unit, at n tokens: fixed_cost + scale * n ** exponent; the exponent's 95 %
    interval, low to high; how many lengths are so far off that they hardly count; and why there is no fit (then what is
    not known is NaN)."""

    exponent: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed_cost: float = math.nan
    scale: float = math.nan
    strays: int = 0
    reason: str = ""


def growths(series: Sequence[Group]) -> pd.DataFrame:
    """A fit for each series, variant and quantity ("latency_ms", "peak_bytes") of the cases that are ok.

    Columns: `series` (its place among these), those of its problem, variant, exact, quantity, `lengths` (how many), and
    the fields of `Growth`.
    """
    rows: list[dict[str, Any]] = []
    for at, (problem, part) in enumerate(series):
        for variant, found in groupby(records(part, "variant", "length"), key=itemgetter("variant")):
            own = list(found)
            same = {"series": at, **problem, "variant": variant, "exact": own[0]["exact"]}
            rows += [{**same, **growth} for growth in (_of_latency(own), _of_memory(own))]
    return pd.DataFrame(rows)


def _of_latency(own: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The fit of one variant on one problem, through means over visits: those are what the variance is of."""
    known = {case["length"]: case for case in own if case["latency_ms"] > 0}
    variances = [case["variance"] for case in known.values() if case["variance"] >= 0]
    repeats = int(sum(case["repeats"] for case in known.values()))
    means = {n: math.exp(case["centre"]) for n, case in known.items()}
    return _found("latency_ms", means, *((fmean(variances), repeats) if variances else (0.0, 0)))


def _of_memory(own: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return _found("peak_bytes", {case["length"]: case["peak_bytes"] for case in own if case["peak_bytes"] > 0})


def _found(quantity: str, costs: Mapping[int, float], variance: float = 0.0, freedom: int = 0) -> dict[str, Any]:
    growth = fit(list(costs), list(costs.values()), variance, freedom)
    return {"quantity": quantity, "lengths": len(costs), **growth._asdict()}


def fit(lengths: Sequence[float], costs: Sequence[float], variance: float = 0.0, freedom: int = 0) -> Growth:
    """The growth of these costs, which are above zero.

    `variance` is that of the logarithm of a cost as repetition tells it, with so many degrees of `freedom`; 0 where
    nothing was repeated.
    """
    if len(lengths) < FEWEST_LENGTHS:
        return Growth(reason=f"{len(lengths)} lengths, and a fit wants {FEWEST_LENGTHS} at least")
    law, best = _Law(np.asarray(lengths, dtype=float), np.log(np.asarray(costs, dtype=float))).robust()
    exponent, share, misfit = best
    left = max(1, int(law.weights.sum()) - _PARAMETERS)
    from_fit = misfit / left
    if from_fit < variance:
        allowed = variance * t_quantile(0.975, left + freedom) ** 2
    else:
        allowed = from_fit * t_quantile(0.975, left) ** 2
    low, high = (law.bound(best, end, allowed) for end in (0.0, _STEEPEST))
    if low <= 0 and high >= _STEEPEST:
        return Growth(reason="the numbers leave open how it grows")
    if low <= 0:
        return Growth(low=0.0, high=high, reason=f"it need not grow at all, and grows as n^{high:.2f} at most")
    if high >= _STEEPEST:
        return Growth(low=low, reason=f"it grows as n^{low:.2f} at least")
    return Growth(exponent, low, high, *law.costs(exponent, share), strays=int((law.weights < _HARDLY).sum()))


class _Law:
    """The weighted sum of squares over exponent and share, the fixed cost over the rest at the least length.

    Given these two the best scale is a mean of logarithms. The exponent is searched on a grid that is zoomed into.
    """

    def __init__(self, lengths: Floats, logs: Floats, weights: Floats | None = None) -> None:
        self._lengths, self._logs = lengths, logs
        self._relative = lengths / lengths.min()
        self.weights = np.ones_like(logs) if weights is None else weights
        # Up to the share beside which the steepest law would hardly show.
        most = max(3.0, _STEEPEST * math.log10(lengths.max() / lengths.min()) + 1)
        self._shares = np.concatenate([[0.0], np.logspace(-3, most, int(2 * (3 + most)))])

    def robust(self) -> tuple[_Law, tuple[float, float, float]]:
        """Reweighted, with its best point. What is usual is told by a residual of middling size, which a stray one does
        not move."""
        law, best, usual_at = self, self.best(), -((len(self._logs) - _PARAMETERS) // 2 + 1)
        for _ in range(_REWEIGHTINGS):
            residuals = np.abs(law._centred(self._logs - np.log(best[1] + self._relative ** best[0])))
            usual = max(np.sort(residuals)[usual_at], _EXACT)
            weights = np.minimum(1.0, (_STRAY * usual / (residuals + _EXACT)) ** 2)
            if np.allclose(law.weights, weights, atol=0.01):
                break
            law = _Law(self._lengths, self._logs, weights)
            best = law.best()
        return law, best

    def best(self) -> tuple[float, float, float]:
        """(exponent, share, sum of squares) where the last is least."""
        exponents = np.linspace(0.0, _STEEPEST, _POINTS)
        for _ in range(_ROUNDS):
            misfits, shares = self._profile(exponents)
            at = int(misfits.argmin())
            found = float(exponents[at]), float(shares[at]), float(misfits[at])
            exponents = np.linspace(exponents[max(at - 1, 0)], exponents[min(at + 1, _POINTS - 1)], _POINTS)
        return found

    def bound(self, best: tuple[float, float, float], end: float, allowed: float) -> float:
        """How far from its best towards `end` the exponent can go until the sum of squares grows by what is allowed.

        The root of the growth is all but straight, so that the last step is interpolated.
        """
        (inside, _, least), outside, root = best, end, math.sqrt(allowed)
        for _ in range(2):
            exponents = np.linspace(inside, outside, _POINTS)
            roots = np.sqrt(np.maximum(self._profile(exponents)[0] - least, 0.0))
            beyond = roots[1:] > root
            if not beyond.any():
                return outside
            at = int(beyond.argmax())
            inside, outside = float(exponents[at]), float(exponents[at + 1])
        low, high = roots[at : at + 2]
        return inside + (outside - inside) * float((root - low) / (high - low))

    def costs(self, exponent: float, share: float) -> tuple[float, float]:
        """(fixed cost, scale), in the cost's unit."""
        apart = self._logs - np.log(share + self._relative**exponent)
        level = math.exp(np.average(apart, weights=self.weights))
        return level * share, level / float(self._lengths.min()) ** exponent

    def _profile(self, exponents: Floats) -> tuple[Floats, Floats]:
        """The least sum of squares at each exponent, and the share that gives it: the best of a grid, improved by
        Gauss and Newton's steps in its logarithm."""
        powers = self._relative ** exponents[:, None]
        grid = self._misfits(self._shares[:, None] + powers[:, None, :])
        at = grid.argmin(axis=1)
        best, least = self._shares[at], grid[np.arange(len(at)), at]
        share = np.maximum(best, self._shares[1])
        for _ in range(_STEPS):
            inner = share[:, None] + powers
            apart, slope = self._centred(self._logs - np.log(inner)), self._centred(share[:, None] / inner)
            step = (apart * slope) @ self.weights / np.maximum((slope**2) @ self.weights, _EXACT**2)
            share = share * np.exp(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        misfit = self._misfits(share[:, None] + powers)
        better = misfit < least
        return np.where(better, misfit, least), np.where(better, share, best)

    def _misfits(self, shape: Floats) -> Floats:
        """Sums of squares at the best scale, of laws (..., lengths) known but for that."""
        found: Floats = self._centred(self._logs - np.log(shape)) ** 2 @ self.weights
        return found

    def _centred(self, values: Floats) -> Floats:
        found: Floats = values - (values @ self.weights)[..., None] / self.weights.sum()
        return found
