"""Simulated gates: block by block, from noise of known kinds or a recording, down to the numbers that `decide` wants.

All noise is a factor on a time, so everything here is a logarithm until a rival that averages times asks for these. A
kind of noise gives a sequence of turns in the order of time, whoever has them. The gate lets base and new take turns in
it; two runs made one after the other have its first and its second half. Either way each process is slower or faster
than the next by a factor of its own, for instance by where its memory lies.

Cases of a run are independent of each other: were they not, false alarms would meet in fewer runs. What no kind of
noise has is something that favours one side in every pair: no number of pairs tells it from a change.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bench.pairs.turns import Effort
from bench.results.paired import pair_number, steady

Floats = NDArray[np.float64]
Chance = np.random.Generator

BLOCKS = Effort().most
PROCESS = 0.008  # standard deviation of a process's own factor: 1.1 % between the two of a pair
RECORDING = Path(__file__).parents[1] / "data" / "gate-identical-code.csv"
_AT_ONCE = 3000  # cases, which bounds memory
_NEIGHBOURS = 5  # blocks of a recorded pair that stay together when its blocks are redrawn


class Noise(Protocol):
    """What a machine adds to code that is the same on both sides."""

    @property
    def name(self) -> str:
        """What it is called in a table."""

    def numbers(self, chance: Chance, at: NDArray[np.intp], pairs: int, again: bool) -> Floats:
        """One number a pair (cases, pairs), as the gate gets it; `again` if these cases had pairs before."""

    def one_after_the_other(self, chance: Chance, cases: int, samples: int) -> tuple[Floats, Floats]:
        """Logarithms of the times of two processes (cases, samples), base first and then new."""


def middle_half(logs: Floats, counts: NDArray[np.bool_] | None = None) -> Floats:
    """What `pair_number` makes of each row of log(new / base), of blocks that all count or are told to.

    A row in which none is told to count counts as a whole.
    """
    if counts is None:
        cut = logs.shape[-1] // 4
        return np.sort(logs)[..., cut : logs.shape[-1] - cut].mean(-1, dtype=np.float64)
    counts = counts | ~counts.any(-1, keepdims=True)
    kept = counts.sum(-1, keepdims=True)
    place = np.arange(logs.shape[-1])
    middle = (place >= kept // 4) & (place < kept - kept // 4)
    ordered = np.sort(np.where(counts, logs, np.inf))
    return np.where(middle, ordered, 0).sum(-1) / middle.sum(-1)


Sequence = Callable[[Chance, int, int], NDArray[np.float32]]
"""How many turns after each other, and in how many places -> logarithms (turns, places)."""


@dataclass(frozen=True)
class Made:
    """Noise by a formula. `modes` is the share by which half of all processes are slower than the other half."""

    name: str
    sequence: Sequence
    modes: float = 0.0

    def numbers(self, chance: Chance, at: NDArray[np.intp], pairs: int, again: bool) -> Floats:
        places = len(at) * pairs
        first, second = self.sequence(chance, 2 * BLOCKS, places).reshape(BLOCKS, 2, places).transpose(1, 0, 2)
        swapped = chance.integers(0, 2, (BLOCKS, places), dtype=np.int8).astype(np.float32)
        logs = (second - first) * (1 - 2 * swapped)
        number = middle_half(np.ascontiguousarray(logs.T)) + self._process(chance, places)
        return (number - self._process(chance, places)).reshape(len(at), pairs)

    def one_after_the_other(self, chance: Chance, cases: int, samples: int) -> tuple[Floats, Floats]:
        turns = self.sequence(chance, 2 * samples, cases).T.astype(np.float64)
        base, new = (half + self._process(chance, cases)[:, None] for half in np.split(turns, 2, axis=1))
        return base, new

    def _process(self, chance: Chance, count: int) -> Floats:
        return PROCESS * chance.standard_normal(count) + math.log1p(self.modes) * chance.integers(0, 2, count)


def independent(deviation: float) -> Sequence:
    """Each turn is off by chance."""
    return lambda chance, turns, places: deviation * _normal(chance, turns, places)


def lasting(deviation: float, correlation: float) -> Sequence:
    """What one turn is off by, the next one mostly is as well: an autoregressive sequence of first order."""

    def sequence(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
        logs = deviation * _normal(chance, turns, places)
        for at in range(1, turns):
            logs[at] = correlation * logs[at - 1] + math.sqrt(1 - correlation**2) * logs[at]
        return logs

    return sequence


def student(scale: float) -> Sequence:
    """Student's t with 2 degrees of freedom, whose variance is infinite."""

    def sequence(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
        # Half the chi-square of 2 degrees of freedom is exponential.
        mean_square = np.maximum(chance.standard_exponential((turns, places), dtype=np.float32), np.float32(1e-9))
        return scale * _normal(chance, turns, places) / np.sqrt(mean_square)

    return sequence


def sometimes(share: float, factor: float, otherwise: Sequence) -> Sequence:
    """A share of the turns takes this many times as long."""

    def sequence(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
        logs = otherwise(chance, turns, places)
        logs += math.log(factor) * (chance.random((turns, places), dtype=np.float32) < share)
        return logs

    return sequence


def step(share: float, otherwise: Sequence) -> Sequence:
    """From some turn on the machine is slower by this share, or as often was so before it."""

    def sequence(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
        after = np.arange(turns)[:, None] >= chance.integers(1, turns, places)
        return otherwise(chance, turns, places) + np.float32(math.log1p(share)) * (after ^ _coin(chance, places))

    return sequence


def drift(share: float, otherwise: Sequence) -> Sequence:
    """The machine becomes evenly slower by this share, or faster, over the turns of a gate's pair."""

    def sequence(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
        slope = math.log1p(share) / (2 * BLOCKS) * np.where(_coin(chance, places), 1, -1).astype(np.float32)
        return otherwise(chance, turns, places) + np.arange(turns, dtype=np.float32)[:, None] * slope

    return sequence


def _normal(chance: Chance, turns: int, places: int) -> NDArray[np.float32]:
    return chance.standard_normal((turns, places), dtype=np.float32)


def _coin(chance: Chance, places: int) -> NDArray[np.bool_]:
    return chance.random(places) < 0.5


@dataclass(frozen=True)
class _Pairs:
    """Recorded pairs (pairs, blocks): logarithms of times, filled up with zeros, which blocks count, how many there are
    of them, and the numbers; `first` and `of_case` are where the pairs of each case begin, and how many these are."""

    base: Floats
    new: Floats
    counts: NDArray[np.bool_]
    blocks: NDArray[np.intp]
    number: Floats
    first: NDArray[np.intp]
    of_case: NDArray[np.intp]


@cache
def recorded_pairs() -> _Pairs:
    """The recording of identical code."""
    with RECORDING.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    base, new, reference = (
        [[float(ms) for ms in row[name].split()] for row in rows] for name in ("base_ms", "new_ms", "reference_ms")
    )
    blocks = np.array([len(times) for times in base])
    filled = (len(rows), blocks.max())
    logs = np.zeros((2, *filled))
    counts = np.zeros(filled, np.bool_)
    for at, count in enumerate(blocks):
        logs[0, at, :count], logs[1, at, :count] = np.log(base[at]), np.log(new[at])
        counts[at, :count] = steady(reference[at])
    numbers = np.array([pair_number(*times) for times in zip(base, new, reference, strict=True)])
    _, first, of_case = np.unique([row["case"] for row in rows], return_index=True, return_counts=True)
    return _Pairs(logs[0], logs[1], counts, blocks, numbers, first, of_case)


@dataclass(frozen=True)
class Recorded:
    """Pairs of a recording of identical code, redrawn whole, each with its sides swapped by chance, so that there is no
    difference in truth. A gate's cases are the recorded ones over and over."""

    name: str

    def numbers(self, chance: Chance, at: NDArray[np.intp], pairs: int, again: bool) -> Floats:
        known = recorded_pairs()
        place = self._pairs(chance, np.repeat(at, pairs), 0)
        number = self._redrawn(chance, place) if again else known.number[place]
        return (number * np.where(_coin(chance, len(place)), 1, -1)).reshape(len(at), pairs)

    def _redrawn(self, chance: Chance, place: NDArray[np.intp]) -> Floats:
        """More pairs than were recorded: the blocks of these redrawn as well, some neighbours at a time."""
        known = recorded_pairs()
        blocks = _neighbours(chance, known.blocks[place], known.base.shape[1])
        there = np.arange(blocks.shape[1]) < known.blocks[place][:, None]
        logs = (known.new - known.base)[place[:, None], blocks]
        counts = known.counts[place[:, None], blocks] & there
        counts = np.where(counts.any(1, keepdims=True), counts, there)
        return middle_half(logs, counts)

    def one_after_the_other(self, chance: Chance, cases: int, samples: int) -> tuple[Floats, Floats]:
        """A side of one pair and a side of the next, their blocks redrawn."""
        known = recorded_pairs()
        earlier = self._pairs(chance, np.arange(cases), 1)
        base, new = (
            np.where(_coin(chance, cases)[:, None], known.base[rows, blocks], known.new[rows, blocks])
            for place in (earlier, earlier + 1)
            for rows, blocks in [(place[:, None], _neighbours(chance, known.blocks[place], samples))]
        )
        return base, new

    def _pairs(self, chance: Chance, at: NDArray[np.intp], before_last: int) -> NDArray[np.intp]:
        """For each of these cases one of its pairs, the last ones left out."""
        known = recorded_pairs()
        case = at % len(known.first)
        return known.first[case] + chance.integers(0, known.of_case[case] - before_last)


def _neighbours(chance: Chance, blocks: NDArray[np.intp], wanted: int) -> NDArray[np.intp]:
    """For each pair of so many blocks, which of them stand in for the wanted ones: runs of neighbours, end to end."""
    starts = chance.integers(0, (blocks - _NEIGHBOURS + 1)[:, None], (len(blocks), -(-wanted // _NEIGHBOURS)))
    return (starts[:, :, None] + np.arange(_NEIGHBOURS)).reshape(len(blocks), -1)[:, :wanted]


USUAL: tuple[Noise, ...] = (
    Made("independent", independent(0.06)),
    Made("lasting: AR(1), r = 0.9", lasting(0.16, 0.9)),
    Made("heavy tails: t, 2 d.f.", student(0.03)),
    Made("one turn in 20 twice as long", sometimes(0.05, 2.0, independent(0.05))),
    Made("two modes 3 % apart", sometimes(0.1, 1.1, independent(0.04)), modes=0.03),
    Made("a step of 30 %", step(0.3, independent(0.06))),
    Made("a drift of 10 %", drift(0.1, independent(0.06))),
    Recorded("recorded, busy machine"),
)
TOO_MUCH = Made("independent, four times as much", independent(0.24))  # as no machine here was


class Simulated:
    """Cases that differ by an effect, in this noise. `draw` is what `decide` is to be given."""

    def __init__(self, noise: Noise, effect: float, chance: Chance) -> None:
        self._noise, self._effect, self._chance = noise, math.log1p(effect), chance
        self._again = False

    def draw(self, at: NDArray[np.intp], pairs: int, confirming: bool) -> Floats:
        """Numbers of so many more pairs of each."""
        parts = [
            self._noise.numbers(self._chance, at[start : start + _AT_ONCE], pairs, self._again)
            for start in range(0, len(at), _AT_ONCE)
        ]
        self._again = True
        return np.concatenate(parts) + self._effect
