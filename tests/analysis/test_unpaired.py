"""The bootstrap against closed forms, and its intervals against the truth in simulated files."""

import math
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.comparison import compare
from bench.analysis.frame import from_rows
from bench.analysis.unpaired import Spread, interval, intervals, redrawn_medians, uncertainties
from bench.results.columns import Row
from tests.analysis.made_up import failed, grouped, row

CANARY = (10.0,)


def visits(*times: float | tuple[float, ...], **changes: object) -> list[Row]:
    """A case's visits with these samples, and a canary that never moves."""
    return [row(ms=ms, visit=number, **{"canary_samples_ms": CANARY, **changes}) for number, ms in enumerate(times, 1)]


def compared(base: list[Row], new: list[Row], reference: str | None = None) -> pd.DataFrame:
    cases = compare(grouped(*base), grouped(*new), reference).cases
    return intervals(cases, from_rows(base), from_rows(new), reference)


def test_two_constant_visits_have_the_variance_of_their_mean() -> None:
    # Logarithms 0 and d: the variance of their mean is that of one, d^2 / 2, over two.
    (found,) = uncertainties(from_rows(visits((1.0, 1.0), (1.2, 1.2)))).values()
    assert found.time.visits == 2
    assert found.time.variance == pytest.approx(math.log(1.2) ** 2 / 4, rel=0.15)
    assert found.steady.variance == pytest.approx(math.log(1.2) ** 2 / 4, rel=0.15)


def test_by_canary_what_the_machine_did_is_no_uncertainty() -> None:
    rows = [row(ms=ms, visit=at, canary_samples_ms=(10 * ms,)) for at, ms in ((1, 1.0), (2, 1.05))]
    (found,) = uncertainties(from_rows(rows)).values()
    assert found.time.variance > 1e-4
    assert found.steady.variance == pytest.approx(0, abs=1e-20)


def test_blocks_keep_neighbours_together() -> None:
    # 16 samples, blocks of 4: alternating ones leave every block half and half, so the median cannot move.
    draw = np.random.default_rng(0)
    assert set(redrawn_medians(np.array([1.0, 2.0] * 8), draw)) == {1.5}
    assert set(redrawn_medians(np.array([1.0] * 8 + [2.0] * 8), draw)) == {1.0, 1.5, 2.0}


def test_one_sample_and_constant_ones_are_their_own_median() -> None:
    draw = np.random.default_rng(0)
    assert set(redrawn_medians(np.array([3.0]), draw)) == {3.0}
    assert set(redrawn_medians(np.array([3.0] * 7), draw)) == {3.0}


def test_the_interval_of_two_equal_sides_by_hand() -> None:
    # Two visits a side and equal variances: two degrees of freedom, t = 4.3027; three a side: four, t = 2.7764.
    low, high = interval(2.0, [Spread(0.02, 2), Spread(0.02, 2)])
    assert (low, high) == pytest.approx((2 * math.exp(-4.3027 * 0.2), 2 * math.exp(4.3027 * 0.2)), rel=1e-4)
    low, high = interval(1.0, [Spread(0.02, 3), Spread(0.02, 3)])
    assert (low, high) == pytest.approx((math.exp(-2.7764 * 0.2), math.exp(2.7764 * 0.2)), rel=1e-4)


def test_a_side_without_variance_leaves_the_others_degrees_of_freedom() -> None:
    _, high = interval(1.0, [Spread(0.04, 4), Spread(0.0, 9)])
    assert math.log(high) == pytest.approx(3.1824 * 0.2, rel=1e-4)
    assert interval(1.5, [Spread(0.0, 2), Spread(0.0, 2)]) == (1.5, 1.5)


def test_one_visit_on_a_side_has_no_interval() -> None:
    cases = compared(visits((1.0, 1.1), run="a"), visits((1.0, 1.1), (1.2, 1.3), run="b"))
    assert cases["time_ratio"].notna().all()
    assert cases[["time_low", "time_high", "steady_low", "steady_high"]].isna().all(axis=None)


