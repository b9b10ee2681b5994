"""Longformer attention: a sliding window, and a few global tokens that see and are seen by all. Work is linear in n.

"Longformer: The Long-Document Transformer" (https://arxiv.org/abs/2004.05150). With `causal` it is the pattern of
StreamingLLM, a window and attention sinks (https://arxiv.org/abs/2309.17453).
"""

from __future__ import annotations

import torch
from torch import Tensor

from variants.band import attend, stretches
from variants.global_rows import attend_globals, global_rows
from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, restore_empty_rows


@variant("longformer")
def longformer(q: Tensor, k: Tensor, v: Tensor, *, window: int, global_tokens: int, causal: bool = False) -> Tensor:
    """The first `global_tokens` see and are seen by all, others see them and a window; `causal` hides later keys.

    A block's keys are the global ones and its window without them, so that none is counted twice.
    """
    mask = Mask(causal=causal, window=window, global_tokens=global_tokens)
    q, empty = drop_empty_rows(q, k, mask)
    n_q, n_kv = q.shape[2], k.shape[2]
    start, end = global_rows(n_q, n_kv, global_tokens)
    parts = [attend(q, k, v, stretch, mask) for stretch in stretches(0, start, n_q, n_kv, mask)]
    if start < end:
        parts.append(attend_globals(q, k, v, start, end, causal))
    parts += [attend(q, k, v, stretch, mask) for stretch in stretches(end, n_q, n_q, n_kv, mask)]
    return restore_empty_rows(torch.cat(parts, dim=2), empty)
