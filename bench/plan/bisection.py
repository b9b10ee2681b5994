"""Which length to try next on the way to the longest that fits: the search alone, without a clock or a process.

It grows, twofold and then up to eightfold a try, until a length does not fit, and then closes in from both sides. A
forecast aims each try. Where a try does not halve what is left, the next keeps twice as far from both ends, down to the
plain middle: a forecast that is no good at all costs no more than as many tries again as bisection alone.

Lengths are multiples of the largest power of two that `within` allows, 128 at most: no kernel is judged by a length
that its blocks do not divide, as soon as one such length is close enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Generator

FIRST = 512
_SECOND_GROWTH, _GROWTH = 2, 8  # from one length alone nobody knows how the costs grow
_BLOCK = 128


def search(
    longest: int,
    within: float,
    hopeful: Callable[[int], bool],
    barred: Callable[[int], bool] = lambda length: False,
    first: int = FIRST,
) -> Generator[int, bool, None]:
    """Yields lengths to try, up to `longest`, and is sent whether each fitted.

    It ends when `longest` fitted, or when the longest that fitted and the shortest that did not are within this share
    of each other, or are neighbours. `hopeful` says whether a length is expected to fit; it is asked before each try,
    so that it can learn from those before. A length that is `barred`, since it is not to be tried at all, is yielded
    as the last one only: when all between it and the longest that fitted are too close to tell apart.
    """
    fits, over, margin = 0, math.inf, within
    length = min(first, longest)
    while True:
        before = fits, over
        if (yield length):
            fits = length
        else:
            over = length
        if fits == longest or _close(fits, over, within):
            return
        if not _got_far(before, (fits, over)):
            margin *= 2
        most = min(longest, (_SECOND_GROWTH if fits == first else _GROWTH) * fits, over - 1)
        aim = _aim(fits, over, most, margin, hopeful)
        length = longest if aim == longest else min(longest, _rounded(aim, fits, within))
        while barred(length) and not _close(fits, length, within):
            length = _rounded((fits + length) / 2, fits, within)


def _aim(fits: int, over: float, most: float, margin: float, hopeful: Callable[[int], bool]) -> float:
    """The longest length that is expected to fit, kept away from lengths that were tried."""
    if not fits:
        return over / 2
    lower, upper = fits * (1 + margin), over / (1 + margin)
    if lower >= upper:
        return math.sqrt(fits * over)
    expected = fits + bisect_left(range(fits + 1, int(most) + 1), True, key=lambda length: not hopeful(length))
    return min(max(expected, lower), upper, most)


def _rounded(length: float, fits: int, within: float) -> int:
    """A round length near this one, and longer than what fitted."""
    step = _step(length, within)
    down = int(length // step) * step
    return down if down > fits else fits + _step(fits, within)


def _step(length: float, within: float) -> int:
    """The largest power of two that is within a share of the length, 128 at most."""
    return min(_BLOCK, 1 << (max(1, int(within * length)).bit_length() - 1))


def _close(fits: int, over: float, within: float) -> bool:
    return over - fits <= max(1.0, within * fits)


def _got_far(before: tuple[int, float], after: tuple[int, float]) -> bool:
    """Whether a try doubled the length, halved what is left between the two lengths, or was the first on its side."""
    (fits, over), (more, less) = before, after
    if not fits or over == math.inf:
        return more == fits or more >= 2 * fits
    return math.log(less / more) <= math.log(over / fits) / 2
