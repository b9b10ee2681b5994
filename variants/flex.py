"""FlexAttention, compiled: any mask as a function, hidden blocks skipped. Pays for masks that no fused kernel knows.

"Flex Attention: A Programming Model for Generating Optimized Attention Kernels" (https://arxiv.org/abs/2412.05496);
https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from variants.blocks import blocks_of
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported, variant
from variants.shapes import drop_empty_rows, restore_empty_rows

BLOCK = 128

# Tracing and lowering wrap what they catch in errors of their own, and leave its name and text in theirs.
_REFUSAL = re.compile(r"NotImplementedError(?:: |\(['\"])(.+?)(?:['\"]\))?$", re.MULTILINE)

Plan = tuple[Callable[..., Tensor], BlockMask]


def block_mask(mask: Mask, n_q: int, n_kv: int, device: str = "cpu", block: int = BLOCK) -> BlockMask:
    """What `create_block_mask` makes, from block arithmetic: milliseconds, and no n_q x n_kv tensor.

    Given for the full mask as well: without one, FlexAttention on CPU takes all keys as one block.
    """
    blocks = blocks_of(mask, n_q, n_kv, block, block)
    whole = blocks.whole.clone()
    whole[n_q // block :] = False  # a block that reaches past the end is partial to FlexAttention
    whole[:, n_kv // block :] = False
    partial = blocks.touched & ~whole
    return BlockMask.from_kv_blocks(
        *_listed(partial, device),
        *_listed(whole, device),
        BLOCK_SIZE=block,
        mask_mod=mask.at(n_q, n_kv),
        seq_lengths=(n_q, n_kv),
    )


def _listed(chosen: Tensor, device: str) -> tuple[Tensor, Tensor]:
    """How many blocks of keys are chosen in each row of blocks, and their indices in order, the chosen ones first."""
    indices = chosen.int().argsort(dim=1, descending=True, stable=True)
    count, indices = (x.to(device, torch.int32)[None, None] for x in (chosen.sum(1), indices))
    return count, indices


def _plan(problem: Problem, block: int = BLOCK) -> Plan:
    rows = problem.seq_q - problem.empty_rows
    # With fullgraph, dynamo raises past its recompile limit, and does not fall back to dense attention in silence.
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
    return compiled, block_mask(problem.mask, rows, problem.seq_kv, problem.device, block)


def _limits(problem: Problem, machine: Machine) -> str | None:
    if problem.device == "cpu" and machine.cxx is None:
        return "torch.compile needs a C++ compiler"
    if problem.device != "cpu" and problem.head_dim < 16:
        return f"FlexAttention takes a head_dim of at least 16 on {problem.device}"
    return None


def _backward_limits(problem: Problem, machine: Machine) -> str | None:
    return "FlexAttention has no backward pass on CPU" if problem.device == "cpu" else None


@variant(
    "flex",
    compiled=True,
    plan=_plan,
    tunable={"block": (32, 64, 128, 256)},
    limits=_limits,
    backward_limits=_backward_limits,
)
def flex(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: Plan) -> Tensor:
    """Exact attention by a kernel compiled for this problem."""
    compiled, visible = plan
    q, empty = drop_empty_rows(q, k, mask)
    try:
        out = compiled(q, k, v, block_mask=visible, enable_gqa=q.shape[1] != k.shape[1])
    except RuntimeError as error:
        refusal = _REFUSAL.search(f"{type(error).__name__}: {error}")
        if refusal is None:
            raise
        raise Unsupported(refusal[1]) from error
    return restore_empty_rows(out, empty)
