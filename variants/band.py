"""Attention of query rows to a window of keys around each, in blocks of rows, by strided windows over k and v.

Rows are cut into blocks. In the interior, each block's keys are as many and lie as far from its rows as the next
block's, so that all of them are one batch of small problems with one mask between them, and their keys are a view of k.
Towards either end of the sequence a block's keys are cut off, and it is computed by itself. (Longformer, section 3.1,
https://arxiv.org/abs/2004.05150, cuts a band into overlapping chunks and copies them.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.masks import Mask

# A block has half as many rows as the window is long, within these bounds, found by trying. Its keys are its rows and a
# window more: longer blocks compute more in vain, shorter ones pass over more keys, and over their gradients, each.
_FEWEST_ROWS, _MOST_ROWS = 64, 256


@dataclass(frozen=True)
class Stretch:
    """Consecutive blocks of `rows` query rows from `row` on.

    The first sees `keys` keys from `key` on, the next as many from `key + rows` on, and so forth.
    """

    row: int
    rows: int
    blocks: int
    key: int
    keys: int


def stretches(first: int, last: int, n_q: int, n_kv: int, mask: Mask) -> Iterator[Stretch]:
    """Rows first..last-1 in order, with the keys in their windows; global keys are left out of the windows.

    One stretch holds the whole interior, so there are no more of them the longer the sequence is.
    """
    assert mask.window is not None
    offset, lowest = n_kv - n_q, min(mask.global_tokens or 0, n_kv)
    back, ahead = mask.window - 1, 0 if mask.causal else mask.window - 1
    rows = min(max(mask.window // 2, _FEWEST_ROWS), _MOST_ROWS)

    def ends(start: int, stop: int) -> Iterator[Stretch]:
        for row in range(start, stop, rows):
            end = min(row + rows, stop)
            key = min(max(row + offset - back, lowest), n_kv)
            yield Stretch(row, end - row, 1, key, max(min(end + offset + ahead, n_kv) - key, 0))

    inner = min(max(lowest + back - offset, first), last)
    blocks = max(min(n_kv - ahead - offset, last) - inner, 0) // rows
    outer = inner + blocks * rows
    yield from ends(first, inner)
    if blocks:
        yield Stretch(inner, rows, blocks, inner + offset - back, rows + back + ahead)
    yield from ends(outer, last)


def attend(q: Tensor, k: Tensor, v: Tensor, stretch: Stretch, mask: Mask) -> Tensor:
    """Exact attention of the stretch's rows to their windows and to the global keys: (batch, heads, rows, head_dim).

    Batch and heads become the heads of a batch of blocks, which leaves the windows of k and v a view for any batch.
    """
    (b, h, n_q, d), (_, kv_heads, n_kv, _) = q.shape, k.shape
    s, g, group = stretch, min(mask.global_tokens or 0, n_kv), h // kv_heads
    rows = q[:, :, s.row : s.row + s.blocks * s.rows].reshape(b * kv_heads, group, s.blocks, s.rows, d)
    rows = rows.permute(2, 0, 1, 3, 4).reshape(s.blocks, b * kv_heads, group * s.rows, d)

    row = torch.arange(s.row, s.row + s.rows, device=q.device)
    key = torch.cat([torch.arange(g, device=q.device), torch.arange(s.key, s.key + s.keys, device=q.device)])
    visible = mask.at(n_q, n_kv)(key, key, row[:, None], key).repeat(group, 1)
    out = F.scaled_dot_product_attention(rows, _windows(k, s, g), _windows(v, s, g), attn_mask=visible)
    out = out.reshape(s.blocks, b * kv_heads, group, s.rows, d).permute(1, 2, 0, 3, 4)
    return out.reshape(b, h, s.blocks * s.rows, d)


def _windows(x: Tensor, s: Stretch, g: int) -> Tensor:
    """The keys or values of each block, (blocks, batch * kv_heads, g + keys, head_dim); a view where g is 0."""
    b, kv_heads, _, d = x.shape
    heads = x.reshape(b * kv_heads, -1, d)
    if not s.keys:
        return heads[:, :g].expand(s.blocks, -1, -1, -1)
    span = heads[:, s.key : s.key + (s.blocks - 1) * s.rows + s.keys]
    windows = span.unfold(1, s.keys, s.rows).permute(1, 0, 3, 2)
    return torch.cat([heads[:, :g].expand(s.blocks, -1, -1, -1), windows], dim=2) if g else windows
