"""Hugging Face's Longformer attention: a window in overlapping chunks, and global tokens. Pays where n is many windows.

https://huggingface.co/docs/transformers/model_doc/longformer
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.machine import Machine
from variants.problem import Problem
from variants.registry import Unsupported, variant

_LEAST_WINDOW = 3


class _Projected(torch.nn.Module):
    """In the place of a projection: returns what it was given before the call, and lets go of it."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Tensor] = []

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.given.pop()


def _limits(problem: Problem, machine: Machine) -> str | None:
    if problem.seq_q != problem.seq_kv:
        return "takes as many queries as keys"
    if problem.heads != problem.kv_heads:
        return "takes no grouped heads"
    if problem.mask.window is not None and problem.mask.window < _LEAST_WINDOW:
        return f"needs a window of at least {_LEAST_WINDOW}: its own code fails on fewer than two keys to a side"
    return None


def _plan(problem: Problem) -> tuple[Any, dict[str, Any]]:
    """Its layer without its projections, and what each position is to it, as its model works it out."""
    try:
        from transformers import LongformerConfig
        from transformers.models.longformer.modeling_longformer import LongformerSelfAttention
    except ImportError as error:
        raise Unsupported(f"transformers cannot be imported: {error}") from error
    assert problem.mask.window is not None
    both_sides = 2 * (max(_LEAST_WINDOW, min(problem.mask.window, problem.seq_kv)) - 1)
    config = LongformerConfig(
        hidden_size=problem.heads * problem.head_dim,
        num_attention_heads=problem.heads,
        attention_window=[both_sides],
        attention_probs_dropout_prob=0.0,
    )
    with torch.device("meta"):  # the weights of projections that never run
        layer = LongformerSelfAttention(config, layer_id=0).eval()
    layer.query, layer.query_global = _Projected(), torch.nn.Identity()
    layer.key = layer.key_global = _Projected()
    layer.value = layer.value_global = _Projected()
    return layer, _positions(problem, both_sides)


def _positions(problem: Problem, multiple: int) -> dict[str, Any]:
    """Its masks (batch, n), n padded to a multiple: above zero is global, zero is local, below zero is padding."""
    n, global_tokens = problem.seq_kv, problem.mask.global_tokens or 0
    kind = torch.zeros(problem.batch, -(-n // multiple) * multiple, device=problem.device)
    kind[:, :global_tokens] = 1
    kind[:, n:] = -1
    return {
        "attention_mask": kind,
        "is_index_masked": kind < 0,
        "is_index_global_attn": kind > 0,
        "is_global_attn": global_tokens > 0,
    }


@variant("hf_longformer", exponent=1.0, requires=("transformers",), plan=_plan, limits=_limits)
def hf_longformer(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    plan: tuple[Any, dict[str, Any]],
    window: int,
    global_tokens: int | None = None,
) -> Tensor:
    """Exact attention; global tokens are projected like all others. Its layout is (batch, n, heads * head_dim)."""
    layer, positions = plan
    b, h, n, d = q.shape
    padding = positions["attention_mask"].shape[1] - n
    q, k, v = (x.transpose(1, 2).flatten(2) for x in (q, k, v))
    if padding:
        q, k, v = (F.pad(x, (0, 0, 0, padding)) for x in (q, k, v))
    uses = 2 if global_tokens else 1
    layer.query.given = [q.transpose(0, 1).clone()]  # it scales its query in place
    layer.key.given, layer.value.given = ([x.transpose(0, 1)] * uses for x in (k, v))
    out: Tensor = layer(q, **positions)[0]
    return out[:, :n].view(b, n, h, d).transpose(1, 2)
