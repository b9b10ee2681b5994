"""Intervals against values from the literature and by hand."""

import math
import random

import pytest
from scipy.special import polygamma, psi

from bench.analysis.statistics import digamma, inverse_trigamma, log_t_interval, t_quantile, trigamma


def test_the_interval_of_three_times_by_hand() -> None:
    # Logarithms to base e of 1, e, e^2: mean 1, deviation 1, and t = 4.302653 at two degrees of freedom.
    low, high = log_t_interval([1.0, math.e, math.e**2])
    assert math.log(low) == pytest.approx(1 - 4.302653 / math.sqrt(3))
    assert math.log(high) == pytest.approx(1 + 4.302653 / math.sqrt(3))


def test_two_times_by_hand() -> None:
    # 10 and 20: the deviation of the logarithms is ln 2 / sqrt 2, over sqrt 2 that is ln 2 / 2; t = 12.7062.
    low, high = log_t_interval([10.0, 20.0])
    assert low == pytest.approx(math.sqrt(200) * 2 ** (-12.7062 / 2), rel=1e-5)
    assert high == pytest.approx(math.sqrt(200) * 2 ** (12.7062 / 2), rel=1e-5)


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
    assert hits / trials == pytest.approx(0.95, abs=0.014)  # four standard errors of a share of 95 % in 4,000


def test_it_scales_with_the_times() -> None:
    times = [1.0, 1.2, 0.9]
    low, high = log_t_interval(times)
    assert log_t_interval([1000 * t for t in times]) == pytest.approx((1000 * low, 1000 * high))


@pytest.mark.parametrize(
    ("level", "freedom", "expected"),
    [
        # NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, critical values of Student's t
        (0.90, 5, 1.476),
        (0.95, 10, 1.812),
        (0.975, 1, 12.706),
        (0.975, 7, 2.365),
        (0.975, 100, 1.984),
        (0.99, 7, 2.998),
        (0.99, 15, 2.602),
        (0.99, 31, 2.453),
        (0.999, 2, 22.327),
    ],
)
def test_students_t_is_that_of_the_tables(level: float, freedom: int, expected: float) -> None:
    assert t_quantile(level, freedom) == pytest.approx(expected, abs=6e-4)


def test_students_t_in_closed_form() -> None:
    # One degree of freedom is Cauchy's distribution; two have t = (2 p - 1) / sqrt(2 p (1 - p)).
    assert t_quantile(0.9, 1) == pytest.approx(math.tan(math.pi * 0.4))
    assert t_quantile(0.9, 2) == pytest.approx(0.8 / math.sqrt(0.18))
    assert t_quantile(0.5, 9) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("x", [0.01, 0.3, 0.5, 1.0, 1.5, 7.0, 11.99, 12.0, 300.0])
def test_the_gamma_functions_are_scipys(x: float) -> None:
    assert digamma(x) == pytest.approx(float(psi(x)), rel=1e-11, abs=1e-11)
    assert trigamma(x) == pytest.approx(float(polygamma(1, x)), rel=1e-11)
    assert inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x)
