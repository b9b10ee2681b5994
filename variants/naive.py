"""Textbook attention: full score matrix, mask, softmax, weighted sum. The yardstick, and fine for short sequences.

"Attention Is All You Need", section 3.2.1 (https://arxiv.org/abs/1706.03762).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from variants.masks import Mask
from variants.problem import Problem
from variants.registry import variant
from variants.shapes import dense_mask, drop_empty_rows, fold_heads, restore_empty_rows


def _plan(problem: Problem) -> Tensor | None:
    """The pairs that are hidden, bool (rows, n_kv); None where none is."""
    visible = dense_mask(problem)
    return None if visible is None else visible.logical_not_()


@variant("naive", plan=_plan)
def naive(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: Tensor | None) -> Tensor:
    """Exact attention; two matrices of (n_q, n_kv) a head are alive at its peak."""
    q, empty = drop_empty_rows(q, k, mask)
    b, h, n, d = q.shape
    scores = fold_heads(q * d**-0.5, k.shape[1]) @ k.transpose(-2, -1)
    if plan is not None:
        by_head = scores if h == k.shape[1] else scores.view(b, h, n, -1)  # writing to a view costs autograd a copy
        by_head.masked_fill_(plan, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return restore_empty_rows((weights @ v).view(b, h, n, d), empty)
