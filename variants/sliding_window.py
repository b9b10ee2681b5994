"""Sliding window attention in blocks: work and memory grow with n x window. Pays wherever the window is shorter than n.

"Longformer: The Long-Document Transformer", section 3.1 (https://arxiv.org/abs/2004.05150); causal, as in Mistral 7B
(https://arxiv.org/abs/2310.06825).
"""

from __future__ import annotations

from torch import Tensor

from variants import band
from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows


@variant("sliding_window", exponent=1.0, plan=band.plan, tunable=band.TUNABLE)
def sliding_window(q: Tensor, k: Tensor, v: Tensor, *, window: int, causal: bool = False, plan: band.Band) -> Tensor:
    """Each query sees the keys less than `window` positions away; with `causal`, the `window` latest ones."""
    q, empty = drop_empty_rows(q, k, Mask(causal=causal, window=window))
    return restore_empty_rows(band.attend(q, k, v, plan), empty)
