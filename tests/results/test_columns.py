"""The row: every column comes back as it went in, and what is derived agrees with the samples."""

import statistics
import subprocess
import sys
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.results.columns import COLUMNS, Case, Ceiling, Conditions, Environment, Facts, Row, derive
from tests.results.rows import CASE, CEILING, ENVIRONMENT, FACTS, ROW
from variants.masks import Mask
from variants.problem import Problem

ODD_TEXT = st.sampled_from(["None", "NA", "nan", "12e4567", "0012345", 'say "no"', "a,b", "  spaces ", "<b>", "[red]"])


def test_a_row_comes_back_as_it_went_in() -> None:
    assert Row.of_cells(ROW.cells()) == ROW


def test_rows_share_what_they_have_in_common_and_nothing_else() -> None:
    one, same = (Row.of_cells(ROW.cells()) for _ in range(2))
    other = Row.of_cells(ROW.cells() | {"heads": "16"})
    assert (one.case is same.case, one.environment is same.environment, one.ceiling is same.ceiling) == (True,) * 3
    assert (other.case.heads, other.environment is one.environment) == (16, True)


@given(variant=ODD_TEXT, reason=ODD_TEXT, device_name=ODD_TEXT, status=st.sampled_from(["error", "oom", "skipped"]))
def test_odd_texts_come_back_as_they_went_in(variant: str, reason: str, device_name: str, status: str) -> None:
    row = replace(
        ROW,
        case=replace(CASE, variant=variant),
        facts=Facts(status, reason),
        environment=replace(ENVIRONMENT, device_name=device_name),
    )
    assert Row.of_cells(row.cells()) == row


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9).map(tuple), st.none() | st.integers(0, 2**62))
def test_numbers_come_back_to_the_last_bit(samples_ms: tuple[float, ...], peak_bytes: int | None) -> None:
    row = replace(ROW, facts=replace(FACTS, samples_ms=samples_ms, peak_bytes=peak_bytes))
    assert Row.of_cells(row.cells()).facts == row.facts


def test_every_field_is_a_column_once() -> None:
    assert tuple(ROW.flat()) == tuple(COLUMNS)
    parts = (CASE, FACTS, FACTS.conditions, ROW.derived, CEILING, ENVIRONMENT)
    assert len(COLUMNS) == 6 + sum(len(fields(part)) for part in parts) - 1  # facts hold the conditions
    assert all(column.meaning for column in COLUMNS.values())
    assert {"run", *asdict(CASE), "visit"} <= set(COLUMNS)


def test_latency_is_the_median_and_tflops_follow_from_the_visible_pairs() -> None:
    derived = derive(CASE, FACTS)
    assert derived.latency_ms == statistics.median(FACTS.samples_ms)
    visible = int(Mask.parse(CASE.mask).dense(CASE.seq_q, CASE.seq_kv).sum()) * CASE.batch * CASE.heads
    assert derived.tflops == pytest.approx(4 * visible * CASE.head_dim / (derived.latency_ms * 1e-3) / 1e12)


def test_the_share_is_of_the_ceiling_and_what_is_neither_plan_nor_result_is_workspace() -> None:
    derived = derive(CASE, FACTS, Ceiling(ceiling_tflops=2.0))
    assert derived.ceiling_share == pytest.approx(derived.tflops / 2.0)
    assert derived.workspace_bytes == 2**24 - 2**20 - 2**21
    assert derived.canary_ms == 10.5
    approximate = derive(CASE, FACTS, Ceiling(ceiling_tflops=2.0), exact=False)
    assert approximate == replace(derived, tflops=None, ceiling_share=None)  # it need not do that work
    unknown = derive(CASE, replace(FACTS, result_bytes=None, conditions=Conditions()))
    assert (unknown.ceiling_share, unknown.workspace_bytes, unknown.canary_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("samples_ms", "spread"), [((5.0, 1.0, 3.0, 2.0, 4.0), (4 - 2) / 3), ((5.0, 5.0), 0.0), ((5.0,), None)]
)
def test_the_spread_is_the_interquartile_range_over_the_median(
    samples_ms: tuple[float, ...], spread: float | None
) -> None:
    assert derive(CASE, replace(FACTS, samples_ms=samples_ms)).spread == spread


@pytest.mark.parametrize(("direction", "times"), [("fwd", 1.0), ("bwd", 2.5), ("fwdbwd", 3.5)])
def test_the_backward_pass_counts_two_and_a_half_times(direction: str, times: float) -> None:
    forward = derive(CASE, FACTS).tflops
    assert derive(replace(CASE, direction=direction), FACTS).tflops == pytest.approx(times * forward)


@pytest.mark.parametrize("status", ["wrong", "oom", "timeout", "skipped", "unsupported", "error", "crashed"])
def test_what_is_not_ok_has_no_speed_and_a_reason(status: str) -> None:
    assert derive(CASE, Facts(status, "made up")).latency_ms is None
    with pytest.raises(ValueError, match="reason"):
        Facts(status)
    with pytest.raises(ValueError, match="samples"):
        Facts(status, "made up", samples_ms=(1.0,))


def test_ok_has_samples_and_no_reason() -> None:
    with pytest.raises(ValueError, match="samples"):
        Facts("ok")
    with pytest.raises(ValueError, match="reason"):
        Facts("ok", "but", samples_ms=(1.0,))
    with pytest.raises(ValueError, match="'fine' is not a status"):
        Facts("fine", samples_ms=(1.0,))


def test_reasons_are_one_line() -> None:
    assert Facts("error", "first\n  second\tthird").reason == "first second third"


def test_a_case_names_its_problem() -> None:
    problem = Problem(2, 8, 2, 100, 200, 64, "bfloat16", "cuda", Mask(causal=True, global_tokens=3))
    assert Case.of("naive", "bwd", problem).problem() == problem
    assert Case.of("naive", "bwd", problem, "cold").cache == "cold"


@pytest.mark.parametrize(
    ("column", "text", "complaint"),
    [
        ("heads", "many", "column 'heads': 'many' is not of type int"),
        ("heads", "", "column 'heads' is empty"),
        ("exact", "yes", "column 'exact': 'yes' is not of type bool"),
        ("samples_ms", "1 x", "column 'samples_ms': '1 x' is not of type floats"),
        ("torch", None, "column 'torch' is missing"),
        ("heads", None, "column 'heads' is missing"),
    ],
)
def test_a_malformed_cell_is_named(column: str, text: str | None, complaint: str) -> None:
    cells = {**ROW.cells(), column: text}
    with pytest.raises(ValueError, match=complaint):
        Row.of_cells({name: cell for name, cell in cells.items() if cell is not None})


def test_a_column_that_may_be_empty_may_be_missing() -> None:
    cells = ROW.cells()
    for name in ("crowding", "peak_bytes", "canary_samples_ms"):
        del cells[name]
    row = Row.of_cells(cells)
    assert (row.facts.conditions.crowding, row.facts.peak_bytes, row.facts.conditions.canary_samples_ms) == (
        None,
        None,
        (),
    )


def test_the_declaration_prints_itself() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "bench.results.columns"], capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in printed.stdout.splitlines()] == list(COLUMNS)


def test_environment_has_no_default_to_forget() -> None:
    with pytest.raises(TypeError):
        Environment()  # type: ignore[call-arg]
