"""Which blocks of (query, key) pairs a mask touches, in closed form from the positions of a block's corners.

The n_q x n_kv pairs fall into blocks of q_block x kv_block. FlexAttention's `create_block_mask` finds the same on the
dense mask (https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from variants.masks import Mask


@dataclass(frozen=True)
class Blocks:
    """Facts of the blocks of a mask, bool (blocks of queries, blocks of keys) each.

    touched  some pair of the block is visible
    whole    every pair of the block is visible
    """

    touched: Tensor
    whole: Tensor


def blocks_of(mask: Mask, n_q: int, n_kv: int, q_block: int, kv_block: int) -> Blocks:
    """The blocks of a mask, on CPU; the last one of either axis may be shorter than the others."""
    i0, i1 = (x[:, None] + n_kv - n_q for x in _ends(n_q, q_block))
    j0, j1 = _ends(n_kv, kv_block)
    far = n_q + n_kv  # further than any two positions are apart
    g = mask.global_tokens or 0
    reach = far if mask.window is None and not g else (mask.window or 1) - 1
    ahead = 0 if mask.causal else reach

    band = (j0 <= i1 + ahead) & (j1 >= i0 - reach)
    global_keys = (j0 < g) & ((j0 <= i1) | (not mask.causal))
    last_global = i1.clamp(max=g - 1)
    global_rows = (i0.clamp(min=0) <= last_global) & ((j0 <= last_global) | (not mask.causal))

    def sees_all(first: Tensor, last: Tensor) -> Tensor:
        """Rows first..last, none of them global, see every key of the block; true as well where there are no rows."""
        local = j0.clamp(min=g)
        in_band = (local >= last - reach) & (j1 <= first + ahead)
        return (first > last) | (((j1 < g) | in_band) & ((j1 <= first) | (not mask.causal)))

    no_global_row = i0.clamp(min=0) > last_global
    whole = (
        sees_all(i0, i1.clamp(max=-1))
        & (no_global_row | (j1 <= i0.clamp(min=0)) | (not mask.causal))
        & sees_all(i0.clamp(min=g), i1)
    )
    return Blocks(band | global_keys | global_rows, whole)


def _ends(n: int, block: int) -> tuple[Tensor, Tensor]:
    """The first and the last index of each block of 0..n-1."""
    first = torch.arange(0, n, block)
    return first, (first + block - 1).clamp(max=n - 1)
