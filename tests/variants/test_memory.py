"""What variants allocate, to the byte, from the profiler's memory events."""

from collections.abc import Callable
from itertools import accumulate

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from variants import registry
from variants.masks import Mask
from variants.problem import Problem

VARIANTS = registry.load()
LINEAR = [
    ("chunked", "full"),
    ("chunked", "causal+window:256+global:16"),
    ("sliding_window", "window:256"),
    ("sliding_window", "causal+window:256"),
    ("longformer", "window:256+global:16"),
    ("longformer", "causal+window:256+global:16"),
    ("global_tokens", "global:16"),
    ("global_tokens", "causal+global:16"),
]


def allocations(call: Callable[[], object]) -> list[int]:
    """Bytes allocated, or freed if negative, in order of time."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = call()
    assert profiler.profiler is not None and profiler.profiler.kineto_results is not None
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    del result
    return [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())]


def steps(name: str, mask: str, n: int) -> dict[str, Callable[[], object]]:
    """Plan, forward, and forward with backward of a variant at this length, with one head."""
    problem = Problem(1, 1, 1, n, n, 64, mask=Mask.parse(mask))
    variant = VARIANTS[name]
    attention = variant.bind(problem, variant.prepare(problem))
    q, k, v = (torch.randn(1, 1, n, 64, requires_grad=True) for _ in range(3))
    upstream = torch.randn(1, 1, n, 64)

    def forward() -> Tensor:
        with torch.no_grad():
            return attention(q, k, v)

    return {
        "plan": lambda: variant.prepare(problem),
        "fwd": forward,
        "fwdbwd": lambda: torch.autograd.grad(attention(q, k, v), (q, k, v), upstream),
    }


@pytest.mark.parametrize(("name", "mask"), LINEAR)
def test_never_allocates_a_tensor_of_all_pairs(name: str, mask: str) -> None:
    n = 4096
    for step, call in steps(name, mask, n).items():
        assert max(allocations(call), default=0) < n * n, f"{step}: not even one of bools"


@pytest.mark.parametrize(("name", "mask"), LINEAR)
@pytest.mark.parametrize("step", ["fwd", "fwdbwd"])
def test_memory_grows_linearly(name: str, mask: str, step: str) -> None:
    short, long = (max(accumulate(allocations(steps(name, mask, n)[step]))) for n in (4096, 8192))
    assert long < 2.2 * short


@pytest.mark.parametrize("mask", ["full", "causal+window:50"])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (4, 2)])
def test_naive_peaks_at_two_matrices_of_scores_and_its_result(mask: str, heads: int, kv_heads: int) -> None:
    n, head_dim = 512, 64
    problem = Problem(1, heads, kv_heads, n, n, head_dim, mask=Mask.parse(mask))
    variant = VARIANTS["naive"]
    attention = variant.bind(problem, variant.prepare(problem))
    q, k, v = (torch.randn(1, h, n, head_dim) for h in (heads, kv_heads, kv_heads))
    peak = max(accumulate(allocations(lambda: attention(q, k, v))))
    assert peak == 4 * heads * (2 * n * n + n * head_dim)


def test_a_dense_mask_costs_little_more_than_itself() -> None:
    n = 4096
    peak = max(accumulate(allocations(lambda: Mask.parse("causal+window:256+global:16").dense(n, n))))
    assert peak < 2 * n * n
