"""pytest-benchmark cases for the variants on CPU, small, grouped by mask: a quick look, never a verdict.

pytest tests/perf --benchmark-autosave         and, after a change:
pytest tests/perf --benchmark-compare
"""

import shutil
from importlib import metadata

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from bench.measure.accuracy import judge
from bench.measure.inputs import Attention, make_inputs
from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem

MASKS = (
    "full",
    "causal",
    "causal+window:64",
    "window:64",
    "window:64+global:8",
    "causal+window:64+global:8",
    "global:8",
)
INSTALLED = {package.name: package.version for package in metadata.distributions()}
MACHINE = Machine("cpu", "any", memory_bytes=2**34, cxx=shutil.which("g++"), packages=INSTALLED)


def problem_of(mask: str) -> Problem:
    """The one small problem, under a mask."""
    return Problem(1, 4, 4, 768, 768, 64, mask=Mask.parse(mask))


def cases(direction: str) -> list[tuple[str, str]]:
    """Each variant under each mask that it takes here."""
    return [
        (name, mask)
        for mask in MASKS
        for name, variant in registry.load().items()
        if variant.refusal(problem_of(mask), MACHINE, direction) is None
    ]


def prepared(name: str, mask: str) -> tuple[Problem, Attention]:
    """The problem, and the variant's attention function for it."""
    problem, variant = problem_of(mask), registry.REGISTRY[name]
    return problem, variant.bind(problem, variant.prepare(problem))


@pytest.mark.parametrize(("name", "mask"), cases("fwd"))
def test_forward(benchmark: BenchmarkFixture, name: str, mask: str) -> None:
    benchmark.group = f"forward, {mask}, n = 768"
    problem, attention = prepared(name, mask)
    benchmark(attention, *make_inputs(problem, seed=0))
    assert judge(attention, problem, "fwd", seed=1, exact=registry.REGISTRY[name].exact).reason is None


@pytest.mark.parametrize(("name", "mask"), cases("fwdbwd"))
def test_forward_and_backward(benchmark: BenchmarkFixture, name: str, mask: str) -> None:
    benchmark.group = f"forward and backward, {mask}, n = 768"
    problem, attention = prepared(name, mask)
    inputs = make_inputs(problem, seed=0, direction="fwdbwd")
    upstream = torch.ones_like(inputs[0])
    benchmark(lambda: torch.autograd.grad(attention(*inputs), inputs, upstream))
    assert judge(attention, problem, "fwdbwd", seed=1, exact=registry.REGISTRY[name].exact).reason is None
