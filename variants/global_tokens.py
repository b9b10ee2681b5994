"""Global tokens alone: the first few see and are seen by all, the others see them and themselves. Work is n x tokens.

The global attention of ETC (https://arxiv.org/abs/2004.08483) and of Longformer (https://arxiv.org/abs/2004.05150) by
itself: the least that exchange over any distance can cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from variants.global_rows import attend_globals, global_rows
from variants.masks import Mask
from variants.problem import Problem
from variants.products import product_dtype
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows

CPU_NUMBERS = 2**19  # of q at a time, found by `python -m bench.tune global_tokens`; an accelerator takes all at once


@dataclass(frozen=True)
class Plan:
    """The dtype that products are computed in, and how many numbers of q are taken at a time; None for all."""

    dtype: torch.dtype
    numbers: int | None


def _plan(problem: Problem, numbers: int = CPU_NUMBERS) -> Plan:
    return Plan(product_dtype(problem), numbers if problem.device == "cpu" else None)


@variant("global_tokens", plan=_plan)
def global_attention(
    q: Tensor, k: Tensor, v: Tensor, *, global_tokens: int, causal: bool = False, plan: Plan
) -> Tensor:
    """The first `global_tokens` see and are seen by all, others see them and themselves; `causal` hides later keys."""
    q, empty = drop_empty_rows(q, k, Mask(causal=causal, global_tokens=global_tokens))
    n_q, d, n_kv, heads = *q.shape[2:], k.shape[2], k.shape[0] * k.shape[1]
    g = min(global_tokens, n_kv)
    start, end = global_rows(n_q, n_kv, g)
    folded = q.reshape(heads, -1, n_q, d), k.reshape(heads, 1, n_kv, d), v.reshape(heads, 1, n_kv, d)
    out: Tensor = _GlobalsAndSelf.apply(*folded, g, end, plan)  # type: ignore[no-untyped-call]
    out = out.view(q.shape)
    if start:  # rows before the first key, which have no key of their own
        out[:, :, :start] = F.scaled_dot_product_attention(q[:, :, :start], k[:, :, :g], v[:, :, :g], enable_gqa=True)
    if start < end:
        out[:, :, start:end] = attend_globals(q, k, v, start, end, causal)
    return restore_empty_rows(out, empty)


class _GlobalsAndSelf(torch.autograd.Function):
    """Each row from `first` on attends to the first `g` keys, and to one of its own.

    q (heads, group, n_q, head_dim), k and v (heads, 1, n_kv, head_dim) -> like q, of which rows before `first` are left
    for others to write. The backward pass computes the weights again. Scores are (heads, group, g + 1, rows): a softmax
    over so few keys is quicker by columns.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, g: int, first: int, plan: Plan) -> Tensor:
        out = torch.empty_like(q)
        k_global, v_global = (x[:, :, :g].to(plan.dtype) for x in (k, v))
        for rows, own in _parts(q, k, first, plan):
            weights = _weights(q[:, :, rows].to(plan.dtype), k[:, :, own].to(plan.dtype), k_global)
            out[:, :, rows] = _sum(weights, v_global, v[:, :, own].to(plan.dtype))
        ctx.rest = g, first, plan
        ctx.save_for_backward(q, k, v)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v), (g, first, plan) = ctx.saved_tensors, ctx.rest
        k_global, v_global = (x[:, :, :g].to(plan.dtype) for x in (k, v))
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        dk_global, dv_global = (torch.zeros_like(x[:, 0], dtype=torch.float32) for x in (k_global, v_global))
        for rows, own in _parts(q, k, first, plan):
            given = q[:, :, rows], k[:, :, own], v[:, :, own], grad[:, :, rows]
            queries, keys, values, upstream = (x.to(plan.dtype) for x in given)
            weights = _weights(queries, keys, k_global)
            d_weights = _products(upstream, values, v_global)
            d_scores = torch.ops.aten._softmax_backward_data(d_weights, weights, 2, weights.dtype)
            d_scores.mul_(q.shape[-1] ** -0.5)
            dq[:, :, rows] = _sum(d_scores, k_global, keys)
            for of_all, of_own, factors, vectors in (
                (dk_global, dk, d_scores, queries),
                (dv_global, dv, weights, upstream),
            ):
                of_all.add_((factors[:, :, :-1] @ vectors).sum(1))
                of_own[:, :, own] = (factors[:, :, -1, :, None] * vectors).sum(1, keepdim=True)
        dk[:, 0, :g], dv[:, 0, :g] = dk_global, dv_global
        return dq, dk, dv, None, None, None


def _parts(q: Tensor, k: Tensor, first: int, plan: Plan) -> Iterator[tuple[slice, slice]]:
    """Rows from `first` on, a few at a time, and the keys that stand where they do."""
    heads, group, n_q, d = q.shape
    step = n_q if plan.numbers is None else max(plan.numbers // (heads * group * d), 1)
    offset = k.shape[2] - n_q
    for row in range(first, n_q, step):
        end = min(row + step, n_q)
        yield slice(row, end), slice(row + offset, end + offset)


def _weights(queries: Tensor, keys: Tensor, k_global: Tensor) -> Tensor:
    scores = _products(queries, keys, k_global).mul_(queries.shape[-1] ** -0.5)
    return torch.softmax(scores, 2, out=scores)


def _products(rows: Tensor, own: Tensor, in_all: Tensor) -> Tensor:
    """Products of each row with every vector that all have, and with its own one: (heads, group, g + 1, rows)."""
    out = rows.new_empty(*rows.shape[:2], in_all.shape[2] + 1, rows.shape[2])
    torch.matmul(in_all, rows.mT, out=out[:, :, :-1])
    torch.sum(rows * own, -1, out=out[:, :, -1])
    return out


def _sum(weights: Tensor, in_all: Tensor, own: Tensor) -> Tensor:
    """The sum of the vectors by their weights: (heads, group, rows, head_dim)."""
    return (weights[:, :, :-1].mT @ in_all).addcmul_(weights[:, :, -1, :, None], own)
