"""What a figure shows: every number at its place, gaps as gaps, failures marked, nothing outside the picture."""

import math
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from bench.analysis.figures import _STYLE, LATENCY, MEMORY, Quantity, draw, write
from bench.analysis.identity import BUILT_IN
from bench.results.columns import Row
from tests.analysis.made_up import failed, grouped, row

LENGTHS = (512, 1024, 2048, 4096)


@pytest.fixture(autouse=True)
def style() -> Iterator[None]:
    mpl.use("Agg")
    with mpl.rc_context({**sns.axes_style("whitegrid"), **_STYLE, "figure.dpi": 50}):
        yield
    plt.close("all")


def curve(axes: Axes, variant: str) -> list[float]:
    """The heights of a variant's line."""
    (line,) = (line for line in axes.lines if line.get_color() == BUILT_IN[variant].colour)
    return list(np.asarray(line.get_ydata(), dtype=float))


def drawn(*rows: Row, quantity: Quantity = LATENCY) -> Figure:
    figure = draw(grouped(*rows), quantity)
    figure.canvas.draw()
    return figure


def test_every_number_is_at_its_length() -> None:
    (axes,) = drawn(*(row("sdpa", n, n / 512) for n in LENGTHS)).axes
    assert curve(axes, "sdpa") == [1, 2, 4, 8]
    assert list(axes.lines[0].get_xdata()) == list(LENGTHS)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_failed_and_missing_lengths_break_the_line() -> None:
    rows = [row("naive", n, 1.0) for n in LENGTHS]
    rows += [row("sdpa", 512, 1.0), failed("oom", n=1024), row("sdpa", 2048, 3.0), row("flex", 512), row("flex", 4096)]
    (axes,) = drawn(*rows).axes
    assert curve(axes, "sdpa") == pytest.approx([1, math.nan, 3, math.nan], nan_ok=True)
    assert curve(axes, "flex") == pytest.approx([1, math.nan, math.nan, 1], nan_ok=True)


def test_failures_and_skips_are_marked_in_the_variants_colour_and_explained() -> None:
    rows = [
        row("naive", 512),
        failed("oom", "big", "naive", 1024),
        failed("skipped", "slow", "naive", 2048),
        row(n=512),
    ]
    rows += [failed("unsupported", "no", "xformers", 512)]
    figure = drawn(*rows)
    (axes,) = figure.axes
    marks = {
        tuple(path.get_offsets()[:, 0]): path.get_facecolor()
        for path in axes.collections
        if len(path.get_offsets()) == 1
    }
    assert {(1024.0,), (2048.0,)} <= set(marks)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["naive", "sdpa", "oom", "skipped"]


def test_the_marks_stand_above_every_line() -> None:
    rows = [row(v, 512, 100.0) for v in BUILT_IN] + [failed("oom", "big", v, 1024) for v in BUILT_IN]
    (axes,) = drawn(*rows).axes
    top = axes.transData.transform((512, 100.0))[1]
    marks = [c for c in axes.collections if c.get_offset_transform() == axes.get_xaxis_transform()]
    assert len(marks) >= len(BUILT_IN)
    lowest = min(axes.transAxes.transform((0, y))[1] for c in marks for _, y in c.get_offsets())
    assert lowest > top


def test_intervals_are_drawn_where_there_are_several_visits() -> None:
    times = (1.0, 1.1, 1.2)
    cases = grouped(*(row(n=512, ms=t, visit=v) for v, t in enumerate(times)), row(n=1024))
    (axes,) = draw(cases, LATENCY).axes
    bars = [segment for c in axes.collections if hasattr(c, "get_segments") for segment in c.get_segments()]
    spans = [(s[0][1], s[1][1]) for s in bars if len(s) and not np.isnan(s).any()]
    assert spans == [pytest.approx((cases["low_ms"][0], cases["high_ms"][0]))]


def test_powers_of_two_are_labelled_in_short() -> None:
    (axes,) = drawn(*(row(n=n) for n in LENGTHS)).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["512", "1k", "2k", "4k"]
    (axes,) = drawn(*(row(n=n) for n in (17, 100, 1000))).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["17", "100", "1000"]


def test_memory_is_labelled_in_binary_units() -> None:
    (axes,) = drawn(*(row(n=n, peak_bytes=n * 1024) for n in LENGTHS), quantity=MEMORY).axes
    assert [t.get_text() for t in axes.get_yticklabels()] == ["512 KiB", "1 MiB", "2 MiB", "4 MiB"]


def test_lines_that_coincide_all_show() -> None:
    (axes,) = drawn(
        *(row(v, n, peak_bytes=n) for v in ("naive", "sdpa", "flex") for n in LENGTHS), quantity=MEMORY
    ).axes
    widths = [line.get_linewidth() for line in axes.lines]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3


def tick_labels(axes: Axes) -> Iterator[Text]:
    """Those that are drawn: a locator gives ticks beyond the axis, too."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        yield from (t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high and t.label1.get_visible())


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
    "a machine with a long name": [row(device_name="a CPU with a very long name, " * 8)],
    "equal times": [row(v, n, 5.0) for v in BUILT_IN for n in LENGTHS],
}


@pytest.mark.parametrize(
    ("scene", "quantity"), [*((scene, LATENCY) for scene in SCENES), ("every built-in variant", MEMORY)]
)
def test_no_text_leaves_the_picture_or_covers_another(scene: str, quantity: Quantity) -> None:
    figure = drawn(*SCENES[scene], quantity=quantity)
    width, height = figure.bbox.width, figure.bbox.height
    texts = [t for a in figure.axes for t in (a.title, a.xaxis.label, a.yaxis.label, *tick_labels(a))]
    texts += [*figure.texts, *figure.legends[0].get_texts()]
    boxes = [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
    for box in boxes:
        assert box.x0 >= -1, scene
        assert box.y0 >= -1, scene
        assert box.x1 <= width + 1, scene
        assert box.y1 <= height + 1, scene
    small = [box.padded(-1) for box in boxes]
    assert not [1 for i, one in enumerate(small) for other in small[i + 1 :] if one.overlaps(other)]


def test_two_pngs_at_twice_the_width_of_a_readme(tmp_path: Path) -> None:
    paths = write(grouped(row(), row(n=2048)), tmp_path / "new", "run")
    assert [p.name for p in paths] == ["run-latency.png", "run-memory.png"]
    assert [plt.imread(p).shape[1] for p in paths] == [1800, 1800]
    assert not plt.get_fignums()


def test_nothing_measured_is_no_figure(tmp_path: Path) -> None:
    assert write(grouped(failed("oom")), tmp_path, "run") == []
    assert [p.name for p in write(grouped(row(peak_bytes=None)), tmp_path, "run")] == ["run-latency.png"]
