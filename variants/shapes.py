"""Shapes that variants share: query heads folded into rows, the rows that see no key, the mask as one tensor.

Folding heads is how grouped-query attention (https://arxiv.org/abs/2305.13245) needs no copy of k and v.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from variants.masks import Mask
from variants.problem import Problem


def fold_heads(q: Tensor, kv_heads: int) -> Tensor:
    """q (batch, heads, n_q, head_dim) as (batch, kv_heads, group * n_q, head_dim): the heads of a group become rows."""
    b, h, n, d = q.shape
    return q.reshape(b, kv_heads, h // kv_heads * n, d)


def drop_empty_rows(q: Tensor, k: Tensor, mask: Mask) -> tuple[Tensor, int]:
    """q without the rows that see no key, and how many those are.

    They are the first ones, and positions are aligned at the end, so that the mask means the same for the rest.
    """
    empty = mask.empty_rows(q.shape[2], k.shape[2])
    return (q[:, :, empty:] if empty else q), empty


def restore_empty_rows(out: Tensor, empty: int) -> Tensor:
    """`out` with that many rows of zeros put back before its first."""
    return F.pad(out, (0, 0, empty, 0)) if empty else out


def dense_mask(problem: Problem) -> Tensor | None:
    """The mask of the rows that see a key, bool (rows, n_kv) on the problem's device; None where it hides nothing."""
    rows, n_kv = problem.seq_q - problem.empty_rows, problem.seq_kv
    return None if problem.mask.hides_nothing(rows, n_kv) else problem.mask.dense(rows, n_kv, problem.device)
