"""The number of a pair of processes, by hand."""

import math

import pytest

from bench.results.paired import pair_number, steady

STILL = [1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_block_counts_while_the_reference_moved_by_no_more_than_a_half() -> None:
    assert steady([2.0, 3.0, 2.0, 3.5, 3.0, 3.0]) == [True, True, False, True, True]
    assert steady([3.0, 2.0, 1.0, 2.0]) == [True, False, False]
    assert steady([2.0, 3.01]) == steady([3.01, 2.0]) == [False]
    assert steady([1.0]) == steady([]) == []


def test_the_middle_half_of_the_blocks_counts() -> None:
    # Ratios 0.01, 1.1, 1.2, 500: the first and the last are left out, wherever they stand.
    assert pair_number([1, 1, 1, 1], [500, 1.2, 0.01, 1.1], STILL) == pytest.approx(math.log(1.1 * 1.2) / 2)
    assert pair_number([2, 2, 2, 2], [0.02, 2.2, 2.4, 1000], STILL) == pytest.approx(math.log(1.1 * 1.2) / 2)


@pytest.mark.parametrize(
    ("ratios", "middle"),
    [
        ([2.0], [2.0]),
        ([2.0, 8.0], [2.0, 8.0]),
        ([2.0, 4.0, 9.0], [2.0, 4.0, 9.0]),  # less than one block is no block
        ([1.0, 2.0, 4.0, 9.0], [2.0, 4.0]),
        ([1.0, 2.0, 4.0, 8.0, 9.0, 10.0, 11.0], [2.0, 4.0, 8.0, 9.0, 10.0]),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [3.0, 4.0, 5.0, 6.0]),
    ],
)
def test_how_many_are_left_out(ratios: list[float], middle: list[float]) -> None:
    expected = math.log(math.prod(middle)) / len(middle)
    still = [1.0] * (len(ratios) + 1)
    assert pair_number([1.0] * len(ratios), ratios[::-1], still) == pytest.approx(expected)


def test_a_block_during_which_the_reference_moved_is_set_aside() -> None:
    # Three blocks are left, of ratios 1.1, 1.2 and 1.3, too few for one of them to be left out.
    assert pair_number([1, 1, 1, 1], [1.1, 1.2, 7, 1.3], [1, 1, 1.4, 3, 3]) == pytest.approx(
        math.log(1.1 * 1.2 * 1.3) / 3
    )
    # One is left: the first.
    assert pair_number([1, 1, 1, 1], [1.1, 1.2, 7, 1.3], [1, 1, 2, 4, 2]) == pytest.approx(math.log(1.1))


def test_where_none_was_steady_all_count() -> None:
    moved = [1, 2, 4, 2, 1]
    assert pair_number([1, 1, 1, 1], [9, 1.2, 1.1, 0.1], moved) == pytest.approx(math.log(1.1 * 1.2) / 2)


def test_one_block_is_its_own_number() -> None:
    assert pair_number([2.0], [3.0], [1.0, 1.0]) == pytest.approx(math.log(1.5))
    assert pair_number([2.0], [3.0], [1.0, 5.0]) == pytest.approx(math.log(1.5))
    assert pair_number([2.0], [2.0], [1.0, 1.0]) == 0


def test_no_block_has_no_number() -> None:
    assert math.isnan(pair_number([], [], [1.0]))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("place", [0, 3])
def test_what_is_no_time_leaves_no_number(bad: float, side: int, place: int) -> None:
    """Also in a block that is set aside, or left out as the lowest or highest: it is a fault, not noise."""
    times = [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    times[side][place] = bad
    assert math.isnan(pair_number(*times, STILL))
    assert math.isnan(pair_number(*times, [1, 9, 9, 9, 1]))


def test_sides_swapped_swap_the_sign_and_a_unit_does_not_matter() -> None:
    base, new, reference = [1.0, 1.3, 0.9, 2.0, 1.1], [1.2, 1.1, 1.0, 1.5, 9.0], [1.0, 1.2, 1.1, 1.0, 3.0, 3.0]
    number = pair_number(base, new, reference)
    assert pair_number(new, base, reference) == pytest.approx(-number)
    assert pair_number([1e3 * x for x in base], [1e3 * x for x in new], reference) == pytest.approx(number)
    assert pair_number(base, [1e3 * x for x in new], reference) == pytest.approx(number + math.log(1000))


def test_sides_and_reference_must_fit_each_other() -> None:
    with pytest.raises(ValueError, match="zip"):
        pair_number([1.0, 1.0], [1.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="zip"):
        pair_number([1.0, 1.0], [1.0, 1.0], [1.0, 1.0])
