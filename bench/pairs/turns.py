"""One pair of processes and one contest: blocks, in each of which either side has one turn.

Base and new take turns of a few milliseconds, so that what the machine does meanwhile befalls both; who is first in a
block is left to chance. A fixed product is timed before the first block and after each: a block during which it changed
was disturbed, is set aside, and another one made.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any, Protocol

from bench.results.paired import Contest, steady


@dataclass(frozen=True)
class Effort:
    """How long a pair works on a contest.

    turn_ms      a turn is at least this long: shorter calls are made several times
    least, most  blocks that count
    side_ms      ... as many as it takes for the turns of a side to add up to this, within these limits
    """

    turn_ms: float = 5.0
    least: int = 10
    most: int = 40
    side_ms: float = 300.0

    def calls(self, call_ms: float) -> int:
        """How many calls of so many milliseconds make a turn."""
        return max(1, math.ceil(self.turn_ms / max(call_ms, 1e-6)))

    def blocks(self, turn_ms: float) -> int:
        """How many blocks with turns of so many milliseconds are wanted."""
        return min(self.most, max(self.least, math.ceil(self.side_ms / max(turn_ms, 1e-6))))


@dataclass(frozen=True)
class Turns:
    """What a pair measured, block by block: milliseconds a call of either side, over how many calls, and of the
    reference, which has one value more."""

    base_ms: tuple[float, ...]
    new_ms: tuple[float, ...]
    reference_ms: tuple[float, ...]
    calls: int


class Asked(Protocol):
    """A process of a side, as far as turns need one."""

    def ask(self, command: str, *arguments: Any, timeout_s: float) -> Any:
        """What the process answers."""


def take_turns(
    base: Asked, new: Asked, contest: Contest, effort: Effort, draw: random.Random, timeout_s: float
) -> Turns:
    """Makes the contest ready on both sides, and then blocks until enough of them count, or twice as many are made."""
    base_ms, repeatable = base.ask("enter", contest.base, timeout_s=timeout_s)
    new_ms, also = new.ask("enter", contest.new, timeout_s=timeout_s)
    calls = effort.calls(min(base_ms, new_ms)) if repeatable and also else 1
    wanted = effort.blocks(calls * (base_ms + new_ms) / 2)
    sides = (base, new)
    referee = draw.choice(sides)  # the other one in other pairs, for what a process did last it does a little faster
    times: tuple[list[float], list[float]] = ([], [])
    reference = [round(referee.ask("reference", timeout_s=timeout_s), 6)]
    while sum(steady(reference)) < wanted and len(times[0]) < 2 * wanted:
        for side in draw.sample((0, 1), 2):
            times[side].append(round(sides[side].ask("turn", calls, timeout_s=timeout_s), 6))
        reference.append(round(referee.ask("reference", timeout_s=timeout_s), 6))
    return Turns(tuple(times[0]), tuple(times[1]), tuple(reference), calls)
