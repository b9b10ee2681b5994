"""When sampling stops, with timers that are made up: no clock, no sleeping."""

import itertools
import math
import random
from collections.abc import Iterable

import pytest

from bench.measure.sampling import Policy, interval_rank, interval_width, sample

POLICY = Policy()


class Timer:
    """Gives the times it was made with, and remembers how many calls each sample was asked for."""

    def __init__(self, times_ms: Iterable[float]) -> None:
        self.times_ms = iter(times_ms)
        self.asked: list[int] = []

    def __call__(self, calls: int) -> float:
        self.asked.append(calls)
        return next(self.times_ms)


def noisy(around_ms: float, seed: int = 0) -> Iterable[float]:
    draw = random.Random(seed)
    return (around_ms * draw.lognormvariate(0, 0.3) for _ in itertools.count())


def test_a_steady_timer_stops_as_soon_as_the_interval_can_be_told() -> None:
    found = sample(Timer(itertools.repeat(20.0)), POLICY)
    assert found.samples_ms == (20.0,) * 6
    assert found.calls_per_sample == 1


def test_a_noisy_timer_stops_when_the_budget_is_spent() -> None:
    found = sample(Timer(noisy(20.0)), POLICY)
    spent = sum(found.samples_ms)
    assert POLICY.budget_ms < spent <= POLICY.budget_ms + max(found.samples_ms)


@pytest.mark.parametrize(
    ("call_ms", "samples"), [(400.0, 3), (1000.5, 3), (2000.0, 3), (2600.0, 2), (5000.5, 1), (60000.0, 1)]
)
def test_slow_calls_are_sampled_three_times_at_most_and_very_slow_ones_once(call_ms: float, samples: int) -> None:
    timer = Timer(itertools.repeat(call_ms))
    assert len(sample(timer, POLICY).samples_ms) == samples
    assert len(timer.asked) == samples


def test_fast_calls_are_timed_in_blocks_of_a_millisecond() -> None:
    found = sample(Timer(itertools.repeat(0.003)), POLICY)
    assert found.calls_per_sample == math.ceil(1.0 / 0.003)


def test_one_contended_try_does_not_choose_the_block() -> None:
    timer = Timer(itertools.chain([9.0, 0.1, 8.0], itertools.repeat(0.1)))
    found = sample(timer, POLICY)
    assert found.calls_per_sample == 10
    assert set(found.samples_ms) == {0.1}


def test_calls_that_cannot_be_put_in_blocks_are_timed_alone() -> None:
    timer = Timer(itertools.repeat(0.003))
    assert sample(timer, POLICY, blocks=False).calls_per_sample == 1
    assert set(timer.asked) == {1}


def test_samples_keep_their_order() -> None:
    times = [30.0, 10.0, 20.0, 50.0, 40.0]
    assert sample(Timer([*times, *[200.0] * 9]), POLICY).samples_ms[:5] == tuple(times)


def test_the_interval_needs_six_samples() -> None:
    assert interval_width([1.0] * 5) == math.inf
    assert interval_width([1.0] * 6) == 0.0


def test_the_interval_is_the_narrowest_that_covers_the_median_95_percent_of_the_time() -> None:
    def coverage(n: int, rank: int) -> float:
        return 1 - 2 * sum(math.comb(n, k) for k in range(rank)) / 2**n

    for n in range(6, 300):  # the exact binomial, to two thousandths
        assert coverage(n, interval_rank(n)) >= 0.949
        assert coverage(n, interval_rank(n) + 1) < 0.952


def test_the_interval_width_is_half_of_what_the_ranks_span() -> None:
    assert interval_rank(10) == 2
    assert interval_width([5.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0]) == (9.0 - 2.0) / 2 / 5.5
