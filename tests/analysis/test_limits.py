"""How far each variant came: who is first, what stopped it, and that nothing that failed is hidden or has a limit."""

from dataclasses import asdict

import pytest

from bench.analysis.cases import cases
from bench.analysis.frame import from_rows
from bench.analysis.limits import limit_tables, reach, settled, statement
from bench.analysis.render import markdown
from bench.analysis.tables import Table
from bench.results.limits import Limits, input_bytes
from tests.analysis.made_up import failed, grouped, row
from tests.results.rows import CASE

MIB = 2**20
# 8 query heads and 2 key-value heads of 64 in float32: 3 KiB a token, so 3 MiB at 1024.
LIMITS = Limits(memory_bytes=64 * MIB, call_ms=100.0, longest=4096, within=0.01)


def tried(variant: str, n: int, peak_mib: float, ms: float = 1.0, **changes):
    return row(variant, n, ms, peak_bytes=int(peak_mib * MIB), **changes)


def table(*rows, limits: Limits = LIMITS) -> Table:
    (only,) = limit_tables(grouped(*rows), limits)
    return only


def cells(made: Table) -> list[list[str]]:
    return [[cell.text for cell in line] for section in made.sections for line in section]


def notes(made: Table) -> list[str]:
    return [note.text for note in made.notes]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 2 * (8 + 2 + 2) * 100 * 64 * 4),  # q has 8 heads, k and v have 2, and there are two sequences
        ({"dtype": "bfloat16"}, 2 * (8 + 2 + 2) * 100 * 64 * 2),
        ({"direction": "bwd"}, 2 * (8 + 8 + 2 + 2) * 100 * 64 * 4),
        ({"seq_q": 1}, 2 * (8 * 1 + (2 + 2) * 100) * 64 * 4),
    ],
)
def test_the_inputs_are_q_k_v_and_for_a_backward_pass_the_upstream_gradient(changes, expected) -> None:
    assert input_bytes({**asdict(CASE), "batch": 2, "seq_q": 100, "seq_kv": 100, **changes}) == expected


@pytest.mark.parametrize(
    ("peak_mib", "ms", "expected"),
    [(61, 100.0, ""), (61.01, 1.0, "memory"), (61, 100.1, "time"), (62, 200.0, "memory")],
)
def test_inputs_and_peak_count_against_memory_and_both_limits_may_be_reached(peak_mib, ms, expected) -> None:
    assert LIMITS.exceeded(tried("sdpa", 1024, peak_mib, ms).flat()) == expected


@pytest.mark.parametrize("status", ["oom", "timeout", "wrong", "error", "crashed", "unsupported", "skipped"])
def test_what_is_not_ok_does_not_fit(status: str) -> None:
    exceeded = LIMITS.exceeded(failed(status).flat())
    assert exceeded == {"oom": "memory", "timeout": "time"}.get(status, status)


@pytest.mark.parametrize(("status", "longest"), [("timeout", "1024"), ("oom", "512")])
def test_what_a_limit_ended_and_a_larger_one_did_not_counts_as_it_came_out_at_last(status: str, longest: str) -> None:
    again = [failed(status, variant="sdpa", n=1024, visit=1), tried("sdpa", 1024, 4, visit=2)]
    visits = from_rows([tried("sdpa", 512, 1), *again, tried("sdpa", 1032, 70)])
    (made,) = limit_tables(cases(settled(visits)), LIMITS)
    assert cells(made)[0][:2] == ["sdpa", longest]


def test_what_was_ended_again_still_counts() -> None:
    twice = [failed("timeout", f"over {s} s", variant="sdpa", n=1024, visit=s) for s in (1, 2)]
    visits = settled(from_rows([tried("sdpa", 512, 1), *twice]))
    assert visits["reason"].to_list() == ["", "over 2 s"]


def test_the_furthest_comes_first_with_what_stopped_it() -> None:
    made = table(
        *(tried("naive", 512, 16), tried("naive", 1024, 60, 50.0), tried("naive", 1032, 62)),
        *(tried("slow", 512, 1, 60.0), tried("slow", 516, 1, 200.0)),
        *(tried("sdpa", 1024, 1), tried("sdpa", 4096, 4, 20.0)),
    )
    assert cells(made) == [
        ["sdpa", "at least 4096", "--longest", "", "16.0 MiB", "20.0", "2"],
        ["naive", "1024", "memory", "1032 (65.0 MiB)", "63.0 MiB", "50.0", "3"],
        ["slow", "512", "time", "516 (200 ms)", "2.50 MiB", "60.0", "2"],
    ]
    assert not made.notes


@pytest.mark.parametrize("status", ["wrong", "error", "crashed"])
def test_what_failed_comes_last_and_is_told_with_its_reason(status: str) -> None:
    made = table(
        *(tried("mine", 512, 1), tried("mine", 1024, 1), failed(status, "a *bad* row", "mine", 2048)),
        *(tried("naive", 512, 1), failed("oom", "no memory", "naive", 517)),
    )
    assert [line[:4] for line in cells(made)] == [
        ["naive", "512", "memory", "517 (oom)"],
        ["mine", "1024", status, f"2048 ({status})"],
    ]
    assert notes(made) == ["naive: oom at 517 (no memory)", f"mine: right up to 1024, {status} at 2048 (a *bad* row)"]
    assert [note.style for note in made.notes] == ["", "bad"]
    assert r"a \*bad\* row" in markdown(made)


