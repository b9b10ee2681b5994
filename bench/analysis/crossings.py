"""Where one variant overtakes another: the length at which their latencies cross, with its interval.

Between two measured lengths the logarithm of the ratio of two latencies is taken to be straight in the logarithm of the
length. What is known of it at a length is a band, from the visits, broadened by how far a curve that bends as the one
through it and its neighbours does can be from the chords that meet there. The crossing is where the middle of the band
is zero, its interval where the band holds zero, and there is one only between two lengths that lie on either side
beyond doubt. Two lengths alone tell nothing of the bend: then the interval is all between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bench.analysis.scatter import Ratio, ratio

Case = Mapping[str, Any]


class Crossing(NamedTuple):
    """From about so many tokens on, low to high, one takes less time than other."""

    tokens: float
    low: float
    high: float
    one_is_faster: bool


def crossings(one: Mapping[int, Case], other: Mapping[int, Case], level: float = 0.95) -> list[Crossing]:
    """Every crossing of two variants on one problem, from their ok cases by length, with intervals of this level."""
    lengths = sorted(set(one) & set(other))
    band = _band({n: ratio(one[n], other[n], level) for n in lengths})
    decided = [point for point in band if point.sign]
    return [_between(band, a, b) for a, b in pairwise(decided) if a.sign != b.sign]


class _Point(NamedTuple):
    """What is known at a length, all of it in logarithms: the ratio of the two latencies, and its bounds."""

    length: float
    middle: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 where one takes longer, -1 where other does, 0 where that is not known."""
        return (self.low > 0) - (self.high < 0)


def _band(ratios: Mapping[int, Ratio]) -> list[_Point]:
    """At the lengths where there is an interval."""
    known = {math.log(n): r for n, r in ratios.items() if r.low > 0}
    middles = [math.log(r.value) for r in known.values()]
    return [
        _Point(place, middle, math.log(r.low) - bend, math.log(r.high) + bend)
        for (place, r), middle, bend in zip(known.items(), middles, _bends(list(known), middles), strict=True)
    ]


def _bends(places: Sequence[float], middles: Sequence[float]) -> list[float]:
    """How far the curve may be from the chords that meet at each point; that of its neighbour at an end."""
    slopes = [(y - x) / (b - a) for (a, x), (b, y) in pairwise(zip(places, middles, strict=True))]
    widths = [b - a for a, b in pairwise(places)]
    inner = [
        abs(after - before) / (left + right) * max(left, right) ** 2 / 4
        for (before, after), (left, right) in zip(pairwise(slopes), pairwise(widths), strict=True)
    ]
    return [inner[0], *inner, inner[-1]] if inner else [0.0] * len(places)


def _between(band: Sequence[_Point], before: _Point, after: _Point) -> Crossing:
    """The crossing between two points of the band that lie on either side of zero."""
    part = [point for point in band if before.length <= point.length <= after.length]
    leaves, enters = ("high", "low") if before.sign < 0 else ("low", "high")
    low, high = _zeros(part, leaves)[0], _zeros(part, enters)[-1]
    if len(band) < 3:  # nothing tells how the curve bends between the two
        low, high = before.length, after.length
    middle = _zeros(part, "middle")
    tokens = middle[len(middle) // 2]
    return Crossing(math.exp(tokens), math.exp(low), math.exp(high), one_is_faster=after.sign < 0)


def _zeros(points: Sequence[_Point], of: str) -> list[float]:
    """Where this line of the band is zero."""
    found = []
    for a, b in pairwise(points):
        x, y = getattr(a, of), getattr(b, of)
        if x * y <= 0 and x != y:
            found.append(a.length + (b.length - a.length) * x / (x - y))
    return found
