"""Every variant of this package on masks, lengths, dtypes, grouped heads and both directions, beside the oracle."""

import re
from importlib import metadata
from itertools import islice, product, starmap

import pytest
import torch

from bench.measure.accuracy import judge
from tests.variants.grid import AXES, MASKS, Case, case, label, pairwise
from variants import registry
from variants.machine import Machine
from variants.problem import Problem

VARIANTS = {name: v for name, v in registry.load().items() if v.function.__module__.startswith("variants.")}
INSTALLED = {package.name: package.version for package in metadata.distributions()}
MACHINE = Machine("cpu", "a machine", 1 << 34, cxx="c++", packages=INSTALLED)
WITHOUT_PACKAGE = {name for name, v in VARIANTS.items() if not set(v.requires) <= set(INSTALLED)}
NOT_ON_CPU = {"sdpa_efficient", "sdpa_cudnn", "xformers"} | WITHOUT_PACKAGE
COMPILED_CASES = 4  # compiling takes seconds each time


def cases(name: str) -> list[Case]:
    """What a variant is run on: any two circumstances meet."""
    variant = VARIANTS[name]
    masks = [mask for mask in MASKS if variant.refuses(mask) is None]
    able = [c for c in starmap(case, pairwise(masks, *AXES)) if variant.refusal(c[0], MACHINE, c[1]) is None]
    return able[:: len(able) // COMPILED_CASES + 1] if variant.compiled else able


def every_case(name: str) -> list[Case]:
    """Every combination for what runs at once, and any two circumstances for what is compiled."""
    variant = VARIANTS[name]
    combine = pairwise if variant.compiled else product
    return [c for c in starmap(case, combine(MASKS, *AXES)) if variant.refusal(c[0], MACHINE, c[1]) is None]


def check(name: str, problem: Problem, direction: str) -> None:
    torch._dynamo.reset()  # past its recompile limit a compiled variant would not be compiled
    variant = VARIANTS[name]
    attention = variant.bind(problem, variant.prepare(problem))
    verdict = judge(attention, problem, direction, seed=7, exact=variant.exact)
    assert verdict.reason is None, f"{name} on {label(problem, direction)}: {verdict.reason}"


@pytest.mark.parametrize(
    ("name", "problem", "direction"),
    [pytest.param(n, *c, id=f"{n}-{label(*c)}") for n in VARIANTS for c in cases(n)],
)
def test_agrees_with_the_oracle(name: str, problem: Problem, direction: str) -> None:
    check(name, problem, direction)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("name", sorted(set(VARIANTS) - NOT_ON_CPU))
def test_agrees_with_the_oracle_on_the_full_grid(name: str, part: int) -> None:
    for problem, direction in islice(every_case(name), part, None, 10):
        check(name, problem, direction)


@pytest.mark.parametrize("name", VARIANTS)
def test_runs_or_says_why_not(name: str) -> None:
    variant = VARIANTS[name]
    problem = Problem(1, 2, 2, 768, 768, 8, mask=variant.some_mask())
    reason = variant.refusal(problem, MACHINE)
    assert (reason is not None) == (name in NOT_ON_CPU)
    expected = "needs the package" if name in WITHOUT_PACKAGE else "CPU|CUDA"
    assert reason is None or re.search(expected, reason)


@pytest.mark.parametrize("name", VARIANTS)
def test_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    source = VARIANTS[name].function.__module__
    text = __import__(source, fromlist=["__doc__"]).__doc__
    assert text and text.split("\n")[0].endswith(".") and "https://" in text


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - NOT_ON_CPU - {"flex"}))
def test_leaves_its_inputs_and_the_global_state_alone(name: str) -> None:
    variant = VARIANTS[name]
    sizes = (2, 1, 300), (2, 2, 768)  # grouped and short where it takes that
    problems = [Problem(1, h, kv_h, n, n, 16, mask=variant.some_mask()) for h, kv_h, n in sizes]
    problem = next(p for p in problems if variant.refusal(p, MACHINE) is None)
    shapes = [(1, heads, problem.seq_kv, 16) for heads in (2, problem.kv_heads, problem.kv_heads)]
    inputs = [torch.randn(shape) for shape in shapes]
    before = [x.clone() for x in inputs]
    random_state = torch.get_rng_state()
    variant.bind(problem, variant.prepare(problem))(*inputs)
    assert all(map(torch.equal, inputs, before))
    assert torch.equal(random_state, torch.get_rng_state())
    assert torch.is_grad_enabled() and torch.backends.cuda.math_sdp_enabled()
