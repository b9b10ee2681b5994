"""Through real processes: variants whose time and memory are known beforehand are measured to be just that.

The times are spun by the wall clock, so that a busy machine cannot stretch them; it can only interrupt them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.measure.server import Server
from bench.measure.visit import Request
from bench.measure.worker import visit_facts
from bench.results.columns import Case, Facts, derive
from variants.problem import Problem

KNOWN = str(Path(__file__).with_name("known_costs.py"))
PROBLEM = Problem(batch=1, heads=1, kv_heads=1, seq_q=16, seq_kv=16, head_dim=16)
OUTPUT_BYTES = 16 * 16 * 4
MIB = 2**20
resident = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="this system has no /proc/self/clear_refs"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Its processes are forked from one that holds 500 MiB."""
    with Server(preload=["tests.measure.heavy"]) as started:
        yield started


def visit(server: Server, variant: str, direction: str = "fwd") -> Facts:
    facts: Facts = server.call(visit_facts, Request(Case.of(variant, direction, PROBLEM), (KNOWN,)), timeout_s=120)
    assert facts.status == "ok", facts
    return facts


@pytest.mark.parametrize("microseconds", [50, 500, 5_000, 50_000])
def test_a_known_time_is_measured(server: Server, microseconds: int) -> None:
    known_ms = microseconds / 1e3
    for _ in range(3):  # a neighbour may interrupt one visit all the time, and that is no mistake of the clock's
        latency_ms = derive(Case.of("", "fwd", PROBLEM), visit(server, f"spins_{microseconds}_us")).latency_ms
        assert latency_ms is not None
        if abs(latency_ms - known_ms) <= max(0.025 * known_ms, 0.008):
            return
    pytest.fail(f"{known_ms} ms were measured as {latency_ms} ms")


def test_a_known_allocation_is_measured_to_the_byte(server: Server) -> None:
    facts = visit(server, "takes_64_mib")
    assert facts.peak_bytes == pytest.approx(64 * MIB, abs=8 * 1024)
    assert (facts.plan_bytes, facts.result_bytes, facts.saved_bytes) == (0, OUTPUT_BYTES, None)


@resident
def test_the_parents_500_mib_are_there_and_do_not_count(server: Server) -> None:
    assert server.call(held_by_the_parent, timeout_s=60) == 500 * MIB
    facts = visit(server, "takes_64_mib")
    assert facts.peak_rss_bytes == pytest.approx(64 * MIB, abs=MIB)


def held_by_the_parent() -> int:
    from tests.measure import heavy  # noqa: PLC0415

    return len(heavy.held)


def test_what_a_plan_keeps_and_what_it_takes_are_in_the_peak(server: Server) -> None:
    facts = visit(server, "plans_16_mib")
    assert facts.plan_bytes == 16 * MIB
    assert facts.peak_bytes == 48 * MIB  # while planning; a call adds 8 to the 16 that are kept
    assert derive(Case.of("", "fwd", PROBLEM), facts).workspace_bytes == 32 * MIB - OUTPUT_BYTES


@pytest.mark.parametrize("direction", ["bwd", "fwdbwd"])
def test_what_is_kept_for_the_backward_pass_is_told(server: Server, direction: str) -> None:
    facts = visit(server, "keeps_4_mib", direction)
    assert facts.saved_bytes == 4 * MIB
    assert facts.result_bytes == 3 * OUTPUT_BYTES