def test_disturbed_visits_do_not_count() -> None:
    quiet = visits((1.0, 1.1), (1.05, 1.0))
    disturbed = row(ms=9.0, visit=3, canary_samples_ms=(30.0,))
    assert uncertainties(from_rows([*quiet, disturbed])) == uncertainties(from_rows(quiet))


def test_one_measurement_in_both_files_is_not_uncertain() -> None:
    rows = [*visits((1.0, 1.2, 1.1), (1.3, 1.1)), *visits((5.0, 6.0), variant="naive"), failed("oom", n=9)]
    cases = compared(rows, rows).dropna(subset="time_ratio")
    assert set(cases[["time_low", "time_high", "steady_low", "steady_high"]].to_numpy().ravel()) == {1.0}


def test_relative_to_a_reference_its_uncertainty_is_added() -> None:
    steady = visits((2.0,), (2.0,), (2.0,), variant="flex")
    base, new = ([*visits((1.0,), (1.1,), (1.2,), run=run), *(r for r in steady)] for run in ("a", "b"))
    alone, over = compared(base, new), compared(base, new, "sdpa")
    flex = alone[alone["variant"] == "flex"].iloc[0]
    assert (flex["time_low"], flex["time_high"]) == (1.0, 1.0)
    against = over[over["variant"] == "flex"].iloc[0]
    sdpa = alone[alone["variant"] == "sdpa"].iloc[0]
    assert (against["time_low"], against["time_high"]) == pytest.approx((sdpa["time_low"], sdpa["time_high"]))
    assert over[over["variant"] == "sdpa"]["time_low"].isna().all()


samples = st.lists(st.integers(1000, 1100).map(float), min_size=1, max_size=9).map(tuple)
sides = st.lists(samples, min_size=2, max_size=4)


@given(sides, sides, st.randoms())
@settings(max_examples=8, deadline=None)
def test_swapped_scaled_and_shuffled_files_tell_the_same(base, new, shuffle: random.Random) -> None:
    one, other = visits(*base, run="a"), visits(*new, run="b")
    (there,) = compared(one, other).to_dict("records")
    (back,) = compared(other, one).to_dict("records")
    assert back["time_ratio"] == pytest.approx(1 / there["time_ratio"], rel=1e-12)
    assert (back["time_low"], back["time_high"]) == pytest.approx((1 / there["time_high"], 1 / there["time_low"]))
    scaled = [
        visits(*(tuple(ms / 1000 for ms in part) for part in side), run=run) for side, run in ((base, "a"), (new, "b"))
    ]
    (small,) = compared(*scaled).to_dict("records")
    assert (small["time_low"], small["time_high"]) == pytest.approx((there["time_low"], there["time_high"]))
    shuffle.shuffle(one)
    assert compared(one, other).to_dict("records")[0]["time_low"] == there["time_low"]


def simulated(files: np.random.Generator, run: str, cases: int, count: int, correlation: float) -> list[Row]:
    """Visits of 30 samples whose medians differ by 2 %, of cases that all take one millisecond in truth."""
    noise = files.standard_normal((cases, count, 30))
    for at in range(1, 30):
        noise[..., at] = correlation * noise[..., at - 1] + math.sqrt(1 - correlation**2) * noise[..., at]
    times = np.exp(0.02 * (noise + files.standard_normal((cases, count, 1))))
    return [
        row(n=n + 1, ms=tuple(times[n, visit]), visit=visit + 1, run=run, canary_samples_ms=CANARY)
        for n in range(cases)
        for visit in range(count)
    ]


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_interval_covers_the_truth_at_least_as_often_as_it_says(count: int, correlation: float) -> None:
    files = np.random.default_rng([count, round(10 * correlation)])
    base, new = (simulated(files, run, 200, count, correlation) for run in ("a", "b"))
    cases = compared(base, new)
    # Three standard errors of a share of 95 % in 200. Percentiles of the same redrawn latencies cover 70 % at two
    # visits; an interval that covered everything, being too wide to tell anything, is caught by its width.
    assert ((cases["time_low"] <= 1) & (cases["time_high"] >= 1)).mean() >= 0.95 - 0.046
    reach = np.log(cases["time_high"] / cases["time_ratio"]).median()
    assert reach < {2: 0.2, 3: 0.11, 4: 0.07}[count]
