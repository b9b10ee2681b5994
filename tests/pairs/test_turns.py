"""Turns on a made-up clock: as many calls on either side, an order of chance, and disturbed blocks made again."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import cycle, repeat
from typing import Any

import pytest

from bench.pairs.turns import Effort, Turns, take_turns
from bench.results.paired import Contest
from tests.results.rows import CASE

CONTEST = Contest(CASE, replace(CASE, variant="chunked"))
EFFORT = Effort()
TIMEOUT_S = 7.0


class Hall:
    """Where both sides run: a clock that every turn moves on, the reference's times, and a record of who did what."""

    def __init__(self, reference_ms: Iterable[float] = repeat(1.0)) -> None:
        self.now_ms = 0.0
        self.log: list[tuple[str, str, tuple[Any, ...], Any]] = []
        self._reference_ms: Iterator[float] = iter(reference_ms)

    def side(self, name: str, call_ms: float, repeatable: bool = True) -> "MadeUp":
        return MadeUp(self, name, call_ms, repeatable)

    def reference(self) -> float:
        return next(self._reference_ms)

    def did(self, *commands: str) -> list[tuple[str, Any]]:
        """(who, what was answered) of these commands, in order."""
        return [(name, answer) for name, command, _, answer in self.log if command in commands]


class MadeUp:
    """A side whose calls take so long, and a millionth more for each millisecond that has passed in the hall."""

    def __init__(self, hall: Hall, name: str, call_ms: float, repeatable: bool) -> None:
        self._hall, self._name, self._call_ms, self._repeatable = hall, name, call_ms, repeatable

    def ask(self, command: str, *arguments: Any, timeout_s: float) -> Any:
        assert timeout_s == TIMEOUT_S
        answer: Any
        if command == "enter":
            answer = self._call_ms, self._repeatable
        elif command == "turn":
            answer = self._call_ms * (1 + self._hall.now_ms / 1e6)
            self._hall.now_ms += self._call_ms * arguments[0]
        else:
            assert (command, arguments) == ("reference", ())
            answer = self._hall.reference()
        self._hall.log.append((self._name, command, arguments, answer))
        return answer


def played(
    hall: Hall,
    base_ms: float = 1.0,
    new_ms: float = 1.0,
    effort: Effort = EFFORT,
    seed: int = 1,
    repeatable: tuple[bool, bool] = (True, True),
) -> Turns:
    sides = hall.side("base", base_ms, repeatable[0]), hall.side("new", new_ms, repeatable[1])
    return take_turns(*sides, CONTEST, effort, random.Random(seed), TIMEOUT_S)


def calls_made(hall: Hall) -> dict[str, set[int]]:
    """By side, over how many calls its turns went."""
    found: dict[str, set[int]] = {}
    for name, command, arguments, _ in hall.log:
        if command == "turn":
            found.setdefault(name, set()).add(arguments[0])
    return found


@pytest.mark.parametrize(("base_ms", "new_ms"), [(0.5, 2.0), (2.0, 0.5)])
def test_both_sides_make_as_many_calls_as_the_faster_one_needs(base_ms: float, new_ms: float) -> None:
    hall = Hall()
    turns = played(hall, base_ms, new_ms, Effort(turn_ms=5.0))
    assert calls_made(hall) == {"base": {10}, "new": {10}}
    assert turns.calls == 10


@pytest.mark.parametrize("repeatable", [(True, False), (False, True), (False, False)])
def test_one_call_where_calls_of_a_side_may_not_be_timed_together(repeatable: tuple[bool, bool]) -> None:
    hall = Hall()
    turns = played(hall, repeatable=repeatable)
    assert calls_made(hall) == {"base": {1}, "new": {1}}
    assert turns.calls == 1


@pytest.mark.parametrize(("call_ms", "expected"), [(5.0, 1), (4.9, 2), (1.0, 5), (0.25, 20), (30.0, 1)])
def test_a_turn_is_at_least_so_long(call_ms: float, expected: int) -> None:
    assert Effort(turn_ms=5.0).calls(call_ms) == expected


@pytest.mark.parametrize(
    ("turn_ms", "expected"), [(0.0, 40), (9.9, 40), (10.0, 40), (10.3, 39), (39.0, 11), (40.0, 10), (1e6, 10)]
)
def test_the_turns_of_a_side_add_up_within_limits(turn_ms: float, expected: int) -> None:
    assert Effort(least=10, most=40, side_ms=400.0).blocks(turn_ms) == expected


@pytest.mark.parametrize(
    ("base_ms", "new_ms", "blocks"),
    [(20.0, 20.0, 20), (5.0, 35.0, 20), (35.0, 5.0, 20), (100.0, 300.0, 10), (5.0, 5.0, 40)],
)
def test_as_many_blocks_as_the_turns_of_a_side_ask_for_on_average(base_ms: float, new_ms: float, blocks: int) -> None:
    turns = played(Hall(), base_ms, new_ms, Effort(turn_ms=5.0, least=10, most=40, side_ms=400.0))
    assert len(turns.base_ms) == len(turns.new_ms) == blocks


