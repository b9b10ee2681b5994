"""Marks for what has no number: what failed or was skipped, at the top of a panel, in the variant's colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bench.analysis.groups import by
from bench.analysis.identity import Look
from bench.results.columns import FAILURES

HEIGHT = 0.05  # of one variant's line of marks, as a share of the panel's

_MOST_OF_PANEL = 0.45
_MARKS: dict[tuple[str, ...], Any] = {  # none is the marker of a variant, and all can be told apart without colour
    FAILURES: (6, 2, 0),  # an asterisk
    ("oom",): "x",
    ("timeout",): "|",
    ("skipped",): "_",
}


def marked(cases: pd.DataFrame, column: str) -> pd.DataFrame:
    """The cases that get a mark: not ok, and without a number in this column. What is unsupported gets none."""
    return cases[~cases["status"].isin(["ok", "unsupported"]) & cases[column].isna()]


def room(marks: pd.DataFrame) -> float:
    """The share of each panel's height that the marks of the fullest panel take."""
    return float(min(HEIGHT * marks.groupby("panel")["variant"].nunique().max(), _MOST_OF_PANEL)) if len(marks) else 0.0


def draw(axes: Axes, marks: pd.DataFrame, look: dict[str, Look], share: float) -> dict[str, float]:
    """A line of marks a variant within this share of the panel at its top; variant -> height of its line."""
    heights: dict[str, float] = {}
    height = min(HEIGHT, share / max(marks["variant"].nunique(), 1))
    for at, (name, own) in enumerate(by(marks, "variant")):
        heights[name] = 1 - height * (at + 0.6)
        for statuses, marker in _MARKS.items():
            x = own["x"][own["status"].isin(statuses)]
            if len(x):
                style: Any = {"color": look[name].colour, "marker": marker, "s": 26, "linewidths": 1.4}
                axes.scatter(x, [heights[name]] * len(x), transform=axes.get_xaxis_transform(), **style)
    return heights


def legend(marks: pd.DataFrame) -> Sequence[Line2D]:
    """What the marks that occur here mean."""
    present = set(marks["status"])
    return [
        Line2D(
            [], [], color="#555555", marker=marker, linestyle="", label=", ".join(s for s in statuses if s in present)
        )
        for statuses, marker in _MARKS.items()
        if present & set(statuses)
    ]
