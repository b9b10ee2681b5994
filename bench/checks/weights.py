"""The weights that a black box really gives: attention is linear in v, so values of one-hot columns read them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bench.checks.subject import Subject, Trial
from bench.measure.accuracy import FLOOR, rounding
from bench.measure.conduct import Wrong
from bench.measure.inputs import make_inputs
from variants import registry
from variants.machine import Machine
from variants.problem import Problem

_WHOLE = 1025  # keys up to which every column is read
_MATTERS = 0.01
_MOST_COLUMNS = 512


def read(subject: Subject, problem: Problem, q: Tensor, k: Tensor, keys: Sequence[int]) -> Tensor:
    """The weights (heads, n_q, len(keys)) that each query gives to these keys, of q and k of one batch element.

    A batch element reads head_dim columns, and the variant is planned for as many elements as that takes.
    """
    d = problem.head_dim
    batch = -(-len(keys) // d)
    attention = subject.attention(replace(problem, batch=batch))
    columns = torch.zeros(batch * d, problem.seq_kv, dtype=k.dtype)
    columns[torch.arange(len(keys)), torch.tensor(list(keys))] = 1.0
    v = columns.view(batch, 1, d, problem.seq_kv).mT.expand(-1, problem.kv_heads, -1, -1).to(k.device)
    v = v.clone(memory_format=torch.contiguous_format)  # contiguous() keeps the strides of a head_dim of 1
    q, k = (x.expand(batch, -1, -1, -1).contiguous() for x in (q, k))
    with torch.no_grad():
        out = attention(q, k, v)  # (batch, heads, n_q, d)
    return out.permute(1, 2, 0, 3).flatten(2)[:, :, : len(keys)].cpu()


def effective(name: str, imports: Sequence[str], machine: Machine, problem: Problem) -> list[list[float]]:
    """The weights (n_q, n_kv) that a registered variant gives in its first head, on plain normal inputs."""
    subject = Subject(registry.find(name, imports), machine)
    q, k = _normals(problem, 0)
    rows: list[list[float]] = read(subject, problem, q, k, range(problem.seq_kv))[0].tolist()
    return rows


def sees_its_mask(subject: Subject, trial: Trial) -> float:
    """Hidden pairs have exactly no weight, visible ones some; rows sum to one; and scores are scaled as they should."""
    problem = trial.problem
    q, k = _within_one(problem, trial.seed)
    visible = problem.mask.dense(problem.seq_q, problem.seq_kv)
    whole = problem.seq_kv <= _WHOLE
    keys = list(range(problem.seq_kv)) if whole else _edges(visible)
    weights = read(subject, problem, q, k, keys).double()
    seen = visible[:, keys]
    _check_places(weights, seen, keys)
    if not whole:
        return 0.0
    return max(_check_sums(weights, seen, q.dtype), _check_scale(weights, seen, problem, q, k))


def matters_at_scale(subject: Subject, trial: Trial) -> float | None:
    """With inputs ten and a hundred times as large: finite, and the keys that take the weight are those that should."""
    problem = trial.problem
    if problem.seq_kv > _WHOLE:
        return None
    visible = problem.mask.dense(problem.seq_q, problem.seq_kv)
    for factor in (10.0, 100.0):
        q, k = (x * factor for x in _normals(problem, trial.seed))
        weights = read(subject, problem, q, k, range(problem.seq_kv)).double()
        if not weights.isfinite().all():
            h, row, _ = (~weights.isfinite()).nonzero()[0].tolist()
            raise Wrong(f"inputs {factor:g} times as large: not finite (head {h}, row {row})")
        _check_those_that_matter(weights, visible, problem, q, k, factor)
    return 0.0


def _within_one(problem: Problem, seed: int) -> tuple[Tensor, Tensor]:
    """q and k (1, heads, n, d) whose scores are within one, so that every visible key takes a like part."""
    length = problem.head_dim**0.25
    q, k = ((x * (length / x.float().norm(dim=-1, keepdim=True))).to(x.dtype) for x in _normals(problem, seed))
    return q, k


def _normals(problem: Problem, seed: int) -> tuple[Tensor, Tensor]:
    """Plain normal q and k (1, heads, n, d)."""
    q, k, _ = make_inputs(replace(problem, batch=1), seed)
    return q, k


def _scores(problem: Problem, q: Tensor, k: Tensor) -> Tensor:
    """Exact scores (heads, n_q, n_kv)."""
    k = k[0].repeat_interleave(problem.heads // problem.kv_heads, 0)
    return (q[0].cpu().double() @ k.cpu().double().mT) * problem.scale


def _check_places(weights: Tensor, seen: Tensor, keys: Sequence[int]) -> None:
    for what, wrong in (("also sees", (weights != 0) & ~seen), ("does not see", ~(weights > 0) & seen)):
        if wrong.any():
            h, row, column = wrong.nonzero()[0].tolist()
            rows = int(wrong.any(2).any(0).sum())
            raise Wrong(f"row {row} {what} key {keys[column]} (head {h}; {rows} of {wrong.shape[1]} rows are wrong)")


def _check_sums(weights: Tensor, seen: Tensor, dtype: torch.dtype) -> float:
    """Each row's weights add up to one, or to nothing where it sees nothing, within a few roundings."""
    error = (weights.sum(2) - seen.any(1).double()).abs()
    allowed = FLOOR * rounding(dtype, 1.0)
    if error.max() > allowed:
        h, row = divmod(int(error.argmax()), error.shape[1])
        raise Wrong(f"weights of row {row} add up to {float(weights[h, row].sum()):.6g} (head {h})")
    return float(error.max()) / allowed


