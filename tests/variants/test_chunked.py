"""What chunked attention never touches, and the dtype that it computes in on an accelerator."""

from dataclasses import replace

import pytest
import torch

from bench.measure.accuracy import judge
from variants import registry
from variants.chunked import CPU_BLOCK, Plan
from variants.masks import Mask
from variants.problem import DTYPES, Problem

CHUNKED = registry.load()["chunked"]
SIZE = CPU_BLOCK


def plan_of(problem: Problem) -> Plan:
    plan = CHUNKED.prepare(problem)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    "text", ["full", "causal", "causal+window:300", "window:1", "global:16", "window:300+global:9"]
)
@pytest.mark.parametrize(("n_q", "n_kv"), [(1300, 1300), (400, 1300), (1300, 400)])
def test_only_blocks_with_a_visible_pair_are_planned_and_only_partial_ones_masked(
    text: str, n_q: int, n_kv: int
) -> None:
    problem = Problem(1, 1, 1, n_q, n_kv, 8, mask=Mask.parse(text))
    dense = problem.mask.dense(n_q - problem.empty_rows, n_kv)
    planned = [(q.rows, k.keys, k.hidden) for q in plan_of(problem).query_blocks for k in q.key_blocks]
    pairs = 0
    for rows, keys, hidden in planned:
        block = dense[rows, keys]
        assert block.any()
        assert (hidden is None) == bool(block.all())
        assert hidden is None or torch.equal(hidden, ~block)
        pairs += int(block.sum())
    assert pairs == int(dense.sum()), "and none is missing or there twice"


@pytest.mark.parametrize(
    ("name", "text"),
    [("chunked", "window:256"), ("sliding_window", "window:256"), ("longformer", "window:256+global:9")],
)
@pytest.mark.parametrize("direction", ["fwd", "fwdbwd"])
def test_hidden_blocks_of_keys_are_never_read(name: str, text: str, direction: str) -> None:
    n_q, n_kv = SIZE, 5 * SIZE
    problem = Problem(1, 2, 1, n_q, n_kv, 16, mask=Mask.parse(text))
    unseen = slice(SIZE, 3 * SIZE)
    assert not problem.mask.dense(n_q, n_kv)[:, unseen].any()
    q, k, v = (torch.randn(1, heads, n, 16) for heads, n in ((2, n_q), (1, n_kv), (1, n_kv)))
    k[:, :, unseen] = v[:, :, unseen] = torch.nan  # a weight of zero would not hide them
    for x in (q, k, v):
        x.requires_grad_(direction != "fwd")
    variant = registry.REGISTRY[name]
    out = variant.bind(problem, variant.prepare(problem))(q, k, v)
    assert out.isfinite().all()
    if direction != "fwd":
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
        assert dq.isfinite().all()
        assert not dk[:, :, unseen].any() and not dv[:, :, unseen].any()


def test_blocks_that_hide_the_same_share_one_tensor() -> None:
    problem = Problem(1, 1, 1, 40 * SIZE, 40 * SIZE, 8, mask=Mask(causal=True, window=SIZE))
    masks = [k.hidden for q in plan_of(problem).query_blocks for k in q.key_blocks if k.hidden is not None]
    assert len(masks) == 79 and len({id(mask) for mask in masks}) == 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["causal", "window:100+global:9"])
def test_products_in_the_dtype_of_the_inputs_are_right_as_well(dtype: str, text: str) -> None:
    problem = Problem(1, 4, 2, 600, 700, 40, dtype, mask=Mask.parse(text))
    plan = replace(plan_of(problem), dtype=getattr(torch, dtype))
    assert judge(CHUNKED.bind(problem, plan), problem, "fwdbwd", seed=5).reason is None
