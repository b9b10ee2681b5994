"""A series on a made-up match and a made-up clock: what is examined, what is drawn, and what is on disk by then."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import psutil
import pytest

import bench
import variants
from bench.analysis.frame import read
from bench.errors import UserError
from bench.pairs.about import About
from bench.pairs.match import Match, Series, Told, _cores
from bench.pairs.process import Lost, Process, Side
from bench.pairs.turns import Effort, Turns
from bench.results.columns import Case, Facts, Row
from bench.results.paired import PAIRED_METHOD, Contest
from bench.results.store import Store
from tests.results.rows import CASE, ENVIRONMENT, FACTS, ROW
from variants.machine import Machine

COMMITS = ("1234567", "89abcde+")

# What a process tells of itself


class Teller:
    """A process as far as a match needs one to learn where it is from: it tells this of itself."""

    def __init__(self, side: Side, about: About) -> None:
        self.side, self._about = side, about

    def hear(self, timeout_s: float) -> About:
        return self._about


def packages(folder: Path) -> Path:
    for name in ("bench", "variants"):
        (folder / name).mkdir(parents=True)
    return folder


def own(folder: Path, suite: Path, its_variants: Path, repo: Path | None = None, loaded: Sequence[Path] = ()) -> About:
    """What a match learns of a side in this folder that tells of these packages and modules."""
    machine = Machine(device="cpu", device_name="made up", memory_bytes=0)
    about = About(str(suite), str(its_variants), machine, ENVIRONMENT, {}, {}, tuple(map(str, loaded)))
    side = Side("new", "python", folder, folder, folder)
    match = Match((side, side), COMMITS, Told("cpu", (), 1, 1.0, repo))
    return match._own(cast(Process, Teller(side, about)))


def test_a_side_with_packages_of_its_own_is_taken(tmp_path: Path) -> None:
    its = packages(tmp_path / "new")
    assert own(its, its / "bench", its / "variants").suite == str(its / "bench")


def test_its_own_packages_may_be_named_through_a_link(tmp_path: Path) -> None:
    its = packages(tmp_path / "new")
    (tmp_path / "link").symlink_to(its)
    assert own(tmp_path / "link", its / "bench", its / "variants").variants == str(its / "variants")


@pytest.mark.parametrize("package", ["bench", "variants"])
def test_a_side_with_packages_of_the_other_side_is_refused(tmp_path: Path, package: str) -> None:
    its, other = packages(tmp_path / "new"), packages(tmp_path / "base")
    found = {name: (other if name == package else its) / name for name in ("bench", "variants")}
    with pytest.raises(UserError, match=r"^new: ") as refusal:
        own(its, found["bench"], found["variants"])
    assert str(its / package) in str(refusal.value) and str(other / package) in str(refusal.value)


def test_a_side_that_loaded_a_module_of_the_repository_itself_is_refused(tmp_path: Path) -> None:
    its, repo = packages(tmp_path / "new"), tmp_path / "repo"
    with pytest.raises(UserError, match=r"^new: ") as refusal:
        own(its, its / "bench", its / "variants", repo, [its / "mine.py", repo / "lib" / "mine.py"])
    assert str(repo / "lib" / "mine.py") in str(refusal.value)


def test_modules_from_elsewhere_and_from_an_environment_in_the_repository_are_no_matter(tmp_path: Path) -> None:
    its, repo = packages(tmp_path / "new"), tmp_path / "repo"
    loaded = [
        its / "mine.py",
        repo / "env/lib/site-packages/torch/__init__.py",
        Path(os.__file__),
        tmp_path / "repo2/x.py",
    ]
    assert own(its, its / "bench", its / "variants", repo, loaded).loaded == tuple(map(str, loaded))
    assert own(its, its / "bench", its / "variants", None, [repo / "mine.py"]).suite, "nor is any without revisions"


# Cores


def allow(monkeypatch: pytest.MonkeyPatch, cores: set[int]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)


def test_as_many_cores_as_threads_and_others_for_the_next_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, {9, 2, 5, 7})
    assert [len(_cores(number, 3)) for number in range(1, 9)] == [3] * 8
    pairs = [set(_cores(number, 1)) for number in range(1, 9)]
    assert all(a != b for a, b in pairwise(pairs))
    assert pairs[:4] == pairs[4:] and set().union(*pairs[:4]) == {2, 5, 7, 9}, "each has its turn"
    assert set().union(*(_cores(number, 2) for number in range(4))) == {2, 5, 7, 9}
    assert set(_cores(1, 2)) != set(_cores(2, 2))


def test_never_more_cores_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, {4, 6})
    assert sorted(_cores(1, 16)) == [4, 6]
    allow(monkeypatch, {3})
    assert _cores(1, 1) == _cores(2, 1) == [3]


def test_none_where_the_system_pins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert _cores(1, 2) == []


# A series

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
START_S = 8 * 4.0  # of 8 pairs


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


# A match with real processes of a made-up worker

WORKER = """
import os, signal
from multiprocessing.connection import Connection
from pathlib import Path
import bench, variants
from bench.pairs.about import About, Known
from bench.results.columns import Facts
from tests.results.rows import ENVIRONMENT, FACTS
from variants.machine import Machine

def serve(descriptor):
    messages = Connection(descriptor)
    while True:
        try:
            command, arguments = messages.recv()
        except EOFError:
            return
        try:
            answer = True, globals()[command](*arguments)
        except ImportError as error:
            answer = False, ("error", str(error))
        messages.send(answer)

