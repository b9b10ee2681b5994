"""A band by products, as on CPU, and by fused calls, as on accelerators: both right, each row once, no key twice."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bench.measure.accuracy import judge
from variants import band, registry
from variants.band_products import tiles
from variants.masks import Mask
from variants.problem import DTYPES, Problem
from variants.shapes import drop_empty_rows, restore_empty_rows

MASKS = ("window:1", "window:64", "causal+window:100", "window:50+global:7", "causal+window:130+global:200")
SIZES = ((1, 1), (700, 700), (300, 800), (800, 300))


def problem_of(text: str, n_q: int, n_kv: int, dtype: str = "float32") -> Problem:
    return Problem(2, 4, 2, n_q, n_kv, 24, dtype, mask=Mask.parse(text))


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize(("n_q", "n_kv"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_calls_give_what_products_give(text: str, n_q: int, n_kv: int, dtype: str) -> None:
    problem = problem_of(text, n_q, n_kv, dtype)
    planned = band.plan(problem)
    planned = band.Band(**{**vars(planned), "bias": planned.bias.to(getattr(torch, dtype))})  # as on an accelerator

    def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, empty = drop_empty_rows(q, k, problem.mask)
        return restore_empty_rows(band.by_fused_calls(q, k, v, planned), empty)

    assert judge(fused, problem, "fwdbwd", seed=3).reason is None


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize("rows", [16, 48, 200])
@pytest.mark.parametrize("scores", [1, 30_000, 2**24])
def test_any_cut_is_right(text: str, rows: int, scores: int) -> None:
    problem = problem_of(text, 700, 700)
    planned = band.plan(problem, rows, scores)
    assert judge(lambda q, k, v: band.attend(q, k, v, planned), problem, "fwdbwd", seed=4).reason is None


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("scores", [1, 30_000, 2**24])
@pytest.mark.parametrize("group", [1, 2])
def test_tiles_hold_each_row_of_each_head_once(text: str, apart: bool, scores: int, group: int) -> None:
    heads, n = 3, 1500
    planned = band.plan(problem_of(text, n, n), 32, scores)
    seen = torch.zeros(heads, group, n, 1)
    for tile in tiles(planned, heads, group, apart):
        tile.rows(seen).add_(1)
        single = tile.count == 1
        assert single or tile.count * group * tile.stretch.rows * (tile.stretch.keys + planned.global_keys) <= scores
    first, last = planned.global_rows
    seen[:, :, first:last] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("text", MASKS)
def test_tiles_that_are_apart_share_no_key(text: str) -> None:
    heads, n = 3, 1500
    for tile in tiles(band.plan(problem_of(text, n, n), 32), heads, 1, apart=True):
        keys = torch.arange(heads * n).view(heads, n, 1)
        mine = tile.windows(keys, torch.int64)
        assert mine.unique().numel() == mine.numel()


class Calls(TorchDispatchMode):
    """Counts operators."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sliding_window", "window:256"),
        ("longformer", "causal+window:256+global:16"),
        ("global_tokens", "global:16"),
    ],
)
def test_an_accelerator_is_called_as_often_whatever_the_length(name: str, text: str) -> None:
    variant, counts = registry.load()[name], []
    for n in (8192, 262_144):
        problem = Problem(1, 8, 8, n, n, 64, "bfloat16", "meta", Mask.parse(text))  # a device that only keeps shapes
        attention = variant.bind(problem, variant.prepare(problem))
        q, k, v = (torch.empty(1, 8, n, 64, dtype=torch.bfloat16, device="meta", requires_grad=True) for _ in "qkv")
        with Calls() as calls:
            torch.autograd.grad(attention(q, k, v), (q, k, v), torch.empty_like(q))
        counts.append(calls.count)
    assert counts[0] == counts[1] > 10


OWN = [
    ("sliding_window", "window:50"),
    ("longformer", "window:50+global:7"),
    ("global_tokens", "causal+global:7"),
    ("chunked", "causal"),
]


def transposed(heads: int) -> torch.Tensor:
    return torch.randn(2, 700, heads, 24).transpose(1, 2)


def expanded(heads: int) -> torch.Tensor:
    return torch.randn(2, heads, 1, 24).expand(2, heads, 700, 24)


def sliced(heads: int) -> torch.Tensor:
    return torch.randn(2, heads, 900, 30)[:, :, 100:800, 3:27]


@pytest.mark.parametrize(("name", "text"), OWN)
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("make", [transposed, expanded, sliced])
def test_views_are_read_as_what_they_are(
    name: str, text: str, kv_heads: int, make: Callable[[int], torch.Tensor]
) -> None:
    problem = Problem(2, 4, kv_heads, 700, 700, 24, mask=Mask.parse(text))
    variant = registry.load()[name]
    attention = variant.bind(problem, variant.prepare(problem))
    views = [make(heads) for heads in (4, kv_heads, kv_heads, 4)]
    results = []
    for given in (views, [x.contiguous() for x in views]):
        *inputs, upstream = given
        leaves = [x.detach().requires_grad_() for x in inputs]
        out = attention(*leaves)
        results.append([out, *torch.autograd.grad(out, leaves, upstream)])
    for ours, expected in zip(*results, strict=True):
        # Sums of 700 terms in another order, some of which cancel; a wrong stride is off by about 1.
        atol = 700 * torch.finfo(torch.float32).eps
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize(("name", "text"), OWN)
def test_a_second_derivative_is_refused_and_never_wrong(name: str, text: str) -> None:
    problem = Problem(1, 1, 1, 100, 100, 8, mask=Mask.parse(text))
    variant = registry.load()[name]
    attention = variant.bind(problem, variant.prepare(problem))
    q, k, v = torch.randn(3, 1, 1, 100, 8, requires_grad=True).unbind(0)
    (first,) = torch.autograd.grad(attention(q, k, v).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|not implemented|not have been used"):
        torch.autograd.grad(first.sum(), q)


def test_a_window_beyond_all_lengths_costs_no_more_than_they_do() -> None:
    planned = band.plan(problem_of("window:1000000000+global:3", 60, 80))
    assert planned.bias.numel() < 128 * (128 + 2 * 140)
