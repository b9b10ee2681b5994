"""A race on made-up clocks: everyone has a turn a round, in an order of chance, as long as was asked."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bench.measure.device import Pass, Usage
from bench.measure.race import Effort, Entrant, Lane, Race, check, race, run
from bench.results.columns import Case
from variants import registry
from variants.masks import Mask
from variants.problem import Problem


class Track:
    """A device on which a call takes as long as its pass says, and everything more while a neighbour is there."""

    blocks = True
    memory_source = ""

    def __init__(self, slow_from_s: float = float("inf")) -> None:
        self.now_s = 0.0
        self.turns: list[tuple[str, int]] = []
        self._slow_from_s = slow_from_s

    def settle(self, step: Pass) -> None:
        pass

    def time_ms(self, step: Pass, calls: int) -> float:
        name, ms = step.prepare()
        ms *= 3.0 if self.now_s >= self._slow_from_s else 1.0
        self.now_s += ms * calls / 1e3
        self.turns.append((name, calls))
        return float(ms)

    def usage(self, step: Callable[[], object]) -> Usage:
        raise NotImplementedError

    def synchronize(self) -> None:
        pass


def passes(**ms: float) -> list[Pass]:
    return [Pass(lambda name=name, ms=each: (name, ms), lambda _: None) for name, each in ms.items()]  # type: ignore[misc]


def rounds_of(track: Track, entrants: int, rounds: int) -> list[list[str]]:
    names = [name for name, _ in track.turns[-entrants * rounds :]]  # before them, calls tell how long a call takes
    return [names[at : at + entrants] for at in range(0, len(names), entrants)]


def test_each_has_one_turn_a_round_in_an_order_of_chance() -> None:
    track = Track()
    run(track, passes(a=1.0, b=2.0, c=30.0), Effort(0.0, 12), random.Random(1), lambda: track.now_s)
    rounds = rounds_of(track, 3, 12)
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len(Counter(map(tuple, rounds))) > 3


def test_a_turn_is_as_long_as_was_asked() -> None:
    track = Track()
    lanes = run(track, passes(a=1.0, b=3.0, c=30.0), Effort(0.0, 1, 10.0), random.Random(1), lambda: track.now_s)
    assert [lane.calls_per_sample for lane in lanes] == [10, 4, 1]


@pytest.mark.parametrize(("effort", "expected"), [(Effort(0.0, 5), 5), (Effort(1.0, 2), 25)])
def test_it_goes_on_until_rounds_and_time_are_both_enough(effort: Effort, expected: int) -> None:
    track = Track()
    lanes = run(track, passes(a=20.0, b=20.0), effort, random.Random(1), lambda: track.now_s)
    assert [len(lane.samples_ms) for lane in lanes] == [expected, expected]


def test_a_neighbour_who_comes_midway_leaves_the_ratio_as_it_was() -> None:
    track = Track(slow_from_s=1.0)
    a, b = run(track, passes(a=10.0, b=20.0), Effort(0.0, 80), random.Random(1), lambda: track.now_s)
    ratios = [y / x for x, y in zip(a.samples_ms, b.samples_ms, strict=True)]
    assert ratios.count(2.0) >= 79 and max(a.samples_ms) == 30.0


def entrant(name: str = "sliding_window", direction: str = "fwd", n: int = 64, **choice: int) -> Entrant:
    problem = Problem(1, 2, 2, n, n, 16, mask=Mask(window=8) if name == "sliding_window" else Mask())
    return Entrant(Case.of(name, direction, problem), choice)


def test_real_variants_race_each_other() -> None:
    before = torch.get_num_threads()
    entrants = entrant(), entrant("sdpa", "fwdbwd"), entrant("sdpa", n=32), entrant(direction="bwd", n=32)
    told = Race(entrants, effort=Effort(0.0, 3, 5.0), threads=1)
    called: list[str] = []
    lanes = race(told, lambda: called.append("ready"))
    torch.set_num_threads(before)
    assert called == ["ready"]
    assert all(len(lane.samples_ms) == 3 and min(lane.samples_ms) > 0 for lane in lanes)
    assert lanes[0].calls_per_sample > 1 == lanes[3].calls_per_sample, "a graph serves for one backward call"


def test_a_choice_reaches_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, int]] = []
    variant = registry.load()["sliding_window"]
    plan = variant.plan
    assert plan is not None

    def recorded(problem: Problem, **choice: int) -> object:
        asked.append(choice)
        return plan(problem, **choice)

    monkeypatch.setitem(registry.REGISTRY, variant.name, replace(variant, plan=recorded))
    race(Race((entrant(), entrant(rows=16)), effort=Effort(0.0, 1, 0.1)))
    assert check(Race((entrant(rows=32),))) is None
    assert asked == [{}, {"rows": 16}, {"rows": 32}]


def test_what_is_wrong_is_told_before_it_races(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = registry.load()["sliding_window"]
    plan = variant.plan
    assert plan is not None

    def wider(problem: Problem) -> object:
        return plan(replace(problem, mask=Mask(window=9)))

    monkeypatch.setitem(registry.REGISTRY, variant.name, replace(variant, plan=wider))
    reason = check(Race((entrant(),)))
    assert reason is not None and "error" in reason


def test_lanes_are_kept_in_the_order_of_the_entrants() -> None:
    track = Track()
    lanes = run(track, passes(a=30.0, b=10.0), Effort(0.0, 4), random.Random(3), lambda: track.now_s)
    assert lanes == [Lane((30.0,) * 4, 1), Lane((10.0,) * 4, 1)]