def about(device, imports, threads):
    Path("started").open("a").write(f"{os.getpid()} ")
    if "nothing" in imports and Path.cwd().name == "new":
        raise ImportError("no such luck")
    folders = [str(Path(package.__file__).parent) for package in (bench, variants)]
    machine = Machine(device=device, device_name="made up", memory_bytes=0)
    return About(*folders, machine, ENVIRONMENT, {"sketch": Known(False, False, "a file")}, {})

def stay(cores):
    Path("cores").open("a").write(f"{cores} ")

def enter(case):
    if case.variant == "dies" and Path.cwd().name == "new":
        os.kill(os.getpid(), signal.SIGSEGV)
    return 1.0, True

def turn(calls):
    return 1.5 if Path.cwd().name == "new" else 1.0

def reference():
    return 1.0

def refusals(cases):
    return [Path.cwd().name if case.variant == "refused" else None for case in cases]

def facts(case):
    if case.variant == "dies" and Path.cwd().name == "new":
        os.kill(os.getpid(), signal.SIGSEGV)
    return FACTS
"""

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, Side]:
    return made_up_side(tmp_path, "base"), made_up_side(tmp_path, "new")


def made_up_side(tmp_path: Path, name: str) -> Side:
    """A side with this suite's own code and a worker that measures nothing."""
    suite, folder = tmp_path / f"{name}-suite", tmp_path / name
    for package in (bench, variants):
        code = Path(cast(str, package.__file__)).parent
        shutil.copytree(code, suite / code.name, ignore=shutil.ignore_patterns("__pycache__"))
    (suite / "bench" / "pairs" / "worker.py").write_text(WORKER)
    folder.mkdir()
    (folder / "tests").symlink_to(ROOT / "tests")
    return Side(name, sys.executable, folder, suite, folder)


def told(*imports: str) -> Told:
    return Told("cpu", imports, threads=1, timeout_s=60.0)


SHORT = Effort(least=2, most=2)


def starts(side: Side) -> list[int]:
    return [int(pid) for pid in (side.folder / "started").read_text().split()]


def test_a_pair_is_two_new_processes_on_the_same_cores(sides: tuple[Side, Side]) -> None:
    with Match(sides, COMMITS, told()) as match:
        assert [Path(about.suite) for about in match.about] == [side.packages / "bench" for side in sides]
        for number in (1, 2):
            [(played, turns)] = match.play([A], number, SHORT)
            assert played == A
            assert isinstance(turns, Turns) and (turns.base_ms, turns.new_ms) == ((1.0, 1.0), (1.5, 1.5))
    pids = [starts(side) for side in sides]
    assert [len(own_pids) for own_pids in pids] == [3, 3], "one to be asked, and one for each pair"
    assert len({*pids[0], *pids[1]}) == 6
    cores = [(side.folder / "cores").read_text() for side in sides]
    assert cores[0] == cores[1] == f"{_cores(1, 1)} {_cores(2, 1)} "


def test_all_contests_are_played_and_another_pair_goes_on_where_a_side_was_lost(sides: tuple[Side, Side]) -> None:
    contests = [contest("a"), contest("dies"), contest("b")]
    with Match(sides, COMMITS, told()) as match:
        found = dict(match.play(contests, 1, SHORT))
    assert set(found) == set(contests)
    lost = found[contest("dies")]
    assert isinstance(lost, Lost) and (lost.side, lost.status) == ("new", "crashed")
    assert isinstance(found[contest("a")], Turns) and isinstance(found[contest("b")], Turns)


def test_no_process_is_started_that_nobody_asks(sides: tuple[Side, Side]) -> None:
    with Match(sides, COMMITS, told()) as match:
        [(_, outcome)] = match.play([contest("dies")], 1, SHORT)
    assert isinstance(outcome, Lost)
    assert [len(starts(side)) for side in sides] == [2, 2]


def test_facts_are_of_both_sides_and_one_that_dies_takes_nobody_with_it(sides: tuple[Side, Side]) -> None:
    with Match(sides, COMMITS, told()) as match:
        base, new = match.facts(contest("dies"))
        assert (base.status, new.status) == ("ok", "crashed") and "SIGSEGV" in new.reason
        assert match.facts(A) == (FACTS, FACTS)


def test_refusals_are_of_both_sides(sides: tuple[Side, Side]) -> None:
    with Match(sides, COMMITS, told()) as match:
        found = match.refusals([A, contest("refused"), Contest(A.base, contest("refused").new)])
    assert found == [(None, None), ("base", "new"), (None, "new")]


def test_rows_tell_side_commit_method_and_whether_a_variant_is_exact(sides: tuple[Side, Side]) -> None:
    with Match(sides, COMMITS, told()) as match:
        rows = [match.row(at, CASE, FACTS, run, 3) for at, run in enumerate((BASE, NEW))]
        assert match.row(1, replace(CASE, variant="sketch"), FACTS, NEW, 3).exact is False
    assert [(row.run, row.visit, row.exact) for row in rows] == [(BASE, 3, True), (NEW, 3, True)]
    assert [row.environment for row in rows] == [
        replace(ENVIRONMENT, commit=commit, method="2 gate") for commit in COMMITS
    ]


def test_a_side_that_does_not_start_is_told_and_no_process_is_left(sides: tuple[Side, Side]) -> None:
    with pytest.raises(UserError, match="new: its process does not start: no such luck"):
        Match(sides, COMMITS, told("nothing")).__enter__()
    pids = [pid for side in sides for pid in starts(side) if psutil.pid_exists(pid)]
    left = [each for pid in pids if (each := psutil.Process(pid)).status() != psutil.STATUS_ZOMBIE]
    for each in left:
        each.kill()
    assert not left
