"""Inputs made from a seed alone: plain ones to time, and telling ones, on which a wrong answer shows, to judge.

With normal random queries attention over thousands of keys is nearly flat, and a mask that is off by one hides.
So the query rows that the judge looks at take turns between the modes of `Telling`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from variants.oracle import Triples
from variants.problem import Problem

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]

MODES = ("plain", "peaked", "edge-inside", "edge-outside", "low")
_NAMES = ("q", "k", "v", "upstream", "choice")
_POOL = 1_048_573  # a prime, so that a head holds that many tokens before one is repeated
_ANYWHERE = 5  # one edge row in so many aims at any key on its side of the edges


def make_inputs(problem: Problem, seed: int, direction: str = "fwd") -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of plain normal numbers, on the problem's device, contiguous; they require grad unless `fwd`."""
    q, k, v = (Normals(name, seed, problem).whole(problem.device) for name in ("q", "k", "v"))
    return _require_grad(direction, q, k, v)


def make_upstream(problem: Problem, seed: int) -> Tensor:
    """A dense upstream gradient of plain normal numbers, like q, to time a backward pass with."""
    return Normals("upstream", seed, problem).whole(problem.device)


class Normals:
    """Standard normal numbers (batch, heads, n, head_dim) that can be made again a head, or a token, at a time.

    A million are drawn, and each head reads them round from a place of its own: to draw them all would take longer
    than many a windowed variant takes. Where a million are enough, no number is used twice.
    """

    def __init__(self, name: str, seed: int, problem: Problem):
        of_queries = name in ("q", "upstream")
        self._batch, self._heads = problem.batch, problem.heads if of_queries else problem.kv_heads
        self._shape = (problem.seq_q if of_queries else problem.seq_kv, problem.head_dim)
        heads, size = self._batch * self._heads, math.prod(self._shape)
        generator = _generator(name, seed)
        pool = torch.randn(min(_POOL, heads * size), generator=generator, dtype=torch.float32)
        self._pool = pool.to(getattr(torch, problem.dtype))
        if heads * size <= _POOL:
            self._start = torch.arange(heads) * size
        else:
            self._start = torch.randint(_POOL, (heads,), generator=generator)

    def whole(self, device: str) -> Tensor:
        """All of them, on a device."""
        pool = self._pool.to(device)
        out = pool.new_empty(self._batch, self._heads, *self._shape)
        for flat, start in zip(out.view(len(self._start), -1), self._start.tolist(), strict=True):
            _read_round(pool, start, flat)
        return out

    def head(self, b: int, h: int) -> Tensor:
        """One head (n, head_dim), on CPU."""
        out = self._pool.new_empty(self._shape)
        _read_round(self._pool, int(self._start[b * self._heads + h]), out.view(-1))
        return out

    def tokens(self, b: Tensor, h: Tensor, n: Tensor) -> Tensor:
        """The tokens at these indices (count, head_dim), on CPU."""
        d = self._shape[1]
        start = self._start[b * self._heads + h] + n * d
        return self._pool[(start[:, None] + torch.arange(d)) % len(self._pool)]


