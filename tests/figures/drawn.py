"""What the tests of figures share: the style, and what can be asked of a figure that was drawn."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from bench.figures.sheet import STYLE

LENGTHS = (512, 1024, 2048, 4096)


@pytest.fixture
def style() -> Iterator[None]:
    """The figures' own style, at few dots."""
    mpl.use("Agg")
    with mpl.rc_context({**sns.axes_style("whitegrid"), **STYLE, "figure.dpi": 50}):
        yield
    plt.close("all")


def line(axes: Axes, variant: str) -> Line2D:
    """A variant's line."""
    (found,) = (one for one in axes.lines if one.get_label() == variant)
    return found


def curve(axes: Axes, variant: str) -> list[float]:
    """The heights of a variant's line."""
    return list(np.asarray(line(axes, variant).get_ydata(), dtype=float))


def labels(axes: Axes) -> list[str]:
    """The labels beside a panel, from the top."""
    return [text.get_text() for text in sorted(axes.texts, key=lambda text: -text.get_position()[1])]


def legend(figure: Figure) -> list[str]:
    """What the legend says."""
    return [text.get_text() for one in figure.legends for text in one.get_texts()]


def small_print(figure: Figure) -> str:
    """What stands below."""
    return figure.texts[0].get_text()


def texts(figure: Figure) -> list[Text]:
    """All texts that are drawn."""
    found = [t for a in figure.axes for t in (a.title, a.xaxis.label, a.yaxis.label, *a.texts, *_tick_labels(a))]
    found += [*figure.texts, *(text for one in figure.legends for text in one.get_texts())]
    return [text for text in found if text.get_text() and text.get_visible()]


def _tick_labels(axes: Axes) -> Iterator[Text]:
    """Those that are drawn: a locator gives ticks beyond the axis, too."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        yield from (t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high and t.label1.get_visible())
