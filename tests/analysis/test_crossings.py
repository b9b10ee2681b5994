"""Where two latencies cross: by hand, and on made-up curves whose crossing is known in closed form."""

import math
from collections.abc import Callable
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
