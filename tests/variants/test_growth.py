"""How work and memory grow with the length: in counted floating-point operations and allocated bytes, not seconds."""

import math
from itertools import accumulate
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, baddbmm_flop, bmm_flop, sdpa_flop_count

from tests.variants.test_memory import allocations, steps
from variants import registry
from variants.masks import Mask
from variants.problem import Problem

VARIANTS = registry.load()
SHORT, LONG = 4096, 65_536
SPARSE = [
    ("sliding_window", "window:256"),
    ("sliding_window", "causal+window:256"),
    ("longformer", "window:256+global:16"),
    ("longformer", "causal+window:256+global:16"),
    ("global_tokens", "global:16"),
    ("chunked", "causal+window:256"),
]
aten = torch.ops.aten


def exponent(short: float, long: float) -> float:
    return math.log(long / short) / math.log(LONG / SHORT)


def counter() -> FlopCounterMode:
    """PyTorch's own, with the operators that it does not count on CPU."""

    def flash(q: Any, k: Any, v: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return sdpa_flop_count(q, k, v)

    def baddbmm(to: Any, a: Any, b: Any, *_: Any, **__: Any) -> int:
        return baddbmm_flop(to, a, b)

    return FlopCounterMode(
        display=False,
        custom_mapping={aten.baddbmm_: baddbmm, aten._scaled_dot_product_flash_attention_for_cpu: flash},
    )


def flops(name: str, mask: str, n: int) -> float:
    """What a forward pass computes, over what the visible pairs need."""
    call = steps(name, mask, n)["fwd"]
    with counter() as counted:
        call()
    return counted.get_total_flops()


def needed(mask: str, n: int) -> float:
    return Problem(1, 1, 1, n, n, 64, mask=Mask.parse(mask)).flops("fwd")


def test_the_counter_counts_what_it_is_to_count() -> None:
    q, k, v = torch.randn(3, 1, 1, 128, 64)
    assert bmm_flop((2, 3, 4), (2, 4, 5)) == 2 * 2 * 3 * 4 * 5
    with counter() as counted:
        torch.empty(2, 3, 5).baddbmm_(torch.randn(2, 3, 4), torch.randn(2, 4, 5), beta=0)
        torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert counted.get_total_flops() == 2 * 2 * 3 * 4 * 5 + 2 * 2 * 128 * 128 * 64


@pytest.mark.parametrize(("name", "mask"), SPARSE)
def test_work_grows_as_the_length_and_little_of_it_is_in_vain(name: str, mask: str) -> None:
    short, long = flops(name, mask, SHORT), flops(name, mask, LONG)
    assert exponent(short, long) <= 1.05
    most = 2.1 if name == "chunked" else 1.3
    assert 0.9 <= short / needed(mask, SHORT) <= most, "less would be skipped pairs, or products that were not counted"


@pytest.mark.parametrize(("name", "mask"), [*SPARSE, ("chunked", "full")])
def test_memory_grows_as_the_length(name: str, mask: str) -> None:
    long = LONG if mask != "full" else 4 * SHORT
    short_peak, long_peak = (max(accumulate(allocations(steps(name, mask, n)["fwd"]))) for n in (SHORT, long))
    assert math.log(long_peak / short_peak) / math.log(long / SHORT) <= 1.05


@pytest.mark.parametrize("mask", ["window:256", "causal+window:256"])
def test_a_window_peaks_below_twice_its_result(mask: str) -> None:
    problem = Problem(1, 4, 4, SHORT, SHORT, 64, mask=Mask.parse(mask))
    variant = VARIANTS["sliding_window"]
    attention = variant.bind(problem, variant.prepare(problem))
    q, k, v = torch.randn(3, 1, 4, SHORT, 64)
    peak = max(accumulate(allocations(lambda: attention(q, k, v))))
    assert peak < 2 * q.nbytes
