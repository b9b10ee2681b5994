"""Verdicts by hand, and the exit status that follows from them."""

import math

import pytest

from bench.analysis.comparison import Comparison, compare
from bench.analysis.criteria import Criteria
from bench.analysis.frame import from_rows
from bench.analysis.unpaired import intervals
from bench.analysis.verdicts import Outcome, combined, exit_status, outcomes, tables, verdict, with_verdicts
from bench.errors import UserError
from bench.results.columns import Row
from tests.analysis.made_up import failed, grouped, row

NAN = math.nan


@pytest.mark.parametrize(
    ("ratio", "low", "high", "expected"),
    [
        (1.06, 1.01, 1.11, "SLOWER"),
        (1.04, 1.01, 1.07, "INCONCLUSIVE"),  # surely slower, and perhaps not by 5 %
        (1.06, 0.99, 1.13, "INCONCLUSIVE"),
        (1.02, 0.96, 1.05, "SAME"),
        (1.02, 0.95, 1.04, "INCONCLUSIVE"),  # 1 / 1.05 is 0.952
        (0.90, 0.85, 0.99, "FASTER"),
        (0.96, 0.93, 0.99, "INCONCLUSIVE"),
        (1.00, 1.00, 1.00, "SAME"),
        (1.50, 1.50, 1.50, "SLOWER"),
        (1000.0, 900.0, 1100.0, "SLOWER"),
        (1.50, NAN, NAN, "INCONCLUSIVE"),
        (NAN, NAN, NAN, "NOT COMPARABLE"),
    ],
)
def test_the_verdict_at_five_percent(ratio: float, low: float, high: float, expected: str) -> None:
    assert verdict(ratio, low, high, 0.05) == expected


@pytest.mark.parametrize(
    ("time", "steady", "expected"),
    [
        ("SLOWER", "SLOWER", "SLOWER"),
        ("SLOWER", "SAME", "SAME"),  # the machine was slower as a whole
        ("SLOWER", "INCONCLUSIVE", "INCONCLUSIVE"),
        ("SLOWER", "FASTER", "INCONCLUSIVE"),
        ("SAME", "INCONCLUSIVE", "SAME"),
        ("SAME", "SLOWER", "INCONCLUSIVE"),
        ("FASTER", "FASTER", "FASTER"),
        ("SLOWER", "NOT COMPARABLE", "SLOWER"),
        ("NOT COMPARABLE", "NOT COMPARABLE", "NOT COMPARABLE"),
    ],
)
def test_the_canary_has_its_say(time: str, steady: str, expected: str) -> None:
    assert combined(time, steady) == expected


def visits(variant: str, *times: float, run: str = "a", canary: float | None = 10.0, **changes: object) -> list[Row]:
    samples = () if canary is None else (canary,)
    return [
        row(variant, ms=(ms,) * 3, visit=at, run=run, canary_samples_ms=samples, **changes)
        for at, ms in enumerate(times, 1)
    ]


def compared(base: list[Row], new: list[Row], reference: str | None = None) -> Comparison:
    comparison = compare(grouped(*base), grouped(*new), reference)
    return comparison._replace(cases=intervals(comparison.cases, from_rows(base), from_rows(new), reference))


def verdicts(comparison: Comparison) -> dict[str, str]:
    judged = with_verdicts(comparison, 0.05)
    return dict(zip(judged["variant"], judged["verdict"], strict=True))


def test_each_case_gets_its_verdict() -> None:
    times = (1.0, 1.001, 1.002, 1.003)
    base = [r for name in "abcde" for r in visits(name, *times)] + [failed("oom", variant="f"), *visits("h", 1.0)]
    new = [
        *visits("a", *times, run="b"),
        *visits("b", *(1.2 * ms for ms in times), run="b"),
        *visits("c", *(ms / 1.2 for ms in times), run="b"),
        *visits("d", 0.5, 1.0, 1.5, run="b"),
        failed("oom", variant="e", run="b"),
        failed("oom", variant="f", run="b"),
        *visits("h", 9.0, run="b"),
    ]
    comparison = compared(base, new)
    assert verdicts(comparison) == {
        "a": "SAME",
        "b": "SLOWER",
        "c": "FASTER",
        "d": "INCONCLUSIVE",
        "e": "NOT COMPARABLE",
        "h": "INCONCLUSIVE",
    }
    (found,) = outcomes(comparison, with_verdicts(comparison, 0.05), Criteria(latency=0.05))
    assert found[:4] == ("latency", 5, 1, 3)
    told = [note.text for note in found.notes]
    assert told[0] == "latency, 5 %: 1 SLOWER, 1 FASTER, 1 SAME, 2 INCONCLUSIVE, 1 NOT COMPARABLE"
    assert told[1].startswith("one visit in a file: 1;")
    assert "bench.gate" in told[-1] and "14 to 40 %" in told[-1]


def test_a_machine_slower_as_a_whole_fails_nothing() -> None:
    times = (1.0, 1.001, 1.002, 1.003)
    slower = tuple(1.2 * ms for ms in times)
    assert verdicts(compared(visits("a", *times), visits("a", *slower, run="b", canary=12.0))) == {"a": "SAME"}
    without = compared(visits("a", *times, canary=None), visits("a", *slower, run="b", canary=None))
    assert verdicts(without) == {"a": "SLOWER"}


