"""The figures of a run: latency and peak memory against sequence length, log-log, a panel a mask (seaborn).

A gap is drawn as a gap: where a variant has no number at a length that its panel has, its line breaks. A cross in
the variant's colour at the top says that it failed there, a dash that the length was skipped.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analysis.cases import BADNESS
from bench.analysis.groups import PROBLEM, by, describe, machine, records, varying
from bench.analysis.identity import BUILT_IN, Look, looks
from bench.analysis.panels import columns, panels
from bench.analysis.scales import scale_lengths, scale_values
from bench.analysis.text import plain

_WIDTH = 9.0  # inches: at 200 dots an inch, twice the width that a README shows
_HEIGHTS = {1: 4.0, 2: 3.3, 3: 2.9}  # of a panel, by how many stand side by side
_STYLE = {
    **{"font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8.5},
    **{"xtick.labelsize": 8, "ytick.labelsize": 8, "axes.edgecolor": "#888888"},
    **{"grid.linewidth": 0.6, "grid.color": "#e4e4e4", "figure.dpi": 200},
    "text.parse_math": False,  # a variant may be called $x$
}
_MARKS = ("x", "_")  # failed, skipped
_MARK_HEIGHT = 0.05  # of one variant's line of marks, as a share of the panel's
_MOST_FOR_MARKS = 0.45

Numbers = npt.NDArray[np.float64]


class Quantity(NamedTuple):
    """What a figure shows: its words, its columns in the cases, and whether its axis counts in powers of two."""

    name: str
    label: str
    column: str
    interval: tuple[str, ...]
    binary: bool


LATENCY = Quantity("latency", "latency (ms)", "latency_ms", ("low_ms", "high_ms"), binary=False)
MEMORY = Quantity("memory", "peak memory above inputs", "peak_bytes", (), binary=True)


def write(cases: pd.DataFrame, folder: Path, stem: str) -> list[Path]:
    """The PNGs written: <stem>-latency.png and <stem>-memory.png, less those that would be empty. OSError."""
    mpl.use("Agg")  # files only, whatever display there is
    style: Any = {**sns.axes_style("whitegrid"), **_STYLE}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for quantity in (LATENCY, MEMORY):
        if (cases[quantity.column] > 0).any():
            path = folder / f"{stem}-{quantity.name}.png"
            with mpl.rc_context(style):
                figure = draw(cases, quantity)
                try:
                    figure.savefig(path)
                finally:
                    plt.close(figure)
            written.append(path)
    return written


def draw(cases: pd.DataFrame, quantity: Quantity) -> Figure:
    """The figure of a quantity, in the style that is set."""
    data = panels(cases)
    titles = list(dict.fromkeys(data["panel"]))
    across = columns(data)
    height = _HEIGHTS[across]
    aspect = _WIDTH / across / height
    grid = sns.FacetGrid(data, col="panel", col_order=titles, col_wrap=across, height=height, aspect=aspect)
    shown = data[data["status"] != "unsupported"]
    look = looks(shown["variant"])
    marked = max(shown[shown["status"] != "ok"].groupby("panel")["variant"].nunique(), default=0)
    room = min(_MARK_HEIGHT * marked, _MOST_FOR_MARKS)
    for title, axes in grid.axes_dict.items():
        axes.set_title(title)
        here = shown[shown["panel"] == title]
        _lines(axes, here, quantity, look)
        _marks(axes, here, look, room / max(marked, 1))
    numbers = shown[quantity.column][shown[quantity.column] > 0]  # an interval from two visits may span decades
    scale_values(grid.axes.flat[0], numbers.min(), numbers.max(), quantity.binary, room)
    scale_lengths(grid.axes.flat[0], shown["length"])
    grid.set_xlabels("sequence length").set_ylabels(quantity.label)
    _surround(grid.figure, shown, look)
    return grid.figure


def _lines(axes: Axes, cases: pd.DataFrame, quantity: Quantity, look: dict[str, Look]) -> None:
    """A line a variant, broken wherever the panel has a length that the variant has no number for."""
    lengths = sorted(cases["length"].unique())
    variants = sorted(by(cases, "variant"), key=lambda item: _legend_order(item[0]))
    curves = {name: own.drop_duplicates("length").set_index("length").reindex(lengths) for name, own in variants}
    numbers = [curve[quantity.column].to_numpy() for curve in curves.values()]
    for at, (name, curve) in enumerate(curves.items()):
        colour, marker, line = look[name]
        # Where later lines lie on this one, it is broader than they are and shows on both sides of them.
        covers = min(sum(_coincide(numbers[at], later) for later in numbers[at + 1 :]), 3)
        axes.plot(
            lengths,
            numbers[at],
            color=colour,
            linestyle=line,
            linewidth=1.4 + 1.1 * covers,
            marker=marker,
            markersize=(8 if marker == "*" else 5) + 1.7 * covers,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )
        if quantity.interval:
            low, high = (curve[bound] for bound in quantity.interval)
            axes.vlines(lengths, low, high, color=colour, linewidth=1, alpha=0.6)


def _coincide(one: Numbers, other: Numbers) -> bool:
    """Whether one line would hide the other: half of the points that both have lie within 8 %, a line's width."""
    apart = np.abs(one / other - 1)
    apart = apart[np.isfinite(apart)]
    return bool(apart.size and np.median(apart) < 0.08)


def _marks(axes: Axes, cases: pd.DataFrame, look: dict[str, Look], height: float) -> None:
    """At the top of the panel, a line of this height for each variant that failed or was skipped at some length."""
    for at, (name, own) in enumerate(by(cases[cases["status"] != "ok"], "variant")):
        for mark in _MARKS:
            lengths = own["length"][own["status"].map(_mark) == mark]
            axes.scatter(
                lengths,
                [1 - height * (at + 0.6)] * len(lengths),
                color=look[name].colour,
                marker=mark,
                s=22,
                linewidths=1.5,
                transform=axes.get_xaxis_transform(),
            )


def _mark(status: str) -> str:
    return _MARKS[status == "skipped"]


def _surround(figure: Figure, cases: pd.DataFrame, look: dict[str, Look]) -> None:
    """What all panels share: the legend above them; the problem and the machine, in small print, below."""
    approximate = set(cases["variant"][~cases["exact"]])
    labels = {name: ("≈ " if name in approximate else "") + plain(name, 30) for name in look}
    handles = [_handle(labels[name], *look[name]) for name in sorted(look, key=_legend_order)]
    for mark in _MARKS:
        statuses = {status for status in cases["status"] if status != "ok" and _mark(status) == mark}
        if statuses:
            handles.append(_handle(", ".join(sorted(statuses, key=BADNESS.index)), "#555555", mark, ""))
    figure.set_layout_engine("constrained")
    figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles), frameon=False)
    same = [axis for axis in PROBLEM if axis not in (*varying(cases), "mask")]
    lines = (describe(records(cases)[0], same), machine(cases))
    figure.supxlabel("\n".join(textwrap.fill(line, 120) for line in lines if line), fontsize=7.5, color="#555555")


def _handle(label: str, colour: str, marker: str, line: Any) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle=line, label=label)


def _legend_columns(handles: list[Line2D]) -> int:
    """As many as fit, at 0.07 inches a character and 0.55 for the line and the space around it."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    return max(1, min(len(handles), int(_WIDTH / (0.07 * longest + 0.55))))


def _legend_order(variant: str) -> tuple[int, str]:
    """Built-in variants in their order, then the others by name."""
    names = list(BUILT_IN)
    return (names.index(variant) if variant in BUILT_IN else len(names)), variant
