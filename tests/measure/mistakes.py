"""Mistakes that people really make in attention, forward and backward, which the judge must catch."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.measure.attentions import Attention, Make, chunked, dense, differentiated, naive, repeated, seeing
from variants.masks import Mask
from variants.problem import Problem


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
