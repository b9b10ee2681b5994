"""What holds of right attention whatever its numbers: who must not influence whom, and what must not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from bench.checks.reference import Reference
from bench.checks.subject import Subject, Trial
from bench.measure.conduct import Wrong
from bench.measure.inputs import make_inputs, make_upstream
from variants.problem import Problem


def ignores_hidden_values(subject: Subject, trial: Trial) -> float | None:
    """Other finite keys and values in hidden places leave a row as it was, bit for bit."""
    problem, hidden = trial.problem, _hidden(trial.problem)
    if not hidden:
        return None
    attention = subject.attention(problem)
    q, k, v = make_inputs(problem, trial.seed)
    before = _call(attention, q, k, v)
    for keys, rows in hidden:
        after = _call(attention, q, *_with(k, v, keys, lambda x: -3 * x + 7))
        _same(before[:, :, rows], after[:, :, rows], f"keys {_span(keys)} changed", rows)
    return 0.0


def ignores_hidden_nan(subject: Subject, trial: Trial) -> float | None:
    """NaN and infinity in hidden places do not reach a row."""
    problem, hidden = trial.problem, _hidden(trial.problem)
    if not hidden:
        return None
    attention = subject.attention(problem)
    q, k, v = make_inputs(problem, trial.seed)
    for keys, rows in hidden:
        for name, bad in (("NaN", torch.nan), ("infinity", torch.inf)):
            out = _call(attention, q, *_with(k, v, keys, partial(torch.full_like, fill_value=bad)))
            if not out[:, :, rows].isfinite().all():
                raise Wrong(f"leaks masked {name} (keys {_span(keys)})")
    return 0.0


def passes_nan_on(subject: Subject, trial: Trial) -> float:
    """A query that is NaN comes back as NaN, and reaches no other row."""
    problem, attention = trial.problem, subject.attention(trial.problem)
    q, k, v = make_inputs(problem, trial.seed)
    before = _call(attention, q, k, v)
    row = problem.seq_q - 1
    broken = q.clone()
    broken[:, :, row] = torch.nan
    out = _call(attention, broken, k, v)
    if problem.mask.dense(problem.seq_q, problem.seq_kv)[row].any() and not out[:, :, row].isnan().all():
        raise Wrong("a NaN query comes back as " + ("zeros" if (out[:, :, row] == 0).all() else "numbers"))
    if not _equal(out[:, :, :row], before[:, :, :row]).all():
        raise Wrong(f"a NaN query reaches other rows (row {row})")
    return 0.0


def keeps_apart(subject: Subject, trial: Trial) -> float:
    """Batch elements and heads do not mix: changing one leaves all others as they were, bit for bit."""
    problem, attention = trial.problem, subject.attention(trial.problem)
    q, k, v = make_inputs(problem, trial.seed)
    before = _call(attention, q, k, v)
    group = problem.heads // problem.kv_heads
    for b in range(problem.batch):
        for kv_head in range(problem.kv_heads):
            mine = torch.zeros(problem.batch, problem.heads, dtype=torch.bool)
            mine[b, kv_head * group : (kv_head + 1) * group] = True
            changed = [x.clone() for x in (q, k, v)]
            changed[0][b, kv_head * group : (kv_head + 1) * group] *= -1
            for x in changed[1:]:
                x[b, kv_head] = x[b, kv_head].flip(0) * 2
            after = _call(attention, *changed)
            same = _equal(after, before)
            if not same[~mine].all():
                raise Wrong(f"changing batch {b}, kv head {kv_head} changes others")
            if problem.seq_kv > 1 and same[mine].all() and before[mine].any():
                raise Wrong(f"changing batch {b}, kv head {kv_head} changes nothing")
    return 0.0


def stands_alone(subject: Subject, trial: Trial) -> float:
    """One batch element alone, and the last query alone, equal their place in the whole."""
    problem = trial.problem
    q, k, v = make_inputs(problem, trial.seed)
    exact = Reference(problem, q, k, v)
    used = exact.used(_call(subject.attention(problem), q, k, v), "the whole")
    one = replace(problem, batch=1)
    last = slice(problem.batch - 1, None)
    alone = _call(subject.attention(one), q[last].contiguous(), k[last].contiguous(), v[last].contiguous())
    used = max(used, Reference(one, q[last], k[last], v[last]).used(alone, "a batch element alone"))
    query = replace(problem, seq_q=1)
    if subject.takes(replace(trial, problem=query)):
        out = _call(subject.attention(query), q[:, :, -1:].contiguous(), k, v)
        used = max(used, Reference(query, q[:, :, -1:], k, v).used(out, "the last query alone"))
    return used


def repeats(subject: Subject, trial: Trial) -> float:
    """A second call gives the same bits, also with a problem of another shape between; a second gradient the same."""
    problem = trial.problem
    other = replace(problem, seq_q=max(1, problem.seq_q - 5), seq_kv=max(1, problem.seq_kv - 3))
    others = make_inputs(other, trial.seed + 1) if subject.takes(replace(trial, problem=other)) else None
    first = _call(subject.attention(other), *others) if others else None
    attention, inputs = subject.attention(problem), make_inputs(problem, trial.seed)
    before = _call(attention, *inputs)
    _same(before, _call(attention, *inputs), "a second call")
    if others and first is not None:
        _same(first, _call(subject.attention(other), *others), "a call after one of another shape")
    return _repeats_gradients(subject, trial) if subject.takes(replace(trial, direction="fwdbwd")) else 0.0


def _repeats_gradients(subject: Subject, trial: Trial) -> float:
    problem, attention = trial.problem, subject.attention(trial.problem)
    q, k, v = make_inputs(problem, trial.seed, "fwdbwd")
    upstream = make_upstream(problem, trial.seed)
    with torch.enable_grad():
        first, second = (
            torch.autograd.grad(attention(q, k, v), (q, k, v), upstream, allow_unused=True) for _ in range(2)
        )
    eps, worst = torch.finfo(q.dtype).eps, 0.0
    for name, a, b in zip(("dQ", "dK", "dV"), first, second, strict=True):
        if a is None or b is None or not a.isfinite().all():  # which is for another check to say
            continue
        difference = float((a.double() - b.double()).norm()) / max(float(a.double().norm()), 1e-12)
        worst = max(worst, difference / (4 * eps))
        if not difference <= 4 * eps:
            raise Wrong(f"a second {name} differs by {difference:.1e}")
    return worst


def takes_any_layout(subject: Subject, trial: Trial) -> float:
    """Contiguous inputs, transposed ones, slices of one packed tensor and expanded ones give one result."""
    problem, attention = trial.problem, subject.attention(trial.problem)
    q, k, v = make_inputs(problem, trial.seed)
    exact = Reference(problem, q, k, v)
    used = exact.used(_call(attention, q, k, v), "contiguous inputs")
    transposed = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    used = max(used, exact.used(_call(attention, *transposed), "inputs transposed from (batch, n, heads, head_dim)"))
    used = max(used, exact.used(_call(attention, *_packed(q, k, v)), "slices of one packed tensor"))
    shared = [x[:1].expand(problem.batch, -1, -1, -1) for x in (q, k, v)]
    once = Reference(problem, *shared)
    return max(used, once.used(_call(attention, *shared), "inputs expanded over the batch, of stride 0"))


def _packed(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """The inputs as slices of tensors that hold a token's query, key and value side by side, as projections give."""
    d = q.shape[3]
    out = []
    for x in (q, k, v):
        packed = torch.zeros(x.shape[0], x.shape[2], x.shape[1], 3 * d, dtype=x.dtype, device=x.device)
        packed[..., d : 2 * d] = x.transpose(1, 2)
        out.append(packed[..., d : 2 * d].transpose(1, 2))
    return out


