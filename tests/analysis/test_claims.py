"""Claims against made-up rows, with values and outcomes worked out by hand."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.analysis.claims import CLOSE, MISSED, REACHED, UNKNOWN, Found, Measured, judge, judge_all, summary, tables
from bench.analysis.frame import from_rows
from bench.analysis.text import TO
from bench.results.claims import Claim, read
from bench.results.columns import Case, Facts, Row
from tests.results.rows import FACTS, ROW
from variants.masks import Mask
from variants.problem import Problem

HEAD = "[defaults]\nheads = 4\nhead_dim = 64\nseq = 64\n[[claim]]\n"


def case(variant: str, mask: str = "full", n: int = 64, direction: str = "fwd") -> Case:
    return Case.of(variant, direction, Problem(1, 4, 4, n, n, 64, mask=Mask.parse(mask)))


def raced(of: Case, number: int, ms: float, run: str = "a", peak: int = 1000) -> Row:
    facts = replace(FACTS, samples_ms=(ms / 2, ms, ms * 9), peak_bytes=peak, result_bytes=500)
    return replace(ROW, case=of, facts=facts, run=run, visit=number)


def claim(tmp_path: Path, text: str) -> Claim:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + text)
    (only,) = read(path, "cpu")
    return only


def found(tmp_path: Path, text: str, *rows: Row) -> Found:
    return judge(claim(tmp_path, text), Measured(from_rows(rows)))


FAST, SLOW = case("sliding_window", "window:8"), case("sdpa")
FASTER = 'of = "sliding_window window:8"\nthan = "sdpa full"\nfaster_at_least = {}\n'


@pytest.mark.parametrize(("wanted", "outcome"), [(1.9, REACHED), (2.0, CLOSE), (2.15, MISSED)])
def test_a_ratio_is_taken_in_each_race_and_judged_by_its_interval(tmp_path: Path, wanted: float, outcome: str) -> None:
    """The machine is ten times slower in the second race; ratios 2.0, 2.0 * 1.01, 2.0 / 1.01 stay."""
    rows = []
    for number, (ms, ratio) in enumerate([(1.0, 2.0), (10.0, 2.02), (1.0, 2.0 / 1.01)], 1):
        rows += [raced(FAST, number, ms), raced(SLOW, number, ms * ratio)]
    result = found(tmp_path, FASTER.format(wanted), *rows)
    reach = 4.302653 * math.log(1.01) / math.sqrt(3)  # t at two degrees of freedom; the deviation is log(1.01)
    assert (result.value, result.low, result.high) == pytest.approx((2, 2 * math.exp(-reach), 2 * math.exp(reach)))
    assert result.outcome == outcome


def test_cases_of_two_races_are_not_compared(tmp_path: Path) -> None:
    result = found(tmp_path, FASTER.format(1), raced(FAST, 1, 1.0, "a"), raced(SLOW, 1, 2.0, "b"))
    assert result.outcome == UNKNOWN and "never raced" in result.reason


def test_one_race_alone_decides_nothing(tmp_path: Path) -> None:
    result = found(tmp_path, FASTER.format(1), raced(FAST, 1, 1.0), raced(SLOW, 1, 2.0))
    assert (result.value, result.outcome) == (2.0, CLOSE) and math.isnan(result.low)


def test_a_race_that_was_lost_is_told_and_the_others_count(tmp_path: Path) -> None:
    lost = [
        replace(ROW, case=of, facts=Facts("timeout", "in a race: no result"), run="a", visit=3) for of in (FAST, SLOW)
    ]
    whole = [raced(of, number, ms) for of, ms in ((FAST, 1.0), (SLOW, 2.0)) for number in (1, 2)]
    measured = Measured(from_rows(whole + lost))
    results = judge_all([claim(tmp_path, FASTER.format(1.5))], measured)
    assert results[0][1].outcome == REACHED
    (table,) = tables(results, measured)
    assert [note.text for note in table.notes] == ["lost: timeout, in a race: no result"]


def test_two_series_of_races_are_not_pooled(tmp_path: Path) -> None:
    both = [(run, number) for run in "ab" for number in (1, 2)]
    rows = [
        raced(of, number, ms if run == "a" else 1.0, run)
        for of, ms in ((FAST, 1.0), (SLOW, 2.0))
        for run, number in both
    ]
    assert found(tmp_path, FASTER.format(1.5), *rows)[:3] == pytest.approx((2.0, 2.0, 2.0))


def test_memory_that_nobody_measured_is_not_judged(tmp_path: Path) -> None:
    row = raced(SLOW, 1, 1.0)
    row = replace(row, facts=replace(row.facts, peak_bytes=None))
    result = found(tmp_path, 'of = "sdpa full"\nbytes_at_most = 10\n', row)
    assert (result.outcome, result.reason) == (UNKNOWN, "its memory was not measured")


def test_what_is_not_ok_has_no_speed(tmp_path: Path) -> None:
    wrong = replace(ROW, case=SLOW, facts=Facts("wrong", "far off"), run="a", visit=1)
    result = found(tmp_path, FASTER.format(1), raced(FAST, 1, 1.0), wrong)
    assert (result.outcome, result.reason) == (UNKNOWN, "sdpa: wrong (far off)")
    assert found(tmp_path, FASTER.format(1), raced(FAST, 1, 1.0)).reason == "sdpa was not measured"


def test_sums_and_quotients(tmp_path: Path) -> None:
    naive, both = case("naive"), case("sdpa", direction="fwdbwd")
    times = {FAST: 3.0, SLOW: 4.0, naive: 2.0, both: 14.0}
    rows = [raced(of, number, ms) for of, ms in times.items() for number in (1, 2)]
    text = 'of = "sliding_window window:8"\nthan = "sdpa full + naive full"\ntime_at_most = 0.5\n'
    result = found(tmp_path, text, *rows)
    assert result[:3] == pytest.approx((0.5, 0.5, 0.5)) and result.outcome == REACHED
    text = 'of = "sdpa full direction=fwdbwd / sdpa full"\nthan = "sliding_window window:8 / naive full"\n'
    result = found(tmp_path, f"{text}time_at_most = 2\n", *rows)
    assert (result.value, result.outcome) == (pytest.approx(3.5 / 1.5), MISSED)


@pytest.mark.parametrize(("exponent", "outcome"), [(1.2, MISSED), (1.0, REACHED)])
def test_growth_is_the_exponent(tmp_path: Path, exponent: float, outcome: str) -> None:
    short, long = case("naive", n=64), case("naive", n=1024)
    rows = [raced(short, number, 1.0, peak=1000) for number in (1, 2)]
    rows += [raced(long, number, 16**exponent, peak=round(1000 * 16**exponent)) for number in (1, 2)]
    for kind in ("time", "peak"):
        text = f'of = "naive full"\n{kind}_growth_at_most = 1.1\nseq = [64, 1024]\n'
        path = tmp_path / "claims.toml"
        path.write_text(HEAD.replace("seq = 64\n", "") + text)
        (only,) = read(path, "cpu")
        result = judge(only, Measured(from_rows(rows)))
        assert result.value == pytest.approx(exponent, rel=1e-4) and result.outcome == outcome


@pytest.mark.parametrize(
    ("text", "value", "outcome"),
    [
        ('than = "result"\npeak_at_most = 2', 2.0, REACHED),
        ('than = "result"\npeak_at_most = 1.9', 2.0, MISSED),
        ('than = "naive full"\npeak_at_most = 0.1', 0.1, REACHED),
        ('than = "naive full"\nsmaller_at_least = 11', 10.0, MISSED),
        ("bytes_at_most = 999", 1000, MISSED),
        ("bytes_exactly = 1000", 1000, REACHED),
        ("bytes_exactly = 1001", 1000, MISSED),
        ("ms_at_most = 1000", 3.0, REACHED),
    ],
)
def test_memory_and_numbers_as_they_are(tmp_path: Path, text: str, value: float, outcome: str) -> None:
    rows = [raced(SLOW, number, 3.0) for number in (1, 2)] + [raced(case("naive"), 1, 3.0, peak=10_000)]
    result = found(tmp_path, f'of = "sdpa full"\n{text}\n', *rows)
    assert (result.value, result.outcome) == (pytest.approx(value), outcome)


def test_the_table_says_what_was_wanted_and_what_came_out(tmp_path: Path) -> None:
    only = claim(tmp_path, 'about = "windows"\n' + FASTER.format(3))
    measured = Measured(
        from_rows([raced(of, number, ms) for of, ms in ((FAST, 1.0), (SLOW, 2.0)) for number in (1, 2)])
    )
    found = judge_all([only, replace(only, about="others"), only], measured)
    table, others = tables(found, measured)
    assert others.title == "others" and len(table.sections[0]) == 2
    assert table.title == "windows"
    assert [cell.text for cell in table.sections[0][0]] == [
        *(
            "sliding_window window:8",
            "sdpa full",
            "64 · float32 · fwd",
            "at least 3x as fast",
            "2.00x",
            f"2.00{TO}2.00",
        ),
        *("1000 B", "not reached"),
    ]
    assert summary(found) == "3 claims: 3 not reached"
    alone = Measured(from_rows([raced(FAST, 1, 1.0)]))
    (nothing,) = tables(judge_all([only], alone), alone)
    assert [note.text for note in nothing.notes] == ["not measured: sdpa was not measured"]


@pytest.mark.parametrize(
    ("exponents", "outcome"), [((1.0, 1.2), CLOSE), ((-0.01, 0.01), REACHED), ((0.0, 0.0), REACHED)]
)
def test_the_interval_of_an_exponent_is_of_itself_and_holds_times_that_do_not_grow(
    tmp_path: Path, exponents: tuple[float, float], outcome: str
) -> None:
    rows = []
    for number, exponent in enumerate(exponents, 1):
        rows += [raced(case("naive"), number, 3.0), raced(case("naive", n=1024), number, 3.0 * 16**exponent)]
    result = found(tmp_path, 'of = "naive full"\ntime_growth_at_most = 1.15\nseq = [64, 1024]\n', *rows)
    middle = sum(exponents) / 2
    reach = 12.7062 * (exponents[1] - middle)  # t at one degree of freedom; the deviation is sqrt(2) times this
    assert (result.low, result.high) == pytest.approx((middle - reach, middle + reach), abs=1e-5)
    assert result.outcome == outcome
