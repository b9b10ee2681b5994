"""A sweep's cases: every combination, once, lengths ascending."""

from dataclasses import replace
from math import prod

import pytest

from bench.errors import UserError
from bench.plan.sweep import Sweep
from variants.masks import Mask

SWEEP = Sweep(
    variants=("a", "b"),
    masks=(Mask(causal=True), Mask(window=4)),
    directions=("fwd", "fwdbwd"),
    seq=(16, 32, 64),
    heads=(4, 8),
    head_dim=(32,),
    batch=(1, 2),
    dtypes=("float32", "bfloat16"),
    device="cpu",
)


def test_every_combination_is_a_case_once() -> None:
    cases = SWEEP.cases()
    axes = (SWEEP.variants, SWEEP.masks, SWEEP.directions, SWEEP.seq, SWEEP.heads, SWEEP.batch, SWEEP.dtypes)
    assert len(cases) == len(set(cases)) == prod(map(len, axes))


def test_self_attention_with_one_kv_head_a_query_head_unless_said() -> None:
    assert all(case.seq_q == case.seq_kv and case.kv_heads == case.heads for case in SWEEP.cases())


def test_lengths_ascend_inside_everything_else() -> None:
    by_series: dict[object, list[int]] = {}
    for case in SWEEP.cases():
        by_series.setdefault(replace(case, seq_q=0, seq_kv=0), []).append(case.seq_kv)
    assert all(lengths == [16, 32, 64] for lengths in by_series.values())


def test_queries_and_kv_heads_are_axes_of_their_own() -> None:
    cases = replace(SWEEP, seq_q=(1, 16), kv_heads=(1, 2)).cases()
    assert {(c.seq_q, c.seq_kv) for c in cases} == {(q, n) for q in (1, 16) for n in (16, 32, 64)}
    assert {(c.heads, c.kv_heads) for c in cases} == {(4, 1), (4, 2), (8, 1), (8, 2)}


def test_kv_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match="--kv-heads: 8 does not divide 4 heads"):
        replace(SWEEP, kv_heads=(2, 8)).cases()
