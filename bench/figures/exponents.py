"""The growth figure: the exponent of latency and of peak memory in the length, with its interval; a panel a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analysis.identity import Look, looks
from bench.analysis.text import plain
from bench.figures import intervals
from bench.figures.labels import readable
from bench.figures.panels import first_panels, titled
from bench.figures.sheet import GREY, finish, grid, named, order, small_print

X = "exponent of the length"

_FURTHEST = 3.0  # as far as the axis goes for the sake of an interval
_ROW = {"latency_ms": 0.16, "peak_bytes": -0.16}  # where in a variant's row, and which come first
_WORDS = {"latency_ms": "latency", "peak_bytes": "peak memory"}


def draw(growths: pd.DataFrame) -> Figure:
    """The figure of fitted growths, in the style that is set: a row a variant, latency above memory."""
    shown, left_out = first_panels(titled(growths[growths["exponent"].notna()]))
    names = sorted(set(shown["variant"]), key=order, reverse=True)
    look = looks(names)
    sheet = grid(shown, 2 * len(names), X, "")
    sheet.first.set_xlim(-0.1, max(2.2, min(shown["high"].max(), _FURTHEST), shown["exponent"].max()) + 0.1)
    for title, axes in sheet.panels.items():
        for power in (1, 2):
            axes.axvline(power, color="#999999", linewidth=1, zorder=1)
        _growths(axes, shown[shown["panel"] == title], names, look)
        axes.grid(axis="y", visible=False)
    exact = shown.groupby("variant")["exact"].all()
    sheet.first.set_yticks(range(len(names)), [named(name, bool(exact[name])) for name in names])
    sheet.first.set_ylim(-0.6, len(names) - 0.4)
    sheet.first.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "0.5", "1\nlinear", "1.5", "2\nquadratic"])
    for axes in sheet.panels.values():
        for text, name in zip(axes.get_yticklabels(), names, strict=False):  # inner panels have none
            text.set_color(readable(look[name].colour))
    return finish(sheet, _legend(shown), small_print(shown, left_out, _missing(growths)), [])


def _missing(growths: pd.DataFrame) -> list[str]:
    """What has no fit, and why: "no exponent in some panel: naive, sdpa (2 lengths, ...)"."""
    left_out = growths[growths["exponent"].isna() & (growths["lengths"] > 0)]
    named = left_out.assign(variant=left_out["variant"].map(plain)).groupby("reason")["variant"]
    parts = [f"{', '.join(sorted(set(variants)))} ({reason})" for reason, variants in named]
    return [f"no exponent in some panel: {'; '.join(parts)}"] if parts else []


def _growths(axes: Axes, shown: pd.DataFrame, names: Sequence[str], look: Mapping[str, Look]) -> None:
    """A dot at each exponent, filled for latency and hollow for memory, over its interval."""
    heights = [names.index(name) + _ROW[what] for name, what in zip(shown["variant"], shown["quantity"], strict=True)]
    colours = [look[name].colour for name in shown["variant"]]
    low, high = shown[["low", "high"]].to_numpy(float).T
    intervals.horizontal(axes, np.array(heights), low, high, colours)
    for y, colour, growth in zip(heights, colours, shown.to_dict("records"), strict=True):
        axes.plot(
            [growth["exponent"]],
            [y],
            color=colour,
            marker=look[growth["variant"]].marker,
            markerfacecolor="white" if growth["quantity"] == "peak_bytes" else colour,
            markersize=5,
            label=growth["variant"],
        )


def _legend(shown: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D(
            [], [], color=GREY, marker="o", markerfacecolor=face, markersize=5, linewidth=1.3, label=_WORDS[quantity]
        )
        for quantity, face in (("latency_ms", GREY), ("peak_bytes", "white"))
        if quantity in set(shown["quantity"])
    ]
