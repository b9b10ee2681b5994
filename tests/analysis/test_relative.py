"""Speed-ups and shares of budgets."""

import math

import pytest

from tests.analysis.made_up import compared_cases, failed, row


def test_a_speedup_is_over_the_baseline_on_the_same_problem() -> None:
    rows = [row("sdpa", n, ms, mask=m) for n, ms, m in ((512, 8.0, "full"), (1024, 6.0, "full"), (512, 2.0, "causal"))]
    cases = compared_cases(*rows, row("flex", 512, 4.0, mask="full"), row("flex", 2048))
    found = {(c["variant"], c["seq_q"], c["mask"]): c["speedup"] for c in cases.to_dict("records")}
    assert found["flex", 512, "full"] == 2
    assert math.isnan(found["flex", 2048, "causal"])
    assert {found[key] for key in found if key[0] == "sdpa"} == {1}


def test_its_interval_needs_visits_to_both() -> None:
    twice = [row("sdpa", 512, ms, visit=v) for v, ms in ((1, 8.0), (2, 10.0))]
    both = [row("flex", 512, ms, visit=v) for v, ms in ((1, 4.0), (2, 5.0))]
    cases = compared_cases(*twice, *both, row("naive", 512, 20.0)).set_index("variant")
    low, high = cases.loc["flex", ["least_speedup", "most_speedup"]]
    assert low * high == pytest.approx(cases.loc["flex", "speedup"] ** 2)  # symmetric on logarithms
    assert low < 2 < high
    assert cases.loc[["naive", "sdpa"], ["least_speedup", "most_speedup"]].isna().all(axis=None)


def test_no_speedup_over_an_approximation_or_a_failure() -> None:
    assert compared_cases(row(exact=False), row("flex"))["speedup"].isna().all()
    assert compared_cases(failed("oom"), row("flex"))["speedup"].isna().all()


def test_an_error_over_its_budget() -> None:
    rows = [row("naive", error=3e-7, error_budget=6e-7), failed("wrong", variant="sdpa", error=2e-6, error_budget=1e-6)]
    rows += [row("flex", error=0.0, error_budget=1e-6), failed("wrong", variant="x", error=math.inf, error_budget=1.0)]
    rows += [row("mine", error=0.1, error_budget=None, exact=False)]
    used = compared_cases(*rows).set_index("variant")["budget_used"].dropna()
    assert used.to_dict() == {"naive": pytest.approx(0.5), "sdpa": pytest.approx(2)}
