"""Contests in pair after pair: which fit into the time, what is on disk when, and what numbers come of them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench.analysis.frame import read
from bench.errors import UserError
from bench.pairs.match import Match
from bench.pairs.process import Lost
from bench.pairs.series import Series
from bench.pairs.turns import Effort, Turns
from bench.results.columns import Case, Facts, Row
from bench.results.paired import PAIRED_METHOD, Contest
from bench.results.store import Store
from tests.results.rows import CASE, ENVIRONMENT, FACTS, ROW

SLOW_MS, QUICK_MS = 400.0, 1.0


def contest(variant: str, n: int = 1024) -> Contest:
    case = replace(CASE, variant=variant, seq_q=n, seq_kv=n)
    return Contest(case, case)


def facts(ms: float = QUICK_MS, **changes: Any) -> Facts:
    return replace(FACTS, samples_ms=(ms,), **changes)


def failed(status: str, reason: str = "a reason") -> Facts:
    return Facts(status, reason)


class Clock:
    """Seconds that go by only where somebody lets them."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


class MadeUp:
    """A match whose contests end as they were told to.

    `found` is what either side's facts are, `turns` what a pair (its number, the contest) comes to. Before each outcome
    it looks at the file: what was handed over before is to be there already.
    """

    def __init__(self, clock: Clock, path: Path) -> None:
        self.clock, self.path = clock, path
        self.found: dict[Contest, tuple[Facts, Facts]] = {}
        self.turns: Callable[[int, Contest], Turns | Lost] = lambda number, contest: equal(1.0)
        self.facts_s = 0.0
        self.examined: list[Contest] = []
        self.played: list[tuple[int, list[Contest]]] = []
        self.lines: list[int] = []

    def facts(self, contest: Contest) -> tuple[Facts, Facts]:
        self.clock.now_s += self.facts_s
        self.examined.append(contest)
        return self.found.get(contest, (facts(), facts()))

    def play(self, contests: Sequence[Contest], number: int, effort: Effort) -> Iterator[tuple[Contest, Turns | Lost]]:
        self.played.append((number, list(contests)))
        for each in reversed(contests):  # in an order of its own
            self.lines.append(len(self.path.read_text().splitlines()) - 1)
            yield each, self.turns(number, each)

    def row(self, at: int, case: Case, facts: Facts, run: str, number: int) -> Row:
        environment = replace(ENVIRONMENT, method=PAIRED_METHOD)
        return replace(ROW, case=case, facts=facts, environment=environment, run=run, visit=number)


def equal(ratio: float) -> Turns:
    """Four blocks with this ratio and a steady reference."""
    base = (1.0, 2.0, 3.0, 4.0)
    return Turns(base, tuple(ratio * ms for ms in base), (5.0,) * 5, 6)


class Played(SimpleNamespace):
    """All that a test of a series needs."""

    match: MadeUp
    series: Series
    clock: Clock
    path: Path


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    clock, path = Clock(), tmp_path / "gate.csv"
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    made_up = MadeUp(clock, path)
    with Store(path) as store:
        series = Series(cast(Match, made_up), store, "r", 0.03, Effort(), clock.now_s + 100.0)
        yield Played(match=made_up, series=series, clock=clock, path=path)


BASE, NEW = "r-at-0.03-base", "r-at-0.03-new"


def rows_of(played: Played) -> list[tuple[str, str, int, str]]:
    """(run, variant, visit, status) of each row on disk."""
    frame = read([played.path])
    return list(zip(frame["run"], frame["variant"], frame["visit"], frame["status"], strict=True))


def examined(played: Played, contests: Sequence[Contest], within_s: float, pairs: int = 8) -> list[str]:
    """Examines, and names the variants of those contests that are kept."""
    played.series.examine(contests, within_s, pairs)
    return [contest.new.variant for contest, _ in played.series.timed]


A, B, C = contest("a"), contest("b"), contest("c")
HOURS = 1e5
START_S = 8 * 5.0  # of 8 pairs


def test_contests_that_are_right_on_both_sides_are_kept_in_order(played: Played) -> None:
    assert examined(played, [A, B, C], HOURS) == ["a", "b", "c"]
    assert played.series.timed == [(each, (facts(), facts())) for each in (A, B, C)]
    assert played.match.examined == [A, B, C]
    assert len(played.path.read_text().splitlines()) == 1, "a header, and no row as yet"


def test_others_have_their_rows_at_once(played: Played) -> None:
    played.match.found = {A: (facts(), failed("wrong", "error 1 > 0")), C: (failed("unsupported"), facts())}
    assert examined(played, [A, B, C], HOURS) == ["b"]
    assert rows_of(played) == [
        (BASE, "a", 1, "ok"),
        (NEW, "a", 1, "wrong"),
        (BASE, "c", 1, "unsupported"),
        (NEW, "c", 1, "ok"),
    ]
    assert read([played.path])["reason"].to_list()[1] == "error 1 > 0"


