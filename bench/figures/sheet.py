"""What all figures share: their style, a grid of panels, the legend above it and the small print below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analysis.groups import PROBLEM, describe, machine, records, varying
from bench.analysis.identity import BUILT_IN
from bench.analysis.text import plain
from bench.figures.labels import GAP, EndLabels
from bench.figures.panels import columns

STYLE = {
    **{"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8.5},
    **{"xtick.labelsize": 8, "ytick.labelsize": 8, "axes.edgecolor": "#888888"},
    **{"grid.linewidth": 0.6, "grid.color": "#e4e4e4", "figure.dpi": 200},
    "axes.titley": 1.0,  # else each drawing looks for a place, which takes a fifth of its time
    "text.parse_math": False,  # a variant may be called $x$
    **{"svg.fonttype": "none", "svg.hashsalt": "attention-bench"},  # text stays text, and names are the same every time
}
GREY = "#555555"

_WIDTH = 9.0  # inches: at 200 dots an inch, twice the width that a README shows
_HEIGHTS = {1: 3.2, 2: 2.5, 3: 2.15}  # inches of a panel, by how many stand side by side
_TITLE_WIDTHS = {1: 90, 2: 42, 3: 32}  # characters
_SPACE = 0.12  # inches between any two things
_COLUMNS_APART = 0.25  # inches: labels at the ends of two x axes stand there
_LINE = 0.16  # inches that a line of text takes


class Grid(NamedTuple):
    """A figure and its panels, by their titles."""

    figure: Figure
    panels: dict[str, Axes]

    @property
    def first(self) -> Axes:
        """The panel whose scales all others share."""
        return next(iter(self.panels.values()))


def grid(data: pd.DataFrame, lines: int, x: str, y: str) -> Grid:
    """A panel for each title in the column `panel`, in the order of the data, with room for so many lines of text.

    All panels share their scales; x and y are what their axes are called. (seaborn's FacetGrid does the same, but
    lays the figure out an extra time, which is a fifth of all the time that figures take.)
    """
    titles = list(dict.fromkeys(data["panel"]))
    across = columns(data)
    down = math.ceil(len(titles) / across)
    height = max(_HEIGHTS[across], lines * GAP / 72)
    figure = Figure(figsize=(_WIDTH, height * down))  # not pyplot's, which would choose a window for the whole process
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for spare in axes.flat[len(titles) :]:
        spare.remove()
    panels = dict(zip(titles, axes.flat, strict=False))
    for at, (title, panel) in enumerate(panels.items()):
        panel.set_title(_wrapped(title, _TITLE_WIDTHS[across]))
        panel.set_ylabel(y if at % across == 0 else "")
        lowest = at + across >= len(titles)
        panel.set_xlabel(x if lowest else "")
        panel.tick_params(labelbottom=lowest)
    sns.despine(figure)
    return Grid(figure, panels)


def finish(sheet: Grid, legend: Sequence[Line2D], small_print: Iterable[str], labels: Sequence[EndLabels]) -> Figure:
    """The figure with its surroundings, laid out, and then with its labels in place."""
    figure = sheet.figure
    print_ = [part for line in small_print if line for part in textwrap.wrap(line, 120)]
    _lay_out(sheet, bool(legend), len(print_), labels)
    if legend:
        style: Any = {"frameon": False, "handlelength": 1.6, "handletextpad": 0.5, "borderaxespad": 0.2}
        figure.legend(handles=legend, loc="upper center", ncols=len(legend), **style)
    figure.text(0.5, 0.04 / figure.get_figheight(), "\n".join(print_), size=7.5, color=GREY, ha="center", va="bottom")
    for panel in labels:
        panel.place()
    return figure


def _lay_out(sheet: Grid, legend: bool, print_lines: int, labels: Sequence[EndLabels]) -> None:
    """Panels keep the height that the figure was made with for each; what is around them adds to it.

    One measured panel speaks for all, since they share their scales: matplotlib's own layouts measure each, twice.
    """
    figure, first, last = sheet.figure, sheet.first, list(sheet.panels.values())[-1]
    spec = first.get_subplotspec()
    assert spec is not None
    down, across, *_ = spec.get_geometry()
    height = figure.get_figheight() / down
    beside = max((panel.width() for panel in labels), default=0.0)
    every = beside if across < 3 else 0.0  # of three panels the last alone has labels
    title = _LINE * max(1 + axes.get_title().count("\n") for axes in sheet.panels.values()) + 0.05
    left = _beyond(first.yaxis, first, "x0") + _SPACE / 2
    below = _beyond(last.xaxis, last, "y0") + _SPACE + print_lines * _LINE
    above = title + (0.3 if legend else 0.05)
    between = title + _SPACE
    whole = above + below + down * height + (down - 1) * between
    panel = (_WIDTH - left - beside - _SPACE - (across - 1) * (every + _COLUMNS_APART)) / across
    figure.set_size_inches(_WIDTH, whole)
    figure.subplots_adjust(
        left=left / _WIDTH,
        right=1 - (beside + _SPACE) / _WIDTH,
        bottom=below / whole,
        top=1 - above / whole,
        wspace=(every + _COLUMNS_APART) / panel,
        hspace=between / height,
    )


def _beyond(axis: Axis, axes: Axes, side: str) -> float:
    """How many inches an axis' labels reach beyond the panel on this side."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axis.get_tightbbox(figure.canvas.get_renderer())  # type: ignore[attr-defined]
    return 0.0 if box is None else float(getattr(axes.bbox, side) - getattr(box, side)) / figure.dpi


def small_print(data: pd.DataFrame, left_out: int, notes: Iterable[str] = ()) -> list[str]:
    """The problem and the machine, as far as all panels share them, and what is not shown."""
    same = [axis for axis in PROBLEM if axis not in (*varying(data), "mask")]
    panels = f"{left_out} more {'panel is' if left_out == 1 else 'panels are'} not shown" if left_out else ""
    return [describe(records(data, "panel", "variant")[0], same), machine(data), *filter(None, (panels, *notes))]


def fullest(data: pd.DataFrame) -> int:
    """How many variants the fullest panel has."""
    return int(data.groupby("panel")["variant"].nunique().max())


def named(variant: str, exact: bool) -> str:
    """What a variant is called in a figure."""
    return ("" if exact else "≈ ") + plain(variant, 30)


def order(variant: str) -> tuple[int, str]:
    """Sorts built-in variants in their order, then the others by name."""
    names = list(BUILT_IN)
    return (names.index(variant) if variant in BUILT_IN else len(names)), variant


def _wrapped(title: str, width: int) -> str:
    """Over several lines, broken between its parts or, in a long mask, behind a plus."""
    parts = title.replace(" · ", "\1· ").split("\1")
    whole = " ".join(part.replace(" ", "\N{NO-BREAK SPACE}") if len(part) <= width else part for part in parts)
    return textwrap.fill(whole.replace("+", "+\0 "), width).replace("+\0 ", "+").replace("\0", "")
