"""Labels go where least squares puts them, and can be read."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.identity import BUILT_IN
from bench.figures.labels import readable, spread

HEIGHTS = st.lists(st.integers(0, 100).map(float), min_size=1, max_size=8)


def isotonic(values: list[float]) -> list[float]:
    """The nearest ascending values, by the closed form: the greatest of the least means (Robertson et al., 1988)."""
    n = len(values)
    mean = {(j, k): sum(values[j : k + 1]) / (k + 1 - j) for j in range(n) for k in range(j, n)}
    return [max(min(mean[j, k] for k in range(i, n)) for j in range(i + 1)) for i in range(n)]


@given(HEIGHTS)
def test_without_bounds_it_is_isotonic_regression(wanted: list[float]) -> None:
    ranked = sorted(wanted)
    expected = [y + 10 * i for i, y in enumerate(isotonic([y - 10 * i for i, y in enumerate(ranked)]))]
    assert sorted(spread(wanted, 10, -1e6, 1e6)) == pytest.approx(expected)


@given(HEIGHTS)
def test_none_overlap_leave_or_change_places(wanted: list[float]) -> None:
    found = spread(wanted, 10, 0, 100)
    inside = sorted(found)
    assert inside[0] >= -1e-9
    assert inside[-1] <= 100 + 1e-9
    assert all(above - below >= 10 - 1e-9 for below, above in itertools.pairwise(inside))
    assert all(
        a <= b for (x, a) in zip(wanted, found, strict=True) for (y, b) in zip(wanted, found, strict=True) if x < y
    )


def test_by_hand() -> None:
    assert spread([50, 10, 50], 10, 0, 100) == [45, 10, 55]
    assert spread([1, 2], 10, 0, 100) == [0, 10]
    assert spread([0, 0, 0], 10, 0, 12) == [0, 6, 12]  # no room: closer together
    assert spread([], 10, 0, 100) == []


def test_text_has_the_contrast_that_readers_need() -> None:
    assert readable("#000000") == "#000000"
    assert readable("#0072B2").lower() == "#0072b2"  # 5.2 to 1 already
    for look in BUILT_IN.values():
        channels = [int(readable(look.colour)[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) > 4.4  # rounded to 8 bits
