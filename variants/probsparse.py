"""Informer's ProbSparse attention: full attention for the few queries that are least uniform, the mean of v for others.

"Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting" (https://arxiv.org/abs/2012.07436),
section 3.1: time and memory grow as n log n. Which queries are worth it is judged from a sample of keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from variants.machine import Machine
from variants.problem import Problem
from variants.registry import variant

_FACTOR = 5  # c of the paper
_QUERIES_AT_ONCE = 256


def _count(n: int) -> int:
    """c ln n, as many keys are sampled and queries chosen."""
    return min(n, max(1, math.ceil(_FACTOR * math.log(n))))


def _plan(problem: Problem) -> Tensor:
    """The keys that each query is judged by (n_q, count): drawn once, so that a call gives the same answer again."""
    generator = torch.Generator().manual_seed(0)
    shape = problem.seq_q, _count(problem.seq_kv)
    return torch.randint(problem.seq_kv, shape, generator=generator).to(problem.device)


def _limits(problem: Problem, machine: Machine) -> str | None:
    return None if problem.seq_q == problem.seq_kv else "takes as many queries as keys"


@variant("probsparse", exact=False, plan=_plan, limits=_limits)
def probsparse(q: Tensor, k: Tensor, v: Tensor, *, plan: Tensor) -> Tensor:
    """Of each head, the c ln n queries whose largest sampled score stands out most from the mean attend in full."""
    h, n, d = q.shape[1:]
    group = h // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) if group > 1 else x for x in (k, v))
    q = q * d**-0.5
    chosen = _stand_out(q.detach(), k.detach(), plan).topk(_count(n), dim=2).indices
    place = chosen[..., None].expand(-1, -1, -1, d)
    attended = (q.gather(2, place) @ k.mT).softmax(-1) @ v
    return v.mean(2, keepdim=True).expand(-1, -1, n, -1).scatter(2, place, attended)


def _stand_out(q: Tensor, k: Tensor, sampled: Tensor) -> Tensor:
    """The paper's measure (batch, heads, n_q): the largest of a query's sampled scores, less their sum over n_kv."""
    parts = []
    for queries, keys in zip(*(torch.split(x, _QUERIES_AT_ONCE, i) for x, i in ((q, 2), (sampled, 0))), strict=True):
        scores = (k[:, :, keys] @ queries[..., None])[..., 0]
        parts.append(scores.amax(3) - scores.float().sum(3).to(scores.dtype) / k.shape[2])
    return torch.cat(parts, 2)
