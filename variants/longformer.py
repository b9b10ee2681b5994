"""Longformer attention: a sliding window, and a few global tokens that see and are seen by all. Work is linear in n.

"Longformer: The Long-Document Transformer" (https://arxiv.org/abs/2004.05150). With `causal` it is the pattern of
StreamingLLM, a window and attention sinks (https://arxiv.org/abs/2309.17453).
"""

from __future__ import annotations

from torch import Tensor

from variants import band
from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows


@variant("longformer", exponent=1.0, plan=band.plan, tunable=band.TUNABLE)
def longformer(
    q: Tensor, k: Tensor, v: Tensor, *, window: int, global_tokens: int, causal: bool = False, plan: band.Band
) -> Tensor:
    """The first `global_tokens` see and are seen by all, others see them and a window; `causal` hides later keys.

    A block's keys are those of its window that are not global, and the global ones, so that none is counted twice.
    """
    q, empty = drop_empty_rows(q, k, Mask(causal=causal, window=window, global_tokens=global_tokens))
    return restore_empty_rows(band.attend(q, k, v, plan), empty)