def test_what_is_never_right_has_no_length() -> None:
    made = table(failed("wrong", "error 1", "mine", 512))
    assert cells(made) == [["mine", "none", "wrong", "512 (wrong)", "", "", "1"]]
    assert notes(made) == ["mine: right nowhere, wrong at 512 (error 1)"]


def test_what_takes_no_such_problem_is_named_once_with_its_reason() -> None:
    made = table(
        *(failed("unsupported", "needs a window", name, 512) for name in ("longformer", "local")),
        *(tried("sdpa", 512, 1), tried("sdpa", 4096, 1)),
    )
    assert [line[0] for line in cells(made)] == ["sdpa"]
    assert notes(made) == ["local, longformer: unsupported (needs a window)"]


def test_a_length_that_a_kernel_does_not_take_bounds_it_without_failing() -> None:
    made = table(tried("flex", 512, 1), failed("unsupported", "takes multiples of 128", "flex", 516))
    assert cells(made)[0][:4] == ["flex", "512", "unsupported", "516 (unsupported)"]
    assert notes(made) == ["flex: unsupported at 516 (takes multiples of 128)"]


def test_a_prediction_is_called_one_and_is_no_try() -> None:
    made = table(tried("naive", 512, 1), failed("skipped", "needs about 30 GiB, 20 GiB free", "naive", 516))
    assert cells(made) == [["naive", "512", "predicted", "516 (not tried)", "2.50 MiB", "1.00", "1"]]
    assert notes(made) == ["naive: skipped at 516 (needs about 30 GiB, 20 GiB free)"]


def test_a_search_that_was_stopped_has_no_limit_yet_or_says_how_far_it_came() -> None:
    assert cells(table(tried("naive", 512, 1)))[0][:4] == ["naive", "512", "not known yet", ""]
    made = table(tried("naive", 512, 1), tried("naive", 518, 70))
    assert notes(made) == ["not searched to within 1.0 %: naive"]


@pytest.mark.parametrize(
    ("fits_ms", "over_ms", "near"), [(91.0, 120.0, True), (80.0, 109.0, True), (89.0, 111.0, False)]
)
def test_a_time_near_the_limit_may_go_either_way_and_that_is_said(fits_ms, over_ms, near) -> None:
    made = table(tried("slow", 512, 1, fits_ms), tried("slow", 516, 1, over_ms))
    said = "by one visit, whose latency is within 10 % of the limit; another may end differently: slow"
    assert notes(made) == [said] * near


def test_a_longer_length_that_fitted_beyond_one_that_did_not_is_not_promised() -> None:
    tries = [tried("slow", n, 1, ms).flat() for n, ms in ((512, 50.0), (640, 101.0), (768, 99.0))]
    found = reach("slow", tries, LIMITS)
    assert (found.length, found.over["seq_kv"], found.binding) == (512, 640, "time")


def test_a_prediction_gives_way_to_a_longer_length_that_fitted() -> None:
    made = table(tried("naive", 512, 1.0), failed("skipped", "no room", "naive", 1024), tried("naive", 2048, 2.0))
    assert cells(made)[0][1] == "2048"


def test_approximations_are_marked() -> None:
    made = table(tried("linear", 512, 1, exact=False), tried("linear", 4096, 1, exact=False), tried("sdpa", 512, 1))
    assert [line[0] for line in cells(made)] == ["≈ linear", "sdpa"]
    assert notes(made) == ["≈ approximates softmax attention"]


def test_a_table_a_mask() -> None:
    made = limit_tables(grouped(tried("naive", 512, 1), tried("naive", 512, 1, mask="full")), LIMITS)
    assert [t.title.split(" · ")[0] for t in made] == ["full", "causal"]


def test_a_fixed_number_of_queries_has_a_table_of_its_own() -> None:
    made = limit_tables(grouped(tried("sdpa", 512, 1), *(tried("sdpa", n, 1, seq_q=1) for n in (512, 1024))), LIMITS)
    assert [(t.title.endswith(" · seq_q 1"), cells(t)[0][1]) for t in made] == [(False, "512"), (True, "1024")]


def test_the_limits_stand_above() -> None:
    assert statement(LIMITS).text == (
        "at most 64.0 MiB for inputs and peak, 100 ms for a call, 4096 tokens; searched to within 1.0 %"
    )


def test_a_search_with_fixed_queries_may_pass_the_length_that_equals_them() -> None:
    rows = [row("naive", n, 1.0, seq_q=512, peak_bytes=n * 1000) for n in (512, 1024)]
    (table,) = limit_tables(grouped(*rows), Limits(600_000 + 3 * 2 * 512 * 64 * 4 * 4, 1e9, 2**20, 0.01))
    assert "seq_q 512" in table.title


def test_a_peak_that_is_not_known_does_not_fit() -> None:
    (case,) = grouped(row("naive", 512, peak_bytes=None)).to_dict("records")
    assert Limits(2**40, 1e9, 2**20, 0.01).exceeded(case) == "memory not known"
