"""pytest-benchmark cases for the harness's own cost: what a visit spends outside the variant."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, repeat
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.measure.sampling import Policy, sample
from bench.measure.server import Server
from bench.measure.visit import Request
from bench.measure.worker import visit_facts
from bench.plan.quantities import sizes
from bench.results.columns import Case, Facts
from bench.results.store import Store
from tests.results.rows import ROW
from variants.masks import Mask
from variants.problem import Problem


class Outside:
    """A clock that stands still for what a visit spends on its variant: set-up, sampling with its canary, checking."""

    def __init__(self) -> None:
        self.inside_s = 0.0

    def __call__(self) -> float:
        return time.perf_counter() - self.inside_s

    def leave_out(self, facts: Facts) -> None:
        assert facts.calls_per_sample and facts.plan_ms is not None and facts.first_call_ms and facts.check_ms
        samples_ms = sum(facts.samples_ms) * facts.calls_per_sample + sum(facts.conditions.canary_samples_ms)
        self.inside_s += (facts.plan_ms + facts.first_call_ms + facts.check_ms + samples_ms) / 1e3


OUTSIDE = Outside()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as started:
        started.call(os.getpid, timeout_s=60)
        yield started


def test_a_process_of_its_own(benchmark: BenchmarkFixture, server: Server) -> None:
    child = benchmark(lambda: server.call(os.getpid, timeout_s=60))
    assert child != os.getpid()


@pytest.mark.benchmark(timer=OUTSIDE, group="a visit outside of set-up, sampling and checking")
@pytest.mark.parametrize("direction", ["fwd", "fwdbwd"])
def test_what_a_visit_costs_outside_of_its_variant(benchmark: BenchmarkFixture, server: Server, direction: str) -> None:
    problem = Problem(batch=1, heads=4, kv_heads=4, seq_q=1024, seq_kv=1024, head_dim=64)
    request = Request(Case.of("sdpa", direction, problem), policy=Policy(budget_ms=50.0))

    def visit() -> Facts:
        facts: Facts = server.call(visit_facts, request, timeout_s=60, setup_timeout_s=60)
        OUTSIDE.leave_out(facts)
        return facts

    assert benchmark.pedantic(visit, rounds=5, warmup_rounds=1).status == "ok"


def test_a_row_on_disk(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    visits = count(1)
    with Store(tmp_path / "results.csv") as store:
        benchmark(lambda: store.append(replace(ROW, visit=next(visits))))
        assert len(store.rows) == next(visits) - 1


def test_a_row_read(benchmark: BenchmarkFixture) -> None:
    cells = ROW.cells()
    assert benchmark(type(ROW).of_cells, cells) == ROW


def test_deciding_when_to_stop(benchmark: BenchmarkFixture) -> None:
    found = benchmark(lambda: sample(lambda calls: 2.0, Policy(narrow=-1.0)))
    assert found.samples_ms == tuple(repeat(2.0, 151))


def test_counting_visible_pairs(benchmark: BenchmarkFixture) -> None:
    mask = Mask(causal=True, window=256, global_tokens=16)
    pairs = benchmark(mask.pairs, 2**20, 2**20)
    # Each row sees 256 keys of its window, fewer at the start, and from row 256 on the global keys beyond it.
    assert pairs == sum(min(i + 1, 256) for i in range(2**20)) + sum(min(16, i - 255) for i in range(256, 2**20))


def test_reading_sizes(benchmark: BenchmarkFixture) -> None:
    assert len(benchmark(sizes, "1..1m")) == 21
