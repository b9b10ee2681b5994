"""Real processes of a made-up worker: they answer, are lost in every way there is, and leave nothing behind."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from bench.pairs.process import Lost, Process, Side

LONG_S = 60.0

WORKER = """
import os, signal, subprocess, sys, time
from multiprocessing.connection import Connection

def serve(descriptor):
    messages = Connection(descriptor)
    while True:
        try:
            command, arguments = messages.recv()
        except EOFError:
            return
        try:
            answer = True, globals()[command](*arguments)
        except Exception as error:
            answer = False, ("oom", f"{type(error).__name__}: {error}")
        messages.send(answer)

def total(*numbers):
    return sum(numbers)

def raises():
    raise MemoryError("too small")

def exits(status, said):
    print(said, flush=True)
    os._exit(status)

def complains(said):
    print("a line on stdout", flush=True)
    print(said, file=sys.stderr, flush=True)
    os._exit(4)

def killed(number, said):
    print(said, flush=True)
    os.kill(os.getpid(), number)
    time.sleep(3600)

def hangs():
    time.sleep(3600)

def where():
    import bench
    return bench.__file__, sys.path, os.getcwd(), os.environ["PYTHONPATH"]

def stdin():
    return sys.stdin.read()

def pids():
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"])
    return os.getpid(), child.pid

def forks_and_dies(number):
    if os.fork() == 0:
        time.sleep(3600)
    os.kill(os.getpid(), number)
    time.sleep(3600)

def hangs_up():
    os.closerange(3, 256)
    time.sleep(3600)
"""


def made_up_suite(folder: Path, worker: str = WORKER) -> Path:
    """A folder with a package `bench` that has this worker and nothing else."""
    (folder / "bench" / "pairs").mkdir(parents=True)
    for package in ("bench", "bench/pairs"):
        (folder / package / "__init__.py").touch()
    (folder / "bench" / "pairs" / "worker.py").write_text(worker)
    return folder


@pytest.fixture
def side(tmp_path: Path) -> Side:
    folder, tree = tmp_path / "tree" / "below", tmp_path / "tree"
    folder.mkdir(parents=True)
    return Side("new", sys.executable, folder, made_up_suite(tmp_path / "packages"), tree)


@pytest.fixture
def process(side: Side) -> Iterator[Process]:
    with Process(side) as started:
        yield started


def runs(pid: int) -> bool:
    """A child that nobody waits for stays as a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(*pids: int) -> bool:
    """Whether these processes have ended, or do so soon."""
    deadline = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(runs, pids))


def test_it_is_asked_and_answers_time_and_again(process: Process) -> None:
    assert process.ask("total", 1, 2, 3, timeout_s=LONG_S) == 6
    assert process.ask("total", 40, 2, timeout_s=LONG_S) == 42


