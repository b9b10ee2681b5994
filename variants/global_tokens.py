"""Global tokens alone: the first few see and are seen by all, the others see them and themselves. Work is n x tokens.

The global attention of ETC (https://arxiv.org/abs/2004.08483) and of Longformer (https://arxiv.org/abs/2004.05150) by
itself: the least that exchange over any distance can cost.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.global_rows import attend_globals, global_rows
from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, fold_heads, restore_empty_rows


@variant("global_tokens")
def global_attention(q: Tensor, k: Tensor, v: Tensor, *, global_tokens: int, causal: bool = False) -> Tensor:
    """The first `global_tokens` see and are seen by all, others see them and themselves; `causal` hides later keys."""
    q, empty = drop_empty_rows(q, k, Mask(causal=causal, global_tokens=global_tokens))
    n_q, n_kv = q.shape[2], k.shape[2]
    start, end = global_rows(n_q, n_kv, global_tokens)
    k_global, v_global = k[:, :, :global_tokens], v[:, :, :global_tokens]
    parts = []
    if start:  # rows before the first key, which have no key of their own
        parts.append(F.scaled_dot_product_attention(q[:, :, :start], k_global, v_global, enable_gqa=True))
    if start < end:
        parts.append(attend_globals(q, k, v, start, end, causal))
    if end < n_q:
        own = end + n_kv - n_q
        parts.append(_globals_and_self(q[:, :, end:], k_global, v_global, k[:, :, own:], v[:, :, own:]))
    return restore_empty_rows(torch.cat(parts, dim=2), empty)


def _globals_and_self(q: Tensor, k_global: Tensor, v_global: Tensor, k_own: Tensor, v_own: Tensor) -> Tensor:
    """Exact attention of each row to the global keys and to the one key of its own, a last column of the scores."""
    (b, h, n, d), kv_heads = q.shape, k_own.shape[1]
    q = q * d**-0.5
    to_globals = fold_heads(q, kv_heads) @ k_global.transpose(-2, -1)
    to_self = (q.view(b, kv_heads, -1, n, d) * k_own[:, :, None]).sum(-1).view(b, kv_heads, -1, 1)
    weights = torch.softmax(torch.cat([to_globals, to_self], dim=-1), dim=-1)
    from_globals = (weights[..., :-1] @ v_global).view(b, kv_heads, -1, n, d)
    to_self = weights[..., -1].view(b, kv_heads, -1, n, 1)
    return torch.addcmul(from_globals, to_self, v_own[:, :, None]).view(b, h, n, d)
