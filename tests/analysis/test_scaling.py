"""The table of growth and of overtaking: what it says of made-up rows whose growth is known."""

import pytest

from bench.analysis.answer import answer
from bench.analysis.growth import growths
from bench.analysis.scaling import tables
from bench.results.columns import Row
from tests.analysis.made_up import row, series_of

LENGTHS = [256 * 2**k for k in range(6)]


def series(variant: str, exponent: float, at_256: float = 1.0, **changes: object) -> list[Row]:
    """Three visits to every length, 1 % apart; latency and peak grow alike."""
    return [
        row(
            variant,
            n,
            at_256 * (n / 256) ** exponent * f,
            visit=visit,
            peak_bytes=int(1e6 * (n / 256) ** exponent),
            **changes,
        )
        for n in LENGTHS
        for visit, f in enumerate((0.99, 1.0, 1.01), 1)
    ]


def shown(*rows: list[Row], baseline: str = "sdpa") -> tuple[dict[str, dict[str, str]], list[str]]:
    found = series_of(*(r for part in rows for r in part))
    (table,) = tables(found, growths(found), baseline)
    (section,) = table.sections
    texts = [[cell.text for cell in line] for line in section]
    lines = {line[0]: dict(zip(table.header, line, strict=True)) for line in texts}
    return lines, [note.text for note in table.notes]


def test_exponents_and_where_the_baseline_is_overtaken() -> None:
    # 10 (n / 256) = (n / 256) ** 2 at n = 2560.
    lines, notes = shown(series("sdpa", 2.0), series("flex", 1.0, at_256=10.0), series("naive", 2.0, at_256=3.0))
    assert lines["flex"]["time grows as"] == "n^1.00"
    assert lines["flex"]["memory grows as"] == "n^1.00"
    assert lines["sdpa"]["time grows as"] == "n^2.00"
    assert lines["flex"]["faster than sdpa"].startswith("from 2,600 (2,")
    assert lines["flex"]["at the longest"] == "3.20x at 8k"
    assert lines["naive"]["faster than sdpa"] == "nowhere"
    assert lines["sdpa"]["faster than sdpa"] == ""
    assert notes == []


def test_a_crossing_has_the_interval_that_the_answer_gives_it() -> None:
    """Of visits that scatter enough for the level of an interval to matter."""
    times = {"sdpa": lambda n: (n / 256) ** 2, "flex": lambda n: 10 * n / 256}
    rows = [
        [row(variant, n, of(n) * f, visit=at) for n in LENGTHS for at, f in enumerate((0.9, 1.0, 1.1), 1)]
        for variant, of in times.items()
    ]
    (paragraph,) = answer(series_of(*(r for part in rows for r in part)), "sdpa")
    (change,) = [line.text for line in paragraph.lines if "instead of" in line.text]
    assert change.startswith(
        shown(*rows)[0]["flex"]["faster than sdpa"].replace("from", "From").replace(" (", " tokens (")
    )


def test_everywhere_and_too_close_to_call() -> None:
    lines, _ = shown(series("sdpa", 1.0), series("flex", 1.0, at_256=0.5), series("mine", 1.0, at_256=1.001))
    assert lines["flex"]["faster than sdpa"] == "everywhere"
    assert lines["mine"]["faster than sdpa"] == "too close to call"


def test_visits_that_are_alike_to_the_last_digit_tell_nothing_of_the_next() -> None:
    twice = [row(v, n, ms, visit=at) for v, ms in (("sdpa", 1.0), ("flex", 2.0)) for n in LENGTHS for at in (1, 2)]
    lines, _ = shown(twice)
    assert lines["flex"]["faster than sdpa"] == "not told by these visits"


def test_what_does_more_than_its_mask_asks_is_pointed_out() -> None:
    window = {"mask": "causal+window:16"}
    _, notes = shown(series("naive", 2.0, **window), series("sliding_window", 1.0, **window))
    (note,) = notes
    assert note.startswith("naive: its time grows as n^2.00 (")
    # 16 n - 120 pairs: all but linear.
    assert note.endswith("), the pairs that its mask shows as n^1.01")


def test_a_linear_variant_that_is_not_is_pointed_out() -> None:
    _, notes = shown(series("sdpa", 2.0), series("mine", 1.4, exact=False, declared_exponent=1.0))
    assert notes[0].startswith("mine is registered as n^1, but its time grows as n^1.40 (")
    assert notes[1].startswith("mine is registered as n^1, but its memory grows as n^1.40 (")
    _, quiet = shown(series("sdpa", 2.0), series("mine", 1.05, exact=False, declared_exponent=1.0))
    assert quiet == []


def test_a_fit_that_is_refused_says_why() -> None:
    lines, notes = shown(series("sdpa", 2.0), series("flex", 2.0)[:9])
    assert lines["flex"]["time grows as"] == ""
    assert notes == [
        "no fit of the time of flex: 3 lengths, and a fit wants 4 at least",
        "no fit of the memory of flex: 3 lengths, and a fit wants 4 at least",
    ]


def test_one_length_scales_nowhere() -> None:
    found = series_of(row("sdpa", 512))
    assert tables(found, growths(found), "sdpa") == []


@pytest.mark.parametrize("approximate", [True, False])
def test_approximations_stand_below_and_are_marked(approximate: bool) -> None:
    lines, _ = shown(series("sdpa", 2.0), series("a", 1.0, exact=not approximate))
    assert list(lines) == (["sdpa", "≈ a"] if approximate else ["a", "sdpa"])
