"""The rows of a gate: what makes two of them a pair, and the one number that a pair of processes yields.

Base and new are runs of their own, named RUN-base and RUN-new; a pair of processes has the same visit number in both.
The samples of its two rows are its blocks, in order; `canary_samples_ms` holds the reference, before the first block
and after each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from bench.results.columns import METHOD

PAIRED_METHOD = f"{METHOD} gate"  # its times are not to be pooled with those of visits
SIDES = ("base", "new")

MOVED = 1.5  # times as long after a block as before it, or the other way round: something happened in between
_TRIM = 0.25  # of the blocks, at either end


def steady(reference_ms: Sequence[float]) -> list[bool]:
    """Which blocks count, of a reference timed before the first and after each: those in which it did not move."""
    return [max(a, b) <= MOVED * min(a, b) for a, b in pairwise(reference_ms)]


def pair_number(base_ms: Sequence[float], new_ms: Sequence[float], reference_ms: Sequence[float]) -> float:
    """log(new / base) of a pair of processes: the mean over the middle half of its steady blocks, or of all its blocks
    where none was steady. NaN for no block, and for what is no time.

    Single blocks are off by tens of per cent when something else had the core; on recorded pairs of identical code the
    middle half varied two thirds as much from pair to pair as all of them did.
    """
    kept = steady(reference_ms)
    blocks = list(zip(base_ms, new_ms, kept if any(kept) else [True] * len(base_ms), strict=True))
    if not blocks or not all(0 < ms < math.inf for ms in (*base_ms, *new_ms)):
        return math.nan
    logs = sorted(math.log(new / base) for base, new, counts in blocks if counts)
    cut = math.floor(_TRIM * len(logs))
    middle = logs[cut : len(logs) - cut]
    return math.fsum(middle) / len(middle)
