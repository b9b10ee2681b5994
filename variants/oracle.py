"""Exact attention in float64 on sampled query rows, its gradients, and the textbook computation to set beside it.

The formula is that of "Attention Is All You Need", section 3.2.1 (https://arxiv.org/abs/1706.03762). Its gradients
are written out, because the judge also needs the sizes of the terms that they are sums of. Everything works on one
key-value head at a time, on CPU (not every device has float64), and costs rows x n_kv in time and a few times that
head in memory; so it serves at the very length that is timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from variants.problem import Problem

_BLOCKS = (64, 128, 256)  # the usual kernels' block sizes: their first and last blocks are where rows go wrong
_AFFORDABLE = 1 << 26  # scores to compute, which leaves 64 rows at a million keys
_AT_ONCE = 1 << 22  # scores to hold, 32 MiB in float64, a few times over


@dataclass(frozen=True)
class Triples:
    """Sampled (batch, head, query row) triples, as three int64 tensors of one length, sorted."""

    batch: Tensor
    head: Tensor
    row: Tensor

    def __len__(self) -> int:
        return len(self.row)

    def by_kv_head(self, problem: Problem) -> Iterator[tuple[int, int, Tensor]]:
        """(batch, kv head, indices of the triples that read it), for each that is read."""
        place = self.batch * problem.kv_heads + self.head // (problem.heads // problem.kv_heads)
        for p in sorted(set(place.tolist())):
            yield p // problem.kv_heads, p % problem.kv_heads, (place == p).nonzero()[:, 0]


def sample_triples(problem: Problem, at_most: int = 256) -> Triples:
    """At most `at_most` triples, the same ones each time, and few enough for their scores to stay affordable.

    As far as they reach, they hold the first and last of each axis, every head, the latest rows, the first that
    sees a key, and both sides of the usual kernels' first and last blocks and of the mask's edges.
    """
    limit = min(at_most, max(16, _AFFORDABLE // problem.seq_kv))
    pairs, rows = _pairs(problem, limit), _rows(problem, limit)
    each = min(len(rows), limit // len(pairs))
    common = min(each // 2, 16)  # rows that every head gives; the others are dealt out
    rest = rows[common:]
    chosen: set[tuple[int, int, int]] = set()
    for p, (b, h) in enumerate(pairs):
        dealt = [rest[(p * (each - common) + i) % len(rest)] for i in range(each - common)]
        chosen.update((b, h, r) for r in rows[:common] + dealt)
    return Triples(*torch.tensor(sorted(chosen), dtype=torch.int64).unbind(1))


def visible_keys(problem: Problem, triples: Triples) -> Tensor:
    """Which keys each triple's query sees, bool (triples, n_kv), by the mask's own `mask_mod`."""
    mask_mod = problem.mask.at(problem.seq_q, problem.seq_kv)
    keys = torch.arange(problem.seq_kv)[None]
    columns = torch.stack((triples.batch, triples.head, triples.row))[:, :, None]
    parts = torch.split(columns, _rows_at_once(problem.seq_kv), dim=1)
    return torch.cat([mask_mod(b, h, row, keys).expand(len(row), -1) for b, h, row in parts])


@dataclass(frozen=True)
class Gradients:
    """dQ, dK and dV, or the sizes of the terms that they are sums of; shaped like the q, k and v that they are of."""

    dq: Tensor
    dk: Tensor
    dv: Tensor


@dataclass(frozen=True)
class Exact:
    """Exact rows (rows, head_dim); the size of each, that errors are relative to; the largest |score| that each saw."""

    out: Tensor
    size: Tensor
    largest_score: Tensor


def exact(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float) -> Exact:
    """Attention of q (rows, head_dim) over k and v (n_kv, head_dim) in float64. A row that sees no key gives zeros.

    The size of a row is its norm, or the root of the sum of its squared terms where that is more: in a few
    dimensions a row can cancel to almost nothing by chance.
    """
    q, k, v = q.double(), k.double(), v.double()
    v_squared = v.square().sum(1)
    parts = []
    for rows, seen in _parts(q, visible):
        scores = (rows @ k.T) * scale
        p = _weights(scores, seen)
        out = p @ v
        size = torch.maximum(out.square().sum(1), p.square() @ v_squared).sqrt()
        parts.append((out, size, scores.masked_fill(~seen, 0.0).abs().amax(1)))
    return Exact(*(torch.cat(part) for part in zip(*parts, strict=True)))


def exact_gradients(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float, upstream: Tensor
) -> tuple[Gradients, Gradients]:
    """The float64 gradients of `exact` for an upstream gradient of its rows, and the sizes of the terms in them.

    With weights P and dP = dO V^T, dS = P (dP - delta) where delta = sum(P dP); at one key that is exactly zero, and
    a right kernel returns 1e-7. So what an error is relative to is P (|dP| + |delta|), with the root of the sum of
    its squared terms as |dP|, which is of the same size and never near zero by chance.
    """
    q, k, v, upstream = q.double(), k.double(), v.double(), upstream.double()
    k_size, v_squared = k.abs(), v.square()
    dq, dq_size = [], []
    dk, dv, dk_size, dv_size = (torch.zeros_like(k) for _ in range(4))
    for rows, seen, do in _parts(q, visible, upstream):
        p = _weights((rows @ k.T) * scale, seen)
        ds = _times_deviation(p, do @ v.T, -1) * scale
        ds_size = _times_deviation(p, (do.square() @ v_squared.T).sqrt(), 1) * scale
        dq.append(ds @ k)
        dq_size.append(ds_size @ k_size)
        dk += ds.T @ rows
        dk_size += ds_size.T @ rows.abs()
        dv += p.T @ do
        dv_size += p.T @ do.abs()
    return Gradients(torch.cat(dq), dk, dv), Gradients(torch.cat(dq_size), dk_size, dv_size)


def textbook(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float, *, scale_last: bool = False) -> Tensor:
    """The same rows as the textbook computes them, all in the dtype of q. Every row must see a key.

    It scales the queries, or with `scale_last` the scores. Where the result is not finite (a score past float16's
    range), scores are float32.
    """
    return torch.cat([_textbook(rows, k, v, seen, scale, scale_last) for rows, seen in _parts(q, visible)])


def textbook_gradients(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float, upstream: Tensor) -> Gradients:
    """The gradients of `textbook` by autograd, in the dtype of q."""
    k, v = (x.detach().requires_grad_() for x in (k, v))
    dq, dk, dv = [], torch.zeros_like(k), torch.zeros_like(v)
    for part, seen, do in _parts(q, visible, upstream):
        rows = part.detach().requires_grad_()
        with torch.enable_grad():
            out = _textbook(rows, k, v, seen, scale, scale_last=False)
        more = torch.autograd.grad(out, (rows, k, v), do)
        dq.append(more[0])
        dk, dv = dk + more[1], dv + more[2]
    return Gradients(torch.cat(dq), dk, dv)


def _textbook(q: Tensor, k: Tensor, v: Tensor, visible: Tensor, scale: float, scale_last: bool) -> Tensor:
    scores = _product(q, k.T) * scale if scale_last else _product(q * scale, k.T)
    out = _product(torch.softmax(scores.masked_fill(~visible, -math.inf), 1), v)
    if out.isfinite().all():
        return out
    scores = (q.float() * scale) @ k.float().T
    return _product(torch.softmax(scores.masked_fill(~visible, -math.inf), 1).to(v.dtype), v)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """a @ b in their dtype, with the float32 sums that matrix units have; CPUs take long over it in 16 bits."""
    return a @ b if a.dtype.itemsize > 2 else (a.float() @ b.float()).to(a.dtype)


def _weights(scores: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the visible keys; zeros for a row without any."""
    shown = scores.masked_fill(~visible, -math.inf)
    top = shown.amax(1, keepdim=True)
    weights = (shown - top.masked_fill(top == -math.inf, 0.0)).exp()
    return weights / weights.sum(1, keepdim=True).masked_fill(top == -math.inf, 1.0)


