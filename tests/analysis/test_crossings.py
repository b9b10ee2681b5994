"""Where two latencies cross: by hand, and on made-up curves whose crossing is known in closed form."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.analysis.crossings import crossings
from bench.analysis.scatter import with_scatter
from bench.analysis.statistics import log_t_interval

LENGTHS = [256 * 2**k for k in range(7)]
Curve = Callable[[float], float]


def known(ms: float, sd: float = 0.01) -> dict[str, float]:
    """A case with a latency and a standard error of its logarithm that is as good as certain."""
    return {"latency_ms": ms, "centre": math.log(ms), "variance": sd**2, "freedom": 1000, "pooled": 1000}


def test_straight_lines_cross_where_arithmetic_says() -> None:
    one = {n: known(n / 1000) for n in LENGTHS}
    other = {n: known(n**2 / 3e6) for n in LENGTHS}  # n / 1000 = n ** 2 / 3e6 at n = 3000
    (found,) = crossings(one, other)
    assert found.tokens == pytest.approx(3000)
    assert found.one_is_faster
    # Two standard errors of 1 % each make 1.96 * 1.414 % of the ratio, which is n / 3000.
    reach = math.exp(1.96 * math.sqrt(2) * 0.01)
    assert found.low == pytest.approx(3000 / reach, rel=1e-3)
    assert found.high == pytest.approx(3000 * reach, rel=1e-3)
    (back,) = crossings(other, one)
    assert not back.one_is_faster
    assert back[:3] == pytest.approx(found[:3])


def test_no_crossing_is_claimed_within_the_noise() -> None:
    one = {n: known(1.0, sd=0.2) for n in LENGTHS}
    other = {n: known(1.1 if n < 1000 else 0.9, sd=0.2) for n in LENGTHS}
    assert crossings(one, other) == []


def test_two_crossings_are_both_told() -> None:
    one = {n: known(1.0) for n in LENGTHS}
    ms = [0.5, 0.5, 2.0, 2.0, 2.0, 0.5, 0.5]
    other = {n: known(x) for n, x in zip(LENGTHS, ms, strict=True)}
    first, second = crossings(one, other)
    assert first.one_is_faster and not second.one_is_faster
    assert 512 < first.tokens < 1024
    assert 4096 < second.tokens < 8192


def test_a_length_without_an_interval_is_passed_over() -> None:
    one = {n: known(n / 1000) for n in LENGTHS}
    other = {n: known(n**2 / 3e6) for n in LENGTHS}
    other[4096] = {**other[4096], "variance": math.nan}
    (found,) = crossings(one, other)
    assert found.tokens == pytest.approx(3000)


def test_two_lengths_tell_no_more_than_between_which() -> None:
    one = {512: known(1.512), 8192: known(9.192)}  # 1 + n / 1000
    other = {512: known(0.362144), 8192: known(67.208864)}  # 0.1 + n ** 2 / 1e6: they meet at 1572
    (found,) = crossings(one, other)
    assert (found.low, found.high) == pytest.approx((512, 8192))
    assert 512 < found.tokens < 8192


@pytest.mark.parametrize(
    ("lengths", "between"), [((256, 1024, 4096), (1024, 4096)), ((256, 512, 1024, 8192, 16384), (1024, 8192))]
)
def test_where_a_length_is_left_out_the_crossing_is_anywhere_between(
    lengths: Sequence[int], between: tuple[int, int]
) -> None:
    one = {n: known(2 + n / 1000) for n in lengths}
    other = {n: known(0.05 + n**2 / 1e6) for n in lengths}  # they meet at 1983
    (found,) = crossings(one, other)
    assert (found.low, found.high) == pytest.approx(between)


@pytest.mark.parametrize("at", [1100, 1400, 2000])
def test_a_leap_is_anywhere_between_two_lengths(at: int) -> None:
    """A variant that is ahead by a tenth, and from some length on takes twice as long."""
    lengths = [512, 1024, 2048, 4096, 8192]
    one = {n: known(n / 1000) for n in lengths}
    other = {n: known(n / 1000 * (0.9 if n < at else 1.8)) for n in lengths}
    (found,) = crossings(one, other)
    assert (found.low, found.high) == pytest.approx((1024, 2048))


@pytest.mark.parametrize("sd", [0.0005, 0.003])
def test_the_interval_holds_where_smooth_curves_cross_though_visits_hardly_scatter(sd: float) -> None:
    """c + n ** p against c' + a n ** q that meets it once, at a length drawn at random; what is left is the bend."""
    rng, lengths = np.random.default_rng(3), [512 * 2**k for k in range(5)]
    told = held = 0
    while told < 200:
        p, q, c = rng.uniform(0.8, 1.3), rng.uniform(1.5, 2.2), 10 ** rng.uniform(-2, 1)
        truth = math.exp(rng.uniform(math.log(600), math.log(7000)))
        power = (c + (truth / 1000) ** p) * rng.uniform(0.3, 1)  # of the other's time there; the rest is fixed
        fixed = c + (truth / 1000) ** p - power
        one = {n: c + (n / 1000) ** p for n in lengths}
        other = {n: fixed + power * (n / truth) ** q for n in lengths}
        signs = [one[n] < other[n] for n in lengths]
        if signs[0] or not signs[-1] or sum(a != b for a, b in pairwise(signs)) > 1:
            continue  # they meet twice
        noisy = ({n: known(ms * math.exp(rng.normal(0, sd)), sd) for n, ms in of.items()} for of in (one, other))
        found = crossings(*noisy)
        told += len(found) == 1
        held += len(found) == 1 and found[0].low <= truth <= found[0].high
    assert held >= 181  # of 200 at 95 %: mean 190, standard deviation 3.1; fewer once in 400


