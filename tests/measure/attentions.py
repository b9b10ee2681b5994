"""Attention functions to try the judge on: right ones by different routes, and mistakes that people really make."""

import math
from collections.abc import Callable
from dataclasses import replace
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


RIGHT: dict[str, Make] = {
    "flash": forced(SDPBackend.FLASH_ATTENTION),
    "math": forced(SDPBackend.MATH),
    "naive": naive,
    "naive_scaled_last": naive_scaled_last,
    "chunked": chunked,
}


def shifted(by: int) -> Make:
    """The mask of positions that are off by one: causal masks and windows alike."""

    def make(problem: Problem) -> Attention:
        rows, keys = torch.arange(problem.seq_q)[:, None] + by, torch.arange(problem.seq_kv)
        nothing = torch.zeros((), dtype=torch.int64)
        return seeing(problem, problem.mask.at(problem.seq_q, problem.seq_kv)(nothing, nothing, rows, keys))

    return make


def windowed(by: int) -> Make:
    def make(problem: Problem) -> Attention:
        assert problem.mask.window is not None
        return seeing(problem, dense(problem, replace(problem.mask, window=problem.mask.window + by)))

    return make


def one_sided(problem: Problem) -> Attention:
    return seeing(problem, dense(problem) & dense(problem, Mask(causal=True)))


def fewer_globals(problem: Problem) -> Attention:
    assert problem.mask.global_tokens is not None
    return seeing(problem, dense(problem, replace(problem.mask, global_tokens=problem.mask.global_tokens - 1)))


def global_rows_only(problem: Problem) -> Attention:
    visible = dense(problem, replace(problem.mask, global_tokens=None))
    visible[: problem.mask.global_tokens] = dense(problem)[: problem.mask.global_tokens]
    return seeing(problem, visible)


def aligned_at_the_start(problem: Problem) -> Attention:
    return seeing(problem, torch.ones(problem.seq_q, problem.seq_kv, dtype=torch.bool).tril())


def scaled(factor: float) -> Make:
    return lambda problem: seeing(problem, dense(problem), factor)


def not_scaled(problem: Problem) -> Attention:
    return seeing(problem, dense(problem), 1 / problem.scale)


def mask_ignored(problem: Problem) -> Attention:
    return seeing(problem, dense(problem, Mask()))


def masked_after_softmax(problem: Problem) -> Attention:
    visible = dense(problem)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = ((q * problem.scale) @ repeated(problem, k).mT).softmax(-1)
        return weights.masked_fill(~visible, 0.0) @ repeated(problem, v)

    return run


def whole_blocks_of_keys(problem: Problem) -> Attention:
    whole = problem.seq_kv // 128 * 128
    return seeing(problem, dense(problem) & (torch.arange(problem.seq_kv) < whole))


def whole_blocks_of_rows(problem: Problem) -> Attention:
    right, whole = seeing(problem, dense(problem)), problem.seq_q // 128 * 128
    return lambda q, k, v: F.pad(right(q, k, v)[:, :, :whole], (0, 0, 0, problem.seq_q - whole))


def padded_keys(problem: Problem) -> Attention:
    pad = -problem.seq_kv % 128
    right = seeing(problem, F.pad(dense(problem), (0, pad), value=True))
    return lambda q, k, v: right(q, F.pad(k, (0, 0, 0, pad)), F.pad(v, (0, 0, 0, pad)))


def next_kv_head(problem: Problem) -> Attention:
    """Head h reads kv head h % kv_heads."""
    copies = problem.heads // problem.kv_heads
    right = seeing(problem, dense(problem))
    return lambda q, k, v: right(q, k.repeat(1, copies, 1, 1), v.repeat(1, copies, 1, 1))


def first_batch_only(problem: Problem) -> Attention:
    right = seeing(problem, dense(problem))
    return lambda q, k, v: right(q, k[:1].expand_as(k), v[:1].expand_as(v))


def softmax_over_queries(problem: Problem) -> Attention:
    visible = dense(problem)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q * problem.scale) @ repeated(problem, k).mT
        return scores.masked_fill(~visible, -1e4).softmax(-2) @ repeated(problem, v)

    return run


