"""Which series a case belongs to, where queries and keys are swept."""

import pytest

from bench.analysis.lengths import series
from tests.analysis.made_up import grouped, row


def lengths(*sizes: tuple[int, int]) -> dict[str, list[int]]:
    """What is fixed in each series -> its lengths."""
    parts = series(grouped(*(row(seq_q=q, seq_kv=kv) for q, kv in sizes)))
    return {problem["fixed"]: sorted(part["length"]) for problem, part in parts}


def test_queries_and_keys_alike_are_a_series_of_their_own() -> None:
    assert lengths((512, 512), (1024, 1024), (1, 512), (1, 1024)) == {"": [512, 1024], "seq_q 1": [512, 1024]}


@pytest.mark.parametrize(
    ("queries", "keys", "expected"),
    [
        ([1], [512, 1024], {"seq_q 1": [512, 1024]}),
        ([1, 16], [512, 1024, 2048], {"seq_q 1": [512, 1024, 2048], "seq_q 16": [512, 1024, 2048]}),
        ([1024, 2048, 4096], [77, 154], {"seq_kv 154": [1024, 2048, 4096], "seq_kv 77": [1024, 2048, 4096]}),
        ([1], [512], {"seq_q 1": [512]}),
    ],
)
def test_a_grid_makes_few_and_long_series(queries: list[int], keys: list[int], expected: dict[str, list[int]]) -> None:
    assert lengths(*((q, kv) for q in queries for kv in keys)) == expected


def test_a_grid_without_corners_goes_one_way_all_of_it() -> None:
    grid = [(q, kv) for q in (1, 16, 1024, 2048) for kv in (1024, 2048, 4096, 8192) if q < kv]
    assert lengths(*grid) == {
        "seq_q 1": [1024, 2048, 4096, 8192],
        "seq_q 16": [1024, 2048, 4096, 8192],
        "seq_q 1024": [2048, 4096, 8192],
        "seq_q 2048": [4096, 8192],
    }


def test_decoding_beside_cross_attention_are_two_series() -> None:
    sizes = [(1, 512), (1, 1024), (1, 77), (1024, 77), (2048, 77)]
    assert lengths(*sizes) == {"seq_q 1": [77, 512, 1024], "seq_kv 77": [1024, 2048]}


def test_unconnected_grids_may_go_different_ways() -> None:
    assert lengths((1, 512), (1, 4096), (2048, 77), (4096, 77)) == {"seq_q 1": [512, 4096], "seq_kv 77": [2048, 4096]}
