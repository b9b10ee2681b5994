"""Real processes: what hostile variants earn, and that they take nobody with them."""

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
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
    ("segfaults", "fwd", "crashed", "killed by SIGSEGV"),
    ("killed", "fwd", "crashed", "killed by SIGKILL"),
    ("greedy", "fwd", "oom", "memory"),
    ("leaves_children", "fwd", "ok", ""),
    ("no_gradient", "fwdbwd", "error", "RuntimeError"),
    ("slow_plan", "fwd", "ok", ""),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as started:
        yield started


def visit(server: Server, name: str, direction: str = "fwd", timeout_s: float = 60.0) -> Facts:
    request = Request(Case.of(name, direction, PROBLEM), (HOSTILE,), QUICK)
    facts: Facts = server.call(visit_facts, request, timeout_s=timeout_s)
    return facts


@pytest.mark.parametrize(("name", "direction", "status", "reason"), EXPECTED, ids=[e[0] for e in EXPECTED])
def test_a_hostile_variant_earns_its_status(
    server: Server, name: str, direction: str, status: str, reason: str
) -> None:
    try:
        facts = visit(server, name, direction)
    except Died as death:
        facts = Facts(death.status, str(death))
    assert facts.status == status, facts
    assert reason.lower() in facts.reason.lower()
    assert visit(server, "good").status == "ok"


def test_what_hangs_is_given_up(server: Server) -> None:
    start = time.monotonic()
    with pytest.raises(Died, match="no result within 3 s") as death:
        visit(server, "hangs", timeout_s=3.0)
    assert death.value.status == "timeout"
    assert time.monotonic() - start < 30


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
