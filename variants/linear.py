"""Linear attention: products of feature maps elu(x) + 1 instead of a softmax, in time and memory linear in n.

It approximates nothing in particular: models are trained with it. "Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention" (https://arxiv.org/abs/2006.16236), equations 4 to 7. Scores are not scaled there,
and are not here.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.masks import Mask
from variants.registry import variant
from variants.shapes import drop_empty_rows, fold_heads, restore_empty_rows

_BLOCK = 256


@variant("linear", exact=False, exponent=1.0)
def linear(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
    """out_i = phi(q_i) sum_j phi(k_j) v_j^T / (phi(q_i) sum_j phi(k_j)), over the keys j that i sees; in float32."""
    q, empty = drop_empty_rows(q, k, Mask(causal=causal))
    b, h, n, d = q.shape
    kv_heads = k.shape[1]
    dtype = q.dtype
    q, k = (F.elu(x.float()) + 1 for x in (q, k))
    v = F.pad(v.float(), (0, 1), value=1.0)  # the last column adds up the weights
    if causal:
        grouped = q.view(b, kv_heads, h // kv_heads, n, d)
        total = _causal(grouped, k, v).reshape(b, h, n, d + 1)
    else:
        total = (fold_heads(q, kv_heads) @ (k.mT @ v)).view(b, h, n, d + 1)
    return restore_empty_rows((total[..., :d] / total[..., d:]).to(dtype), empty)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Sums over the keys up to each query's own: of earlier blocks from a running state, of its own block one by one.

    q is (batch, kv_heads, group, n_q, d), with no more queries than keys; positions are aligned at the end.
    """
    n, before = q.shape[3], k.shape[2] - q.shape[3]
    state = k[:, :, :before].mT @ v[:, :, :before]
    parts = []
    for start in range(0, n, _BLOCK):
        block = slice(before + start, min(before + start + _BLOCK, before + n))
        queries, keys, values = q[:, :, :, start : start + _BLOCK], k[:, :, block], v[:, :, block]
        own = (queries @ keys[:, :, None].mT).tril() @ values[:, :, None]
        parts.append(queries @ state[:, :, None] + own)
        state = state + keys.mT @ values
    return torch.cat(parts, dim=3)
