"""Arithmetic intensity: how many operations a case does for each byte that it must move, and what bounds it there.

The roofline model: Williams, Waterman and Patterson, 2009, https://doi.org/10.1145/1498765.1498785
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.results.columns import problem_of
from variants.masks import Mask
from variants.problem import ITEM_BYTES


def intensity(case: Mapping[Any, Any]) -> float:
    """FLOP per byte: the operations of the pairs that the mask shows, over `least_bytes`.

    `case` has the columns of a case. What a variant writes besides, such as scores, is its own affair.
    """
    return problem_of(case).flops(case["direction"]) / least_bytes(case)


def least_bytes(case: Mapping[Any, Any]) -> int:
    """Bytes that must move whatever the implementation: q is read once, and of k and v what any query sees; out is
    written once. Backward, dO is read and dQ, dK and dV are written as well, and out is read where fwd would write it.
    """
    problem = problem_of(case)
    queries = problem.heads * problem.seq_q
    keys = problem.kv_heads * _keys_seen(problem.mask, problem.seq_q, problem.seq_kv)
    vectors = 2 * queries + 2 * keys
    if case["direction"] != "fwd":
        vectors += (
            2 * queries + 2 * problem.kv_heads * problem.seq_kv
        )  # dK and dV of keys unseen are zeros, but written
    return vectors * problem.batch * problem.head_dim * ITEM_BYTES[problem.dtype]


def bound(flop_per_byte: float, ceiling_tflops: float, copy_gb_s: float) -> float:
    """TFLOP/s that the roofs allow at this intensity."""
    return min(ceiling_tflops, flop_per_byte * copy_gb_s / 1e3)


def _keys_seen(mask: Mask, n_q: int, n_kv: int) -> int:
    """How many of the keys at least one query sees: all but those before the first query's window."""
    reach = mask.window or (1 if mask.global_tokens else n_kv)
    return n_kv - max(0, n_kv - n_q - (reach - 1) - (mask.global_tokens or 0))