def test_rows_of_either_side_name_its_own_case(played: Played) -> None:
    played.match.found = {(versus := Contest(A.base, B.new)): (failed("oom"), facts())}
    played.series.examine([versus], HOURS, 8)
    assert rows_of(played) == [(BASE, "a", 1, "oom"), (NEW, "b", 1, "ok")]


def test_what_takes_too_long_is_skipped_and_what_is_quick_still_fits(played: Played) -> None:
    played.match.found = {B: (facts(SLOW_MS), facts(SLOW_MS, peak_bytes=123))}
    # 8 pairs of 10 blocks with two turns of 400 ms are 64 s; 40 blocks with two turns of 5 ms are 3.2 s.
    assert examined(played, [A, B, C], START_S + 30.0) == ["a", "c"]
    assert rows_of(played) == [(BASE, "b", 1, "skipped"), (NEW, "b", 1, "skipped")]
    frame = read([played.path])
    assert frame["reason"].to_list() == ["no time left in the budget"] * 2
    assert frame["peak_bytes"].to_list() == [FACTS.peak_bytes, 123], "what is known of it stays"


def test_what_changed_files_affect_is_skipped_with_another_reason(played: Played) -> None:
    pressing = replace(B, pressing=True)
    played.match.found = {pressing: (facts(SLOW_MS), facts(SLOW_MS))}
    played.match.facts_s = 10.0
    assert examined(played, [A, pressing, replace(C, pressing=True)], START_S + 25.0) == ["a"]
    assert {status for _, _, _, status in rows_of(played)} == {"skipped"}
    reasons = read([played.path])["reason"].to_list()
    assert reasons == ["no time left in the budget, though changed files affect it"] * 4


@pytest.mark.parametrize(("within_s", "kept"), [(60.0, ["b"]), (130.0, ["a"])])
def test_time_is_kept_for_the_turns_of_both_sides(played: Played, within_s: float, kept: list[str]) -> None:
    played.match.found = {A: (facts(SLOW_MS), facts(SLOW_MS))}
    contests = [A, B] if within_s < 64.0 else [A]
    assert examined(played, contests, START_S + within_s) == kept, "the turns alone take 64 s, and inputs a little more"


def test_a_slow_set_up_takes_time_as_well(played: Played) -> None:
    played.match.found = {A: (facts(plan_ms=20e3), facts()), B: (facts(), facts(first_call_ms=20e3))}
    assert examined(played, [A, B, C], START_S + 8 * 20.0) == ["c"]


def test_the_more_time_the_more_contests_fit(played: Played) -> None:
    many = [contest("a", n) for n in range(1, 101)]
    fitting = []
    for within_s in (10.0, 20.0, 40.0, 80.0, HOURS):
        played.series.timed.clear()
        fitting.append(len(examined(played, many, START_S + within_s)))
    assert fitting == sorted(set(fitting))
    assert 1 <= fitting[0] <= 10 / (8 * 0.4), "8 pairs of 40 blocks with two turns of 5 ms"
    assert fitting[-1] == 100


def test_time_that_examining_took_is_gone(played: Played) -> None:
    played.match.facts_s = 50.0
    assert examined(played, [A, B, C], START_S + 100.0) == ["a"]
    assert played.match.examined == [A, B], "of the last one it was clear beforehand"
    assert {variant for _, variant, _, status in rows_of(played) if status == "skipped"} == {"b", "c"}


def test_a_time_into_which_nothing_fits_is_refused(played: Played) -> None:
    with pytest.raises(UserError, match="--budget: not one of 3 cases"):
        played.series.examine([A, B, C], 1.0, 8)
    assert played.match.examined == []


def test_something_that_is_wrong_already_is_worth_telling(played: Played) -> None:
    played.match.found = {A: (facts(), failed("wrong"))}
    played.match.facts_s = 100.0
    assert examined(played, [A, B], START_S + 90.0) == []
    assert [status for _, _, _, status in rows_of(played)] == ["ok", "wrong", "skipped", "skipped"]


def test_numbers_come_in_the_order_asked_for_with_a_column_a_pair(played: Played) -> None:
    ratios = {(A, 1): 1.1, (C, 1): 1.3, (A, 2): 2.1, (C, 2): 2.3}
    played.match.turns = lambda number, contest: equal(ratios[contest, number])
    played.series.examine([A, B, C], HOURS, 8)
    numbers = played.series.draw(np.array([2, 0]), 2, False)
    assert numbers is not None and numbers.shape == (2, 2)
    assert np.exp(numbers) == pytest.approx(np.array([[1.3, 2.3], [1.1, 2.1]]))
    assert played.match.played == [(1, [C, A]), (2, [C, A])]