def test_short_calls_make_one_turn_together_when_blocks_are_counted() -> None:
    turns = played(Hall(), 2.0, 2.0, Effort(turn_ms=20.0, least=10, most=400, side_ms=400.0))
    assert (turns.calls, len(turns.base_ms)) == (10, 20)


def test_each_side_enters_its_own_case_once_and_first() -> None:
    hall = Hall()
    played(hall)
    assert [entry[:3] for entry in hall.log[:2]] == [
        ("base", "enter", (CONTEST.base,)),
        ("new", "enter", (CONTEST.new,)),
    ]
    assert len(hall.did("enter")) == 2


def blocks_of(hall: Hall) -> list[list[str]]:
    """Who had a turn between one reference and the next."""
    blocks: list[list[str]] = []
    for name, command, *_ in hall.log:
        if command == "reference":
            blocks.append([])
        elif command == "turn":
            blocks[-1].append(name)
    assert blocks.pop() == [], "the reference comes last"
    return blocks


def test_each_side_has_a_turn_a_block_and_who_is_first_is_by_chance() -> None:
    firsts = []
    for seed in range(20):
        hall = Hall()
        played(hall, seed=seed, effort=Effort(least=10, most=10))
        assert all(sorted(block) == ["base", "new"] for block in blocks_of(hall))
        firsts.append(tuple(block[0] for block in blocks_of(hall)))
    assert len(set(firsts)) > 15, "another order for another pair"
    base_first = sum(order.count("base") for order in firsts)
    assert 60 < base_first < 140, "of 200; a fair coin is outside less than once in ten million"


def test_the_reference_is_asked_of_one_side_which_is_another_in_other_pairs() -> None:
    asked = []
    for seed in range(40):
        hall = Hall()
        played(hall, seed=seed, effort=Effort(least=10, most=10))
        names = [name for name, _ in hall.did("reference")]
        assert len(names) == 11 and len(set(names)) == 1
        asked.append(names[0])
    assert 5 < asked.count("base") < 35, "of 40; a fair coin is outside less than once in a million"


def test_values_are_complete_and_in_order() -> None:
    hall = Hall(1.0 + 0.001 * at for at in range(100))
    turns = played(hall, 1.0, 1.5, Effort(least=12, most=12))
    by_side = {side: [answer for name, answer in hall.did("turn") if name == side] for side in ("base", "new")}
    assert list(turns.base_ms) == pytest.approx(by_side["base"], abs=1e-6)
    assert list(turns.new_ms) == pytest.approx(by_side["new"], abs=1e-6)
    assert list(turns.base_ms) == sorted(set(turns.base_ms)), "the clock told them apart"
    assert turns.reference_ms == tuple(round(1.0 + 0.001 * at, 6) for at in range(13))
    assert len(turns.base_ms) == len(turns.new_ms) == 12


@pytest.mark.parametrize("moved", [[1.0, 1.0, 2.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0, 1.0]])
def test_a_block_in_which_the_reference_moved_is_made_again(moved: list[float]) -> None:
    turns = played(Hall(moved), effort=Effort(least=3, most=3))
    assert len(turns.base_ms) == len(turns.new_ms) == 4
    assert turns.reference_ms == tuple(moved)


def test_a_reference_that_was_disturbed_once_costs_the_blocks_on_either_side_of_it() -> None:
    turns = played(Hall([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), effort=Effort(least=3, most=3))
    assert len(turns.base_ms) == 5


def test_a_reference_that_drifts_slowly_disturbs_no_block() -> None:
    turns = played(Hall(1.1**at for at in range(100)), effort=Effort(least=10, most=10))
    assert len(turns.base_ms) == 10


def test_it_gives_up_after_twice_as_many_blocks() -> None:
    turns = played(Hall(cycle([1.0, 2.0])), effort=Effort(least=6, most=6))
    assert (len(turns.base_ms), len(turns.new_ms), len(turns.reference_ms)) == (12, 12, 13)


class Gone(Exception):
    """What a made-up side raises."""


class Failing:
    """A side that raises at one command, and does all else as another one does."""

    def __init__(self, side: MadeUp, command: str, error: Exception) -> None:
        self._side, self._command, self._error = side, command, error

    def ask(self, command: str, *arguments: Any, timeout_s: float) -> Any:
        if command == self._command:
            raise self._error
        return self._side.ask(command, *arguments, timeout_s=timeout_s)


@pytest.mark.parametrize("command", ["enter", "turn", "reference"])
@pytest.mark.parametrize("failing", ["base", "new", "both"])
def test_what_a_side_raises_passes_through(command: str, failing: str) -> None:
    hall, error = Hall(), Gone(command)
    whole: list[Any] = [hall.side("base", 1.0), hall.side("new", 1.0)]
    base, new = (
        Failing(side, command, error) if failing in (name, "both") else side
        for side, name in zip(whole, ("base", "new"), strict=True)
    )
    for seed in range(20):  # the reference is asked of one of them
        try:
            take_turns(base, new, CONTEST, Effort(), random.Random(seed), TIMEOUT_S)
        except Gone as raised:
            assert raised is error
            return
        assert (command, failing) in (("reference", "base"), ("reference", "new"))
    raise AssertionError("nobody raised")
