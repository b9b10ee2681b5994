"""Labels at the ends of lines, beside the panel and never over one another, instead of a legend.

Where a label goes is least squares: as near to the end of its line as order and room allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation, Transform

from bench.analysis.identity import Look

GAP = 10.0  # points from one label to the next

_SIZE = 8.0  # points
_MARKER, _TEXT = 6.0, 12.0  # points from the panel's edge
_READABLE = 4.5  # contrast to white that text needs: https://www.w3.org/TR/WCAG22/#contrast-minimum


class End(NamedTuple):
    """What a line is called, its look, and where it ends: (x, y) under the transform."""

    text: str
    look: Look
    x: float
    y: float
    transform: Transform
    here: bool = True  # whether it is this panel that it ends in


class EndLabels:
    """The labels of a panel: made before the figure is laid out, so that they get room, and placed afterwards."""

    def __init__(self, axes: Axes, ends: Sequence[End]) -> None:
        figure = axes.get_figure(root=True)
        assert figure is not None
        self._axes, self._ends, self._figure = axes, ends, figure
        aside = axes.transAxes + ScaledTranslation(_TEXT / 72, 0, self._figure.dpi_scale_trans)
        self.texts: list[Text] = [
            axes.text(1, 0.5, end.text, color=readable(end.look.colour), size=_SIZE, va="center", transform=aside)
            for end in ends
        ]

    def width(self) -> float:
        """Inches that they take beside the panel."""
        widest = max((text.get_window_extent().width for text in self.texts), default=0.0)
        return float(widest / self._figure.dpi + _TEXT / 72)

    def place(self) -> None:
        """Moves each label beside the end of its line, with its marker, and a thin line from the one to the other."""
        axes, inward = self._axes, self._axes.transAxes.inverted()
        box = axes.get_window_extent()
        wide, high = (pixels * 72 / self._figure.dpi for pixels in (box.width, box.height))
        starts = [tuple(inward.transform(end.transform.transform((end.x, end.y)))) for end in self._ends]
        heights = [y / high for y in spread([y * high for _, y in starts], GAP, 0.0, high)]
        beside = 1 + _MARKER / wide
        outside: Any = {"transform": axes.transAxes, "clip_on": False}
        for end, text, y in zip(self._ends, self.texts, heights, strict=True):
            text.set_y(y)
            look: Any = {"color": end.look.colour, "marker": end.look.marker, "markersize": 4.5, "markeredgewidth": 0}
            axes.add_artist(Line2D([beside], [y], **look, **outside))
        leading = [item for item in zip(self._ends, starts, heights, strict=True) if item[0].here]
        paths = [[start, (1.0, y), (beside, y)] for _, start, y in leading]
        colours = [end.look.colour for end, _, _ in leading]
        axes.add_collection(LineCollection(paths, colors=colours, linewidths=0.5, alpha=0.6, zorder=1, **outside))


def end_labels(panels: Iterable[Axes], ends: Sequence[Mapping[str, End]]) -> list[EndLabels]:
    """The labels of each panel, from variant -> end, panels in the order of their grid.

    Of three in a row the last alone has labels, those of what ends in another panel included: at that height, without
    a line to it.
    """
    rows = [(axes, axes.get_subplotspec().rowspan.start) for axes in panels]  # type: ignore[union-attr]
    if sum(row == 0 for _, row in rows) < 3:
        return [EndLabels(axes, list(own.values())) for (axes, _), own in zip(rows, ends, strict=True)]
    found = []
    for _, members in groupby(zip(rows, ends, strict=True), key=lambda item: item[0][1]):
        *others, ((last, _), own) = members
        elsewhere = {name: end._replace(here=False) for _, other in others for name, end in other.items()}
        found.append(EndLabels(last, list((elsewhere | dict(own)).values())))
    return found


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places from low to high, `gap` apart at least and in the order of those wanted, that least squares puts nearest.

    Less the gaps below it, each place must not be below the one before: that is isotonic regression, by pooling
    adjacent violators (Ayer et al., 1955: https://doi.org/10.1214/aoms/1177728423). Where room is short, gaps shrink.
    """
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    pools: list[tuple[float, int]] = []  # (mean, how many)
    for rank, at in enumerate(order):
        mean, count = wanted[at] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            below, others = pools.pop()
            mean, count = (mean * count + below * others) / (count + others), count + others
        pools.append((mean, count))
    top = high - gap * (len(wanted) - 1)
    pooled = [min(max(mean, low), top) for mean, count in pools for _ in range(count)]
    found = {at: place + rank * gap for rank, (at, place) in enumerate(zip(order, pooled, strict=True))}
    return [found[at] for at in range(len(wanted))]


def readable(colour: str) -> str:
    """The colour, darkened as far as text on white has to be."""
    channels = to_rgb(colour)
    while 1.05 / (_luminance(channels) + 0.05) < _READABLE:
        channels = (0.95 * channels[0], 0.95 * channels[1], 0.95 * channels[2])
    return to_hex(channels)


def _luminance(channels: tuple[float, float, float]) -> float:
    """Relative luminance: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance"""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
