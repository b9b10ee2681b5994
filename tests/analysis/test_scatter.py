"""Variances of visits, moderated, and ratios of two cases."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f, ttest_ind

from bench.analysis.scatter import SCATTER, _usual, leaders, ratio, with_scatter
from bench.analysis.statistics import log_t_interval
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
    assert one["repeats"] == one["freedom"] == one["pooled"] == 2


def test_alike_variances_are_pooled_and_unlike_ones_hardly() -> None:
    rng = np.random.default_rng(1)
    alike = 0.01 * rng.chisquare(3, 200) / 3
    usual, weight = _usual(pd.Series(alike), pd.Series(np.full(200, 3.0)))
    assert usual == pytest.approx(0.01, rel=0.1)
    assert weight > 50
    # Variances that are 0.01 times F with 3 and 4 degrees of freedom: what the method takes them for, with weight 4.
    unlike = 0.01 * f.rvs(3, 4, size=4000, random_state=rng)
    usual, weight = _usual(pd.Series(unlike), pd.Series(np.full(4000, 3.0)))
    assert usual == pytest.approx(0.01, rel=0.1)
    assert weight == pytest.approx(4, rel=0.15)


def test_the_interval_of_a_ratio_is_welchs_where_variances_are_taken_as_they_are() -> None:
    a, b = [1.0, 1.1, 1.25], [2.0, 2.1, 2.05, 2.2]
    cases = {
        name: {
            "latency_ms": float(np.median(ms)),
            "centre": float(np.log(ms).mean()),
            "freedom": len(ms) - 1,
            "pooled": 9,
        }
        | {"variance": float(np.log(ms).var(ddof=1) / len(ms))}
        for name, ms in (("a", a), ("b", b))
    }
    found = ratio(cases["a"], cases["b"])
    assert found.value == pytest.approx(1.1 / 2.075)
    welch = ttest_ind(np.log(a), np.log(b), equal_var=False)
    # The degrees of freedom are rounded down, so the interval is a little wider than Welch's.
    low, high = (math.exp(bound) for bound in welch.confidence_interval())
    assert 0.94 * low <= found.low <= low
    assert high <= found.high <= 1.06 * high


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


def test_a_single_disturbed_visit_tells_nothing() -> None:
    slow = row("once", 1024, 50.0, crowding=0.9)
    found = scattered(*visits("a", 1.0, 1.02, 0.99, 1.01), *visits("b", 3.0, 3.05, 2.95), slow)
    assert math.isnan(ratio(found["once"], found["a"]).low)


def drawn(rng: np.random.Generator, kinds: Iterable[tuple[str, float, int]]) -> list[dict[str, Any]]:
    """Cases of equal latency: (variant, by how much its visits scatter, how many there are) each."""
    rows = []
    for variant, scatter, count in kinds:
        medians = np.exp(rng.normal(0, scatter, count)).tolist()
        rows.append((variant, float(np.median(medians)), *log_t_interval(medians), count, count))
    frame = pd.DataFrame(rows, columns=["variant", "latency_ms", "low_ms", "high_ms", "visits", "quiet"])
    return with_scatter(frame).to_dict("records")  # type: ignore[return-value]


@pytest.mark.parametrize("times", [(2, 2), (2, 1), (4, 1), (3, 3, 3), (2,) * 14])
def test_a_ratios_interval_holds_the_truth_as_often_as_it_says(times: tuple[int, ...]) -> None:
    """Of two cases among as many as these, visited so often, all of which scatter alike."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(300):
        one, other, *_ = drawn(rng, [(str(at), 0.03, count) for at, count in enumerate(times)])
        found = ratio(one, other)
        held += found.low <= 1 <= found.high
    assert held >= 274  # of 300 at 95 %: mean 285, standard deviation 3.8; fewer once in 200


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("rivals", [1, 4])
def test_what_scatters_far_more_than_the_others_is_not_taken_for_one_of_them(times: int, rivals: int) -> None:
    """Six lengths of a variant that scatters by 10 % among others that do by 1 %, all equally fast: how often it is
    told from another at a length, of 900 lengths."""
    rng = np.random.default_rng(12)
    scatters = {"noisy": 0.1} | {f"calm{at}": 0.01 for at in range(rivals)}
    told = 0
    for _ in range(150):
        cases = drawn(rng, [(variant, scatter, times) for variant, scatter in scatters.items() for _ in range(6)])
        told += sum(ratio(noisy, calm).decided for noisy, calm in zip(cases[:6], cases[6:12], strict=True))
    assert (
        told <= 72
    )  # 8 % of 900: mean 45, standard deviation 6.5 and more, for lengths of one series share a variance


def test_disturbed_visits_do_not_make_quiet_ones_uncertain() -> None:
    rows = [*visits("a", 1.0, 1.02, 0.99), *visits("b", 2.0, 2.03, 1.99)]
    alone = scattered(*rows)["a"]
    wild = [row("a", 2048, ms, visit=at, crowding=0.9) for at, ms in enumerate((3.0, 9.0, 1.0), 1)]
    cases = with_scatter(grouped(*rows, *wild)).to_dict("records")
    (among,) = [case for case in cases if (case["variant"], case["seq_q"]) == ("a", 1024)]
    assert among["variance"] < 2 * alone["variance"]  # type: ignore[operator]


def test_what_is_clearly_slower_than_any_other_does_not_lead_though_the_fastest_is_uncertain() -> None:
    cases = [
        {"variant": name, "latency_ms": ms, "centre": math.log(ms), "variance": sd**2, "freedom": 50, "pooled": 50}
        for name, ms, sd in (("unsure", 1.0, 1.0), ("sure", 1.2, 0.01), ("slow", 2.0, 0.01))
    ]
    assert leaders(cases) == ["unsure", "sure"]


def test_the_columns_that_are_added_are_those_that_are_named() -> None:
    cases = grouped(row())
    assert [name for name in with_scatter(cases) if name not in cases] == list(SCATTER)
