"""What visits amount to, computed by hand; and what must never be pooled or shown."""

import itertools
import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.cases import BADNESS, cases
from bench.analysis.frame import from_rows
from bench.results.columns import STATUSES
from tests.analysis.made_up import failed, grouped, row


def one(*rows):
    result = grouped(*rows)
    assert len(result) == 1
    return result.iloc[0]


def test_the_latency_is_the_median_over_visits_of_medians() -> None:
    case = one(row(ms=(1.0, 2.0, 9.0), visit=1), row(ms=(4.0,), visit=2), row(ms=(3.0, 5.0, 3.0), visit=3))
    assert case["latency_ms"] == 3.0  # of 2, 4 and 3
    assert case["visits"] == 3
    # By hand: ln 2, ln 4, ln 3 have mean 1.0593 and deviation 0.3482; t = 4.302653.
    reach = 4.302653 * 0.348237 / math.sqrt(3)
    assert (case["low_ms"], case["high_ms"]) == pytest.approx(
        (math.exp(1.059351 - reach), math.exp(1.059351 + reach)), rel=1e-5
    )


def test_the_spread_is_within_visits() -> None:
    case = one(
        row(ms=(1.0, 2.0, 3.0), visit=1), row(ms=(100.0, 100.0, 100.0), visit=2), row(ms=(9.0, 10.0, 11.0), visit=3)
    )
    assert case["spread"] == pytest.approx(0.1)  # the median of 1/2, 0 and 1/10


def test_one_visit_has_no_interval() -> None:
    case = one(row(ms=(1.0, 2.0)))
    assert math.isnan(case["low_ms"])
    assert math.isnan(case["high_ms"])


def canary(ms: float, canary_ms: float, **changes: object):
    return row(ms=ms, canary_samples_ms=(canary_ms,), **changes)


def test_times_come_from_quiet_visits_and_how_many_these_were_is_told() -> None:
    case = one(canary(1.0, 10.0, visit=1), canary(9.0, 11.2, visit=2), canary(2.0, 10.9, visit=3))
    assert (case["latency_ms"], case["quiet"], case["visits"]) == (1.5, 2, 3)
    assert case["canary_ms"] == 10.45
    assert case["canary_ratio"] == pytest.approx((1.0 / 10.0 + 2.0 / 10.9) / 2)
    reach = 12.7062 * math.log(2.0) / 2  # the deviation of two logarithms over the root of two
    assert case["high_ms"] == pytest.approx(math.sqrt(2.0) * math.exp(reach), rel=1e-5)


def test_without_a_quiet_visit_all_count() -> None:
    cases_ = grouped(canary(1.0, 12.0, visit=1), canary(3.0, 13.0, visit=2), canary(5.0, 10.0, variant="naive"))
    disturbed = cases_[cases_["variant"] == "sdpa"].iloc[0]
    assert (disturbed["latency_ms"], disturbed["quiet"], disturbed["visits"]) == (2.0, 0, 2)


def test_memory_and_errors_come_from_all_visits() -> None:
    case = one(canary(1.0, 10.0, visit=1, peak_bytes=1), canary(1.0, 99.0, visit=2, peak_bytes=7, error=9e-7))
    assert (case["quiet"], case["peak_bytes"], case["error"]) == (1, 7, 9e-7)


@pytest.mark.parametrize("apart", [{"run": "b"}, {"threads": 1}, {"cache": "cold"}])
def test_a_canary_is_held_against_its_own_run_there_and_then(apart: dict[str, object]) -> None:
    cases_ = grouped(canary(1.0, 10.0), canary(1.0, 20.0, **{"visit": 2, **apart}))
    assert cases_["quiet"].sum() == 2


def test_a_visit_that_failed_is_not_quiet_and_no_yardstick() -> None:
    case = one(canary(1.0, 10.0, visit=1), failed("oom", visit=2, canary_samples_ms=(1.0,)))
    assert (case["quiet"], case["visits"]) == (1, 2)


def test_what_is_not_known_does_not_count_against_a_visit() -> None:
    assert one(row(canary_samples_ms=(), crowding=None))["quiet"] == 1


def test_a_crowded_visit_is_disturbed_whatever_its_canary() -> None:
    case = one(row(ms=1.0, visit=1, crowding=0.09), row(ms=9.0, visit=2, crowding=0.11))
    assert (case["latency_ms"], case["quiet"], case["visits"]) == (1.0, 1, 2)


def test_the_share_belongs_to_the_rate_shown() -> None:
    case = one(row(ms=2.0, ceiling_tflops=4.0), row(ms=4.0, visit=2, ceiling_tflops=4.0))
    assert case["ceiling_share"] == pytest.approx(case["tflops"] / 4.0)


def test_peak_is_the_largest_and_the_error_the_one_nearest_its_budget() -> None:
    case = one(
        row(visit=1, peak_bytes=10, error=3e-6, error_budget=1e-5),
        row(visit=2, peak_bytes=30, error=2e-6, error_budget=2.5e-6),
        row(visit=3, peak_bytes=20, error=1e-6, error_budget=1e-5),
    )
    assert (case["peak_bytes"], case["error"], case["error_budget"]) == (30, 2e-6, 2.5e-6)


