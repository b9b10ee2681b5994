"""Sizes, durations and shares: what they mean, and that what cannot be meant is refused with the user's own text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.quantities import count, seconds, share, sizes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512", (512,)),
        ("512..16384", (512, 1024, 2048, 4096, 8192, 16384)),
        ("512..5000", (512, 1024, 2048, 4096, 5000)),
        ("512..512", (512,)),
        ("512..4096:+512", (512, 1024, 1536, 2048, 2560, 3072, 3584, 4096)),
        ("100..250:+100", (100, 200, 250)),
        ("1k..64k", (1024, 2048, 4096, 8192, 16384, 32768, 65536)),
        ("1K,1m", (1024, 1048576)),
        ("17,100,1000", (17, 100, 1000)),
        ("1000,17,100,17", (17, 100, 1000)),
        ("17, 1..4", (1, 2, 4, 17)),
    ],
)
def test_sizes(text: str, expected: tuple[int, ...]) -> None:
    assert sizes(text) == expected


MEANINGLESS = ("", ",", "512,", "0", "-1", "512...1024", "1024..512", "512..", "..512", "0..8", "abc", "5 12")
MALFORMED = ("512..1024:512", "512..1024:+0", "1.5k", "1g", "512..1024..2048", "\u0665")


@pytest.mark.parametrize("text", MEANINGLESS + MALFORMED)
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"accepted: 512\.\.16384") as refusal:
        sizes(text)
    assert text in str(refusal.value)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_both_ends_run_and_lengths_double(a: int, b: int) -> None:
    first, last = sorted((a, b))
    found = sizes(f"{first}..{last}")
    assert (found[0], found[-1]) == (first, last)
    assert list(found) == sorted(set(found))
    assert all(y == 2 * x for x, y in pairwise(found[:-1]))
    assert len(found) == 1 or found[-1] <= 2 * found[-2]


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("0.5s", 0.5)])
def test_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "0s", "-5s", "5 s", "5d", "s", "1e3", "inf", "nan"])
def test_durations_that_cannot_be_meant_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: 90, 90s") as refusal:
        seconds(text)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "four"])
def test_counts_are_whole_and_positive(text: str) -> None:
    assert count("4") == 4
    with pytest.raises(ValueError, match="whole number"):
        count(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5%", 0.05), ("2.5%", 0.025), ("0.05", 0.05), (".5%", 0.005), ("5 %", 0.05), ("5.%", 0.05), ("100%", 1.0)],
)
def test_shares(text: str, expected: float) -> None:
    assert share(text) == pytest.approx(expected, rel=1e-12)


NO_NUMBERS = ("", "%", ".", ".%", "abc", "five%", "5 %%", "5%%", "%5", "1e-2", "1_0%", "0,05", "\u0665%", "nan", "inf")


@pytest.mark.parametrize(
    "text", ["0", "0%", "0.0", "-1%", "-0.1", "+5%", "101%", "1.1", "1", "1.0", "5", "nan%", *NO_NUMBERS]
)
def test_shares_that_cannot_be_meant_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"accepted: 5%, 2\.5%, 0\.05") as refusal:
        share(text)
    assert repr(text) in str(refusal.value)
