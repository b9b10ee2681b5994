"""A band in plain products of matrices, for CPU: a few blocks of rows at a time, with a backward pass of its own.

A block of rows sees all of its keys at once, so its softmax is the textbook's, and the backward pass computes it again.
Autograd by itself would keep every block's scores, or pay a gradient of full size for each window cut out of k and v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from variants.stretches import Stretch

if TYPE_CHECKING:
    from variants.band import Band


@dataclass(frozen=True)
class Tile:
    """`count` blocks of rows that are computed at once: one block of several heads, or several blocks of one head.

    The first block is one of `head`, from `row` on, and its window begins at `key`. The others are those of the heads
    after it where `step` is 0, and else as many rows further each.
    """

    stretch: Stretch
    hidden: tuple[tuple[slice, Tensor], ...]
    count: int
    head: int
    row: int
    key: int
    step: int

    @property
    def heads(self) -> slice:
        """The heads that the blocks are of."""
        return slice(self.head, self.head + (1 if self.step else self.count))

    def rows(self, x: Tensor) -> Tensor:
        """These rows of x (heads, group, n_q, d): a view (count, group, rows, d)."""
        of_head, of_group, of_row, of_number = x.stride()
        first = x.storage_offset() + self.head * of_head + self.row * of_row
        size = self.count, x.shape[1], self.stretch.rows, x.shape[3]
        return x.as_strided(size, (self.step * of_row if self.step else of_head, of_group, of_row, of_number), first)

    def windows(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """The windows of x (heads, n_kv, d), in a dtype: (count, keys, d); a view of x where it has that dtype."""
        end = self.key + (self.count - 1) * self.step + self.stretch.keys
        x = x[self.heads, self.key : end].to(dtype)
        of_head, of_key, of_number = x.stride()
        size = self.count, self.stretch.keys, x.shape[2]
        return x.as_strided(size, (self.step * of_key if self.step else of_head, of_key, of_number), x.storage_offset())


def tiles(band: Band, heads: int, group: int, apart: bool) -> Iterator[Tile]:
    """All blocks of the band, with at most `band.scores` scores a tile, or one block; `apart`: windows share no key."""
    for s in band.stretches:
        hidden = tuple(_hidden(band, s))
        at_once = max(band.scores // (group * s.rows * (s.keys + band.global_keys)), 1)
        if s.blocks == 1:
            for head in range(0, heads, at_once):
                yield Tile(s, hidden, min(at_once, heads - head), head, s.row, s.key, 0)
            continue
        stride = -(-s.keys // s.rows) if apart else 1
        for head, lane in product(range(heads), range(min(stride, s.blocks))):
            for block in range(lane, s.blocks, stride * at_once):
                count = min(at_once, -(-(s.blocks - block) // stride))
                yield Tile(s, hidden, count, head, s.row + block * s.rows, s.key + block * s.rows, stride * s.rows)


def _hidden(band: Band, s: Stretch) -> Iterator[tuple[slice, Tensor]]:
    """Columns of a block's window of which some are hidden, with their bias: before a row's window, and after it."""
    bias = band.bias[: s.rows, s.cut : s.cut + s.keys]
    for columns in slice(max(s.rows - 1 - s.cut, 0)), slice(max(band.width - s.cut, 0), s.keys):
        if bias[:, columns].numel():
            yield columns, bias[:, columns]


class BandProducts(torch.autograd.Function):
    """q (heads, group, n_q, head_dim), k and v (heads, n_kv, head_dim) -> like q; its global rows are not written."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, band: Band) -> Tensor:
        out = torch.empty_like(q)
        chosen = list(tiles(band, q.shape[0], q.shape[1], apart=False))
        room = _room(chosen, q, band)
        for tile in chosen:
            weights = _weights(tile, _queries(tile, q, band), _keys(tile, k, band), room)
            _put(tile, out, weights, _keys(tile, v, band))
        ctx.band = band
        ctx.save_for_backward(q, k, v)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (q, k, v), band = ctx.saved_tensors, ctx.band
        dq = torch.zeros_like(q)
        dk, dv = (torch.zeros_like(x, dtype=torch.float32) for x in (k, v))
        chosen = list(tiles(band, q.shape[0], q.shape[1], apart=True))
        room, more_room = _room(chosen, q, band), _room(chosen, q, band)
        for tile in chosen:
            queries, upstream, keys = _queries(tile, q, band), _queries(tile, grad, band), _keys(tile, k, band)
            weights = _weights(tile, queries, keys, room)
            _add(tile, dv, weights, upstream)
            d_weights = torch.bmm(upstream, _keys(tile, v, band).mT, out=_shaped(more_room, *weights.shape))
            d_scores = torch.ops.aten._softmax_backward_data(
                d_weights, weights, -1, weights.dtype, grad_input=d_weights
            ).mul_(q.shape[-1] ** -0.5)
            _put(tile, dq, d_scores, keys)
            _add(tile, dk, d_scores, queries)
        return dq, dk.to(k.dtype), dv.to(v.dtype), None


