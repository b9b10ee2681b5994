"""Curves: a quantity against the length, or against another axis that was swept; a panel a problem, a line a variant.

A gap is drawn as a gap: where a variant has no number at a place that its panel has, its line breaks, and a mark at
the top says what became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analysis.groups import by
from bench.analysis.identity import Look, looks
from bench.analysis.quantities import Quantity
from bench.analysis.text import length
from bench.figures import intervals, marks
from bench.figures.labels import End, end_labels
from bench.figures.panels import ROWS_BY_AXIS, first_panels
from bench.figures.scales import scale_counts, scale_dtypes, scale_lengths, scale_values
from bench.figures.sheet import GREY, finish, fullest, grid, named, order, small_print

_WORDS = {"heads": "query heads", "kv_heads": "key and value heads", "batch": "batch size", "head_dim": "head size"}

_LINE = 0.01  # a line's width, as a share of what the panel spans
Numbers = npt.NDArray[np.float64]


def draw(data: pd.DataFrame, quantity: Quantity, axis: str = "length", notes: Iterable[str] = ()) -> Figure:
    """The figure of a quantity against this axis, in the style that is set; `data` has a `panel` and an `x`."""
    shown = data[data["status"] != "unsupported"]
    told = (shown[quantity.column] > 0).groupby(shown["panel"]).transform("any")
    shown, left_out = first_panels(
        pd.concat([shown[told], shown[~told]]),  # empty panels are the first to go
        *(() if axis == "length" else (ROWS_BY_AXIS,)),
    )
    marked = marks.marked(shown, quantity.column)
    look, share = looks(shown["variant"]), marks.room(marked)
    sheet = grid(shown, fullest(shown), _x_label(shown, axis), quantity.label)
    _scale(sheet.first, shown, quantity, axis, share)
    ends = []
    for title, axes in sheet.panels.items():
        here = shown[shown["panel"] == title]
        lines = _lines(axes, here, quantity, look)
        if quantity.interval:
            _intervals(axes, here, quantity.interval, look)
        heights = marks.draw(axes, marked[marked["panel"] == title], look, share)
        ends.append(lines | _ends_of_marks(axes, marked[marked["panel"] == title], heights, look, lines))
        if quantity.one:
            axes.axhline(1, color=GREY, linewidth=1, zorder=1.5, label=quantity.one)
    legend = [*([Line2D([], [], color=GREY, label=quantity.one)] if quantity.one else []), *marks.legend(marked)]
    return finish(sheet, legend, small_print(shown, left_out, notes), end_labels(sheet.panels.values(), ends))


def _x_label(shown: pd.DataFrame, axis: str) -> str:
    """What the axis is called, and at which length, where that is not the axis."""
    if axis == "length":
        return "sequence length"
    first = shown.iloc[0]
    return f"{_WORDS.get(axis, axis)}, at length {length(first['seq_q'], first['seq_kv'])}"


def _scale(axes: Axes, shown: pd.DataFrame, quantity: Quantity, axis: str, room: float) -> None:
    """Both axes, which all panels share."""
    numbers = [*shown[quantity.column][shown[quantity.column] > 0], *([1.0] if quantity.one else [])]
    scale_values(axes, min(numbers), max(numbers), quantity.unit, room)
    scale = {"length": scale_lengths, "dtype": scale_dtypes}.get(axis, scale_counts)
    scale(axes, shown["x"].to_list())


def _lines(axes: Axes, cases: pd.DataFrame, quantity: Quantity, look: dict[str, Look]) -> dict[str, End]:
    """Draws a line a variant; where each ends."""
    places = np.sort(cases["x"].unique())
    variants = sorted(by(cases, "variant"), key=lambda item: order(item[0]))
    numbers = [_at(places, own, quantity.column) for _, own in variants]
    close = _LINE * np.log10(np.nanmax(numbers) / np.nanmin(numbers)) if np.isfinite(numbers).any() else 0.0
    ends = {}
    for at, (name, own) in enumerate(variants):
        # Where later lines lie on this one, it is broader than they are and shows on both sides of them.
        covers = min(sum(_coincide(numbers[at], later, close) for later in numbers[at + 1 :]), 3)
        _line(axes, places, numbers[at], name, look[name], covers)
        known = np.flatnonzero(np.isfinite(numbers[at]))
        if known.size:
            last, text = known[-1], named(name, bool(own["exact"].all()))
            ends[name] = End(text, look[name], float(places[last]), float(numbers[at][last]), axes.transData)
    return ends


def _intervals(axes: Axes, cases: pd.DataFrame, bounds: Sequence[str], look: dict[str, Look]) -> None:
    known = cases.dropna(subset=bounds)
    x, low, high = known[["x", *bounds]].to_numpy(float).T
    intervals.vertical(axes, x, low, high, [look[name].colour for name in known["variant"]])


def _at(places: Numbers, cases: pd.DataFrame, column: str) -> Numbers:
    """The column's number at each place; NaN where there is no such case."""
    found = np.full(len(places), np.nan)
    found[np.searchsorted(places, cases["x"])] = cases[column]
    return found


def _line(axes: Axes, places: Numbers, numbers: Numbers, name: str, look: Look, covers: int) -> None:
    colour, marker, line = look
    axes.plot(
        places,
        numbers,
        color=colour,
        linestyle=line,
        linewidth=1.4 + 1.1 * covers,
        marker=marker,
        markersize=(8 if marker == "*" else 5) + 1.7 * covers,
        markeredgecolor="white",
        markeredgewidth=0.4,
        label=name,
    )


def _coincide(one: Numbers, other: Numbers, close: float) -> bool:
    """Whether one line would hide the other: half of the points that both have lie within so many powers of ten."""
    apart = np.abs(np.log10(one / other))
    apart = apart[np.isfinite(apart)]
    return bool(apart.size and np.median(apart) <= close)


def _ends_of_marks(
    axes: Axes, marked: pd.DataFrame, heights: dict[str, float], look: dict[str, Look], lines: dict[str, End]
) -> dict[str, End]:
    """Where the marks of a variant end that has no line here."""
    found = {}
    for name, own in by(marked, "variant"):
        if name not in lines:
            text = named(name, bool(own["exact"].all()))
            found[name] = End(text, look[name], float(own["x"].max()), heights[name], axes.get_xaxis_transform())
    return found
