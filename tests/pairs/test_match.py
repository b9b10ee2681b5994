"""A series on a made-up match and a made-up clock: what is examined, what is drawn, and what is on disk by then."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import psutil
import pytest

import bench
import variants
from bench.errors import UserError
from bench.pairs.about import About
from bench.pairs.match import Match, Told, _cores
from bench.pairs.process import Lost, Process, Side
from bench.pairs.turns import Effort, Turns
from bench.results.paired import Contest
from tests.results.rows import CASE, ENVIRONMENT, FACTS
from variants.machine import Machine

COMMITS = ("1234567", "89abcde+")
BASE, NEW = "r-at-0.03-base", "r-at-0.03-new"


def contest(variant: str) -> Contest:
    """A contest of this variant against itself."""
    case = replace(CASE, variant=variant)
    return Contest(case, case)


A = contest("a")


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
