"""The package local-attention: a window over whole blocks of keys. Pays where the window is much shorter than n.

https://github.com/lucidrains/local-attention
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from variants.machine import Machine
from variants.problem import Problem
from variants.registry import Unsupported, variant


def _limits(problem: Problem, machine: Machine) -> str | None:
    if problem.seq_q != problem.seq_kv:
        return "takes as many queries as keys"
    return None if problem.heads == problem.kv_heads else "takes no grouped heads"


def _plan(problem: Problem) -> tuple[Any, Tensor | None]:
    """Its module, and which keys are real (1, n), which it has to be told where it pads and looks ahead.

    Its exact window is a block to either side, so that a block is as long as the farthest visible key is away.
    """
    try:
        from local_attention import LocalAttention
    except ImportError as error:
        raise Unsupported(f"local-attention cannot be imported: {error}") from error
    n, window, causal = problem.seq_kv, problem.mask.window, problem.mask.causal
    assert window is not None
    farthest = min(window, n) - 1
    block, blocks_aside = max(farthest, 1), min(farthest, 1)
    module = LocalAttention(
        block,
        causal=causal,
        look_backward=blocks_aside,
        look_forward=0 if causal else blocks_aside,
        autopad=True,
        exact_windowsize=True,
        scale=problem.scale,
        use_rotary_pos_emb=False,
    )
    pads_visibly = n % block and not causal
    return module.eval(), torch.ones(1, n, dtype=torch.bool, device=problem.device) if pads_visibly else None


@variant("local_attention", exponent=1.0, requires=("local-attention",), plan=_plan, limits=_limits)
def local_attention(
    q: Tensor, k: Tensor, v: Tensor, *, plan: tuple[Any, Tensor | None], window: int, causal: bool = False
) -> Tensor:
    """Exact attention: its default would show whole blocks, its `exact_windowsize` shows the window."""
    module, real = plan
    out: Tensor = module(q, k, v, mask=real)
    return out
