"""xFormers' memory_efficient_attention, with its own mask types where they can say the mask; CUDA only.

https://facebookresearch.github.io/xformers/components/ops.html
"""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor

from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported, variant
from variants.shapes import drop_empty_rows, restore_empty_rows


def _limits(problem: Problem, machine: Machine) -> str | None:
    if problem.device != "cuda":
        return "xformers runs on CUDA only"
    two_sided = problem.mask.window is not None and not problem.mask.causal
    if two_sided and problem.dtype == "float32":
        return "xformers takes a two-sided window in bfloat16 and float16 only"
    return None


def _backward_limits(problem: Problem, machine: Machine) -> str | None:
    if problem.heads != problem.kv_heads:
        return "xformers runs grouped-query attention forward only"
    if problem.mask.window is not None and problem.dtype == "float32":
        return "xformers has a backward pass through a window in bfloat16 and float16 only"
    return None


def load(problem: Problem) -> Any:
    """The module `xformers.ops`, whose import takes seconds and logs what it was built without."""
    logging.getLogger("xformers").setLevel(logging.ERROR)
    try:
        import xformers.ops
    except ImportError as error:
        raise Unsupported(f"xformers cannot be imported: {error}") from error
    return xformers.ops


def bias(attn_bias: Any, mask: Mask) -> Any:
    """The mask in xformers' terms: its causal window counts keys, its two-sided window the steps to either side."""
    if mask.window is None:
        return attn_bias.LowerTriangularFromBottomRightMask() if mask.causal else None
    if mask.causal:
        return attn_bias.LowerTriangularFromBottomRightLocalAttentionMask(mask.window)
    return attn_bias.LocalAttentionFromBottomRightMask(mask.window - 1, mask.window - 1)


@variant("xformers", requires=("xformers",), plan=load, limits=_limits, backward_limits=_backward_limits)
def xformers_attention(
    q: Tensor, k: Tensor, v: Tensor, *, plan: Any, window: int | None = None, causal: bool = False
) -> Tensor:
    """Exact attention. Its layout is (batch, n, heads, head_dim); with groups (batch, n, kv_heads, group, head_dim)."""
    mask = Mask(causal=causal, window=window)
    q, empty = drop_empty_rows(q, k, mask)
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if group > 1:
        q = q.reshape(*q.shape[:2], -1, group, q.shape[3])
        k, v = (x[:, :, :, None].expand(-1, -1, -1, group, -1) for x in (k, v))
    try:
        out = plan.memory_efficient_attention(q, k, v, attn_bias=bias(plan.fmha.attn_bias, mask))
    except NotImplementedError as error:
        raise Unsupported("; ".join(line.strip() for line in str(error).splitlines()[6:])) from error
    if group > 1:
        out = out.flatten(2, 3)
    return restore_empty_rows(out.transpose(1, 2), empty)