class Telling:
    """Inputs whose sampled query rows, given as triples with the keys that each sees, take modes in turn.

    plain         normal random
    peaked        longer, so that a few keys take nearly all the weight
    edge-inside   along a visible key at an edge of the mask, which takes nearly all the weight
    edge-outside  along a hidden key just beyond an edge, where a leak would take nearly all the weight
    low           against all keys, so that a padded key of zeros, whose score is 0, would take all the weight

    Keys have a common part for the sake of `low`. Within a row it moves all scores alike, and changes no weight.
    """

    def __init__(self, problem: Problem, seed: int, triples: Triples, visible: Tensor, turn: int = 0):
        self.problem, self.triples, self.visible = problem, triples, visible
        self.dtype: torch.dtype = getattr(torch, problem.dtype)
        self.sees = visible.any(1)
        self.mode = _modes(triples, problem, turn + seed)
        generator = _generator("choice", seed)
        common = torch.randn(problem.head_dim, generator=generator, dtype=torch.float32)
        self._common = (common * (math.sqrt(problem.head_dim) / common.norm())).to(self.dtype)
        self._q, self._k, self._v = (Normals(name, seed, problem) for name in ("q", "k", "v"))
        self.queries = self._draw_queries(turn // len(MODES), generator)
        self.upstream = Normals("upstream", seed, problem).tokens(triples.batch, triples.head, triples.row)

    def anew(self) -> Iterator[Tensor]:
        """q, k and v on the problem's device, made one after another."""
        device = self.problem.device
        yield self._put(self._q.whole(device), self.queries)
        yield self._k.whole(device).add_(self._common.to(device))
        yield self._v.whole(device)

    def tensors(self, direction: str) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v for the variant; they require grad unless `fwd`."""
        return _require_grad(direction, *self.anew())

    def keys_and_values(self, b: int, kv_head: int) -> tuple[Tensor, Tensor]:
        """k and v (n_kv, head_dim) of one head, on CPU."""
        return self._k.head(b, kv_head) + self._common, self._v.head(b, kv_head)

    def upstream_tensor(self) -> Tensor:
        """The upstream gradient, like q, zero outside the sampled rows."""
        p = self.problem
        zeros = torch.zeros(p.batch, p.heads, p.seq_q, p.head_dim, dtype=self.dtype, device=p.device)
        return self._put(zeros, self.upstream)

    def place(self, i: int) -> str:
        """Which row triple i is."""
        t = self.triples
        return f"batch {int(t.batch[i])}, head {int(t.head[i])}, row {int(t.row[i])}"

    def _put(self, whole: Tensor, rows: Tensor) -> Tensor:
        t, device = self.triples, whole.device
        whole[t.batch.to(device), t.head.to(device), t.row.to(device)] = rows.to(device)
        return whole

    def _draw_queries(self, turn: int, generator: torch.Generator) -> Tensor:
        p, t = self.problem, self.triples
        target = math.log(p.seq_kv) + 5  # a score that outweighs all other keys, theirs being around zero
        plain = self._q.tokens(t.batch, t.head, t.row).float()
        keys = _edge_keys(self.visible, self.mode, turn, generator)
        aim = self._k.tokens(t.batch, t.head // (p.heads // p.kv_heads), keys).float()
        length = plain.norm(dim=1, keepdim=True).clamp_min(0.1) / math.sqrt(p.head_dim)
        rows = {
            "plain": plain,
            "peaked": plain / length * (1 + math.sqrt(2 * math.log(p.seq_kv + 1))),
            # a short key is not made up for by a long query, along which other keys would win
            "edge-inside": aim * (target / p.scale / aim.square().sum(1, keepdim=True).clamp_min(p.head_dim)),
            "low": -self._common.float().expand_as(plain) * (target / p.scale / p.head_dim),
        }
        rows["edge-outside"] = rows["edge-inside"]
        return torch.stack([rows[mode] for mode in MODES])[self.mode, torch.arange(len(t))].to(self.dtype)


def _modes(triples: Triples, problem: Problem, turn: int) -> Tensor:
    """An index into MODES for each triple: in turn along the rows of a head, and one on from head to head."""
    place = triples.batch * problem.heads + triples.head
    starts = torch.cat((torch.tensor([True]), place[1:] != place[:-1]))
    pair = starts.cumsum(0) - 1
    rank = torch.arange(len(triples)) - starts.nonzero()[:, 0][pair]
    return torch.as_tensor((rank + pair + turn) % len(MODES))


def _edge_keys(visible: Tensor, mode: Tensor, turn: int, generator: torch.Generator) -> Tensor:
    """A key for each edge row: a visible one for edge-inside, a hidden one for edge-outside; 0 for other rows.

    Rows take the edges in turn. One is wherever the mask's row changes, and at an end of the sequence. Where all
    keys are of one kind, it is one of those.
    """
    chance = torch.rand(len(visible), generator=generator, dtype=torch.float64).tolist()
    keys = torch.zeros(len(visible), dtype=torch.int64)
    for name in ("edge-inside", "edge-outside"):
        for count, i in enumerate((mode == MODES.index(name)).nonzero()[:, 0].tolist(), turn):
            wanted = visible[i] if name == "edge-inside" else ~visible[i]
            wanted = wanted if wanted.any() else ~wanted
            edges = wanted.clone()
            edges[1:-1] &= ~(wanted[:-2] & wanted[2:])
            anywhere = count % _ANYWHERE == _ANYWHERE - 1
            candidates = (wanted if anywhere else edges).nonzero()[:, 0]
            keys[i] = candidates[int(chance[i] * len(candidates)) if anywhere else count % len(candidates)]
    return keys


def _require_grad(direction: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    wanted = direction != "fwd"
    return q.requires_grad_(wanted), k.requires_grad_(wanted), v.requires_grad_(wanted)


def _generator(name: str, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed * len(_NAMES) + _NAMES.index(name))


def _read_round(pool: Tensor, start: int, out: Tensor) -> None:
    """Fills `out` from the pool, from `start` on, round and round."""
    at = 0
    while at < len(out):
        count = min(len(pool) - start, len(out) - at)
        out[at : at + count] = pool[start : start + count]
        at, start = at + count, 0
