"""Exact attention in linear memory: blocks of queries against blocks of keys, with a running softmax, in plain PyTorch.

"FlashAttention-2", algorithms 1 and 2 (https://arxiv.org/abs/2307.08691), and before it "Self-attention Does Not Need
O(n^2) Memory" (https://arxiv.org/abs/2112.05682). Pays where no fused kernel takes the mask, and blocks are hidden.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from variants.blocks import blocks_of
from variants.masks import Mask
from variants.problem import Problem
from variants.products import product_dtype
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows

CPU_BLOCK = 256  # rows and keys; found by trying: the scores of a block stay in the caches
DEVICE_BLOCK = 1024  # a call costs an accelerator microseconds whatever its size, so there are to be fewer
LOG2_E = math.log2(math.e)  # scores are kept as powers of two, which are quicker to compute than those of e


@dataclass(frozen=True)
class KeyBlock:
    """Keys that a block of queries sees, and which pairs of the block are hidden; None where none is."""

    keys: slice
    hidden: Tensor | None


@dataclass(frozen=True)
class QueryBlock:
    """Consecutive query rows, and the blocks of keys that they see anything of."""

    rows: slice
    key_blocks: list[KeyBlock]


@dataclass(frozen=True)
class Plan:
    """Blocks of queries, and the dtype that products of matrices are computed in."""

    query_blocks: list[QueryBlock]
    dtype: torch.dtype


def _plan(problem: Problem, block: int | None = None) -> Plan:
    """The blocks that the mask shows anything of; blocks that hide the same pairs share the tensor that says so."""
    n_q, n_kv, mask = problem.seq_q - problem.empty_rows, problem.seq_kv, problem.mask
    mask_mod = mask.at(n_q, n_kv)
    row, key = (torch.arange(n, device=problem.device) for n in (n_q, n_kv))
    known: dict[tuple[torch.Size, bytes], Tensor] = {}

    def hidden(rows: slice, keys: slice) -> Tensor:
        pairs = ~mask_mod(row[:1], row[:1], row[rows, None], key[keys])
        return known.setdefault((pairs.shape, pairs.cpu().numpy().tobytes()), pairs)

    dtype, size = product_dtype(problem), block or (CPU_BLOCK if problem.device == "cpu" else DEVICE_BLOCK)
    blocks = blocks_of(mask, n_q, n_kv, size, size)
    query_blocks = []
    for i, touched in enumerate(blocks.touched):
        rows = slice(i * size, min((i + 1) * size, n_q))
        key_blocks = []
        for j in touched.nonzero()[:, 0].tolist():
            keys = slice(j * size, min((j + 1) * size, n_kv))
            key_blocks.append(KeyBlock(keys, None if blocks.whole[i, j] else hidden(rows, keys)))
        query_blocks.append(QueryBlock(rows, key_blocks))
    return Plan(query_blocks, dtype)


@variant("chunked", plan=_plan, tunable={"block": (128, 256, 512, 1024)})
def chunked(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: Plan) -> Tensor:
    """Exact attention; memory beyond the result is a logsumexp a row and a few blocks."""
    q, empty = drop_empty_rows(q, k, mask)
    (b, h, n, d), kv_heads = q.shape, k.shape[1]
    heads = b * kv_heads
    q, k, v = q.reshape(heads, h // kv_heads, n, d), k.reshape(heads, -1, d), v.reshape(heads, -1, d)
    out: Tensor = _Chunked.apply(q, k, v, plan)  # type: ignore[no-untyped-call]
    return restore_empty_rows(out.view(b, h, n, d), empty)


class _Chunked(torch.autograd.Function):
    """q (heads, group, n_q, head_dim), k and v (heads, n_kv, head_dim) -> like q; running values are float32."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: Plan) -> Tensor:
        out = torch.empty_like(q)
        logsumexp = q.new_empty((*q.shape[:3], 1), dtype=torch.float32)
        for block in plan.query_blocks:
            queries = _rows(q, block.rows).to(plan.dtype)
            # The lowest number, not -inf, which would make NaN of a row that sees nothing of its first block.
            top = torch.full((*queries.shape[:2], 1), torch.finfo(torch.float32).min, device=q.device)
            total = torch.zeros_like(top)
            sums = torch.zeros_like(queries, dtype=torch.float32)
            for key_block in block.key_blocks:
                keys, values = (x[:, key_block.keys].to(plan.dtype) for x in (k, v))
                scores = _scores(queries, keys, key_block.hidden)
                new_top = torch.maximum(top, scores.amax(-1, keepdim=True))
                weights = scores.sub_(new_top).exp2_()
                shrink = (top - new_top).exp2_()
                total.mul_(shrink).add_(weights.sum(-1, keepdim=True))
                _add_product(sums.mul_(shrink), weights, values)
                top = new_top
            _set_rows(out, block.rows, sums.div_(total))
            _set_rows(logsumexp, block.rows, total.log2_().add_(top))
        ctx.plan = plan
        ctx.save_for_backward(q, k, v, out, logsumexp)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, out, logsumexp = ctx.saved_tensors
        plan, scale = ctx.plan, q.shape[-1] ** -0.5
        dq = torch.empty_like(q)
        dk, dv = (torch.zeros_like(x, dtype=torch.float32) for x in (k, v))
        for block in plan.query_blocks:
            queries, upstream = (_rows(x, block.rows).to(plan.dtype) for x in (q, grad))
            delta = (upstream.float() * _rows(out, block.rows)).sum(-1, keepdim=True)
            sums = torch.zeros_like(queries, dtype=torch.float32)
            for key_block in block.key_blocks:
                keys, values = (x[:, key_block.keys].to(plan.dtype) for x in (k, v))
                scores = _scores(queries, keys, key_block.hidden)
                weights = scores.sub_(_rows(logsumexp, block.rows)).exp2_()
                _add_product(dv[:, key_block.keys], weights.mT, upstream)
                d_scores = (upstream @ values.mT).float().sub_(delta).mul_(weights)
                _add_product(sums, d_scores, keys)
                _add_product(dk[:, key_block.keys], d_scores.mT, queries)
            _set_rows(dq, block.rows, sums.mul_(scale))
        return dq, dk.mul_(scale).to(k.dtype), dv.to(v.dtype), None


def _rows(x: Tensor, rows: slice) -> Tensor:
    """These rows of x (heads, group, n_q, d), the heads of a group one after another: (heads, group * rows, d)."""
    return x[:, :, rows].flatten(1, 2)


def _set_rows(x: Tensor, rows: slice, values: Tensor) -> None:
    """Writes what `_rows` would read."""
    part = x[:, :, rows]
    part.copy_(values.view(part.shape))


def _scores(queries: Tensor, keys: Tensor, hidden: Tensor | None) -> Tensor:
    """Scores as powers of two, in float32, hidden pairs at -inf."""
    scores = queries.new_empty(*queries.shape[:2], keys.shape[1])
    scores = scores.baddbmm_(queries, keys.mT, beta=0, alpha=queries.shape[-1] ** -0.5 * LOG2_E).float()
    if hidden is not None:
        scores.view(len(scores), -1, *hidden.shape).masked_fill_(hidden, -math.inf)
    return scores


def _add_product(to: Tensor, a: Tensor, b: Tensor) -> None:
    """Adds a @ b to the float32 tensor `to` in place; a is float32, and is rounded to the dtype of b first."""
    if b.dtype == torch.float32:
        to.baddbmm_(a, b)
    else:
        to.add_(a.to(b.dtype) @ b)
