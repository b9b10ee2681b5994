"""How a cost grows with the length: a fixed cost and a power law, fitted on logarithms, with the exponent's interval.

    cost(n) = fixed_cost + scale * n ** exponent,     fixed_cost >= 0

Least squares of the logarithms, reweighted so that a stray length does not bend the rest (after Huber, Robust
Statistics, 1981, section 7.8). The interval of the exponent is that of the profile: the exponents at which the other
two can be chosen so that the fit is not significantly worse. It needs no linear approximation, and is wide, as it
should be, where a fixed cost hides the growth. How far a length is off its law is told by the fit and by the visits;
the larger counts, with its own degrees of freedom. tests/analysis/test_growth.py holds the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.analysis.groups import AXES, by, groups
from bench.analysis.lengths import with_lengths
from bench.analysis.scatter import with_scatter
from bench.analysis.statistics import t_quantile

FEWEST_LENGTHS = 4
QUANTITIES = ("latency_ms", "peak_bytes")

_PARAMETERS = 3
_STEEPEST = 4.0
_STRAY = 2.5  # times what is usual: residuals beyond weigh less
_REWEIGHTINGS = 5
_EXACT = 1e-9  # a residual below is none
_POINTS, _ROUNDS = 11, 5  # of a grid, and how often it is zoomed into
_SHARES = np.concatenate([[0.0], np.logspace(-3, 3, 24)])

Floats = NDArray[np.float64]


class Growth(NamedTuple):
    """fixed_cost and scale in the cost's unit, at n tokens: fixed_cost + scale * n ** exponent; the exponent's 95 %
    interval, low to high; and why there is no fit (then the numbers are NaN)."""

    exponent: float = math.nan
    low: float = math.nan
    high: float = math.nan
    fixed_cost: float = math.nan
    scale: float = math.nan
    reason: str = ""


def growths(cases: pd.DataFrame) -> pd.DataFrame:
    """A fit for each problem, variant and quantity ("latency_ms", "peak_bytes") of the cases that are ok.

    Columns: those of `AXES` that the cases have, `fixed` (queries or keys, where they are not of one length), variant,
    exact, quantity, `lengths` (how many), and the fields of `Growth`.
    """
    axes = [axis for axis in AXES if axis in cases]
    rows: list[dict[str, Any]] = []
    for problem, group in groups(cases):
        for fixed, part in by(with_scatter(with_lengths(group)), "fixed"):
            for variant, own in by(part, "variant"):
                same = {**problem, "fixed": fixed, "variant": variant, "exact": bool(own["exact"].iloc[0])}
                rows += [{**same, **found} for found in _of_series(own)]
    return pd.DataFrame(rows, columns=[*axes, "fixed", "variant", "exact", "quantity", "lengths", *Growth._fields])


def _of_series(cases: pd.DataFrame) -> list[dict[str, Any]]:
    """The fits of one variant on one problem, from its cases at all lengths."""
    found = []
    for quantity in QUANTITIES:
        known = cases[cases[quantity] > 0].drop_duplicates("length")
        repeated = known[known["repeats"] > 0] if quantity == "latency_ms" else known[:0]
        variance = float(repeated["variance"].mean()) if len(repeated) else 0.0
        growth = fit(known["length"].to_list(), known[quantity].to_list(), variance, int(repeated["repeats"].sum()))
        found.append({"quantity": quantity, "lengths": len(known), **growth._asdict()})
    return found


def fit(lengths: Sequence[float], costs: Sequence[float], variance: float = 0.0, freedom: int = 0) -> Growth:
    """The growth of these costs, which are above zero.

    `variance` is that of the logarithm of a cost as repetition tells it, with so many degrees of `freedom`; 0 where
    nothing was repeated.
    """
    if len(lengths) < FEWEST_LENGTHS:
        return Growth(reason=f"{len(lengths)} lengths, and a fit wants {FEWEST_LENGTHS} at least")
    law = _Law(np.asarray(lengths, dtype=float), np.log(np.asarray(costs, dtype=float))).robust()
    exponent, share, misfit = law.best()
    left = max(1, int(law.weights.sum()) - _PARAMETERS)
    from_fit = misfit / left
    if from_fit < variance:
        allowed = variance * t_quantile(0.975, left + freedom) ** 2
    else:
        allowed = from_fit * t_quantile(0.975, left) ** 2
    low, high = (law.bound(exponent, end, misfit + allowed) for end in (0.0, _STEEPEST))
    if low <= 0 or high >= _STEEPEST:
        return Growth(reason="the numbers leave open how it grows")
    return Growth(exponent, low, high, *law.costs(exponent, share))


class _Law:
    """The weighted sum of squares over exponent and share, the fixed cost over the rest at the least length.

    Given these two the best scale is a mean of logarithms, so two parameters are left, which are searched on grids
    that are zoomed into around their best points.
    """

    def __init__(self, lengths: Floats, logs: Floats, weights: Floats | None = None) -> None:
        self._lengths, self._logs = lengths, logs
        self.weights = np.ones_like(logs) if weights is None else weights

    def robust(self) -> _Law:
        """Reweighted. What is usual is told by a residual of middling size, which a stray one does not move."""
        law, usual_at = self, -((len(self._logs) - _PARAMETERS) // 2 + 1)
        for _ in range(_REWEIGHTINGS):
            exponent, share, _ = law.best()
            apart = law._logs - law._shape(np.array([[exponent]]), np.array([[share]]))[0, 0]
            residuals = np.abs(apart - np.average(apart, weights=law.weights))
            usual = max(np.sort(residuals)[usual_at], _EXACT)
            before, law = (
                law.weights,
                _Law(self._lengths, self._logs, np.minimum(1.0, (_STRAY * usual / (residuals + _EXACT)) ** 2)),
            )
            if np.allclose(before, law.weights, atol=0.01):
                break
        return law

    def best(self) -> tuple[float, float, float]:
        """(exponent, share, sum of squares) where the last is least."""
        exponents = np.linspace(0.0, _STEEPEST, _POINTS)
        for _ in range(_ROUNDS):
            misfits, shares = self._profile(exponents)
            at = int(misfits.argmin())
            found = float(exponents[at]), float(shares[at]), float(misfits[at])
            exponents = np.linspace(exponents[max(at - 1, 0)], exponents[min(at + 1, _POINTS - 1)], _POINTS)
        return found

    def bound(self, exponent: float, end: float, allowed: float) -> float:
        """How far from its best towards `end` the exponent can go until the sum of squares exceeds what is allowed."""
        inside, outside = exponent, end
        for _ in range(_ROUNDS):
            exponents = np.linspace(inside, outside, _POINTS)
            beyond = self._profile(exponents)[0] > allowed
            if not beyond[1:].any():
                return outside
            first = max(1, int(beyond.argmax()))
            inside, outside = float(exponents[first - 1]), float(exponents[first])
        return outside

    def costs(self, exponent: float, share: float) -> tuple[float, float]:
        """(fixed cost, scale), in the cost's unit."""
        apart = self._logs - self._shape(np.array([[exponent]]), np.array([[share]]))[0, 0]
        level = math.exp(np.average(apart, weights=self.weights))
        return level * share, level / float(self._lengths.min()) ** exponent

    def _profile(self, exponents: Floats) -> tuple[Floats, Floats]:
        """The least sum of squares at each exponent, and the share that gives it."""
        rows = np.arange(len(exponents))
        shares = np.broadcast_to(_SHARES, (len(exponents), len(_SHARES)))
        for _ in range(_ROUNDS):
            misfits = self._misfits(exponents, shares)
            at = misfits.argmin(axis=1)
            last = shares.shape[1] - 1
            low, high = shares[rows, np.maximum(at - 1, 0)], shares[rows, np.minimum(at + 1, last)]
            best, least = shares[rows, at], misfits[rows, at]
            shares = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _POINTS)
        return least, best

    def _misfits(self, exponents: Floats, shares: Floats) -> Floats:
        """Sums of squares (exponents, shares), a row of shares an exponent."""
        apart = self._logs - self._shape(exponents[:, None], shares)
        centre = apart @ (self.weights / self.weights.sum())
        found: Floats = ((apart - centre[..., None]) ** 2) @ self.weights
        return found

    def _shape(self, exponents: Floats, shares: Floats) -> Floats:
        """The logarithm of the law but for its scale, (exponents, shares, lengths)."""
        relative = self._lengths / self._lengths.min()
        found: Floats = np.log(shares[..., None] + relative ** exponents[..., None])
        return found
