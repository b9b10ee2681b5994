"""Numbers as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.text import length, plain, significant, size, times, tokens


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.012345, "0.0123"),
        (0.9996, "1.00"),
        (1.2, "1.20"),
        (12.34, "12.3"),
        (123.4, "123"),
        (999.6, "1,000"),
        (1756.0, "1,760"),
        (0.0, "0"),
        (math.nan, ""),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_nothing_measured_reads_as_zero_and_nothing_is_off_by_more_than_half_a_percent(value: float) -> None:
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.00501)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1.5 * 2**20, "1.50 MiB"),
        (2**30, "1.00 GiB"),
        (3 * 2**50, "3,070 TiB"),
        (math.nan, ""),
    ],
)
def test_bytes_in_binary_units(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(512, "512"), (1000, "1000"), (1024, "1k"), (1536, "1.5k"), (1025, "1025"), (16384, "16k"), (2**20, "1M")],
)
def test_lengths_in_short(count: int, text: str) -> None:
    assert tokens(count) == text


def test_a_length_names_both_numbers_where_they_differ() -> None:
    assert length(1024, 1024) == "1024"
    assert length(1, 1024).split() == ["1", "\N{MULTIPLICATION SIGN}", "1024"]


def test_ratios() -> None:
    assert times(2.3149) == "2.31x"
    assert times(math.nan) == ""


def test_other_peoples_words_stay_on_one_line_and_are_cut() -> None:
    assert plain("a\n\tb\x1b[31mc\x00") == "a b [31mc"
    assert plain("[red]x[/red] [/]") == "[red]x[/red] [/]"
    assert len(plain("x" * 1000)) == 200