def test_answers_come_in_the_order_of_what_was_told(process: Process) -> None:
    for number in range(5):
        process.tell("total", number)
    assert [process.hear(LONG_S) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_two_processes_are_told_first_and_heard_later(side: Side) -> None:
    with Process(side) as one, Process(side) as other:
        one.tell("total", 1)
        other.tell("total", 2)
        assert (other.hear(LONG_S), one.hear(LONG_S)) == (2, 1)


def test_a_side_that_raises_is_lost_with_its_status_and_can_be_asked_again(process: Process) -> None:
    with pytest.raises(Lost) as lost:
        process.ask("raises", timeout_s=LONG_S)
    assert (lost.value.side, lost.value.status) == ("new", "oom")
    assert lost.value.reason == "MemoryError: too small"
    assert str(lost.value) == "new: MemoryError: too small"
    assert process.ask("total", 1, timeout_s=LONG_S) == 1


def test_one_that_exits_is_lost_with_what_it_said_last(process: Process) -> None:
    with pytest.raises(Lost) as lost:
        process.ask("exits", 3, "as I lived\n\n", timeout_s=LONG_S)
    assert (lost.value.side, lost.value.status) == ("new", "error")
    assert lost.value.reason == "ended without a result, exit status 3; it last said: as I lived"


def test_what_it_says_on_stderr_counts_as_well(process: Process) -> None:
    with pytest.raises(Lost, match=r"exit status 4; it last said: out of luck$"):
        process.ask("complains", "out of luck", timeout_s=LONG_S)


def test_of_a_flood_the_last_line_is_told(process: Process) -> None:
    with pytest.raises(Lost, match=r"it last said: the end$"):
        process.ask("exits", 1, "a word " * 100_000 + "\nthe end", timeout_s=LONG_S)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
def test_one_that_is_killed_has_crashed(process: Process, name: str) -> None:
    with pytest.raises(Lost) as lost:
        process.ask("killed", signal.Signals[name].value, "farewell", timeout_s=LONG_S)
    assert lost.value.status == "crashed"
    assert lost.value.reason.startswith(f"killed by {name}")
    assert lost.value.reason.endswith("; it last said: farewell")


def test_one_that_does_not_answer_in_time_is_lost(process: Process) -> None:
    process.ask("total", timeout_s=LONG_S)  # it has started
    with pytest.raises(Lost) as lost:
        process.ask("hangs", timeout_s=0.1)
    assert (lost.value.side, lost.value.status) == ("new", "timeout")
    assert lost.value.reason == "no result within 0.1 s"


def test_one_that_is_gone_is_lost_however_often_it_is_asked(process: Process) -> None:
    for _ in range(2):
        with pytest.raises(Lost, match="exit status 3"):
            process.ask("exits", 3, "", timeout_s=LONG_S)


def test_one_that_does_not_start_is_lost_with_the_reason(tmp_path: Path) -> None:
    packages = made_up_suite(tmp_path, "raise ImportError('no such luck')")
    told = "exit status 1; it last said: ImportError: no such luck"
    side = Side("base", sys.executable, tmp_path, packages, tmp_path)
    with Process(side) as process, pytest.raises(Lost, match=told) as lost:
        process.hear(LONG_S)
    assert (lost.value.side, lost.value.status) == ("base", "error")


def test_one_that_dies_has_crashed_even_where_a_child_holds_the_socket(process: Process) -> None:
    process.ask("total", timeout_s=LONG_S)
    with pytest.raises(Lost) as lost:
        process.ask("forks_and_dies", signal.SIGSEGV.value, timeout_s=10.0)
    assert lost.value.status == "crashed", lost.value.reason


def test_one_that_hangs_up_but_lives_on_is_lost_within_the_time(side: Side) -> None:
    found: list[str] = []

    def hear(from_: Process) -> None:
        with pytest.raises(Lost) as lost:
            from_.hear(1.0)
        found.append(lost.value.status)

    with Process(side) as process:
        process.ask("total", timeout_s=LONG_S)
        process.tell("hangs_up")
        thread = threading.Thread(target=hear, args=(process,))
        thread.start()
        thread.join(4.0)
        in_time = bool(found)
    thread.join()
    assert in_time


def test_leaving_kills_the_process_and_its_children(side: Side) -> None:
    with Process(side) as process:
        pids = process.ask("pids", timeout_s=LONG_S)
        assert all(map(runs, pids))
        process.tell("hangs")
    assert gone(*pids)


def test_leaving_kills_the_children_of_one_that_is_gone(side: Side) -> None:
    with Process(side) as process:
        _, child = process.ask("pids", timeout_s=LONG_S)
        with pytest.raises(Lost, match="exit status 5"):
            process.ask("exits", 5, "", timeout_s=LONG_S)
        assert runs(child)
    assert gone(child)


def test_leaving_by_an_exception_kills_it_as_well(side: Side) -> None:
    def interrupted() -> None:
        with Process(side) as process:
            pids.extend(process.ask("pids", timeout_s=LONG_S))
            raise KeyboardInterrupt

    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(pids) == 2 and gone(*pids)


def test_leaving_one_that_is_gone_is_no_error(side: Side) -> None:
    with Process(side) as process, pytest.raises(Lost):
        process.ask("exits", 0, "", timeout_s=LONG_S)


def test_an_interrupt_does_not_reach_it(process: Process) -> None:
    pid, _ = process.ask("pids", timeout_s=LONG_S)
    assert os.getpgid(pid) == pid != os.getpgid(0)


def test_it_reads_nothing_that_is_typed(side: Side) -> None:
    ours, (typed, ends) = os.dup(0), os.pipe()
    os.write(ends, b"typed")
    os.close(ends)
    os.dup2(typed, 0)
    try:
        with Process(side) as process:
            assert process.ask("stdin", timeout_s=LONG_S) == ""
    finally:
        os.dup2(ours, 0)
        os.close(ours)
        os.close(typed)


def test_packages_come_before_the_folder_and_the_tree(
    side: Side, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = made_up_suite(tmp_path / "theirs", "raise ImportError('the parent has another suite')")
    for elsewhere in (side.folder, side.tree):
        made_up_suite(elsewhere, "raise ImportError('not this one')")
    monkeypatch.setenv("PYTHONPATH", str(theirs))
    with Process(side) as process:
        file, path, folder, _ = process.ask("where", timeout_s=LONG_S)
    assert Path(file) == side.packages / "bench" / "__init__.py"
    assert path[:4] == [str(side.packages), str(side.folder), str(side.tree), str(side.tree / "src")]
    assert Path(folder) == side.folder
    assert str(theirs) not in path and "" not in path


def test_further_folders_come_last(side: Side, tmp_path: Path) -> None:
    with Process(replace(side, further=(tmp_path / "one", tmp_path / "other"))) as process:
        _, path, _, _ = process.ask("where", timeout_s=LONG_S)
    assert path[4:6] == [str(tmp_path / "one"), str(tmp_path / "other")]


def test_modules_of_the_folder_come_before_those_of_the_tree(side: Side) -> None:
    worker = side.packages / "bench" / "pairs" / "worker.py"
    worker.write_text(f"{WORKER}\ndef mine():\n    import mine\n    return mine.__file__\n")
    for elsewhere in (side.folder, side.tree):
        (elsewhere / "mine.py").touch()
    with Process(side) as process:
        assert process.ask("mine", timeout_s=LONG_S) == str(side.folder / "mine.py")
