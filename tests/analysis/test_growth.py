"""Fits of fixed cost and power law: known laws are found again, and the interval holds them as often as it says."""

import math

import numpy as np
import pytest

from bench.analysis.growth import FEWEST_LENGTHS, fit, growths
from tests.analysis.made_up import failed, row, series_of

LENGTHS = [256, 512, 1024, 2048, 4096, 8192]


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.58, 2.0, 3.0])
@pytest.mark.parametrize("fixed_cost", [0.0, 0.3, 20.0])
def test_a_law_without_noise_is_found_again(exponent: float, fixed_cost: float) -> None:
    scale = 1 / 256**exponent  # at the shortest length the power law costs 1
    found = fit(LENGTHS, [fixed_cost + scale * n**exponent for n in LENGTHS])
    assert not found.reason
    assert found.exponent == pytest.approx(exponent, abs=2e-3)
    assert found.fixed_cost == pytest.approx(fixed_cost, rel=0.02, abs=0.005)
    assert found.scale == pytest.approx(scale, rel=0.03)
    assert found.low <= found.exponent <= found.high
    assert found.high - found.low < 0.02


def test_numbers_of_other_units_grow_alike() -> None:
    costs = [1 + n**1.3 for n in LENGTHS]
    assert fit(LENGTHS, [1e6 * c for c in costs]).exponent == pytest.approx(fit(LENGTHS, costs).exponent, abs=1e-6)


def test_three_lengths_are_refused() -> None:
    assert FEWEST_LENGTHS == 4
    found = fit([1, 2, 4], [1.0, 2.0, 4.0])
    assert math.isnan(found.exponent)
    assert found.reason == "3 lengths, and a fit wants 4 at least"
    assert not fit([1, 2, 4, 8], [1.0, 2.0, 4.0, 8.0]).reason


def test_what_does_not_grow_has_no_exponent() -> None:
    wobbling = [1.0, 1.3, 0.8, 1.2, 0.9, 1.1]
    assert fit(LENGTHS, wobbling).reason == "the numbers leave open how it grows"


def test_one_stray_length_does_not_bend_the_rest() -> None:
    lengths = [128 * 2**k for k in range(8)]
    costs = [1e-3 * n for n in lengths]
    costs[5] *= 3
    found = fit(lengths, costs)
    plain = np.polyfit(np.log(lengths), np.log(costs), 1)[0]
    assert abs(plain - 1) > 0.05
    assert found.exponent == pytest.approx(1, abs=0.02)
    assert found.strays == 1


@pytest.mark.parametrize(
    ("truth", "fixed", "sd_visit", "sd_length", "visits", "lengths", "strays"),
    [
        (2.0, 0.0, 0.02, 0.0, 4, 6, 0.0),
        (1.0, 5.0, 0.03, 0.0, 2, 6, 0.0),
        (1.0, 1.0, 0.02, 0.05, 4, 6, 0.0),  # off the law by more than visits tell
        (1.5, 1.0, 0.0, 0.02, 1, 7, 0.0),  # visited once
        (2.0, 1.0, 0.03, 0.0, 3, 4, 0.0),  # as few lengths as may be
        (3.0, 1e5, 0.01, 0.0, 4, 9, 0.0),  # a fixed cost that hides nearly all of it
        (1.0, 0.5, 0.02, 0.0, 3, 8, 0.05),  # one length in twenty is 1.5 times what it should be
    ],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    truth: float, fixed: float, sd_visit: float, sd_length: float, visits: int, lengths: int, strays: float
) -> None:
    rng = np.random.default_rng(2026)
    n = 256 * 2.0 ** np.arange(lengths)
    logs = np.log(fixed + (n / 256) ** truth)
    fits = []
    for _ in range(200):
        off = rng.normal(0, sd_length, lengths) + math.log(1.5) * (rng.random(lengths) < strays)
        medians = logs + off + rng.normal(0, sd_visit, (visits, lengths))
        variance = float(medians.var(axis=0, ddof=1).mean()) / visits if visits > 1 else 0.0
        fits.append(fit(n.tolist(), np.exp(medians.mean(axis=0)).tolist(), variance, lengths * (visits - 1)))
    told = [found for found in fits if not found.reason]
    held = sum(found.low <= truth <= found.high for found in told)
    assert len(told) >= 180
    assert held >= 0.95 * len(told) - 2.33 * math.sqrt(0.05 * 0.95 * len(told))  # fewer once in a hundred


def test_bounds_that_are_known_are_told_with_the_refusal() -> None:
    constant = fit(LENGTHS, [7.0] * 6)
    assert constant.reason == "it need not grow at all, and grows as n^0.00 at most"
    wild = fit(LENGTHS, [n**3.98 * f for n, f in zip(LENGTHS, (1, 1.2, 0.8, 1.1, 0.9, 1), strict=True)])
    assert wild.reason == f"it grows as n^{wild.low:.2f} at least"
    assert 2 < wild.low < 4


def test_each_series_of_the_cases_has_its_fits() -> None:
    rows = [row("linear", n, 1 + n / 100, peak_bytes=n * 1000, exact=False) for n in LENGTHS]
    rows += [row("naive", n, n**2 / 1e4, peak_bytes=n**2) for n in LENGTHS[:3]]
    rows += [failed("oom", variant="naive", n=n) for n in LENGTHS[3:]]
    found = growths(series_of(*rows)).set_index(["variant", "quantity"])
    assert found.loc[("linear", "latency_ms"), "exponent"] == pytest.approx(1, abs=0.01)
    assert found.loc[("linear", "peak_bytes"), "exponent"] == pytest.approx(1, abs=0.01)
    assert not found.loc[("linear", "latency_ms"), "exact"]
    assert found.loc[("naive", "peak_bytes"), "lengths"] == 3
    assert "3 lengths" in found.loc[("naive", "latency_ms"), "reason"]


def test_where_the_queries_are_fixed_the_keys_are_the_length() -> None:
    rows = [row("sdpa", n, n / 1000, seq_q=1) for n in LENGTHS]
    found = growths(series_of(*rows))
    latency = found[found["quantity"] == "latency_ms"]
    assert latency["fixed"].to_list() == ["seq_q 1"]
    assert latency["exponent"].iloc[0] == pytest.approx(1, abs=0.01)
