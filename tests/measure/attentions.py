"""Right attention by different routes, to try the judge on."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from variants.masks import Mask
from variants.problem import Problem

Attention = Callable[[Tensor, Tensor, Tensor], Any]
Make = Callable[[Problem], Attention]


def dense(problem: Problem, mask: Mask | None = None) -> Tensor:
    return (mask or problem.mask).dense(problem.seq_q, problem.seq_kv)


def repeated(problem: Problem, x: Tensor) -> Tensor:
    return x.repeat_interleave(problem.heads // problem.kv_heads, 1)


def seeing(problem: Problem, visible: Tensor, scale: float = 1.0) -> Attention:
    """PyTorch's attention with this mask, and this factor on the scale."""
    return lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, attn_mask=visible, scale=problem.scale * scale, enable_gqa=True
    )


def forced(backend: SDPBackend) -> Make:
    def make(problem: Problem) -> Attention:
        attention = seeing(problem, dense(problem))

        def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            with sdpa_kernel(backend):
                return attention(q, k, v)

        return run

    return make


def naive(problem: Problem) -> Attention:
    visible, empty = dense(problem), problem.empty_rows

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        scores = ((q * problem.scale) @ k.mT).masked_fill(~visible, -math.inf)[:, :, empty:]
        return torch.cat((torch.zeros_like(q[:, :, :empty]), scores.softmax(-1) @ v), 2)

    return run


def naive_scaled_last(problem: Problem) -> Attention:
    """As eager model code has it: scores scaled in their own dtype, softmax in float32."""
    visible, empty = dense(problem), problem.empty_rows

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        scores = ((q @ k.mT) * problem.scale).masked_fill(~visible, -math.inf)[:, :, empty:]
        out = scores.softmax(-1, dtype=torch.float32).to(v.dtype) @ v
        return torch.cat((torch.zeros_like(q[:, :, :empty]), out), 2)

    return run


def chunked(problem: Problem, block: int = 64, rescale: bool = True) -> Attention:
    """A running softmax over blocks of keys; wrong where earlier blocks are not rescaled to a new maximum."""
    visible = dense(problem)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        out = torch.zeros(q.shape, dtype=torch.float32)
        total = torch.zeros(*q.shape[:3], 1)
        top = torch.full_like(total, -math.inf)
        for j in range(0, problem.seq_kv, block):
            keys, values, seen = k[:, :, j : j + block], v[:, :, j : j + block], visible[:, j : j + block]
            scores = ((q * problem.scale) @ keys.mT).float().masked_fill(~seen, -math.inf)
            new = torch.maximum(top, scores.amax(-1, keepdim=True)).detach()
            finite = new.masked_fill(new == -math.inf, 0.0)
            weights = (scores - finite).exp()
            factor = (top - finite).exp() if rescale else 1.0
            total = total * factor + weights.sum(-1, keepdim=True)
            out = out * factor + (weights.to(v.dtype) @ values).float()
            top = new
        return (out / total.masked_fill(total == 0, 1.0)).to(q.dtype)

    return run


class _Differentiated(torch.autograd.Function):
    """The textbook with its backward pass written out, and a mistake in that if `mistake` names one."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, problem: Problem, mistake: str) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.problem, ctx.mistake = problem, mistake
        return naive(problem)(q, k, v)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:  # type: ignore[override]
        problem, mistake = ctx.problem, ctx.mistake
        q, k, v = (x.float() for x in ctx.saved_tensors)
        group = problem.heads // problem.kv_heads
        keys, values, do = repeated(problem, k), repeated(problem, v), upstream.float()
        visible = dense(problem)
        scores = (q @ keys.mT) * problem.scale
        p = scores.masked_fill(~visible, -math.inf).softmax(-1).nan_to_num(0.0)
        unmasked = (scores - scores.masked_fill(~visible, -math.inf).logsumexp(-1, keepdim=True)).exp().nan_to_num(0.0)
        dp = do @ values.mT
        delta = 0.0 if mistake == "delta left out" else (p * dp).sum(-1, keepdim=True)
        ds = p * (dp - delta) * problem.scale
        dk = (unmasked * (dp - delta) * problem.scale if mistake == "dK from unmasked scores" else ds).mT @ q
        dv = p.mT @ do
        dq = ds @ keys
        if mistake == "dQ not scaled":
            dq = dq / problem.scale
        if mistake == "dQ in every row":
            dq = dq + 1e-3
        if mistake == "last rows left out of dV":
            dv = p[:, :, :-1].mT @ do[:, :, :-1]
        dk, dv = (x.unflatten(1, (-1, group)) for x in (dk, dv))
        dk = dk[:, :, 0] if mistake == "dK of one head a group" else dk.sum(2)
        return *(x.to(upstream.dtype) for x in (dq, dk, dv.sum(2))), None, None


def differentiated(mistake: str) -> Make:
    return lambda problem: lambda q, k, v: _Differentiated.apply(q, k, v, problem, mistake)


RIGHT: dict[str, Make] = {
    "flash": forced(SDPBackend.FLASH_ATTENTION),
    "math": forced(SDPBackend.MATH),
    "naive": naive,
    "naive_scaled_last": naive_scaled_last,
    "chunked": chunked,
    "differentiated": differentiated(""),
}
