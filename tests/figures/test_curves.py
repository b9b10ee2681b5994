"""What a figure of curves shows: every number at its place, gaps as gaps, failures marked, nothing over anything."""

import math

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from bench.analysis.identity import BUILT_IN, looks
from bench.analysis.quantities import ERROR, LATENCY, MEMORY, Quantity
from bench.figures.curves import draw
from bench.figures.labels import readable
from bench.figures.panels import by_axis, by_length
from bench.results.columns import Row
from tests.analysis.made_up import compared_cases, failed, row
from tests.figures.drawn import LENGTHS, curve, labels, legend, line, small_print, style, texts

pytestmark = pytest.mark.usefixtures(style.__name__)


def drawn(*rows: Row, quantity: Quantity = LATENCY) -> Figure:
    return draw(by_length(compared_cases(*rows)), quantity)


def tick_labels(axes: Axes, axis: str) -> list[str]:
    return [text.get_text() for text in getattr(axes, f"get_{axis}ticklabels")()]


def marks(axes: Axes) -> dict[float, int]:
    """Where the marks at the top stand, and how many corners each has."""
    tops = [c for c in axes.collections if c.get_offset_transform() == axes.get_xaxis_transform()]
    return {float(x): len(c.get_paths()[0].vertices) for c in tops for x, _ in c.get_offsets()}


def test_every_number_is_at_its_length() -> None:
    (axes,) = drawn(*(row("sdpa", n, n / 512) for n in LENGTHS)).axes
    assert curve(axes, "sdpa") == [1, 2, 4, 8]
    assert list(line(axes, "sdpa").get_xdata()) == list(LENGTHS)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("sequence length", "latency (ms)")


def test_failed_and_missing_lengths_break_the_line() -> None:
    rows = [row("naive", n, 1.0) for n in LENGTHS]
    rows += [row("sdpa", 512, 1.0), failed("oom", n=1024), row("sdpa", 2048, 3.0), row("flex", 512), row("flex", 4096)]
    (axes,) = drawn(*rows).axes
    assert curve(axes, "sdpa") == pytest.approx([1, math.nan, 3, math.nan], nan_ok=True)
    assert curve(axes, "flex") == pytest.approx([1, math.nan, math.nan, 1], nan_ok=True)


def test_each_kind_of_failure_has_a_mark_of_its_own_and_is_explained() -> None:
    kinds = ("oom", "timeout", "crashed", "skipped")
    rows = [row(n=256), *(failed(kind, n=n) for kind, n in zip(kinds, LENGTHS, strict=True)), failed("error", n=8192)]
    figure = drawn(*rows, failed("unsupported", "no", "xformers", 512))
    (axes,) = figure.axes
    assert set(marks(axes)) == {*LENGTHS, 8192}
    assert legend(figure) == ["error, crashed", "oom", "timeout", "skipped"]
    handles = [(str(h.get_marker()), h.get_linestyle()) for h in figure.legends[0].legend_handles]
    assert len(set(handles)) == len(kinds)
    assert labels(axes) == ["sdpa"]


def test_the_marks_stand_above_every_line() -> None:
    rows = [row(v, 512, 100.0) for v in BUILT_IN] + [failed("oom", "big", v, 1024) for v in BUILT_IN]
    (axes,) = drawn(*rows).axes
    top = axes.transData.transform((512, 100.0))[1]
    tops = [c for c in axes.collections if c.get_offset_transform() == axes.get_xaxis_transform()]
    assert len(tops) == len(BUILT_IN)
    assert min(axes.transAxes.transform((0, y))[1] for c in tops for _, y in c.get_offsets()) > top


def test_intervals_are_drawn_where_there_are_several_visits() -> None:
    times = (1.0, 1.1, 1.2)
    cases = compared_cases(*(row(n=512, ms=t, visit=v) for v, t in enumerate(times)), row(n=1024))
    (axes,) = draw(by_length(cases), LATENCY).axes
    bars = [s for c in axes.collections if c.get_transform() == axes.transData for s in c.get_segments()]
    spans = [(s[0][1], s[1][1]) for s in bars if len(s) and not np.isnan(s).any()]
    assert spans == [pytest.approx((cases["low_ms"][0], cases["high_ms"][0]))]


def test_a_caret_shows_where_the_frame_cuts_an_interval() -> None:
    visits = {512: (1.0, 1.01, 1.02), 1024: (1.0, 3.0)}  # of two visits: over decades, up and down
    cases = compared_cases(*(row(n=n, ms=t, visit=v) for n, ms in visits.items() for v, t in enumerate(ms)))
    (axes,) = draw(by_length(cases), LATENCY).axes
    bottom, top = axes.get_ylim()
    low, high = cases[cases["seq_q"] == 1024][["low_ms", "high_ms"]].iloc[0]
    assert low < bottom < top < high
    carets = [tuple(c.get_offsets()[0]) for c in axes.collections if isinstance(c, PathCollection)]
    assert carets == [(1024, bottom), (1024, top)]


def test_powers_of_two_are_labelled_in_short() -> None:
    (axes,) = drawn(*(row(n=n) for n in LENGTHS)).axes
    assert tick_labels(axes, "x") == ["512", "1k", "2k", "4k"]
    (axes,) = drawn(*(row(n=n) for n in (17, 100, 1000))).axes
    assert tick_labels(axes, "x") == ["17", "100", "1000"]


def test_memory_is_labelled_in_binary_units() -> None:
    (axes,) = drawn(*(row(n=n, peak_bytes=n * 1024) for n in LENGTHS), quantity=MEMORY).axes
    assert tick_labels(axes, "y") == ["512 KiB", "1 MiB", "2 MiB", "4 MiB"]


