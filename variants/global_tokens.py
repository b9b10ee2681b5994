"""Global tokens alone: the first few see and are seen by all, the others see them and themselves. Work is n x tokens.

The global attention of ETC (https://arxiv.org/abs/2004.08483) and of Longformer (https://arxiv.org/abs/2004.05150) by
itself: the least that exchange over any distance can cost.
"""

from __future__ import annotations

import itertools
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


@variant("global_tokens", exponent=1.0, plan=_plan, tunable={"numbers": (2**16, 2**17, 2**18, 2**19, 2**20)})
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
        out = torch.empty_like(q, dtype=plan.dtype)
        for heads, rows, own in _parts(q, k, first, plan):
            queries, keys, values = (x.to(plan.dtype) for x in (q[heads, :, rows], k[heads, :, own], v[heads, :, own]))
            k_global, v_global = (x[heads, :, :g].to(plan.dtype) for x in (k, v))
            _put(out[heads, :, rows], _weights(queries, keys, k_global), v_global, values)
        ctx.rest = g, first, plan
        ctx.save_for_backward(q, k, v)
        return out.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (q, k, v), (g, first, plan) = ctx.saved_tensors, ctx.rest
        dq, dk, dv = (torch.zeros_like(x, dtype=plan.dtype) for x in (q, k, v))
        dk_global, dv_global = (torch.zeros_like(x[:, 0, :g], dtype=torch.float32) for x in (k, v))
        for heads, rows, own in _parts(q, k, first, plan):
            given = q[heads, :, rows], grad[heads, :, rows], k[heads, :, own], v[heads, :, own]
            queries, upstream, keys, values = (x.to(plan.dtype) for x in given)
            k_global, v_global = (x[heads, :, :g].to(plan.dtype) for x in (k, v))
            weights = _weights(queries, keys, k_global)
            d_weights = _products(upstream, values, v_global)
            d_scores = torch.ops.aten._softmax_backward_data(d_weights, weights, 2, weights.dtype)
            d_scores.mul_(q.shape[-1] ** -0.5)
            _put(dq[heads, :, rows], d_scores, k_global, keys)
            for of_all, of_own, factors, vectors in (
                (dk_global, dk, d_scores, queries),
                (dv_global, dv, weights, upstream),
            ):
                of_all[heads] += (factors[:, :, :-1] @ vectors).sum(1)
                of_own[heads, :, own] = (factors[:, :, -1, :, None] * vectors).sum(1, keepdim=True)
        dk[:, 0, :g], dv[:, 0, :g] = dk_global, dv_global
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None, None, None


def _parts(q: Tensor, k: Tensor, first: int, plan: Plan) -> Iterator[tuple[slice, slice, slice]]:
    """Heads, rows of them from `first` on, and the keys that stand where these do; a few rows of one head at a time."""
    heads, group, n_q, d = q.shape
    at_once, step = (heads, n_q) if plan.numbers is None else (1, max(plan.numbers // (group * d), 1))
    offset = k.shape[2] - n_q
    for head, row in itertools.product(range(0, heads, at_once), range(first, n_q, step)):
        end = min(row + step, n_q)
        yield slice(head, head + at_once), slice(row, end), slice(row + offset, end + offset)


def _weights(queries: Tensor, keys: Tensor, k_global: Tensor) -> Tensor:
    scores = _products(queries, keys, k_global).mul_(queries.shape[-1] ** -0.5)
    return torch.softmax(scores, 2, out=scores)


def _products(rows: Tensor, own: Tensor, in_all: Tensor) -> Tensor:
    """Products of each row with every vector that all have, and with its own one: (heads, group, g + 1, rows)."""
    heads, group, n, _ = rows.shape
    out = rows.new_empty(heads, group, in_all.shape[2] + 1, n)
    torch.bmm(_each(in_all, group), rows.flatten(0, 1).mT, out=out.flatten(0, 1)[:, :-1])
    torch.sum(rows * own, -1, out=out[:, :, -1])
    return out


def _put(to: Tensor, weights: Tensor, in_all: Tensor, own: Tensor) -> None:
    """Writes the sum of the vectors by their weights, (heads, group, rows, head_dim)."""
    torch.bmm(weights[:, :, :-1].flatten(0, 1).mT, _each(in_all, to.shape[1]), out=to.flatten(0, 1))
    to.addcmul_(weights[:, :, -1, :, None], own)


def _each(in_all: Tensor, group: int) -> Tensor:
    """The vectors (heads, 1, g, head_dim) once for each head of a group: (heads * group, g, head_dim)."""
    return in_all.expand(-1, group, -1, -1).flatten(0, 1)
