"""The query rows of global tokens, which see every key: dense attention of a few rows, for the variants that have some.

Longformer, section 3.1, "global attention" (https://arxiv.org/abs/2004.05150).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from variants.masks import Mask


def global_rows(n_q: int, n_kv: int, global_tokens: int) -> tuple[int, int]:
    """The first global row and the one after the last; rows before stand at negative positions."""
    first = max(n_q - n_kv, 0)
    return first, min(max(global_tokens - n_kv + n_q, first), n_q)


def attend_globals(q: Tensor, k: Tensor, v: Tensor, first: int, last: int, causal: bool) -> Tensor:
    """Exact attention of the rows first..last-1: to every key, with `causal` to those up to their own."""
    rows = q[:, :, first:last]
    if not causal:
        return F.scaled_dot_product_attention(rows, k, v, enable_gqa=True)
    seen = last + k.shape[2] - q.shape[2]
    k, v = k[:, :, :seen], v[:, :, :seen]
    if last - first == seen:
        return F.scaled_dot_product_attention(rows, k, v, is_causal=True, enable_gqa=True)
    visible = Mask(causal=True).dense(last - first, seen, q.device)
    return F.scaled_dot_product_attention(rows, k, v, attn_mask=visible, enable_gqa=True)
