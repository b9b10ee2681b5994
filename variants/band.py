"""Attention of query rows to a window of keys around each, and to global keys: planned here, and run by what suits.

A CPU is kept busy by products of small matrices that stay in its caches (`band_products`). An accelerator wants few and
large calls: there, all blocks of a stretch are one batch for PyTorch's fused attention, over strided views of k and v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from variants.band_products import BandProducts
from variants.global_rows import attend_globals, global_rows
from variants.masks import Mask
from variants.problem import Problem
from variants.products import product_dtype
from variants.stretches import Stretch, reach, stretches

# Rows of a block, found by `python -m bench.tune sliding_window`. Its keys are its rows and what the window reaches to
# either side: longer blocks compute more in vain, shorter ones pass over more keys each.
CPU_ROWS = {torch.float32: 64, torch.bfloat16: 128}
DEVICE_ROWS = 128
TUNABLE = {"rows": (32, 64, 128, 256), "scores": (2**18, 2**19, 2**20)}
CPU_SCORES = 2**19  # few enough for the caches, and so many that the cost of a call itself does not count


@dataclass(frozen=True)
class Band:
    """How rows are cut, and what is hidden.

    stretches    the rows that are not global, in order
    width        how many keys a window shows, its row's own among them
    bias         (rows, keys) of a block whose window is whole: 0 where a pair is visible, -inf where not
    global_keys  how many of the first keys every row sees, after those of its window
    global_rows  the first row that sees all keys, and the one after the last
    causal       whether later keys are hidden from these
    scores       how many scores are computed at a time, on CPU
    """

    stretches: tuple[Stretch, ...]
    width: int
    bias: Tensor
    global_keys: int
    global_rows: tuple[int, int]
    causal: bool
    scores: int

    def bias_of(self, stretch: Stretch) -> Tensor:
        """What a block of this stretch hides, (rows, keys + global keys)."""
        window = self.bias[: stretch.rows, stretch.cut : stretch.cut + stretch.keys]
        return F.pad(window, (0, self.global_keys)) if self.global_keys else window


def plan(problem: Problem, rows: int | None = None, scores: int = CPU_SCORES) -> Band:
    """The band of a problem with a window, counted without the rows that see no key; `rows` are cut at a time."""
    n_q, n_kv, mask = problem.seq_q - problem.empty_rows, problem.seq_kv, problem.mask
    assert mask.window is not None
    mask = replace(mask, window=min(mask.window, n_q + n_kv))  # a longer one shows no more
    dtype, global_keys = product_dtype(problem), min(mask.global_tokens or 0, n_kv)
    rows = rows or (CPU_ROWS[dtype] if problem.device == "cpu" else DEVICE_ROWS)
    start, end = global_rows(n_q, n_kv, global_keys) if global_keys else (0, 0)
    cut = [*stretches(0, start, n_q, n_kv, mask, rows), *stretches(end, n_q, n_q, n_kv, mask, rows)]
    bias = _bias(mask, rows, dtype, problem.device)
    return Band(tuple(cut), 1 + sum(reach(mask)), bias, global_keys, (start, end), mask.causal, scores)


def _bias(mask: Mask, rows: int, dtype: torch.dtype, device: str) -> Tensor:
    back, ahead = reach(mask)
    row = torch.arange(rows, device=device)
    key = torch.arange(-back, rows + ahead, device=device)
    visible = Mask(causal=mask.causal, window=mask.window).at(rows, rows)(row, row, row[:, None], key)
    return torch.zeros(visible.shape, dtype=dtype, device=device).masked_fill_(~visible, -math.inf)


def attend(q: Tensor, k: Tensor, v: Tensor, band: Band) -> Tensor:
    """Exact attention of q, without rows that see no key, under the band's mask: like q."""
    run = _by_products if q.device.type == "cpu" else by_fused_calls
    return run(q, k, v, band)


def _by_products(q: Tensor, k: Tensor, v: Tensor, band: Band) -> Tensor:
    n, d, heads = *q.shape[2:], k.shape[0] * k.shape[1]
    rows, keys, values = q.reshape(heads, -1, n, d), k.reshape(heads, -1, d), v.reshape(heads, -1, d)
    out: Tensor = BandProducts.apply(rows, keys, values, band)  # type: ignore[no-untyped-call]
    out = out.view(q.shape)
    first, last = band.global_rows
    if first < last:
        out[:, :, first:last] = attend_globals(q, k, v, first, last, band.causal)
    return out


def by_fused_calls(q: Tensor, k: Tensor, v: Tensor, band: Band) -> Tensor:
    """The same, a stretch a call."""
    first, last = band.global_rows
    before = [_fused(q, k, v, s, band) for s in band.stretches if s.row < first]
    among = [attend_globals(q, k, v, first, last, band.causal)] if first < last else []
    after = [_fused(q, k, v, s, band) for s in band.stretches if s.row >= last]
    return torch.cat(before + among + after, dim=2)


def _fused(q: Tensor, k: Tensor, v: Tensor, s: Stretch, band: Band) -> Tensor:
    """Attention of the stretch's rows, (batch, heads, rows, head_dim).

    Batch and heads become the heads of a batch of blocks, which leaves the windows of k and v a view for any batch.
    """
    (b, h, _, d), kv_heads = q.shape, k.shape[1]
    group = h // kv_heads
    rows = q[:, :, s.row : s.row + s.blocks * s.rows].reshape(b * kv_heads, group, s.blocks, s.rows, d)
    rows = rows.permute(2, 0, 1, 3, 4).reshape(s.blocks, b * kv_heads, group * s.rows, d)
    keys, values = (_windows(x, s, band.global_keys) for x in (k, v))
    out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=band.bias_of(s).repeat(group, 1))
    out = out.reshape(s.blocks, b * kv_heads, group, s.rows, d).permute(1, 2, 0, 3, 4)
    return out.reshape(b, h, s.blocks * s.rows, d)


def _windows(x: Tensor, s: Stretch, global_keys: int) -> Tensor:
    """The keys or values of each block, (blocks, batch * kv_heads, keys, head_dim); a view where none is global."""
    b, kv_heads, _, d = x.shape
    heads = x.reshape(b * kv_heads, -1, d)
    in_all = heads[:, :global_keys].expand(s.blocks, -1, -1, -1)
    if not s.keys:
        return in_all
    windows = heads[:, s.key : s.key + (s.blocks - 1) * s.rows + s.keys].unfold(1, s.keys, s.rows).permute(1, 0, 3, 2)
    return torch.cat([windows, in_all], dim=2) if global_keys else windows
