"""Sliding window attention in blocks: work and memory grow with n x window. Pays wherever the window is shorter than n.

"Longformer: The Long-Document Transformer", section 3.1 (https://arxiv.org/abs/2004.05150); causal, as in Mistral 7B
(https://arxiv.org/abs/2310.06825).
"""

from __future__ import annotations

import torch
from torch import Tensor

from variants.band import attend, stretches
from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows


@variant("sliding_window")
def sliding_window(q: Tensor, k: Tensor, v: Tensor, *, window: int, causal: bool = False) -> Tensor:
    """Each query sees the keys less than `window` positions away; with `causal`, the `window` latest ones."""
    mask = Mask(causal=causal, window=window)
    q, empty = drop_empty_rows(q, k, mask)
    n_q = q.shape[2]
    parts = [attend(q, k, v, stretch, mask) for stretch in stretches(0, n_q, n_q, k.shape[2], mask)]
    return restore_empty_rows(torch.cat(parts, dim=2), empty)
