"""Forecasts: the growth that they must see, and the noise that they must not believe."""

import pytest

from bench.plan.forecast import Known, forecast


def quadratic(n: int, cost: float) -> Known:
    return Known(scores=n * n, pairs=n * n, cost=cost)


def banded(n: int, cost: float) -> Known:
    return Known(scores=n * n, pairs=n * 256, cost=cost)


def test_nothing_known_is_no_forecast() -> None:
    assert forecast([], 64, 64) is None
    assert forecast([quadratic(64, 1.0)], 64 * 64, 64 * 64) is None


def test_one_length_grows_with_the_visible_pairs() -> None:
    assert forecast([quadratic(64, 1.0)], 128**2, 128**2) == pytest.approx(4.0)
    assert forecast([banded(64, 1.0)], 128**2, 128 * 256) == pytest.approx(2.0)


def test_a_dense_method_under_a_window_is_seen_to_be_quadratic() -> None:
    known = [banded(1024, 1.0), banded(2048, 4.0)]
    assert forecast(known, 4096**2, 4096 * 256) == pytest.approx(16.0)


def test_a_linear_method_is_seen_to_be_linear() -> None:
    known = [banded(1024, 1.0), banded(2048, 2.0)]
    assert forecast(known, 8192**2, 8192 * 256) == pytest.approx(8.0)


def test_noise_promises_no_more_than_the_full_score_matrix() -> None:
    known = [quadratic(512, 0.001), quadratic(1024, 1.0)]
    assert forecast(known, 2048**2, 2048**2) == pytest.approx(4.0)


def test_a_shorter_time_at_a_longer_length_does_not_promise_less() -> None:
    known = [banded(512, 2.0), banded(1024, 1.0)]
    assert forecast(known, 2048**2, 1024 * 256) == pytest.approx(1.0)


def test_order_and_longer_lengths_do_not_matter() -> None:
    known = [quadratic(4096, 99.0), quadratic(1024, 4.0), quadratic(512, 1.0)]
    assert forecast(known, 2048**2, 2048**2) == pytest.approx(16.0)
