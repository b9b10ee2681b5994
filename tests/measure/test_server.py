"""Real processes: what hostile variants earn, and that they take nobody with them."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
import pytest

from bench.measure.sampling import Policy
from bench.measure.server import Died, Server
from bench.measure.visit import Request
from bench.measure.worker import visit_facts
from bench.results.columns import Case, Facts
from variants.problem import Problem

HOSTILE = str(Path(__file__).with_name("hostile.py"))
PROBLEM = Problem(batch=1, heads=2, kv_heads=2, seq_q=64, seq_kv=64, head_dim=16)
QUICK = Policy(budget_ms=5.0)

EXPECTED = [
    ("good", "fwd", "ok", ""),
    ("zeros", "fwd", "wrong", "error"),
    ("nan", "fwd", "wrong", "not finite"),
    ("wrong_dtype", "fwd", "wrong", "float64"),
    ("wrong_shape", "fwd", "wrong", "shape"),
    ("writes_inputs", "fwd", "wrong", "wrote"),
    ("memoised", "fwd", "wrong", "error"),
    ("first_seed_only", "fwd", "wrong", "error"),
    ("returns_input", "fwd", "wrong", "returned a view of v"),
    ("view", "fwd", "wrong", "q"),
    ("default_dtype", "fwd", "wrong", "changed the default dtype"),
    ("threads", "fwd", "wrong", "changed the number of threads"),
    ("grad_mode", "fwd", "wrong", "changed grad mode"),
    ("seeds", "fwd", "wrong", "changed the random seed"),
    ("raises", "fwd", "error", "ValueError: a [bold] reason,"),
    ("unsupported", "fwd", "unsupported", "only on Tuesdays"),
    ("exits", "fwd", "error", "SystemExit"),
    ("hard_exit", "fwd", "error", "ended without a result, exit status 0; it last said: nothing to see"),
    ("floods", "fwd", "ok", ""),
    ("last_words", "fwd", "error", "ended without a result, exit status 3; it last said: as I lived"),
    ("segfaults", "fwd", "crashed", "killed by SIGSEGV"),
    ("killed", "fwd", "crashed", "killed by SIGKILL"),
    ("greedy", "fwd", "oom", "memory"),
    ("leaves_children", "fwd", "ok", ""),
    ("no_gradient", "fwdbwd", "error", "RuntimeError"),
    ("fails_in_backward", "fwd", "ok", ""),
    ("fails_in_backward", "bwd", "error", "ArithmeticError: no way back"),
    ("fails_in_backward", "fwdbwd", "error", "ArithmeticError: no way back"),
    ("slow_plan", "fwd", "ok", ""),
    ("hangs", "fwd", "timeout", "set-up did not end within 2 s"),
    ("hangs_stubbornly", "fwd", "timeout", "set-up did not end within 2 s"),
    ("hangs_unheard", "fwd", "timeout", "set-up did not end within 2 s"),
    ("hangs_in_plan", "fwd", "timeout", "set-up did not end within 2 s"),
]
OTHERS = [("good", "fwd", n) for n in (1, 17, 32, 64, 65)] + [("good", "bwd", 32), ("good", "fwdbwd", 33)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as started:
        yield started


def visit(
    server: Server, name: str, direction: str = "fwd", n: int = 64, timeout_s: float = 60.0, setup_s: float = 60.0
) -> Facts:
    case = Case.of(name, direction, replace(PROBLEM, seq_q=n, seq_kv=n))
    request = Request(case, (HOSTILE,), QUICK)
    try:
        facts: Facts = server.call(visit_facts, request, timeout_s=timeout_s, setup_timeout_s=setup_s)
    except Died as death:
        return Facts(death.status, str(death))
    return facts


def outcome(facts: Facts) -> tuple[object, ...]:
    """What must not depend on who else is in the sweep."""
    return facts.status, facts.reason, facts.error, facts.error_budget, facts.kernel, facts.peak_bytes


@pytest.fixture(scope="module")
def undisturbed(server: Server) -> list[tuple[object, ...]]:
    """The outcome of seven visits with no hostile variant anywhere."""
    return [outcome(visit(server, *other)) for other in OTHERS]


@pytest.mark.parametrize(
    ("name", "direction", "status", "reason"), EXPECTED, ids=[f"{name}-{direction}" for name, direction, *_ in EXPECTED]
)
def test_in_a_sweep_of_eight_a_hostile_variant_earns_its_status_and_the_others_keep_theirs(
    server: Server, undisturbed: list[tuple[object, ...]], name: str, direction: str, status: str, reason: str
) -> None:
    facts = visit(server, name, direction, setup_s=2.0 if "hangs" in name else 60.0)
    assert facts.status == status, facts
    assert reason.lower() in facts.reason.lower()
    assert {status for status, *_ in undisturbed} == {"ok"}
    assert [outcome(visit(server, *other)) for other in OTHERS] == undisturbed


def test_what_hangs_after_its_set_up_has_a_limit_of_its_own(server: Server) -> None:
    start = time.monotonic()
    with pytest.raises(Died, match=r"no result within 0.5 s") as death:
        server.call(ready_then_hang, timeout_s=0.5, setup_timeout_s=60.0)
    assert death.value.status == "timeout"
    assert time.monotonic() - start < 30


def ready_then_hang(ready: Callable[[], None]) -> None:
    ready()
    time.sleep(3600)


def test_a_set_up_may_take_longer_than_the_rest(server: Server) -> None:
    assert server.call(slow_then_quick, timeout_s=0.4, setup_timeout_s=60.0) == "done"


def slow_then_quick(ready: Callable[[], None]) -> str:
    time.sleep(1.0)
    ready()
    return "done"


def test_no_process_is_left_behind(server: Server) -> None:
    visit(server, "leaves_children")
    deadline = time.monotonic() + 10
    while (left := hostile_processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def hostile_processes() -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "left by a hostile variant" in " ".join(process.info["cmdline"] or ()):
                found.append(process)
    return found


def test_set_up_is_timed_and_weighed_apart(server: Server) -> None:
    facts = visit(server, "slow_plan")
    assert facts.plan_ms is not None and facts.plan_ms > 400
    assert facts.plan_bytes == 2**24
    assert facts.peak_bytes is not None and 2**24 < facts.peak_bytes < 2**24 + 2**20
    assert min(facts.samples_ms) < 400


DEPENDENT = """
import os, sys, threading, time
from bench.measure.worker import die_with_the_reader
os.setsid()
threading.Thread(target=die_with_the_reader, args=(1,), daemon=True).start()
print("started", flush=True)
time.sleep(3600)
"""


def test_where_the_system_ends_no_orphans_a_thread_does() -> None:
    process = subprocess.Popen([sys.executable, "-c", DEPENDENT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.stdout.close()
    assert process.wait(30) == -signal.SIGKILL


def test_processes_are_apart_and_results_come_back(server: Server) -> None:
    children = {server.call(os.getpid, timeout_s=60) for _ in range(3)}
    assert len(children) == 3
    assert os.getpid() not in children


def test_an_exception_comes_back_as_itself(server: Server) -> None:
    with pytest.raises(ZeroDivisionError):
        server.call(divmod, 1, 0, timeout_s=60)


@pytest.mark.parametrize("method", ["start", "join"])
def test_an_interrupt_at_any_moment_leaves_no_process(
    server: Server, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    original = getattr(ForkServerProcess, method)

    def interrupted(process: ForkServerProcess, *arguments: float) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        original(process, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ForkServerProcess, method, interrupted)
    with pytest.raises((KeyboardInterrupt, Died)):
        server.call(time.sleep, 3600, timeout_s=0.5)
    assert not multiprocessing.active_children()
    monkeypatch.undo()
    assert server.call(os.getpid, timeout_s=60) != os.getpid()
