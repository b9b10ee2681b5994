"""The exact result of a whole small problem, and how far from it the numerics rule lets each row be."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.measure.accuracy import Comparison
from bench.measure.conduct import Wrong
from variants import oracle
from variants.masks import Mask
from variants.problem import Problem

_PEAKED = 4.0  # times as long as normal queries: a few keys take most of the weight


def cost_of(mask: Mask, n: int = 512, head_dim: int = 64) -> float:
    """What a mask itself costs: how far exact attention under it is from exact attention without any, of n peaked
    queries, relative to the size of the latter. It says nothing of any variant."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, n, head_dim, generator=generator, dtype=torch.float64)
    parts = _PEAKED * q, k, v
    masked, whole = (oracle.exact(*parts, seen, head_dim**-0.5).out for seen in (mask.dense(n, n), Mask().dense(n, n)))
    return float((masked - whole).norm() / whole.norm())


class Reference:
    """Exact attention of q, k and v under the problem's mask, all of its rows."""

    def __init__(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> None:
        self.problem = problem
        q, k, v = (x.detach().cpu() for x in (q, k, v))
        visible = problem.mask.dense(problem.seq_q, problem.seq_kv)
        self._sees = visible.any(1)
        self.out = torch.zeros(q.shape, dtype=torch.float64)
        self._size = torch.ones(q.shape[:3], dtype=torch.float64)
        self._textbook = torch.zeros(q.shape[:3], dtype=torch.float64)
        self._score = torch.zeros(q.shape[:3], dtype=torch.float64)
        group = problem.heads // problem.kv_heads
        for b in range(problem.batch if self._sees.any() else 0):
            for h in range(problem.heads):
                parts = q[b, h][self._sees], k[b, h // group], v[b, h // group], visible[self._sees], problem.scale
                exact = oracle.exact(*parts)
                books = [oracle.textbook(*parts, scale_last=last).double() - exact.out for last in (False, True)]
                self.out[b, h, self._sees] = exact.out
                self._size[b, h, self._sees] = exact.size
                self._textbook[b, h, self._sees] = torch.stack([book.norm(dim=1) for book in books]).amax(0)
                self._score[b, h, self._sees] = exact.largest_score

    def used(self, out: Tensor, what: str) -> float:
        """How much of the budget the worst row uses; Wrong, which begins with `what`, where that is more than all."""
        error = (out.detach().cpu().double() - self.out).norm(dim=-1) / self._size
        if not error.isfinite().all():
            raise Wrong(f"{what}: not finite")
        comparison = Comparison()
        comparison.add(error.flatten(), (self._textbook / self._size).flatten(), self._score.flatten(), self._place)
        budget = comparison.budget(out.dtype)
        if comparison.error > budget:
            raise Wrong(f"{what}: error {comparison.error:.1e} is over its budget {budget:.1e} ({comparison.where})")
        return comparison.error / budget

    def _place(self, i: int) -> str:
        n, h = self.problem.seq_q, self.problem.heads
        return f"batch {i // n // h}, head {i // n % h}, row {i % n}"
