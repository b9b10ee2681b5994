"""Verdicts by hand, and who is asked for how many pairs.

Student's t, from tables: 12.706 and 31.821 (one degree of freedom, 97.5 and 99 %), 2.3646 and 2.9980 (seven).
"""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.analysis.decision import FASTER, INCONCLUSIVE, NOT_COMPARABLE, SAME, SLOWER, Found, Rules, decide, judge

THRESHOLD = 0.03
LIMIT = math.log(1.03)
EIGHT = math.sqrt(8)


def of(mean: float, deviation: float, count: int = 8) -> list[float]:
    """So many numbers, an even count, of this mean and sample standard deviation."""
    off = deviation * math.sqrt((count - 1) / count)
    return [mean - off, mean + off] * (count // 2)


def one(numbers: Sequence[float], threshold: float = THRESHOLD) -> dict[str, object]:
    """What is found of one case."""
    return {name: values[0] for name, values in vars(judge(np.array([numbers]), threshold)).items()}


def verdict(numbers: Sequence[float], threshold: float = THRESHOLD) -> object:
    return one(numbers, threshold)["verdict"]


class Pairs:
    """Hands out numbers that were laid down, case by case, and remembers who asked for how many."""

    def __init__(self, first: Sequence[Sequence[float]], fresh: Sequence[Sequence[float]] = ()) -> None:
        self._left = {False: [list(numbers) for numbers in first], True: [list(numbers) for numbers in fresh]}
        self.asked: list[tuple[list[int], int, bool]] = []

    def draw(self, at: NDArray[np.intp], pairs: int, confirming: bool) -> NDArray[np.float64] | None:
        self.asked.append((at.tolist(), pairs, confirming))
        left = self._left[confirming]
        if not left or any(len(left[case]) < pairs for case in at):
            return None
        taken = [left[case][:pairs] for case in at]
        for case in at:
            del left[case][:pairs]
        return np.array(taken)

    def decided(self, cases: int) -> Found:
        return decide(self.draw, cases, Rules(THRESHOLD))


SLOW, FAST, EQUAL = of(0.10, 0.01, 32), of(-0.10, 0.01, 32), of(0.0, 0.01, 32)
OPEN = of(0.02, 0.05, 32)  # below the threshold, and its interval beyond it, at eight, sixteen and thirty-two


def test_the_numbers_of_one_case() -> None:
    found = one(of(0.05, 0.02))
    reach, bound = 2.3646 * 0.02 / EIGHT, 2.9980 * 0.02 / EIGHT
    assert found["ratio"] == pytest.approx(math.exp(0.05))
    assert (found["low"], found["high"]) == pytest.approx((math.exp(0.05 - reach), math.exp(0.05 + reach)), rel=1e-6)
    assert found["visible"] == pytest.approx(THRESHOLD)  # the bound, 2.1 %, is below it
    assert one(of(0.0, 0.1))["visible"] == pytest.approx(math.exp(5 * bound) - 1, rel=1e-4)
    assert (found["pairs"], found["verdict"]) == (8, SLOWER)


def test_slower_is_at_or_above_the_threshold_and_beyond_what_chance_makes() -> None:
    assert verdict([LIMIT] * 8) == SLOWER
    assert verdict([LIMIT - 1e-9] * 8) != SLOWER
    # The bound of mean 0.05 is reached by the deviation 0.05 * sqrt(8) / 2.998 = 0.047172.
    assert verdict(of(0.05, 0.0471)) == SLOWER
    assert verdict(of(0.05, 0.0473)) == INCONCLUSIVE
    assert verdict(of(-0.05, 0.0471)) == FASTER
    assert verdict(of(-0.05, 0.0473)) == INCONCLUSIVE


def test_the_same_is_where_both_bounds_lie_within_the_threshold() -> None:
    # Mean 0.01 leaves 0.0195588, so the deviation may be 0.0195588 * sqrt(8) / 2.998 = 0.018452.
    for sign in (1, -1):
        assert verdict(of(sign * 0.01, 0.0184)) == SAME
        assert verdict(of(sign * 0.01, 0.0186)) == INCONCLUSIVE
    assert verdict([0.0] * 8) == SAME
    assert verdict([0.0295] * 8) == SAME


def test_the_threshold_is_a_share_either_way() -> None:
    # Twice as long is as far as half as long.
    assert verdict([math.log(2.0)] * 8, 1.0) == SLOWER
    assert verdict([math.log(0.5)] * 8, 1.0) == FASTER
    assert verdict([math.log(1.99)] * 8, 1.0) == SAME
    assert verdict([math.log(0.51)] * 8, 1.0) == SAME


@pytest.mark.parametrize("size", [0.05, 0.4, 7.0, 1e6])
def test_one_pair_of_eight_never_stands_out_however_far_off(size: float) -> None:
    # Its mean is size / 8 and its standard error the same: t is 1. Of 5 %, (1 + 2.998) / 8 are within the threshold.
    assert verdict([size] + [0.0] * 7) == (SAME if size == 0.05 else INCONCLUSIVE)
    assert verdict([-size] + [0.0] * 7) == (SAME if size == 0.05 else INCONCLUSIVE)


def test_one_pair_decides_nothing_and_two_need_much() -> None:
    found = one([0.5])
    assert (found["verdict"], found["pairs"]) == (INCONCLUSIVE, 1)
    assert found["ratio"] == pytest.approx(math.exp(0.5))
    assert (found["low"], found["high"], found["visible"]) == (0, math.inf, math.inf)
    assert verdict([0.0]) == INCONCLUSIVE
    # Two numbers d apart have the standard error d / 2; one degree of freedom: t = 31.821.
    assert verdict([0.5 - 0.0157, 0.5 + 0.0157]) == SLOWER
    assert verdict([0.5 - 0.0158, 0.5 + 0.0158]) == INCONCLUSIVE
    low, high = (one([0.49, 0.51])[name] for name in ("low", "high"))
    assert (low, high) == pytest.approx((math.exp(0.5 - 0.12706), math.exp(0.5 + 0.12706)), rel=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_comparable(bad: float) -> None:
    found = judge(np.array([[0.1, bad] * 4, SLOW[:8], [bad] * 8]), THRESHOLD)
    assert found.verdict.tolist() == [NOT_COMPARABLE, SLOWER, NOT_COMPARABLE]
    assert verdict([math.inf, -math.inf] * 4) == NOT_COMPARABLE


def test_milliseconds_taken_for_seconds_are_slower_all_the_same() -> None:
    found = one(of(math.log(1000), 0.02))
    assert found["verdict"] == SLOWER
    assert found["ratio"] == pytest.approx(1000)
    assert verdict(of(-math.log(1000), 0.02)) == FASTER
    assert verdict([800.0, 801.0] * 4) == SLOWER  # a ratio that no float holds


def test_negated_numbers_swap_slower_and_faster() -> None:
    numbers = np.random.default_rng(0).normal(0.0, 0.05, (500, 1)) + np.random.default_rng(1).normal(0, 0.03, (500, 8))
    there, back = judge(numbers, THRESHOLD), judge(-numbers, THRESHOLD)
    swapped = {SLOWER: FASTER, FASTER: SLOWER}
    assert set(there.verdict) == {SLOWER, FASTER, SAME, INCONCLUSIVE}
    assert [swapped.get(found, found) for found in there.verdict.tolist()] == back.verdict.tolist()
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert back.visible == pytest.approx(there.visible)


def test_only_what_is_undecided_is_asked_for_more() -> None:
    pairs = Pairs([EQUAL, OPEN, EQUAL, OPEN])
    found = pairs.decided(4)
    assert pairs.asked == [([0, 1, 2, 3], 8, False), ([1, 3], 8, False), ([1, 3], 16, False)]
    assert found.verdict.tolist() == [SAME, INCONCLUSIVE, SAME, INCONCLUSIVE]
    assert found.pairs.tolist() == [8, 32, 8, 32]


def test_a_later_look_is_at_all_pairs_so_far() -> None:
    # The eight numbers of the first look have the mean 0.02, and the next eight 0.004: 0.012 in all.
    pairs = Pairs([[*of(0.02, 0.02), *of(0.004, 0.0)]])
    found = pairs.decided(1)
    assert pairs.asked == [([0], 8, False), ([0], 8, False)]
    assert found.ratio[0] == pytest.approx(math.exp(0.012))
    assert (found.verdict[0], found.pairs[0]) == (SAME, 16)


def test_what_stands_out_is_decided_by_fresh_pairs_alone() -> None:
    pairs = Pairs([EQUAL, SLOW, FAST], [[], of(0.06, 0.01), of(-0.04, 0.01)])
    found = pairs.decided(3)
    assert pairs.asked == [([0, 1, 2], 8, False), ([1, 2], 8, True)]
    assert found.verdict.tolist() == [SAME, SLOWER, FASTER]
    assert found.ratio == pytest.approx(np.exp([0.0, 0.06, -0.04]))
    assert found.low[1] == pytest.approx(math.exp(0.06 - 2.3646 * 0.01 / EIGHT), rel=1e-6)
    assert found.pairs.tolist() == [8, 8, 8]


def test_what_stands_out_late_is_confirmed_too() -> None:
    # 0.025 +- 0.04, then 0.075 -+ 0.02: at sixteen 0.05.
    pairs = Pairs([[*of(0.025, 0.04), *of(0.075, 0.02)]], [of(0.05, 0.01)])
    found = pairs.decided(1)
    assert pairs.asked == [([0], 8, False), ([0], 8, False), ([0], 8, True)]
    assert (found.verdict[0], found.pairs[0]) == (SLOWER, 8)


def test_a_suspect_that_is_not_confirmed_is_what_fresh_pairs_say() -> None:
    fresh = [of(0.0, 0.01), [*of(0.02, 0.05), *of(0.02, 0.05)], of(-0.1, 0.01), [math.nan] * 8]
    found = Pairs([SLOW] * 4, fresh).decided(4)
    # The opposite of what was suspected is no verdict.
    assert found.verdict.tolist() == [SAME, INCONCLUSIVE, INCONCLUSIVE, NOT_COMPARABLE]
    assert found.ratio[:3] == pytest.approx(np.exp([0.0, 0.02, -0.1]))
    assert Pairs([FAST], [of(0.1, 0.01)]).decided(1).verdict.tolist() == [INCONCLUSIVE]


def test_a_suspect_that_fresh_pairs_leave_open_gets_more_of_them() -> None:
    # 0.05 +- 0.05 is open at eight. Two looks share the one per cent: at sixteen t is 2.9467 (fifteen, 99.5 %).
    fresh = [of(0.1, 0.01), [*of(0.05, 0.05), *of(0.05, 0.05)], [*of(0.05, 0.05), *of(-0.05, 0.05)]]
    pairs = Pairs([SLOW] * 3, fresh)
    found = pairs.decided(3)
    assert pairs.asked == [([0, 1, 2], 8, False), ([0, 1, 2], 8, True), ([1, 2], 8, True)]
    assert found.verdict.tolist() == [SLOWER, SLOWER, INCONCLUSIVE]
    assert found.pairs.tolist() == [8, 16, 16]


@pytest.mark.parametrize(("deviation", "expected"), [(0.0403, SLOWER), (0.0405, INCONCLUSIVE)])
def test_two_looks_at_fresh_pairs_share_the_error(deviation: float, expected: str) -> None:
    # At eight t is 3.4995 (seven, 99.5 %), so mean 0.05 bears the deviation 0.05 * sqrt(8) / 3.4995 = 0.040412; then
    # no more are to be had.
    assert Pairs([SLOW], [of(0.05, deviation)]).decided(1).verdict.tolist() == [expected]


def test_where_no_more_pairs_are_to_be_had() -> None:
    # Undecided cases stay as they are, those that stood out are confirmed nevertheless.
    pairs = Pairs([OPEN[:8], SLOW[:8]], [[], of(0.1, 0.01)])
    found = pairs.decided(2)
    assert pairs.asked == [([0, 1], 8, False), ([0], 8, False), ([1], 8, True)]
    assert found.verdict.tolist() == [INCONCLUSIVE, SLOWER]
    assert found.pairs.tolist() == [8, 8]
    assert found.ratio[0] == pytest.approx(math.exp(0.02))


def test_nothing_is_called_slower_unconfirmed() -> None:
    found = Pairs([SLOW, EQUAL, FAST]).decided(3)
    assert found.verdict.tolist() == [INCONCLUSIVE, SAME, INCONCLUSIVE]
    assert found.ratio == pytest.approx(np.exp([0.1, 0.0, -0.1]))  # what is known of it is told


def test_no_pair_at_all_and_no_case_at_all() -> None:
    found = Pairs([[], []]).decided(2)
    assert found.verdict.tolist() == [INCONCLUSIVE] * 2
    assert found.pairs.tolist() == [0, 0]
    assert np.isnan(found.ratio).all()
    none = Pairs([])
    assert none.decided(0).verdict.tolist() == []
    assert none.asked == []


def test_what_is_not_comparable_is_asked_no_further() -> None:
    pairs = Pairs([[math.nan] * 8, EQUAL])
    assert pairs.decided(2).verdict.tolist() == [NOT_COMPARABLE, SAME]
    assert pairs.asked == [([0, 1], 8, False)]


def test_the_order_of_cases_does_not_matter() -> None:
    first = [SLOW, EQUAL, OPEN, FAST, [math.nan] * 8, [*of(0.025, 0.04), *of(0.075, 0.02)]]
    fresh = [of(0.1, 0.01), [], [], of(0.0, 0.01), [], of(0.05, 0.01)]
    there = Pairs(first, fresh).decided(6)
    assert there.verdict.tolist() == [SLOWER, SAME, INCONCLUSIVE, SAME, NOT_COMPARABLE, SLOWER]
    assert Pairs(first, fresh).asked == []
    for order in ([5, 4, 3, 2, 1, 0], [2, 0, 5, 1, 4, 3]):
        back = Pairs([first[i] for i in order], [fresh[i] for i in order]).decided(6)
        for name, values in vars(there).items():
            assert np.array_equal(getattr(back, name), values[order], equal_nan=values.dtype.kind == "f")