@pytest.mark.parametrize("lengths", [[], [512], [512, 1024]])
def test_few_lengths_are_no_error(lengths: list[int]) -> None:
    same = {n: known(1.0) for n in lengths}
    assert crossings(same, same) == []


def _made_up(one: Curve, other: Curve, visits: int, sd: float, rng: np.random.Generator) -> list[dict[int, Any]]:
    rows = []
    for name, curve in (("one", one), ("other", other)):
        for n in LENGTHS:
            medians = [curve(n) * math.exp(rng.normal(0, sd)) for _ in range(visits)]
            low, high = log_t_interval(medians)
            rows.append((name, n, float(np.median(medians)), low, high, visits, visits))
    frame = pd.DataFrame(rows, columns=["variant", "length", "latency_ms", "low_ms", "high_ms", "visits", "quiet"])
    records = with_scatter(frame).to_dict("records")
    return [{r["length"]: r for r in records if r["variant"] == name} for name in ("one", "other")]


@pytest.mark.parametrize(("visits", "sd"), [(2, 0.02), (4, 0.02), (4, 0.06)])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_interval_holds_the_crossing_as_often_as_it_says(visits: int, sd: float, fixed: bool) -> None:
    if fixed:  # 1 + n / 1000 and 0.1 + n ** 2 / 1e6 meet at 500 + sqrt(500 ** 2 + 0.9e6)
        one, other, truth = lambda n: 1 + n / 1000, lambda n: 0.1 + n**2 / 1e6, 500 + math.sqrt(500**2 + 0.9e6)
    else:
        one, other, truth = lambda n: n / 1000, lambda n: n**2 / 2.9e6, 2900.0
    rng = np.random.default_rng(2026)
    held = found = 0
    for _ in range(100):
        crossed = crossings(*_made_up(one, other, visits, sd, rng))
        found += len(crossed) == 1
        held += len(crossed) == 1 and crossed[0].low <= truth <= crossed[0].high
    assert found >= 98
    assert held / found >= 0.95
