"""The rows of a gate: what makes two of them a pair, and the one number that a pair of processes yields.

Base and new are runs of their own, named RUN-at-THRESHOLD-base and -new; a pair of processes has the same visit number
in both.
The samples of its two rows are its blocks, in order; `canary_samples_ms` holds the reference, before the first block
and after each.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.results.columns import METHOD, Case

PAIRED_METHOD = f"{METHOD} gate"  # its times are not to be pooled with those of visits
SIDES = ("base", "new")

# Reasons of rows, by which it is known again what became of a contest.
IN_TURNS = "in turns: "  # right by itself, and lost while it was timed
NO_TIME = "no time left in the budget"
PRESSING = f"{NO_TIME}, though changed files affect it"

MOVED = 1.5  # times as long after a block as before it, or the other way round: something happened in between
_TRIM = 0.25  # of the blocks, at either end


@dataclass(frozen=True)
class Contest:
    """What is compared: a case of the base, and the same, or the same problem by another variant, of the new side.

    `pressing` is whether changed files affect it, so that it cannot be passed over and all be well.
    """

    base: Case
    new: Case
    pressing: bool = False


def run_of(name: str, threshold: float, side: str) -> str:
    """The name of a side's run, from that of the gate's."""
    return f"{name}-at-{threshold:g}-{side}"


def threshold_of(run: str) -> float | None:
    """The threshold that a gate was given, from the name of a side's run; None where it is no such name."""
    found = re.search(r"-at-([0-9.]+(?:e-[0-9]+)?)-\w+$", run)
    return float(found[1]) if found else None


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
