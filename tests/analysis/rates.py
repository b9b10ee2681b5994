"""How often a verdict is wrong in simulated runs whose truth is known: the gate's, and those of what is done elsewhere.

python -m tests.analysis.rates           the table of the README
python -m tests.analysis.rates --all     with more of the other methods
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bench.analysis.decision import FASTER, INCONCLUSIVE, SAME, SLOWER, Rules, decide
from tests.analysis.simulated import TOO_MUCH, USUAL, Floats, Noise, Simulated

RUNS, CASES = 1000, 48
SMALL, LARGE = 0.05, 0.10  # the effects that are to be found
_AT_ONCE = 250  # runs, which bounds memory

Verdicts = NDArray[np.str_]
Slower = Callable[[Floats, Floats], NDArray[np.bool_]]
"""Logarithms of the times of base and new, made one after the other (cases, samples) -> what is called slower."""


def gate(noise: Noise, effect: float, runs: int = RUNS) -> Verdicts:
    """The gate's verdicts (runs, cases) where every case differs by an effect, or none does."""
    found = [
        decide(Simulated(noise, effect, chance).draw, count * CASES, Rules()).verdict
        for count, chance in _parts("gate", noise, effect, runs)
    ]
    return np.concatenate(found).reshape(runs, CASES)


def elsewhere(slower: Slower, samples: int, noise: Noise, effect: float, runs: int = RUNS) -> NDArray[np.bool_]:
    """What is called slower (runs, cases) of two runs made one after the other, one process each."""
    found = []
    for count, chance in _parts("elsewhere", noise, effect, runs):
        base, new = noise.one_after_the_other(chance, count * CASES, samples)
        found.append(slower(base, new + math.log1p(effect)))
    return np.concatenate(found).reshape(runs, CASES)


def mean_above(limit: float, base: Floats, new: Floats) -> NDArray[np.bool_]:
    """Where the mean time of new is above that of base by more than a share."""
    called: NDArray[np.bool_] = np.exp(new).mean(1) > (1 + limit) * np.exp(base).mean(1)
    return called


def mann_whitney(base: Floats, new: Floats) -> Floats:
    """The U test's z, with the continuity correction: positive where new is larger."""
    larger = (new[:, :, None] > base[:, None, :]).sum((1, 2))
    equal = (new[:, :, None] == base[:, None, :]).sum((1, 2))
    here, there = base.shape[1], new.shape[1]
    off = larger + equal / 2 - here * there / 2
    corrected: Floats = np.sign(off) * np.maximum(np.abs(off) - 0.5, 0)
    return corrected / math.sqrt(here * there * (here + there + 1) / 12)


def significant(p: float, base: Floats, new: Floats) -> NDArray[np.bool_]:
    """Where new is larger by the U test, on two sides."""
    called: NDArray[np.bool_] = mann_whitney(base, new) > NormalDist().inv_cdf(1 - p / 2)
    return called


def upper_bound(count: int, of: int, level: float = 0.95) -> float:
    """The share that is, with this confidence, not exceeded where so many were seen: Clopper and Pearson, one-sided."""
    low, high = count / of, 1.0
    if count == of:
        return 1.0
    while (middle := (low + high) / 2) not in (low, high):
        at_most = math.fsum(
            math.exp(
                math.lgamma(of + 1)
                - math.lgamma(k + 1)
                - math.lgamma(of - k + 1)
                + k * math.log(middle)
                + (of - k) * math.log1p(-middle)
            )
            for k in range(count + 1)
        )
        low, high = (middle, high) if at_most > 1 - level else (low, middle)
    return high


def _parts(method: str, noise: Noise, effect: float, runs: int) -> list[tuple[int, np.random.Generator]]:
    """Runs in parts, each with chances of its own, which are the same every time."""
    return [
        (min(_AT_ONCE, runs - at), np.random.default_rng([*f"{method} {noise.name} {effect:g}".encode(), at]))
        for at in range(0, runs, _AT_ONCE)
    ]


@dataclass(frozen=True)
class Rates:
    """How often what is so is told otherwise, or not at all.

    cases, runs   shares called slower, or with any case called so, without a change; `alarms` is how many runs
    small, large  shares of cases called slower at either effect
    undecided     share of cases that are left open without a change
    missed        how many cases were called the same, or faster, at the small effect
    """

    cases: float
    runs: float
    alarms: int
    small: float
    large: float
    undecided: float = math.nan
    missed: int = 0


@cache
def of_gate(noise: Noise) -> Rates:
    """The gate's rates in this noise."""
    nothing, small, large = (gate(noise, effect) for effect in (0.0, SMALL, LARGE))
    return Rates(
        *_alarms(nothing == SLOWER),
        float((small == SLOWER).mean()),
        float((large == SLOWER).mean()),
        float((nothing == INCONCLUSIVE).mean()),
        int(np.isin(small, (SAME, FASTER)).sum()),
    )


def of_others(slower: Slower, samples: int, noise: Noise) -> Rates:
    """The rates of another method."""
    nothing, small, large = (elsewhere(slower, samples, noise, effect) for effect in (0.0, SMALL, LARGE))
    return Rates(*_alarms(nothing), float(small.mean()), float(large.mean()))


def _alarms(slower: NDArray[np.bool_]) -> tuple[float, float, int]:
    runs = slower.any(1)
    return float(slower.mean()), float(runs.mean()), int(runs.sum())


OTHERS: dict[str, tuple[Slower, int]] = {
    "means 5 % apart": (partial(mean_above, 0.05), 40),
    "Mann-Whitney, p < 0.01": (partial(significant, 0.01), 40),
}
MORE: dict[str, tuple[Slower, int]] = {
    "means 3 % apart": (partial(mean_above, 0.03), 40),
    "Mann-Whitney, p < 0.01, 20 samples": (partial(significant, 0.01), 20),
}


def table(others: dict[str, tuple[Slower, int]]) -> str:
    """The rates of the gate and of other methods in each kind of noise, as Markdown."""
    header = ["noise", f"gate: a false alarm in a run of {CASES}", "finds +5 %", "finds +10 %", "left open"]
    for name in others:
        header += [f"{name}: a false alarm in a case", "finds +5 %"]
    lines = [_line(header), _line(["---", *["---:"] * (len(header) - 1)])]
    for noise in (*USUAL, TOO_MUCH):
        rates = of_gate(noise)
        runs = f"{_percent(rates.runs)} (at most {_percent(upper_bound(rates.alarms, RUNS))})"
        cells = [noise.name, runs, *map(_percent, (rates.small, rates.large, rates.undecided))]
        for slower, samples in others.values():
            rates = of_others(slower, samples, noise)
            cells += map(_percent, (rates.cases, rates.small))
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    print(table(OTHERS | MORE if "--all" in sys.argv[1:] else OTHERS))
