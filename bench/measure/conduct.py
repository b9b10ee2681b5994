"""What a variant must not do whatever its numbers: a wrong shape or dtype, a NaN, a view, a write into its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.measure.inputs import Attention, Telling
from variants.oracle import Gradients, Triples


class Wrong(Exception):
    """Raised for what is wrong beyond any tolerance; the text is the reason."""


@dataclass(frozen=True)
class Answer:
    """What a variant gave: its sampled rows on CPU, and, unless only forward, dQ in those rows and all of dK and dV."""

    rows: Tensor
    gradients: Gradients | None


def ask(attention: Attention, telling: Telling, direction: str, exact: bool) -> Answer:
    """Calls the variant, and differentiates it unless `direction` is fwd. Raises Wrong."""
    inputs = telling.tensors(direction)
    # A forward call runs in the caller's grad mode, so that nothing compiled is compiled again.
    mode: AbstractContextManager[object] = nullcontext() if direction == "fwd" else torch.enable_grad()
    with mode:
        out = attention(*inputs)
    _check_result(out, inputs)
    gradients = None if direction == "fwd" else _differentiate(out, inputs, telling, exact)
    for name, x, anew in zip("qkv", inputs, telling.anew(), strict=True):
        if not torch.equal(x, anew):
            raise Wrong(f"wrote into {name}")
    rows = _sampled(out.detach(), telling.triples)
    _check_zero("the result", rows, telling)
    return Answer(rows, gradients)


def _check_result(out: object, inputs: Sequence[Tensor]) -> None:
    q = inputs[0]
    if not isinstance(out, Tensor):
        raise Wrong(f"returned {type(out).__name__} instead of a tensor")
    if out.shape != q.shape:
        raise Wrong(f"returned shape {tuple(out.shape)} for queries of shape {tuple(q.shape)}")
    if out.dtype != q.dtype:
        raise Wrong(f"returned {_name(out.dtype)} for {_name(q.dtype)} inputs")
    if out.device != q.device:
        raise Wrong(f"returned a tensor on {out.device} for inputs on {q.device}")
    for name, x in zip("qkv", inputs, strict=True):
        if out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            raise Wrong(f"returned a view of {name}")
    _check_finite("the result", out)


def _differentiate(out: Tensor, inputs: Sequence[Tensor], telling: Telling, exact: bool) -> Gradients:
    if not out.requires_grad:
        raise Wrong("the result has no gradient")
    upstream = telling.upstream_tensor()
    dq, dk, dv = torch.autograd.grad(out, inputs, upstream, allow_unused=True)
    for name, gradient in (("dQ", dq), ("dK", dk), ("dV", dv)):
        if gradient is None:
            raise Wrong(f"{name} is wrong: {name[1].lower()} gets no gradient")
        _check_finite(name, gradient)
    if not torch.equal(upstream, telling.upstream_tensor()):
        raise Wrong("wrote into the upstream gradient")
    rows = _sampled(dq, telling.triples)
    _check_zero("dQ", rows, telling)
    # What approximates attention may let a query speak for others; exact attention may not.
    if exact and int(dq.count_nonzero()) != int(rows.count_nonzero()):
        raise Wrong("dQ is wrong: not zero in rows whose upstream gradient is zero")
    return Gradients(rows, dk, dv)


def _check_finite(what: str, x: Tensor) -> None:
    finite = x.isfinite()
    if not finite.all():
        b, h, row, _ = (~finite).nonzero()[0].tolist()
        raise Wrong(f"{what} is not finite (first at batch {b}, head {h}, row {row})")


def _check_zero(what: str, rows: Tensor, telling: Telling) -> None:
    """Rows that see no key give zeros, exactly."""
    wrong = (rows != 0).any(1) & ~telling.sees
    if wrong.any():
        t, i = telling.triples, int(wrong.nonzero()[0])
        place = f"batch {int(t.batch[i])}, head {int(t.head[i])}, row {int(t.row[i])}"
        raise Wrong(f"{what} is not zero in a row that sees nothing ({place})")


def _sampled(x: Tensor, t: Triples) -> Tensor:
    return x[t.batch.to(x.device), t.head.to(x.device), t.row.to(x.device)].cpu()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