def heads_mixed(problem: Problem) -> Attention:
    right = seeing(problem, dense(problem))
    return lambda q, k, v: right(q, k, v).transpose(1, 2).reshape(q.shape)


def dropout(problem: Problem) -> Attention:
    right = naive(problem)
    return lambda q, k, v: right(q, k, F.dropout(v, 0.1))


def no_rescaling(problem: Problem) -> Attention:
    return chunked(problem, rescale=False)


MISTAKES: dict[str, tuple[Make, tuple[str, ...]]] = {
    # name -> the mistake, and the masks under which it is one
    "one position late": (shifted(1), ("causal", "causal+window:16", "window:16", "causal+window:16+global:4")),
    "one position early": (shifted(-1), ("causal", "causal+window:16", "window:16")),
    "window one wider": (windowed(1), ("window:16", "causal+window:16", "causal+window:16+global:4")),
    "window one narrower": (windowed(-1), ("window:16", "causal+window:16", "causal+window:16+global:4")),
    "window one-sided": (one_sided, ("window:16",)),
    "one global token short": (fewer_globals, ("window:16+global:4", "causal+window:16+global:4")),
    "global rows without columns": (global_rows_only, ("window:16+global:4",)),
    "scale off by 0.8 %": (scaled(1.008), ("full", "causal", "window:16")),
    "not scaled": (not_scaled, ("full", "causal")),
    "mask ignored": (mask_ignored, ("causal", "window:16", "causal+window:16+global:4")),
    "masked after the softmax": (masked_after_softmax, ("causal", "window:16")),
    "softmax over the queries": (softmax_over_queries, ("full", "causal")),
    "last ragged block of keys dropped": (whole_blocks_of_keys, ("full", "causal")),
    "last ragged block of rows dropped": (whole_blocks_of_rows, ("full", "causal")),
    "padded keys attended": (padded_keys, ("full", "causal", "window:16")),
    "another kv head": (next_kv_head, ("full", "causal")),
    "the first batch element's keys": (first_batch_only, ("full", "causal")),
    "heads mixed": (heads_mixed, ("full",)),
    "dropout left on": (dropout, ("full",)),
    "running maximum not rescaled": (no_rescaling, ("full", "causal")),
}


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


def detached(name: str) -> Make:
    def make(problem: Problem) -> Attention:
        right = naive(problem)
        return lambda q, k, v: right(*(x.detach() if n == name else x for n, x in zip("qkv", (q, k, v), strict=True)))

    return make


def merged_without_gradient(problem: Problem) -> Attention:
    """Two halves of the keys, merged by weights that carry no gradient."""
    visible, half = dense(problem), problem.seq_kv // 2

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        scores = ((q * problem.scale) @ k.mT).masked_fill(~visible, -1e4)
        parts = [
            (s.softmax(-1) @ x, s.logsumexp(-1)) for s, x in zip(scores.split(half, -1), v.split(half, 2), strict=True)
        ]
        weights = torch.stack([total for _, total in parts]).softmax(0).detach()
        return sum(w[..., None] * out for w, (out, _) in zip(weights, parts, strict=True))

    return run


BACKWARD_MISTAKES: dict[str, tuple[Make, str]] = {
    # name -> the mistake, and the gradient that shows it
    "detached q": (detached("q"), "dQ"),
    "detached k": (detached("k"), "dK"),
    "detached v": (detached("v"), "dV"),
    "merged by weights without gradient": (merged_without_gradient, "dQ"),
    "delta left out": (differentiated("delta left out"), "dQ"),
    "dQ not scaled": (differentiated("dQ not scaled"), "dQ"),
    "dQ in every row": (differentiated("dQ in every row"), "dQ"),
    "dK from unmasked scores": (differentiated("dK from unmasked scores"), "dK"),
    "dK of one head a group": (differentiated("dK of one head a group"), "dK"),
    "last rows left out of dV": (differentiated("last rows left out of dV"), "dV"),
}
RIGHT["differentiated"] = differentiated("")