def _times_deviation(p: Tensor, x: Tensor, sign: int) -> Tensor:
    """p times x, less (sign -1) or plus (sign 1) its mean in each row as p weighs it."""
    return p * (x + sign * (p * x).sum(1, keepdim=True))


def _rows_at_once(n_kv: int) -> int:
    return max(1, _AT_ONCE // n_kv)


def _parts(q: Tensor, visible: Tensor, *more: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The rows, what they see, and more of them, in blocks that keep the scores small."""
    size = _rows_at_once(visible.shape[1])
    return zip(*(torch.split(x, size) for x in (q, visible, *more)), strict=True)


def _pairs(problem: Problem, limit: int) -> list[tuple[int, int]]:
    """(batch, head) pairs: all if they are few, else every head, or as many as fit, each with a batch element."""
    last_b, last_h = problem.batch - 1, problem.heads - 1
    if 4 * problem.batch * problem.heads <= limit:
        return [(b, h) for b in range(problem.batch) for h in range(problem.heads)]
    corners = {(0, 0), (0, last_h), (last_b, 0), (last_b, last_h)}
    heads = _spread(problem.heads, limit - len(corners))
    return sorted(corners | {(i * last_b // max(1, len(heads) - 1), h) for i, h in enumerate(heads)})


def _rows(problem: Problem, limit: int) -> list[int]:
    """At most `limit` query rows, the most telling first, then a spread."""
    n, offset = problem.seq_q, problem.seq_kv - problem.seq_q
    first = min(problem.empty_rows, n - 1)
    sizes = [x for x in problem.mask.features().values() if isinstance(x, int) and x is not True]
    places = [n - 1, first, *((n - 1) // size * size for size in _BLOCKS), *_BLOCKS]
    places += [position - offset for x in sizes for position in (x, problem.seq_kv - x)]
    places += [0, -offset]
    wanted = [n - 1, first, n - 2, first + 1]
    wanted += [place + near for near in (0, -1, 1, -2, 2) for place in places]
    wanted += _spread(n, limit)
    return list(dict.fromkeys(r for r in wanted if 0 <= r < n))[:limit]


def _spread(n: int, at_most: int) -> list[int]:
    """At most that many of 0..n-1, evenly, both ends among them."""
    count = min(n, at_most)
    return [i * (n - 1) // max(1, count - 1) for i in range(count)]