def _check_scale(weights: Tensor, seen: Tensor, problem: Problem, q: Tensor, k: Tensor) -> float:
    """The logarithms of the weights rise with the exact scores, one for one.

    A norm of the result does not see a scale that is off by less than two roundings; this slope over all pairs does.
    It may be off by half a rounding, as when the scale itself was rounded, and by what chance does to the rest; and a
    weight may be off that slope by the roundings that a result may be off.
    """
    scores = _scores(problem, q, k)
    counts = seen.sum(1).clamp_min(1)
    logs = weights.clamp_min(1e-30).log()
    ds, dl = (
        torch.where(seen, x - (x * seen).sum(2, keepdim=True) / counts[:, None], 0.0).double() for x in (scores, logs)
    )
    information = float(ds.square().sum())
    if information < 1.0:
        return 0.0
    slope = float((ds * dl).sum()) / information
    pairs = int(seen.sum()) * weights.shape[0]
    spread, allowed = float((dl - slope * ds).square().sum() / pairs) ** 0.5, FLOOR * rounding(q.dtype, 1.0)
    if not spread <= allowed:
        raise Wrong(f"weights are off by {spread:.1e}, root mean square, in a way that no scale explains")
    eps = torch.finfo(q.dtype).eps
    allowed = eps * (0.5 + 2 / math.sqrt(information)) + 8 * torch.finfo(torch.float32).eps
    if not abs(slope - 1) <= allowed:
        raise Wrong(f"scores are scaled by {slope:.5f} of what they should be")
    return abs(slope - 1) / allowed


def _check_those_that_matter(
    weights: Tensor, visible: Tensor, problem: Problem, q: Tensor, k: Tensor, factor: float
) -> None:
    """A key may take weight only if its score is nearly the row's largest, and one that stands alone takes most."""
    scores = _scores(problem, q, k).masked_fill(~visible, -math.inf)
    copies = problem.heads // problem.kv_heads
    sizes = q[0].cpu().double().abs() @ k[0].cpu().double().abs().repeat_interleave(copies, 0).mT * problem.scale
    doubt = 2 * torch.finfo(q.dtype).eps * sizes.amax(2, keepdim=True) + 1.0
    top = scores.amax(2, keepdim=True)
    behind = top - scores  # NaN in rows that see nothing, of which no weight is asked
    what = f"inputs {factor:g} times as large"
    far = (weights > _MATTERS) & (behind > 2 * doubt - math.log(_MATTERS))
    if far.any():
        h, row, key = far.nonzero()[0].tolist()
        raise Wrong(f"{what}: row {row} gives {float(weights[h, row, key]):.2g} to key {key}, whose score is far below")
    second = scores.topk(min(2, scores.shape[2]), dim=2).values[:, :, -1:]
    alone = (scores == top) & ((top - second > 2 * doubt - math.log(_MATTERS)) | (scores.shape[2] == 1)) & visible
    left = alone & (weights < 0.5)
    if left.any():
        h, row, key = left.nonzero()[0].tolist()
        raise Wrong(f"{what}: row {row} gives {float(weights[h, row, key]):.2g} to key {key}, far above all others")


def _edges(visible: Tensor) -> list[int]:
    """Keys at the edges of what rows spread over the mask see, and those next to them."""
    n_q, n_kv = visible.shape
    rows = torch.linspace(0, n_q - 1, min(n_q, 64)).long()
    seen = visible[rows]
    changes = (seen[:, 1:] != seen[:, :-1]).any(0).nonzero()[:, 0].tolist()
    keys = sorted({0, n_kv - 1, *(key + near for key in changes for near in (0, 1))})
    step = -(-len(keys) // _MOST_COLUMNS)
    return keys[::step]