def _room(chosen: list[Tile], q: Tensor, band: Band) -> Tensor:
    """Memory for the scores of any of the tiles, used again for each: fresh memory would cost as much as a product."""
    rows = max((t.count * t.stretch.rows * (t.stretch.keys + band.global_keys) for t in chosen), default=0)
    return band.bias.new_empty(q.shape[1] * rows)


def _shaped(room: Tensor, *shape: int) -> Tensor:
    return room[: math.prod(shape)].view(shape)


def _queries(tile: Tile, x: Tensor, band: Band) -> Tensor:
    """The tile's rows of the queries, or of the gradient of what comes out: (count, group * rows, head_dim)."""
    rows = tile.rows(x)
    return rows.reshape(tile.count, -1, rows.shape[3]).to(band.bias.dtype)


def _keys(tile: Tile, x: Tensor, band: Band) -> Tensor:
    """The keys or values that the tile's blocks see, (count, keys, head_dim): their windows, and the global ones."""
    windows = tile.windows(x, band.bias.dtype)
    if not band.global_keys:
        # PyTorch multiplies windows that overlap as they lie, but in 16 bits only after copying them, and slowly.
        return windows if windows.dtype == torch.float32 else windows.contiguous()
    in_all = x[tile.heads, : band.global_keys].to(windows.dtype)
    return torch.cat([windows, in_all.expand(tile.count, -1, -1)], dim=1)


def _weights(tile: Tile, queries: Tensor, keys: Tensor, room: Tensor) -> Tensor:
    """The softmax of the scores, (count, group * rows, keys)."""
    scores = _shaped(room, tile.count, queries.shape[1], keys.shape[1])
    scores.baddbmm_(queries, keys.mT, beta=0, alpha=queries.shape[2] ** -0.5)
    by_head = scores.view(tile.count, -1, tile.stretch.rows, keys.shape[1])
    for columns, bias in tile.hidden:
        by_head[..., columns].add_(bias)
    return torch.softmax(scores, -1, out=scores)


def _put(tile: Tile, to: Tensor, weights: Tensor, vectors: Tensor) -> None:
    """Writes weights @ vectors to the tile's rows of `to` (heads, group, n_q, head_dim)."""
    rows = tile.rows(to)
    rows.copy_((weights @ vectors).view(rows.shape))


def _add(tile: Tile, to: Tensor, weights: Tensor, rows: Tensor) -> None:
    """Adds weights^T @ rows to the gradient (heads, n_kv, head_dim) of the keys that the tile's blocks see."""
    window = tile.stretch.keys
    tile.windows(to, to.dtype).add_(weights[..., :window].mT @ rows)
    if window < weights.shape[-1]:
        in_all = to[tile.heads, : weights.shape[-1] - window]
        in_all += (weights[..., window:].mT @ rows).view(len(in_all), -1, *in_all.shape[1:]).sum(1)
