"""The roofline figure: the rate of each exact case against its arithmetic intensity, under the machine's own roofs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.analysis.groups import by
from bench.analysis.identity import Look, looks
from bench.analysis.roofline import bound, intensity
from bench.analysis.text import significant
from bench.figures.labels import End, end_labels
from bench.figures.panels import first_panels
from bench.figures.scales import scale_intensities, scale_values
from bench.figures.sheet import GREY, finish, fullest, grid, named, order, small_print

X, Y = "intensity (FLOP per byte)", "rate (TFLOP/s)"

_HEADROOM = 0.08  # of a panel, for what the roof is called


def draw(data: pd.DataFrame, notes: Iterable[str] = ()) -> Figure:
    """The figure of cases that have a rate and a `panel`, in the style that is set; a line goes from a variant's
    shortest length to its longest. Roofs are those that the runs measured, and missing where they did not."""
    first, left_out = first_panels(data)
    shown = first.assign(intensity=[intensity(case) for case in first.to_dict("records")])
    look = looks(shown["variant"])
    sheet = grid(shown, fullest(shown), X, Y)
    ridges = (1e3 * shown["ceiling_tflops"] / shown["copy_gb_s"]).dropna().to_list()
    reach = [*shown["intensity"], *ridges]
    left, right = min(reach) / 1.5, max(reach) * 1.2
    ends, rates = [], shown["tflops"].to_list()
    for title, axes in sheet.panels.items():
        here = shown[shown["panel"] == title]
        ends.append(_paths(axes, here, look))
        rates += _roofs(axes, here["ceiling_tflops"].max(), here["copy_gb_s"].max(), left, right)
    scale_intensities(sheet.first, left, right)
    scale_values(sheet.first, min(rates), max(rates), "", _HEADROOM)
    labels = end_labels(sheet.panels.values(), ends)
    return finish(sheet, [], small_print(shown, left_out, notes), labels)


def _paths(axes: Axes, cases: pd.DataFrame, look: dict[str, Look]) -> dict[str, End]:
    """Draws each variant's cases, from the shortest to the longest; where each ends."""
    ends = {}
    for name, own in sorted(by(cases.sort_values("length"), "variant"), key=lambda item: order(item[0])):
        colour, marker, line = look[name]
        x, y = own["intensity"].to_numpy(), own["tflops"].to_numpy()
        style: Any = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.4, "linewidth": 1.1}
        axes.plot(x, y, color=colour, marker=marker, linestyle=line, label=name, **style)
        ends[name] = End(named(name, True), look[name], float(x[-1]), float(y[-1]), axes.transData)
    return ends


def _roofs(axes: Axes, ceiling_tflops: float, copy_gb_s: float, left: float, right: float) -> list[float]:
    """Draws the slope of the memory and the flat of the arithmetic, if both are known; the rates that they span."""
    if not (ceiling_tflops > 0 and copy_gb_s > 0):
        return []
    corners = [left, 1e3 * ceiling_tflops / copy_gb_s, right]
    rates = [bound(x, ceiling_tflops, copy_gb_s) for x in corners]
    axes.plot(corners, rates, color=GREY, linewidth=1.4, zorder=1.5, label="roof")
    style: Any = {"color": GREY, "size": 7.5, "textcoords": "offset points"}
    axes.annotate(f"copy {significant(copy_gb_s)} GB/s", (left, rates[-1]), xytext=(0, 3), **style)  # no case is there
    axes.annotate(f"{significant(ceiling_tflops)} TFLOP/s", (right, rates[-1]), xytext=(-4, 3), ha="right", **style)
    return rates
