"""The search for the longest length: that it finds it whatever the costs and the forecasts, in few tries, and ends."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.bisection import FIRST, search

LONGEST = 2**20
FRACTIONS = st.sampled_from([0.001, 0.01, 0.05, 0.2])


def tries(
    fits: Callable[[int], bool],
    hopeful: Callable[[int], bool] | None = None,
    barred: Callable[[int], bool] = lambda length: False,
    within: float = 0.01,
    longest: int = LONGEST,
) -> dict[int, bool]:
    """Length -> whether it fitted, in the order of the tries. A barred one does not fit."""
    found: dict[int, bool] = {}
    steps = search(longest, within, hopeful or fits, barred)
    try:
        length = next(steps)
        while True:
            assert 1 <= length <= longest and length not in found
            assert len(found) < 200
            found[length] = fits(length) and not barred(length)
            length = steps.send(found[length])
    except StopIteration:
        return found


def ends(found: dict[int, bool]) -> tuple[int, int | None]:
    """The longest that fitted, and the shortest that did not."""
    return max((n for n in found if found[n]), default=0), min((n for n in found if not found[n]), default=None)


def most_tries(within: float) -> float:
    """Four to grow eightfold past the longest, and twice what it takes to halve an eightfold span down to `within`."""
    return 1 + 1 + math.log(LONGEST / FIRST, 8) + 1 + math.log2(FIRST) + 2 * math.log2(math.log(8) / within) + 2


@given(limit=st.integers(0, LONGEST), within=FRACTIONS)
def test_the_limit_of_any_monotone_cost_is_found_within_the_tolerance(limit: int, within: float) -> None:
    fits, over = ends(tries(lambda n: n <= limit, within=within))
    assert fits <= limit
    if over is None:
        assert fits == LONGEST
    else:
        assert limit < over and over - fits <= max(1, within * fits)


@given(limit=st.integers(0, LONGEST), seed=st.integers(), within=FRACTIONS)
def test_no_forecast_is_so_bad_that_it_costs_more_than_twice_the_tries(limit: int, seed: int, within: float) -> None:
    guess = random.Random(seed)
    for hopeful in (lambda n: True, lambda n: False, lambda n: guess.random() < 0.5):
        found = tries(lambda n: n <= limit, hopeful, within=within)
        fits, over = ends(found)
        assert fits <= limit and (fits == LONGEST or (over is not None and over - fits <= max(1, within * fits)))
        assert len(found) <= most_tries(within)


@given(seed=st.integers(), within=FRACTIONS)
def test_costs_without_any_order_end_the_search_as_soon(seed: int, within: float) -> None:
    chance = random.Random(seed)
    assert len(tries(lambda n: chance.random() < 0.5, lambda n: True, within=within)) <= most_tries(within)


@given(limit=st.integers(2 * FIRST, LONGEST - 1))
def test_a_good_forecast_needs_few_tries_beyond_growing(limit: int) -> None:
    growing = 2 + math.ceil(math.log(limit / FIRST / 2, 8) if limit > 2 * FIRST else 0)
    assert len(tries(lambda n: n <= limit)) <= growing + 4


@given(limit=st.integers(0, LONGEST), bar=st.integers(1, LONGEST), within=FRACTIONS)
def test_what_is_barred_is_yielded_last_and_next_to_what_fitted(limit: int, bar: int, within: float) -> None:
    def barred(n: int) -> bool:
        return n >= max(bar, FIRST + 1)

    found = tries(lambda n: n <= limit, barred=barred, within=within)
    fits, over = ends(found)
    assert [n for n in found if barred(n)] in ([], [list(found)[-1]])
    assert over is not None and over - fits <= max(1, within * fits)


@given(limit=st.integers(0, LONGEST), stop=st.integers(1, 30))
def test_a_search_that_was_stopped_and_replayed_goes_on_as_if_it_had_not_been(limit: int, stop: int) -> None:
    whole = tries(lambda n: n <= limit)
    known = dict(list(whole.items())[:stop])
    asked: list[int] = []

    def fits(n: int) -> bool:
        if n not in known:
            asked.append(n)
        return n <= limit

    assert tries(fits, lambda n: n <= limit) == whole
    assert asked == list(whole)[stop:]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]),
        (LONGEST, [512, 1024, 8192, 65536, 524288, LONGEST]),
    ],
)
def test_nothing_fits_or_all_does(limit: int, expected: list[int]) -> None:
    assert list(tries(lambda n: n <= limit)) == expected


def test_a_longest_that_is_no_round_number_is_tried_itself() -> None:
    assert list(tries(lambda n: True, longest=1000)) == [512, 1000]
    assert list(tries(lambda n: True, longest=100_003))[-1] == 100_003
    assert list(tries(lambda n: True, longest=100)) == [100]


@given(limit=st.integers(12_800, LONGEST - 1))
def test_lengths_are_multiples_of_128_where_that_is_fine_enough(limit: int) -> None:
    assert all(n % 128 == 0 for n in tries(lambda n: n <= limit) if n >= 12_800)


def test_a_kernel_that_takes_multiples_of_128_alone_is_found_its_longest() -> None:
    fits, over = ends(tries(lambda n: n % 128 == 0 and n <= 8200, lambda n: n <= 8200))
    assert (fits, over) == (8192, 8256)
