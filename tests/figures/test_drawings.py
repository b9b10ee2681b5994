"""Which figures are written, and what the roofline and the exponents show."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection
from matplotlib.colors import same_color

from bench.analysis.contents import Contents
from bench.analysis.frame import from_rows
from bench.figures import exponents, roofs
from bench.figures.drawings import drawings
from bench.figures.files import save
from bench.figures.panels import by_length
from bench.results.columns import Row
from tests.analysis.made_up import compared_cases, failed, row
from tests.figures.drawn import LENGTHS, labels, legend, line, small_print, style

ALL = ("latency", "memory", "speedup", "roofline", "error", "growth")


def sweep(**changes: Any) -> list[Row]:
    return [row(v, n, n, peak_bytes=n * 1000, **changes) for v in ("sdpa", "flex") for n in LENGTHS]


def names(*rows: Row, baseline: str = "sdpa") -> list[str]:
    return [drawing.name for drawing in drawings(Contents(from_rows(rows), baseline))]


def saved(folder: Path, *rows: Row) -> list[Path]:
    return [path for drawing in drawings(Contents(from_rows(rows), "sdpa")) for path in save(drawing, folder, "run")]


def test_each_figure_as_png_and_svg(tmp_path: Path) -> None:
    paths = saved(tmp_path / "new", *sweep())
    assert [p.name for p in paths] == [f"run-{name}.{ending}" for name in ALL for ending in ("png", "svg")]
    assert all(path.stat().st_size for path in paths)
    assert {plt.imread(p).shape[1] for p in paths if p.suffix == ".png"} == {1800}  # twice the width of a README
    assert not plt.get_fignums()


def test_the_text_of_an_svg_is_text_and_never_markup(tmp_path: Path) -> None:
    rows = [row("<script>$x$", n, exact=False, peak_bytes=None) for n in (1024, 2048)]
    once, again = (saved(tmp_path / name, *rows) for name in ("a", "b"))
    _, svg = once
    assert "<script" not in svg.read_text()
    texts = [element.text for element in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"≈ <script>$x$", "sequence length", "1k"} <= set(texts)
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_what_has_nothing_to_show_is_no_figure() -> None:
    assert names(failed("oom")) == []
    assert "memory" not in names(row(peak_bytes=None))
    assert names(*sweep(), baseline="naive") == [name for name in ALL if name != "speedup"]
    assert "speedup" not in names(*(row(n=n) for n in LENGTHS))  # the baseline alone
    assert {"growth", "roofline", "error"}.isdisjoint(names(row("mine", exact=False)))


def test_other_axes_that_were_swept_have_figures_of_their_own() -> None:
    rows = [r for heads in (4, 8) for r in sweep(heads=heads, kv_heads=heads)]
    assert names(*rows) == [
        *("latency", "memory", "speedup"),
        *("latency-by-heads", "memory-by-heads", "speedup-by-heads"),
        *("roofline", "error", "growth"),
    ]


def rated(*rows: Row, **roofs_: float) -> pd.DataFrame:
    roof = {"ceiling_tflops": math.nan, "copy_gb_s": math.nan, **roofs_}
    return by_length(compared_cases(*rows).assign(**roof))


@pytest.mark.usefixtures(style.__name__)
def test_the_roofs_are_those_that_were_measured() -> None:
    rows = [row(n=n, mask="full", heads=4, kv_heads=4, head_dim=64) for n in LENGTHS]
    (axes,) = roofs.draw(rated(*rows, ceiling_tflops=2.0, copy_gb_s=40.0)).axes
    assert list(line(axes, "sdpa").get_xdata()) == [n / 4 for n in LENGTHS]  # 4 n n d over 4 n d numbers of 4 bytes
    (_, low), (ridge, corner), (_, high) = line(axes, "roof").get_xydata()
    assert (ridge, corner, high) == (50, pytest.approx(2), pytest.approx(2))
    assert low < 2
    assert {"copy 40.0 GB/s", "2.00 TFLOP/s", "sdpa"} == set(labels(axes))


@pytest.mark.usefixtures(style.__name__)
def test_where_no_roof_was_measured_none_is_drawn() -> None:
    (axes,) = roofs.draw(rated(*sweep())).axes
    assert "roof" not in {one.get_label() for one in axes.lines}
    assert set(labels(axes)) == {"sdpa", "flex"}


def test_an_approximation_has_no_rate() -> None:
    made = drawings(Contents(from_rows([row(), row("mine", exact=False)]), "sdpa"))
    (data, notes), *_ = (drawing.arguments for drawing in made if drawing.name == "roofline")
    assert set(data["variant"]) == {"sdpa"}
    assert notes == ("not shown: mine, for an approximation has no rate",)


def growth(variant: str, quantity: str, exponent: float, **changes: Any) -> dict[str, Any]:
    (problem,) = compared_cases(row()).to_dict("records")
    fit = {"exponent": exponent, "low": exponent - 0.1, "high": exponent + 0.2, "lengths": 5, "reason": ""}
    return problem | {"variant": variant, "quantity": quantity} | fit | changes


@pytest.mark.usefixtures(style.__name__)
def test_a_dot_and_an_interval_for_each_exponent() -> None:
    fits = [growth("naive", "latency_ms", 2.1), growth("naive", "peak_bytes", 2.0), growth("flex", "latency_ms", 1.2)]
    figure = exponents.draw(pd.DataFrame(fits))
    figure.canvas.draw()
    (axes,) = figure.axes
    dots = [one for one in axes.lines if one.get_marker() not in ("None", "")]
    assert [list(dot.get_xdata()) for dot in dots] == [[2.1], [2.0], [1.2]]
    assert [same_color(dot.get_markerfacecolor(), "white") for dot in dots] == [False, True, False]
    spans = [tuple(segment[:, 0]) for c in axes.collections for segment in c.get_segments()]
    assert spans == [pytest.approx((e - 0.1, e + 0.2)) for e in (2.1, 2.0, 1.2)]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["flex", "naive"]
    assert {1.0, 2.0} <= {float(one.get_xdata()[0]) for one in axes.lines if len(one.get_xdata()) == 2}
    assert legend(figure) == ["latency", "peak memory"]


@pytest.mark.usefixtures(style.__name__)
def test_a_caret_shows_where_the_frame_cuts_the_interval_of_an_exponent() -> None:
    fits = [growth("naive", "latency_ms", 2.0, high=9.0), growth("flex", "latency_ms", 1.0)]
    (axes,) = exponents.draw(pd.DataFrame(fits)).axes
    right = axes.get_xlim()[1]
    assert right < 9
    carets = [tuple(c.get_offsets()[0]) for c in axes.collections if isinstance(c, PathCollection)]
    assert carets == [(right, pytest.approx(1.16))]  # in naive's row, above, where latency is


@pytest.mark.usefixtures(style.__name__)
def test_what_has_no_exponent_is_told() -> None:
    none = growth("naive", "latency_ms", math.nan, lengths=2, reason="2 lengths only")
    never_ran = growth("x", "latency_ms", math.nan, lengths=0, reason="0 lengths")
    figure = exponents.draw(pd.DataFrame([growth("flex", "latency_ms", 1.0), none, never_ran]))
    assert small_print(figure).endswith("\nno exponent in some panel: naive (2 lengths only)")