def groups_like_repeats(subject: Subject, trial: Trial) -> float:
    """Grouped heads give what the same heads repeated give."""
    problem = trial.problem
    q, k, v = make_inputs(problem, trial.seed)
    exact = Reference(problem, q, k, v)
    used = exact.used(_call(subject.attention(problem), q, k, v), "grouped heads")
    full = replace(problem, kv_heads=problem.heads)
    if not subject.takes(replace(trial, problem=full)):
        return used
    k, v = (x.repeat_interleave(problem.heads // problem.kv_heads, 1) for x in (k, v))
    return max(used, exact.used(_call(subject.attention(full), q, k, v), "repeated heads"))


def ignores_order_of_keys(subject: Subject, trial: Trial) -> float | None:
    """Where nothing is hidden, keys in another order, with their values, give the same."""
    if not trial.problem.mask.hides_nothing(trial.problem.seq_q, trial.problem.seq_kv):
        return None
    problem, attention = trial.problem, subject.attention(trial.problem)
    q, k, v = make_inputs(problem, trial.seed)
    exact = Reference(problem, q, k, v)
    order = torch.randperm(problem.seq_kv, generator=torch.Generator().manual_seed(trial.seed)).to(k.device)
    return exact.used(_call(attention, q, k[:, :, order], v[:, :, order]), "keys in another order")


def _call(attention: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return attention(*inputs).clone()


def _hidden(problem: Problem) -> list[tuple[Tensor, Tensor]]:
    """(some keys, the rows that see none of them): the end, the start, and the middle, as far as there are any rows."""
    visible = problem.mask.dense(problem.seq_q, problem.seq_kv)
    n = problem.seq_kv
    spans = ((n // 2, n), (n - 1, n), (0, n // 2), (0, 1), (n // 3, 2 * n // 3))
    found = []
    for start, end in spans:
        keys = torch.arange(start, end)
        rows = (~visible[:, start:end].any(1)).nonzero()[:, 0]
        if len(keys) and len(rows):
            found.append((keys, rows))
    return found


def _with(k: Tensor, v: Tensor, keys: Tensor, change: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    k, v = k.clone(), v.clone()
    for x in (k, v):
        x[:, :, keys] = change(x[:, :, keys])
    return k, v


def _same(before: Tensor, after: Tensor, what: str, rows: Tensor | None = None) -> None:
    wrong = ~_equal(before, after).all(-1)
    if wrong.any():
        wrong = wrong.nonzero()
        b, h, i = wrong[0].tolist()
        row = i if rows is None else int(rows[i])
        raise Wrong(f"{what}: batch {b}, head {h}, row {row} is another ({len(wrong)} rows are)")


def _equal(a: Tensor, b: Tensor) -> Tensor:
    """Where two results are the same, bit for bit but for a NaN's."""
    return (a == b) | (a.isnan() & b.isnan())


def _span(keys: Tensor) -> str:
    return f"{int(keys[0])} to {int(keys[-1])}"
