"""Where one variant overtakes another: the length at which their latencies cross, with its interval.

Between two measured lengths the logarithm of the ratio of two latencies is taken to be straight in the logarithm of the
length. What is known of it is a band, from the visits, broadened by how far a curve can be from the chords that bends
twice as much as the one through the measured lengths: between them it may bend more than they show.
There is a crossing only between two lengths that lie on either side beyond doubt; it is where the middle of the band is
zero, and its interval where the band holds zero.

The interval is all between those two lengths where nothing tells how the curve gets from one to the other: where there
are no more, where one is more than twice the next, and where the curve leaps, as when a variant changes its kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bench.analysis.scatter import Ratio, ratio

Case = Mapping[str, Any]

_DOUBLED = math.log(2.01)


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
    """What is known at a length, all of it in logarithms: the ratio of the two latencies, its bounds, and how far from
    the chords that meet here the curve may be."""

    length: float
    middle: float
    low: float
    high: float
    bend: float

    @property
    def sign(self) -> int:
        """1 where one takes longer, -1 where other does, 0 where that is not known."""
        return (self.low > 0) - (self.high < 0)


def _band(ratios: Mapping[int, Ratio]) -> list[_Point]:
    """At the lengths where there is an interval."""
    known = {math.log(n): r for n, r in ratios.items() if r.low > 0}
    middles = [math.log(r.value) for r in known.values()]
    return [
        _Point(place, middle, math.log(r.low), math.log(r.high), bend)
        for (place, r), middle, bend in zip(known.items(), middles, _bends(list(known), middles), strict=True)
    ]


def _bends(places: Sequence[float], middles: Sequence[float]) -> list[float]:
    """How far the curve may be from the chords that meet at each point, were it to bend twice as much as they do; that
    of its neighbour at an end."""
    slopes = [(y - x) / (b - a) for (a, x), (b, y) in pairwise(zip(places, middles, strict=True))]
    widths = [b - a for a, b in pairwise(places)]
    inner = [
        abs(after - before) / (left + right) * max(left, right) ** 2 / 2
        for (before, after), (left, right) in zip(pairwise(slopes), pairwise(widths), strict=True)
    ]
    return [inner[0], *inner, inner[-1]] if inner else [0.0] * len(places)


def _between(band: Sequence[_Point], before: _Point, after: _Point) -> Crossing:
    """The crossing between two points of the band that lie on either side of zero."""
    first, last = band.index(before), band.index(after)
    part = band[first : last + 1]
    lower, upper = [p.low - p.bend for p in part], [p.high + p.bend for p in part]
    leaves, enters = (upper, lower) if before.sign < 0 else (lower, upper)
    lengths = [p.length for p in part]
    coarse = any(b - a > _DOUBLED for a, b in pairwise(lengths))
    if len(band) < 3 or coarse or any(_leaps(band, at) for at in range(first, last)):
        low, high = before.length, after.length
    else:
        low = min(_zeros(lengths, leaves), default=before.length)
        high = max(_zeros(lengths, enters), default=after.length)
    middle = _zeros(lengths, [p.middle for p in part])
    tokens = middle[len(middle) // 2]
    return Crossing(math.exp(tokens), math.exp(low), math.exp(high), one_is_faster=after.sign < 0)


def _leaps(band: Sequence[_Point], at: int) -> bool:
    """Whether the curve is more than twice as steep after this point, up to the next, as before and after that."""
    if not 0 < at < len(band) - 2:
        return False
    before, here, after = (
        abs((b.middle - a.middle) / (b.length - a.length)) for a, b in pairwise(band[at - 1 : at + 3])
    )
    return here > 2 * max(before, after)


def _zeros(lengths: Sequence[float], line: Sequence[float]) -> list[float]:
    """Where a line through these heights is zero."""
    found = []
    for (a, x), (b, y) in pairwise(zip(lengths, line, strict=True)):
        if x * y <= 0 and x != y:
            found.append(a + (b - a) * x / (x - y))
    return found
