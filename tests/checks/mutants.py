"""Deliberately wrong attention, each a mistake that was made in public, and the check that must name it.

Outside of the masks and shapes in which a mistake is one, a mutant is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tests.measure import mistakes
from tests.measure.attentions import Attention, Make, chunked, dense, differentiated, naive, repeated, seeing
from variants.problem import Problem
from variants.registry import Variant


@dataclass(frozen=True)
class Mutant:
    """A mistake, the checks of which one must find it first, and the problems in which it is one."""

    make: Make
    checks: tuple[str, ...]
    where: Callable[[Problem], bool] = lambda problem: True
    kernel: str | None = None

    def variant(self, name: str) -> Variant:
        """The mutant as a variant that takes every mask."""

        def plan(problem: Problem) -> Attention:
            return self.make(problem) if self.where(problem) else naive(problem)

        def mutant(q, k, v, *, mask, plan):
            return plan(q, k, v)

        return Variant(name, mutant, plan=plan, kernel=self.kernel)


def windowed(problem: Problem) -> bool:
    return problem.mask.window is not None and problem.mask.window < min(problem.seq_q, problem.seq_kv)


def with_globals(problem: Problem) -> bool:
    return problem.mask.global_tokens is not None and problem.mask.global_tokens < problem.seq_q == problem.seq_kv


def wide_window(problem: Problem) -> bool:
    return windowed(problem) and problem.mask.window > 1


def causal_only(problem: Problem) -> bool:
    return str(problem.mask) == "causal"


def masked_by(value: float) -> Make:
    """An additive mask of a large number instead of infinity."""

    def make(problem: Problem) -> Attention:
        bias = torch.where(dense(problem), 0.0, value)

        def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            scores = (q * problem.scale) @ repeated(problem, k).mT
            return (scores + bias.to(q.dtype)).softmax(-1) @ repeated(problem, v)

        return run

    return make


def nothing_for_empty_rows(problem: Problem) -> Attention:
    """Rows that see nothing are NaN, as a softmax over minus infinity makes them."""
    return masked_by(-torch.inf)(problem)


def first_block_only(problem: Problem) -> Attention:
    return seeing(problem, dense(problem) & (torch.arange(problem.seq_kv) < 128))


def global_twice(problem: Problem) -> Attention:
    """Global columns are read beside the window, and in it once more."""
    again = dense(problem)[:, : problem.mask.global_tokens]

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        g = problem.mask.global_tokens
        seen = torch.cat((dense(problem), again), 1)
        scores = (q * problem.scale) @ torch.cat((k, k[:, :, :g]), 2).mT
        return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ torch.cat((v, v[:, :, :g]), 2)

    return run


def offsets_wrapped(problem: Problem) -> Attention:
    """An index of eight bits, where 32 would do in life: key 256 is key 0 again."""
    right, wrapped = naive(problem), torch.arange(problem.seq_kv) % 256
    return lambda q, k, v: right(q, k[:, :, wrapped], v[:, :, wrapped])


def summed_in_half(problem: Problem) -> Attention:
    visible, empty = dense(problem), problem.empty_rows

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = repeated(problem, k), repeated(problem, v)
        scores = ((q * problem.scale) @ k.mT).masked_fill(~visible, -torch.inf)[:, :, empty:]
        out = (scores.softmax(-1).half().float() @ v.float()).half().to(q.dtype)
        return torch.cat((torch.zeros_like(q[:, :, :empty]), out), 2)

    return run


def memoised(problem: Problem) -> Attention:
    right, answers = naive(problem), []

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if not answers:
            answers.append(right(q, k, v))
        return answers[0]

    return run


_PREVIOUS: list[Tensor] = []


def keeps_the_previous_shape(problem: Problem) -> Attention:
    """A mask made once, and cut to whatever shape comes."""
    right = naive(problem)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        shape = (problem.seq_q, problem.seq_kv)
        if not _PREVIOUS or _PREVIOUS[0].shape[0] < shape[0] or _PREVIOUS[0].shape[1] < shape[1]:
            _PREVIOUS[:] = [dense(problem)]
        cached = _PREVIOUS[0][: shape[0], : shape[1]]
        return right(q, k, v) if torch.equal(cached, dense(problem)) else seeing(problem, cached)(q, k, v)

    return run


def nan_to_zero(problem: Problem) -> Attention:
    right = naive(problem)
    return lambda q, k, v: right(q, k, v).nan_to_num(0.0)


def writes_into_keys(problem: Problem) -> Attention:
    right = naive(problem)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = right(q, k, v)
        with torch.no_grad():
            k.mul_(problem.scale)
        return out

    return run


def other_dtype(problem: Problem) -> Attention:
    right = naive(problem)
    return lambda q, k, v: right(q, k, v).double()


def strides_ignored(problem: Problem) -> Attention:
    """Memory read as if every input were contiguous."""
    right = naive(problem)

    def dense_strides(x: Tensor) -> Tensor:
        flat = x.as_strided((min(x.numel(), x.untyped_storage().nbytes() // x.itemsize - x.storage_offset()),), (1,))
        return torch.cat((flat, flat.new_zeros(x.numel() - len(flat)))).view(x.shape)

    return lambda q, k, v: right(dense_strides(q), dense_strides(k), dense_strides(v))


def biased_by_position(problem: Problem) -> Attention:
    """A bias on the distance, as ALiBi has it, left in."""
    visible, empty = dense(problem), problem.empty_rows
    distance = (torch.arange(problem.seq_q)[:, None] - torch.arange(problem.seq_kv)).abs() * 1e-2

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q * problem.scale) @ repeated(problem, k).mT - distance.to(q.dtype)
        weights = scores.masked_fill(~visible, -torch.inf)[:, :, empty:].softmax(-1)
        return torch.cat((torch.zeros_like(q[:, :, :empty]), weights @ repeated(problem, v)), 2)

    return run


def runs_math(problem: Problem) -> Attention:
    """Claims to force the flash kernel, and does without any."""
    return naive(problem)


def last_query_first(problem: Problem) -> Attention:
    """One query is taken for the first, as `is_causal` aligned at the start has it."""
    return mistakes.aligned_at_the_start(problem)


def _ragged(size: int) -> Callable[[Problem], bool]:
    return lambda problem: problem.seq_kv % size != 0 and problem.seq_kv > size and problem.seq_q == problem.seq_kv


def _grouped(problem: Problem) -> bool:
    return 1 < problem.kv_heads < problem.heads


def _from_mistakes(name: str) -> Make:
    return mistakes.MISTAKES[name][0]


def _backward(name: str) -> Mutant:
    return Mutant(
        mistakes.BACKWARD_MISTAKES[name][0],
        ("gradients",),
        lambda p: p.seq_kv > 2 and p.seq_q > 1 and p.empty_rows == 0,
    )


def _d_model(problem: Problem) -> Attention:
    return seeing(problem, dense(problem), problem.heads**-0.5)


WEIGHTS = ("weights",)

MUTANTS: dict[str, Mutant] = {
    "scaled by the root of d_model": Mutant(_d_model, WEIGHTS, lambda p: p.heads > 1),
    "not scaled": Mutant(mistakes.not_scaled, WEIGHTS),
    "scale off by 0.8 %": Mutant(mistakes.scaled(1.008), WEIGHTS),
    "softmax over the queries": Mutant(mistakes.softmax_over_queries, WEIGHTS),
    "masked after the softmax": Mutant(mistakes.masked_after_softmax, WEIGHTS),
    "masked by -1e9": Mutant(masked_by(-1e9), WEIGHTS),
    "masked by -80": Mutant(masked_by(-80.0), WEIGHTS),
    "empty rows are NaN": Mutant(nothing_for_empty_rows, WEIGHTS),
    "one position late": Mutant(mistakes.shifted(1), WEIGHTS, causal_only),
    "one position early": Mutant(mistakes.shifted(-1), WEIGHTS, causal_only),
    "causal aligned at the start": Mutant(last_query_first, WEIGHTS, causal_only),
    "window one wider": Mutant(mistakes.windowed(1), WEIGHTS, windowed),
    "window one narrower": Mutant(mistakes.windowed(-1), WEIGHTS, wide_window),
    "window one-sided": Mutant(mistakes.one_sided, WEIGHTS, windowed),
    "one global token short": Mutant(mistakes.fewer_globals, WEIGHTS, lambda p: (p.mask.global_tokens or 0) > 1),
    "global rows without columns": Mutant(mistakes.global_rows_only, WEIGHTS, with_globals),
    "global token counted twice": Mutant(global_twice, ("weights",), with_globals),
    "mask ignored": Mutant(mistakes.mask_ignored, WEIGHTS),
    "last ragged block of keys dropped": Mutant(mistakes.whole_blocks_of_keys, WEIGHTS, _ragged(128)),
    "last ragged block of rows dropped": Mutant(mistakes.whole_blocks_of_rows, WEIGHTS, _ragged(128)),
    "padded keys attended": Mutant(mistakes.padded_keys, WEIGHTS),
    "first block only": Mutant(first_block_only, WEIGHTS),
    "offset overflow": Mutant(offsets_wrapped, WEIGHTS),
    "running maximum not rescaled": Mutant(mistakes.no_rescaling, ("weights",)),
    "summed in half precision": Mutant(summed_in_half, ("weights",)),
    "biased by position": Mutant(biased_by_position, ("weights",)),
    "another kv head": Mutant(mistakes.next_kv_head, ("apart",), _grouped),
    "heads mixed": Mutant(mistakes.heads_mixed, ("apart",)),
    "the first batch element's keys": Mutant(mistakes.first_batch_only, ("apart",)),
    "memoised": Mutant(memoised, ("apart", "repeat")),
    "dropout left on": Mutant(mistakes.dropout, ("repeat",)),
    "state of the previous shape": Mutant(
        keeps_the_previous_shape, ("repeat", "weights"), lambda p: p.mask.window is not None
    ),
    "writes into its inputs": Mutant(writes_into_keys, ("repeat", "agreement")),
    "returns another dtype": Mutant(other_dtype, ("agreement",)),
    "strides ignored": Mutant(strides_ignored, ("layout",)),
    "another kernel than the forced one": Mutant(runs_math, ("kernel",), kernel="flash"),
    "NaN turned into zero": Mutant(nan_to_zero, ("nan_query",)),
    **{name: _backward(name) for name in mistakes.BACKWARD_MISTAKES},
}

RIGHT: dict[str, Mutant] = {
    "naive": Mutant(naive, ()),
    "chunked": Mutant(chunked, ()),
    "differentiated": Mutant(differentiated(""), ()),
}


def small(problem: Problem) -> Problem:
    """The problem cut to lengths that cost nothing."""
    return replace(problem, seq_q=min(problem.seq_q, 16), seq_kv=min(problem.seq_kv, 16))
