"""The growth figure: the exponent of latency and of peak memory in the length, with its interval; a panel a problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.analysis.identity import Look, looks
from bench.analysis.text import plain
from bench.figures.labels import readable
from bench.figures.panels import first_panels
from bench.figures.sheet import GREY, finish, grid, named, order, small_print

X = "exponent of the length"

_FURTHEST = 3.0  # as far as the axis goes for the sake of an interval
_ROW = {"latency_ms": 0.16, "peak_bytes": -0.16}  # where in a variant's row, and which come first
_WORDS = {"latency_ms": "latency", "peak_bytes": "peak memory"}


def draw(data: pd.DataFrame, notes: Iterable[str] = ()) -> Figure:
    """The figure of fitted growths with a `panel`, in the style that is set: a row a variant, latency above memory."""
    shown, left_out = first_panels(data)
    names = sorted(set(shown["variant"]), key=order, reverse=True)
    look = looks(names)
    sheet = grid(shown, 2 * len(names), X, "")
    for title, axes in sheet.panels.items():
        for power in (1, 2):
            axes.axvline(power, color="#999999", linewidth=1, zorder=1)
        for growth in shown[shown["panel"] == title].to_dict("records"):
            _growth(axes, growth, names.index(growth["variant"]), look[growth["variant"]])
        axes.grid(axis="y", visible=False)
    exact = shown.groupby("variant")["exact"].all()
    sheet.first.set_yticks(range(len(names)), [named(name, bool(exact[name])) for name in names])
    sheet.first.set_ylim(-0.6, len(names) - 0.4)
    sheet.first.set_xlim(-0.1, max(2.2, min(shown["high"].max(), _FURTHEST), shown["exponent"].max()) + 0.1)
    sheet.first.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "0.5", "1\nlinear", "1.5", "2\nquadratic"])
    for axes in sheet.panels.values():
        for text, name in zip(axes.get_yticklabels(), names, strict=False):  # inner panels have none
            text.set_color(readable(look[name].colour))
    return finish(sheet, _legend(shown), small_print(shown, left_out, notes), [])


def missing(growths: pd.DataFrame) -> list[str]:
    """What has no fit, and why: "no exponent: naive, sdpa (2 lengths, ...)"."""
    left_out = growths[growths["exponent"].isna() & (growths["lengths"] > 0)]
    named = left_out.assign(variant=left_out["variant"].map(plain)).groupby("reason")["variant"]
    parts = [f"{', '.join(sorted(set(variants)))} ({reason})" for reason, variants in named]
    return [f"no exponent in some panel: {'; '.join(parts)}"] if parts else []


def _growth(axes: Axes, growth: Mapping[Any, Any], row: int, look: Look) -> None:
    """A dot at the exponent, filled for latency and hollow for memory, over its interval."""
    y = row + _ROW[growth["quantity"]]
    hollow = growth["quantity"] == "peak_bytes"
    axes.hlines(y, growth["low"], growth["high"], color=look.colour, linewidth=1.3)
    axes.plot(
        [growth["exponent"]],
        [y],
        color=look.colour,
        marker=look.marker,
        markerfacecolor="white" if hollow else look.colour,
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
