"""Variances of visits, moderated, and ratios of two cases."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import polygamma
from scipy.stats import f, ttest_ind

from bench.analysis.scatter import _inverse_trigamma, _usual, ratio, with_scatter
from tests.analysis.made_up import grouped, row


def visits(variant: str, *medians: float, n: int = 1024) -> list[object]:
    return [row(variant, n, ms, visit=at, canary_samples_ms=()) for at, ms in enumerate(medians, 1)]


def scattered(*rows: object) -> dict[str, dict[str, object]]:
    records = with_scatter(grouped(*rows)).to_dict("records")  # type: ignore[arg-type]
    return {record["variant"]: record for record in records}


def test_the_variance_is_read_back_from_the_interval() -> None:
    medians = [1.0, 1.1, 1.25]
    one = scattered(*visits("a", *medians))["a"]
    logs = np.log(medians)
    assert one["centre"] == pytest.approx(logs.mean())
    assert one["variance"] == pytest.approx(logs.var(ddof=1) / 3)
    assert one["repeats"] == 2


def test_alike_variances_are_pooled_and_unlike_ones_hardly() -> None:
    rng = np.random.default_rng(1)
    alike = 0.01 * rng.chisquare(3, 200) / 3
    usual, weight = _usual(alike, np.full(200, 3.0))
    assert usual == pytest.approx(0.01, rel=0.1)
    assert weight > 50
    # Variances that are 0.01 times F with 3 and 4 degrees of freedom: what the method takes them for, with weight 4.
    unlike = 0.01 * f.rvs(3, 4, size=4000, random_state=rng)
    usual, weight = _usual(unlike, np.full(4000, 3.0))
    assert usual == pytest.approx(0.01, rel=0.1)
    assert weight == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 7.0, 300.0])
def test_the_inverse_of_trigamma(x: float) -> None:
    assert _inverse_trigamma(float(polygamma(1, x))) == pytest.approx(x)


def test_the_interval_of_a_ratio_is_welchs_where_variances_are_taken_as_they_are() -> None:
    a, b = [1.0, 1.1, 1.25], [2.0, 2.1, 2.05, 2.2]
    cases = {
        name: {"latency_ms": float(np.median(ms)), "centre": float(np.log(ms).mean()), "freedom": len(ms) - 1}
        | {"variance": float(np.log(ms).var(ddof=1) / len(ms))}
        for name, ms in (("a", a), ("b", b))
    }
    found = ratio(cases["a"], cases["b"])
    assert found.value == pytest.approx(1.1 / 2.075)
    welch = ttest_ind(np.log(a), np.log(b), equal_var=False)
    # The degrees of freedom are rounded down, so the interval is a little wider than Welch's.
    low, high = welch.confidence_interval()
    assert found.low == pytest.approx(math.exp(low), rel=0.06)
    assert found.low <= math.exp(low)
    assert found.high >= math.exp(high)


def test_what_was_visited_once_scatters_as_is_usual() -> None:
    found = scattered(*visits("a", 1.0, 1.02, 0.99, 1.01), *visits("b", 3.0, 3.05, 2.95, 3.01), *visits("once", 50.0))
    assert found["once"]["repeats"] == 0
    assert found["once"]["variance"] > max(found["a"]["variance"], found["b"]["variance"])  # type: ignore[type-var]
    assert ratio(found["once"], found["a"]).low > 40


def test_where_nothing_was_visited_twice_nothing_is_known() -> None:
    found = scattered(*visits("a", 1.0), *visits("b", 50.0))
    between = ratio(found["a"], found["b"])
    assert between.value == pytest.approx(0.02)
    assert math.isnan(between.low)
    assert not between.decided


def test_cases_of_no_number_do_no_harm() -> None:
    empty = grouped(row("a"))[:0]
    assert list(with_scatter(empty)["variance"]) == []
    assert isinstance(with_scatter(empty), pd.DataFrame)
