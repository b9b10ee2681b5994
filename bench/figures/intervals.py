"""Intervals: a bar each, in its variant's colour, with a caret where the frame cuts it.

An interval from two visits may span decades, and a frame does not grow for it; the axes have their limits by then.
All bars of a panel are drawn at once, for each call takes its time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.markers import CARETDOWN, CARETLEFT, CARETRIGHT, CARETUP, MarkerStyle

_CARET = 22.0  # its area, in square points
Numbers = npt.NDArray[np.float64]


def vertical(axes: Axes, x: Numbers, low: Numbers, high: Numbers, colours: Sequence[str]) -> None:
    """Bars up from low to high, thin and pale, for they stand below lines."""
    axes.vlines(x, low, high, color=colours, linewidth=1, alpha=0.6, zorder=1.8)
    bottom, top = axes.get_ylim()
    for cut, edge, caret in ((low < bottom, bottom, CARETDOWN), (high > top, top, CARETUP)):
        _carets(axes, x[cut], np.full(cut.sum(), edge), np.array(colours)[cut], caret)


def horizontal(axes: Axes, y: Numbers, low: Numbers, high: Numbers, colours: Sequence[str]) -> None:
    """Bars to the right from low to high."""
    axes.hlines(y, low, high, color=colours, linewidth=1.3)
    left, right = axes.get_xlim()
    for cut, edge, caret in ((low < left, left, CARETLEFT), (high > right, right, CARETRIGHT)):
        _carets(axes, np.full(cut.sum(), edge), y[cut], np.array(colours)[cut], caret)


def _carets(axes: Axes, x: Numbers, y: Numbers, colours: npt.NDArray[np.str_], caret: int) -> None:
    """Their tips lie on the frame."""
    if len(x):
        axes.scatter(x, y, s=_CARET, c=colours, marker=MarkerStyle(caret), linewidths=0, clip_on=False)
