"""Processes beside this one: they know what they were to load, leave Ctrl-C to their parent, and end with it."""

import os
import signal
import sys
import time

import psutil
import pytest

from bench import beside


def known(module: str) -> tuple[int, bool]:
    """This process, and whether the module is loaded in it."""
    return os.getpid(), module in sys.modules


def interrupt_and_answer() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    return "still here"


def test_modules_are_loaded_before_the_first_job() -> None:
    with beside.processes(["colorsys"]) as pool:
        pid, loaded = pool.submit(known, "colorsys").result(60)
        assert loaded
        assert pid != os.getpid()
    assert not psutil.pid_exists(pid)


def test_an_interrupt_is_for_the_parent_alone() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with beside.processes(["colorsys"]) as pool:
        assert signal.getsignal(signal.SIGINT) is handler
        assert pool.submit(interrupt_and_answer).result(60) == "still here"


def test_for_nothing_to_load_nothing_is_started() -> None:
    before = len(psutil.Process().children())
    with beside.processes([]):
        assert len(psutil.Process().children()) == before


def test_what_is_raised_drops_what_nobody_waits_for() -> None:
    with pytest.raises(KeyboardInterrupt), beside.processes(["colorsys"]) as pool:
        begun = [pool.submit(time.sleep, 0.2) for _ in range(200)]
        raise KeyboardInterrupt
    assert sum(one.cancelled() for one in begun) > 150
