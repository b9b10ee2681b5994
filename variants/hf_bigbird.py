"""Hugging Face's BigBird attention, in blocks: some work saved, but n x n weights stored, so that it seldom pays.

"Big Bird: Transformers for Longer Sequences" (https://arxiv.org/abs/2007.14062), as in
https://huggingface.co/docs/transformers/model_doc/big_bird.
"""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.machine import Machine
from variants.problem import Problem
from variants.registry import Unsupported, variant

_BLOCK = 64
_RANDOM_BLOCKS = 3
_IN_FULL = (5 + 2 * _RANDOM_BLOCKS) * _BLOCK  # up to here its model takes full attention instead


def _limits(problem: Problem, machine: Machine) -> str | None:
    if problem.seq_q != problem.seq_kv:
        return "takes as many queries as keys"
    if problem.heads != problem.kv_heads:
        return "takes no grouped heads"
    if problem.seq_kv <= _IN_FULL:
        return f"needs more than {_IN_FULL} tokens: its model attends in full to so few"
    return None


def _plan(problem: Problem) -> partial[Any]:
    """Its attention with all but q, k and v given, for n padded to whole blocks as its model pads it."""
    try:
        from transformers import BigBirdConfig
        from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel
    except ImportError as error:
        raise Unsupported(f"transformers cannot be imported: {error}") from error
    b, h, n, d = problem.batch, problem.heads, problem.seq_kv, problem.head_dim
    padded = -(-n // _BLOCK) * _BLOCK
    config = BigBirdConfig(
        hidden_size=h * d, num_attention_heads=h, block_size=_BLOCK, num_random_blocks=_RANDOM_BLOCKS
    )
    with torch.device("meta"):  # the weights of projections that never run
        layer = BigBirdBlockSparseAttention(config)
    _fix_random_blocks(layer, h, padded)
    real = torch.ones(b, padded, dtype=getattr(torch, problem.dtype), device=problem.device)
    real[:, n:] = 0
    blocked, band, queries, keys = BigBirdModel.create_masks_for_block_sparse_attn(real, _BLOCK)
    return partial(
        layer.bigbird_block_sparse_attention,
        band_mask=band,
        from_mask=queries,
        to_mask=keys,
        from_blocked_mask=blocked,
        to_blocked_mask=blocked,
        n_heads=h,
        n_rand_blocks=_RANDOM_BLOCKS,
        attention_head_size=d,
        from_block_size=_BLOCK,
        to_block_size=_BLOCK,
        batch_size=b,
        from_seq_len=padded,
        to_seq_len=padded,
        seed=None,
        plan_from_length=None,
        plan_num_rand_blocks=None,
    )


def _fix_random_blocks(layer: Any, heads: int, n: int) -> None:
    """Draws each head's random blocks once, by its own function, from all blocks that are not seen anyway.

    Left to itself it draws them in every call, from the first blocks alone, and outside training takes block 0 for all.
    """
    import numpy

    state = numpy.random.get_state()
    numpy.random.seed(0)
    try:
        layer.train()
        drawn = layer._bigbird_block_rand_mask_with_head(n, n, _BLOCK, _BLOCK, heads, [n], [_RANDOM_BLOCKS])
    finally:
        numpy.random.set_state(state)
    layer.eval()
    by_head = cycle(drawn)
    layer._bigbird_block_rand_mask_with_head = lambda **_: drawn
    layer._bigbird_block_rand_mask = lambda *_, **__: next(by_head)  # at 1024, 3072 and 4096 it asks head by head


@variant("hf_bigbird", exact=False, requires=("transformers",), plan=_plan, limits=_limits)
def hf_bigbird(q: Tensor, k: Tensor, v: Tensor, *, plan: partial[Any]) -> Tensor:
    """The first and the last block see, and are seen by, all; others see themselves, two beside and three at random."""
    n = q.shape[2]
    if padding := -n % _BLOCK:
        q, k, v = (F.pad(x, (0, 0, 0, padding)) for x in (q, k, v))
    out: Tensor = plan(q, k, v)[0]
    return out[:, :n].transpose(1, 2)
