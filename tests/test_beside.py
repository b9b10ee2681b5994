"""Processes beside this one: they load what they are to, leave Ctrl-C to their parent, and end where it does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bench import beside

PARENT = """
import os, time
from bench import beside

if __name__ == "__main__":
    with beside.processes(["colorsys"], most=1) as pool:
        print(pool.submit(os.getpid).result(60), flush=True)
        time.sleep(60)
"""


def knows(module: str) -> tuple[int, bool]:
    """This process, and whether the module is loaded in it."""
    return os.getpid(), module in sys.modules


def interrupt_and_answer() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    return "still here"


def has_ended(pid: int) -> bool:
    """Whether it has, or does so soon."""
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_modules_are_loaded_before_the_first_job() -> None:
    with beside.processes(["colorsys"]) as pool:
        pid, loaded = pool.submit(knows, "colorsys").result(60)
        assert loaded
        assert pid != os.getpid()
    assert not psutil.pid_exists(pid)


def test_a_module_that_cannot_be_loaded_is_for_its_user_to_tell() -> None:
    with beside.processes(["no_such_module", "colorsys"], most=1) as pool:
        assert pool.submit(knows, "colorsys").result(60)[1]


def test_no_more_than_are_wanted() -> None:
    with beside.processes(["colorsys"], most=1) as pool:
        jobs = [pool.submit(knows, "colorsys") for _ in range(4)]
        assert len({job.result(60)[0] for job in jobs}) == 1


def test_an_interrupt_is_for_the_parent_alone() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with beside.processes(["colorsys"]) as pool:
        assert signal.getsignal(signal.SIGINT) is handler
        job = pool.submit(interrupt_and_answer)
        assert job.exception(60) is None
        assert job.result() == "still here"


def test_where_the_block_raises_nothing_goes_on() -> None:
    with pytest.raises(ZeroDivisionError), beside.processes(["colorsys"]) as pool:
        pid, _ = pool.submit(knows, "colorsys").result(60)
        begun = [pool.submit(time.sleep, 30) for _ in range(9)]
        raise ZeroDivisionError
    assert has_ended(pid)
    assert all(one.cancelled() or one.exception() is not None for one in begun)


def test_a_parent_that_is_killed_leaves_none_behind(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    assert has_ended(pid)
