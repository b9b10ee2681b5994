"""Intervals against values from the literature and by hand."""

import math
import random

import pytest

from bench.analysis.statistics import log_t_interval


def test_the_interval_of_three_times_by_hand() -> None:
    # Logarithms to base e of 1, e, e^2: mean 1, deviation 1, and t = 4.303 at two degrees of freedom.
    low, high = log_t_interval([1.0, math.e, math.e**2])
    assert math.log(low) == pytest.approx(1 - 4.303 / math.sqrt(3))
    assert math.log(high) == pytest.approx(1 + 4.303 / math.sqrt(3))


def test_two_times_by_hand() -> None:
    # 10 and 20: the deviation of the logarithms is ln 2 / sqrt 2, over sqrt 2 that is ln 2 / 2; t = 12.706.
    low, high = log_t_interval([10.0, 20.0])
    assert low == pytest.approx(math.sqrt(200) * 2 ** (-12.706 / 2), rel=1e-6)
    assert high == pytest.approx(math.sqrt(200) * 2 ** (12.706 / 2), rel=1e-6)


def test_one_visit_says_nothing_about_the_next() -> None:
    assert all(map(math.isnan, log_t_interval([3.0])))
    assert all(map(math.isnan, log_t_interval([])))


def test_equal_times_have_an_interval_of_no_width() -> None:
    assert log_t_interval([2.0] * 4) == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize("visits", [2, 4, 12, 60])
def test_it_covers_the_truth_as_often_as_it_says(visits: int) -> None:
    draw = random.Random(visits)
    trials = 4000
    hits = 0
    for _ in range(trials):
        low, high = log_t_interval([math.exp(draw.gauss(1.0, 0.2)) for _ in range(visits)])
        hits += low <= math.e <= high
    # Four standard errors of a share of 95 % in 4,000; beyond 31 visits it is a little too wide.
    assert 0.95 - 0.014 <= hits / trials <= 0.95 + (0.014 if visits <= 31 else 0.03)


def test_it_scales_with_the_times() -> None:
    times = [1.0, 1.2, 0.9]
    low, high = log_t_interval(times)
    assert log_t_interval([1000 * t for t in times]) == pytest.approx((1000 * low, 1000 * high))