def test_one_pair_of_one_contest_is_an_array_as_well(played: Played) -> None:
    played.match.turns = lambda number, contest: equal(1.5)
    played.series.examine([A], HOURS, 8)
    numbers = played.series.draw(np.array([0]), 1, False)
    assert numbers is not None and numbers.shape == (1, 1) and np.exp(numbers[0, 0]) == pytest.approx(1.5)


def test_each_pair_is_another_and_numbered_on(played: Played) -> None:
    played.series.examine([A, B], HOURS, 8)
    played.series.draw(np.array([0, 1]), 2, False)
    played.series.draw(np.array([1]), 2, False)
    played.series.draw(np.array([0]), 1, True)
    assert [number for number, _ in played.match.played] == [1, 2, 3, 4, 5]
    visits = [(variant, visit) for run, variant, visit, _ in rows_of(played) if run == BASE]
    assert sorted(visits) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3), ("b", 4)]


def test_a_row_a_side_is_on_disk_before_the_next_contest(played: Played) -> None:
    played.series.examine([A, B], HOURS, 8)
    played.series.draw(np.array([0, 1]), 2, False)
    assert played.match.lines == [0, 2, 4, 6]
    assert [(run, variant, visit) for run, variant, visit, _ in rows_of(played)] == [
        (run, variant, visit) for visit in (1, 2) for variant in ("b", "a") for run in (BASE, NEW)
    ]


def test_a_row_holds_the_blocks_of_its_side_and_what_was_found_before(played: Played) -> None:
    played.match.found = {A: (facts(peak_bytes=111), facts(peak_bytes=222))}
    played.match.turns = lambda number, contest: Turns((1.0, 2.0), (3.0, 4.0), (5.0, 6.0, 7.0), 8)
    played.series.examine([A], HOURS, 8)
    played.series.draw(np.array([0]), 1, False)
    base, new = read([played.path]).to_dict("records")
    assert (base["samples_ms"], new["samples_ms"]) == ((1.0, 2.0), (3.0, 4.0))
    assert base["canary_samples_ms"] == new["canary_samples_ms"] == (5.0, 6.0, 7.0)
    assert (base["calls_per_sample"], new["calls_per_sample"]) == (8, 8)
    assert (base["peak_bytes"], new["peak_bytes"]) == (111, 222)
    assert (base["status"], base["kernel"], base["method"]) == ("ok", FACTS.kernel, PAIRED_METHOD)


@pytest.mark.parametrize("side", ["base", "new"])
def test_a_side_that_was_lost_in_turns_has_no_number_and_a_row_with_the_reason(played: Played, side: str) -> None:
    def turns(number: int, contest: Contest) -> Turns | Lost:
        return Lost(side, "crashed", "killed by SIGSEGV") if (number, contest) == (2, A) else equal(1.5)

    played.match.turns = turns
    played.series.examine([A, B], HOURS, 8)
    numbers = played.series.draw(np.array([0, 1]), 3, False)
    assert numbers is not None
    assert np.isnan(numbers).tolist() == [[False, True, True], [False, False, False]]
    assert played.match.played == [(1, [A, B]), (2, [A, B]), (3, [B])], "it is not played again"
    frame = read([played.path])
    lost = frame[frame["status"] != "ok"]
    assert len(frame) == 10 and len(lost) == 1
    assert lost.iloc[0][["run", "variant", "visit", "status"]].to_list() == [f"r-at-0.03-{side}", "a", 2, "crashed"]
    assert lost.iloc[0]["reason"] == "in turns: killed by SIGSEGV"
    other = frame[(frame["variant"] == "a") & (frame["visit"] == 2) & (frame["status"] == "ok")]
    assert other["samples_ms"].to_list() == [(QUICK_MS,)], "of the other side stays what was found of it alone"
    assert other["run"].to_list() == [NEW if side == "base" else BASE]
    again = played.series.draw(np.array([0, 1]), 1, True)
    assert again is not None and np.isnan(again).tolist() == [[True], [False]]


def test_past_the_deadline_there_are_no_more_numbers_but_to_confirm(played: Played) -> None:
    played.series.examine([A], HOURS, 8)
    assert played.series.draw(np.array([0]), 1, False) is not None
    played.clock.now_s += 99.0
    assert played.series.draw(np.array([0]), 1, False) is not None, "a second is left"
    played.clock.now_s += 2.0
    assert played.series.draw(np.array([0]), 1, False) is None
    assert len(played.match.played) == 2
    confirmed = played.series.draw(np.array([0]), 2, True)
    assert confirmed is not None and confirmed.shape == (1, 2)


def test_the_first_look_is_had_even_past_the_deadline(played: Played) -> None:
    played.series.examine([A], HOURS, 8)
    played.clock.now_s += 1000.0
    assert played.series.draw(np.array([0]), 1, False) is not None
    assert played.series.draw(np.array([0]), 1, False) is None