@pytest.mark.parametrize("name", ["peak_bytes", "peak_rss_bytes", "saved_bytes", "result_bytes"])
def test_bytes_are_the_largest_and_none_where_the_status_is_not_ok(name: str) -> None:
    visits_ = [row(visit=visit, **{name: count}) for visit, count in enumerate((10, 30, None), start=1)]
    assert one(*visits_)[name] == 30
    assert math.isnan(one(*visits_, failed("wrong", visit=4, **{name: 40}))[name])
    assert math.isnan(one(row(**{name: None}))[name])


def test_the_ceilings_are_the_largest_that_any_run_measured_whatever_the_status() -> None:
    measured = [("a", 3.0, 20.0), ("b", 4.0, 10.0), ("c", None, None)]
    runs = [{"run": run, "ceiling_tflops": tflops, "copy_gb_s": copy} for run, tflops, copy in measured]
    for case in (one(*(row(**run) for run in runs)), one(*(failed("oom", **run) for run in runs))):
        assert (case["ceiling_tflops"], case["copy_gb_s"]) == (4.0, 20.0)
    unknown = one(row(ceiling_tflops=None, copy_gb_s=None))
    assert unknown[["ceiling_tflops", "copy_gb_s", "ceiling_share"]].isna().all()


def test_an_error_without_a_budget_is_shown() -> None:
    case = one(row(exact=False, error=0.25, error_budget=None))
    assert case["error"] == 0.25
    assert math.isnan(case["error_budget"])


def test_the_rate_belongs_to_the_latency_shown() -> None:
    rows = [row(ms=t, visit=v) for v, t in enumerate((1.0, 2.0, 4.0, 8.0))]
    case = one(*rows)
    assert case["latency_ms"] == 3.0
    assert case["tflops"] == pytest.approx(rows[0].derived.tflops * 1.0 / 3.0)


def test_all_kernels_that_ran_are_named() -> None:
    assert one(row(kernel="flash"), row(visit=2, kernel="math"), row(visit=3, kernel=""))["kernel"] == "flash / math"


@pytest.mark.parametrize("status", [s for s in STATUSES if s not in ("ok", "skipped")])
def test_any_visit_that_is_not_ok_makes_the_case_not_ok(status: str) -> None:
    case = one(row(visit=1), failed(status, "why", visit=2), row(visit=3))
    assert (case["status"], case["reason"]) == (status, "why")
    assert case[["latency_ms", "low_ms", "high_ms", "tflops", "peak_bytes"]].isna().all()


def test_the_worst_status_wins() -> None:
    assert set(BADNESS) == set(STATUSES)
    assert BADNESS[0] == "wrong"
    statuses = [s for s in BADNESS if s != "ok"]
    for worse, milder in itertools.pairwise(statuses):
        assert one(failed(milder, "m", visit=1), failed(worse, "w", visit=2))["status"] == worse


def test_a_skip_does_not_undo_what_another_run_measured() -> None:
    case = one(failed("skipped", run="a"), row(ms=2.0, run="b"))
    assert (case["status"], case["latency_ms"], case["visits"]) == ("ok", 2.0, 1)


def test_runs_in_the_same_environment_are_pooled() -> None:
    assert one(row(ms=1.0, run="a"), row(ms=3.0, run="b"))["latency_ms"] == 2.0


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"device_name": "another"},
        {"torch": "2.10"},
        {"threads": 4},
        {"commit": "fff"},
        {"method": "0"},
        {"driver": "1"},
    ],
)
def test_unlike_environments_are_never_pooled(elsewhere: dict[str, object]) -> None:
    result = grouped(row(ms=1.0, run="a"), row(ms=3.0, run="b", **elsewhere))
    assert sorted(result["latency_ms"]) == [1.0, 3.0]


@pytest.mark.parametrize(
    "other", [{"direction": "bwd"}, {"dtype": "float16"}, {"batch": 2}, {"seq_kv": 2048}, {"exact": False}]
)
def test_unlike_cases_are_never_pooled(other: dict[str, object]) -> None:
    assert len(grouped(row(), row(**other))) == 2


visits = st.lists(
    st.tuples(
        st.sampled_from(["naive", "sdpa"]),
        st.sampled_from([1024, 2048]),
        st.sampled_from([*STATUSES, "ok", "ok"]),
        st.floats(min_value=0.01, max_value=1e4),
    ),
    min_size=1,
    max_size=12,
)


@given(visits, st.randoms())
@settings(max_examples=15, deadline=None)
def test_the_order_of_rows_does_not_matter_and_nothing_failed_has_a_latency(drawn, random) -> None:
    rows = [
        row(variant, n, ms, visit=visit)
        if status == "ok"
        else failed(status, f"reason {visit}", variant, n, visit=visit)
        for visit, (variant, n, status, ms) in enumerate(drawn)
    ]
    result = grouped(*rows)
    random.shuffle(rows)
    pd.testing.assert_frame_equal(grouped(*rows), result)
    assert (result["latency_ms"].notna() == (result["status"] == "ok")).all()
    assert len(result) == len({(r.case.variant, r.case.seq_q) for r in rows})


def test_columns_that_are_not_ours_do_not_matter() -> None:
    frame = from_rows([row(), row("naive")])
    pd.testing.assert_frame_equal(cases(frame.assign(note="x")[["note", *reversed(list(frame))]]), cases(frame))