def test_a_missing_reference_makes_a_case_not_comparable() -> None:
    times = (1.0, 1.001, 1.002)
    base = [*visits("sdpa", *times), *visits("a", *times)]
    new = [*visits("a", *times, run="b"), *visits("sdpa", *times, run="b", seq_q=7, seq_kv=7)]
    comparison = compared(base, new, "sdpa")
    assert verdicts(comparison) == {"a": "NOT COMPARABLE"}
    assert comparison.unreferenced["variant"].to_list() == ["a"]


def test_the_smallest_visible_change_is_the_reach_of_the_interval_or_the_threshold() -> None:
    comparison = compared(visits("a", 1.0, 1.0), visits("a", 1.0, 1.0, run="b"))
    assert with_verdicts(comparison, 0.05)["visible"].to_list() == pytest.approx([0.05])
    comparison = compared(visits("a", 1.0, 1.1), visits("a", 1.0, 1.1, run="b"))
    (case,) = with_verdicts(comparison, 0.05).to_dict("records")
    assert case["visible"] == pytest.approx(case["time_high"] / case["time_ratio"] - 1)
    (table,) = tables(with_verdicts(comparison, 0.05), None)
    assert [cell.text for cell in table.sections[0][0]][-2:] == [
        f"{case['visible']:.0%}".replace("%", " %"),
        "INCONCLUSIVE",
    ]


def outcome(base: list[Row], new: list[Row], **criteria: object) -> Outcome:
    comparison = compared(base, new)
    (found,) = outcomes(comparison, with_verdicts(comparison, 0.0), Criteria(**criteria))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("base", "new", "worse"),
    [
        (100 * 2**20, 102 * 2**20, 1),
        (100 * 2**20, 101 * 2**20, 0),  # 1 %, and no more
        (2**20, 2**20 + 2**19, 0),  # half as much again, and half a MiB
        (0, 2**20, 0),
        (0, 2**20 + 1, 1),
        (100 * 2**20, 2**20, 0),
    ],
)
def test_memory_grows_by_a_share_and_by_more_than_a_mebibyte(base: int, new: int, worse: int) -> None:
    found = outcome([row(peak_bytes=base)], [row(peak_bytes=new)], memory=0.01)
    assert (found.compared, found.worse, found.open) == (1, worse, 0)


def test_memory_that_one_file_does_not_know_is_open() -> None:
    found = outcome([row(), row("a")], [row(), row("a", peak_bytes=None)], memory=0.01)
    assert (found.compared, found.worse, found.open) == (1, 0, 1)


@pytest.mark.parametrize(
    ("base", "new", "worse"),
    [(0.2, 0.6, 1), (0.2, 0.45, 0), (0.4, 0.7, 0), (0.0, 0.6, 1), (0.9, 0.1, 0)],
)
def test_accuracy_is_worse_over_half_of_the_budget_and_over_twice_the_share(
    base: float, new: float, worse: int
) -> None:
    rows = ([row(error=share * 1e-6, error_budget=1e-6)] for share in (base, new))
    found = outcome(*rows, accuracy=True)
    assert (found.compared, found.worse) == (1, worse)


def test_what_became_wrong_is_worse_and_what_is_not_judged_is_not_compared() -> None:
    unknown = row("flex", error=None, error_budget=None)
    found = outcome([row(), unknown], [failed("wrong", error=5e-6), unknown], accuracy=True)
    assert (found.compared, found.worse) == (1, 1)
    assert found.notes[1].text == (
        "accuracy: sdpa at 1024, causal: error 1.0e-07, 10 % of its budget → 5.0e-06, 500 % of its budget"
    )
    assert outcome([failed("wrong")], [failed("wrong")], accuracy=True).worse == 0


@pytest.mark.parametrize(("error", "worse"), [(0.21, 0), (0.23, 1), (0.1, 0)])
def test_an_approximation_is_worse_by_over_a_tenth(error: float, worse: int) -> None:
    base, new = ([row("linear", error=e, error_budget=None, exact=False)] for e in (0.2, error))
    found = outcome(base, new, accuracy=True)
    assert (found.compared, found.worse) == (1, worse)


@pytest.mark.parametrize(
    ("base", "new", "worse"),
    [
        ("ok", "oom", 1),
        ("ok", "skipped", 1),
        ("oom", "error", 1),
        ("skipped", "wrong", 1),
        ("skipped", "oom", 0),
        ("wrong", "oom", 0),
        ("oom", "ok", 0),
        ("timeout", "timeout", 0),
    ],
)
def test_status_is_worse_from_ok_and_down_to_a_failure(base: str, new: str, worse: int) -> None:
    rows = ([row() if status == "ok" else failed(status)] for status in (base, new))
    assert outcome(*rows, status=True)[1:3] == (1, worse)


def test_a_case_that_vanished_is_worse() -> None:
    found = outcome([row(), row("a")], [row(), row("b")], status=True)
    assert (found.compared, found.worse) == (2, 1)
    assert found.notes[1].text == "status: vanished: a at 1024 (causal)"


def made(compared: int = 1, worse: int = 0, open_: int = 0) -> Outcome:
    return Outcome("latency", compared, worse, open_, [])


def test_the_exit_status() -> None:
    assert exit_status([], False) == 0
    assert exit_status([made(), made()], False) == 0
    assert exit_status([made(), made(worse=1), made(open_=1)], True) == 1
    assert exit_status([made(open_=1), made()], False) == 3
    assert exit_status([made(open_=1), made()], True) == 0
    with pytest.raises(UserError, match="nothing to compare by latency"):
        exit_status([made(), made(compared=0, open_=2)], True)
    assert exit_status([made(worse=1), made(compared=0)], False) == 1
