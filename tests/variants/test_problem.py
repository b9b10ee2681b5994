"""What a problem refuses, and what follows from its sizes."""

from dataclasses import replace

import pytest

from variants.masks import Mask
from variants.problem import DIRECTIONS, Problem

PROBLEM = Problem(2, 8, 2, 128, 256, 64, mask=Mask(causal=True))


@pytest.mark.parametrize("name", ["batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim"])
@pytest.mark.parametrize("value", [0, -3, 1.5])
def test_sizes_are_whole_numbers_of_at_least_one(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: {value}"):
        replace(PROBLEM, **{name: value})


def test_kv_heads_divide_heads() -> None:
    with pytest.raises(ValueError, match="kv_heads: 3 does not divide 8 heads"):
        replace(PROBLEM, kv_heads=3)


def test_an_unknown_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'float64' is not one of float32, bfloat16, float16"):
        replace(PROBLEM, dtype="float64")


def test_counts_cover_the_batch_and_all_heads() -> None:
    row_sums = sum(range(129, 257))
    assert PROBLEM.pairs == 2 * 8 * row_sums
    assert PROBLEM.flops("fwd") == 4 * 64 * PROBLEM.pairs
    assert [PROBLEM.flops(d) / PROBLEM.flops("fwd") for d in DIRECTIONS] == [1.0, 2.5, 3.5]


def test_rows_before_the_first_key_are_empty_if_causal() -> None:
    assert PROBLEM.empty_rows == 0
    assert replace(PROBLEM, seq_q=300).empty_rows == 44


def test_problems_are_equal_and_hash_by_what_they_ask() -> None:
    assert len({PROBLEM, replace(PROBLEM), replace(PROBLEM, mask=Mask())}) == 2
    assert PROBLEM.scale == 0.125