def test_lines_that_coincide_all_show() -> None:
    names = ("naive", "sdpa", "flex")
    (axes,) = drawn(*(row(v, n, peak_bytes=n) for v in names for n in LENGTHS), quantity=MEMORY).axes
    widths = [line(axes, name).get_linewidth() for name in names]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3


def test_labels_stand_in_the_order_of_the_ends_and_in_their_colour() -> None:
    slow = {"flex": 1.0, "sdpa": 8.0, "naive": 64.0, "mine": 3.0}
    rows = [row(v, n, ms * n, exact=v != "mine") for v, ms in slow.items() for n in LENGTHS]
    (axes,) = drawn(*rows).axes
    assert labels(axes) == ["naive", "sdpa", "≈ mine", "flex"]
    colours = {text.get_text(): to_hex(text.get_color()) for text in axes.texts}
    assert colours["flex"] == readable(BUILT_IN["flex"].colour)
    assert colours["≈ mine"] == readable(looks(["mine"])["mine"].colour)


def test_what_has_marks_alone_is_labelled_beside_them() -> None:
    (axes,) = drawn(*(row("flex", n) for n in LENGTHS), failed("oom", variant="sdpa", n=1024)).axes
    assert labels(axes) == ["sdpa", "flex"]


def test_of_three_panels_in_a_row_the_last_names_all() -> None:
    masks = ("full", "causal", "window:4")
    figure = drawn(*(row(n=n, mask=m) for n in LENGTHS for m in masks), row("flex", mask="full"))
    assert [set(labels(axes)) for axes in figure.axes] == [set(), set(), {"sdpa", "flex"}]
    figure = drawn(*(row(n=n, mask=m) for n in LENGTHS for m in masks[:2]), row("flex", mask="full"))
    assert [set(labels(axes)) for axes in figure.axes] == [{"sdpa", "flex"}, {"sdpa"}]


def test_the_budget_is_a_line_and_what_exceeds_it_is_above() -> None:
    wrong = failed("wrong", n=1024, error=3e-6, error_budget=1e-6)
    figure = draw(by_length(compared_cases(row(n=512, error=1e-7, error_budget=1e-6), wrong)), ERROR)
    (axes,) = figure.axes
    assert curve(axes, "sdpa") == [pytest.approx(0.1), pytest.approx(3)]
    assert marks(axes) == {}
    assert legend(figure) == ["budget"]
    assert curve(axes, "budget") == [1, 1]


def test_another_axis_says_at_which_length() -> None:
    cases = compared_cases(*(row(n=n, batch=b) for n in (512, 1024) for b in (1, 2, 8)))
    (axes,) = draw(by_axis(cases, "batch"), LATENCY, "batch").axes
    assert axes.get_xlabel() == "batch size, at length 1024"
    assert tick_labels(axes, "x") == ["1", "2", "8"]
    dtypes = compared_cases(*(row(dtype=d) for d in ("float16", "float32")))
    (axes,) = draw(by_axis(dtypes, "dtype"), LATENCY, "dtype").axes
    assert tick_labels(axes, "x") == ["float32", "float16"]


def test_panels_that_do_not_fit_are_told() -> None:
    figure = drawn(*(row(batch=b) for b in range(1, 15)))
    assert len(figure.axes) == 9
    assert "5 more panels are not shown" in small_print(figure)


SCENES = {
    "one point": [row(n=1000)],
    "every built-in variant": [row(v, n, n * (1 + i)) for i, v in enumerate(BUILT_IN) for n in LENGTHS],
    "names of all sorts": [
        row(v, n) for v in ("$x$", r"$\foo", "_hidden", "[/]", "x" * 80, "a\nb", "") for n in LENGTHS
    ],
    "many panels": [
        row(n=n, mask=m, direction=d)
        for n in (512, 131072)
        for m in ("full", "causal", "causal+window:256", "causal+window:256+global:16", "window:1024+global:1024")
        for d in ("fwd", "bwd")
    ],
    "three masks": [
        row(v, n, n, mask=m)
        for v in BUILT_IN
        for n in (512, 2048, 131072)
        for m in ("full", "causal", "causal+window:1024+global:16")
    ],
    "a machine with a long name": [row(device_name="a CPU with a very long name, " * 8)],
    "equal times": [row(v, n, 5.0) for v in BUILT_IN for n in LENGTHS],
    "forty variants": [row(f"v{i}", n, 5.0) for i in range(40) for n in (512, 1024)],
    "all failed but one": [failed("oom", variant=v, n=n) for v in BUILT_IN for n in (512, 1024)] + [row("mine")],
}


@pytest.mark.parametrize(
    ("scene", "quantity"), [*((scene, LATENCY) for scene in SCENES), ("every built-in variant", MEMORY)]
)
def test_no_text_leaves_the_picture_or_covers_another(scene: str, quantity: Quantity) -> None:
    figure = drawn(*SCENES[scene], quantity=quantity)
    figure.canvas.draw()
    width, height = figure.bbox.width, figure.bbox.height
    boxes = [text.get_window_extent() for text in texts(figure)]
    for box in boxes:
        assert min(box.x0, box.y0) >= -1, scene
        assert box.x1 <= width + 1, scene
        assert box.y1 <= height + 1, scene
    small = [box.padded(-1) for box in boxes]
    assert not [1 for i, one in enumerate(small) for other in small[i + 1 :] if one.overlaps(other)]
