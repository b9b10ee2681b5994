"""The axes of a figure: logarithmic, lengths and bytes in powers of two, labels that a reader knows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullLocator

from bench.analysis.text import significant, size, tokens
from variants.problem import DTYPES

_MOST_TICKS = 7
_LEFT, _RIGHT = 1.3, 1.15  # beyond the first and the last value


def scale_lengths(axes: Axes, lengths: Sequence[int]) -> None:
    """The x axis: powers of two as 512, 1k, 2k; or the lengths themselves where none of them is one."""
    ticks = _powers_of_two(min(lengths), max(lengths))
    _scale_x(axes, lengths, ticks if set(ticks) & set(lengths) else _thinned(sorted(set(lengths))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tokens(round(value))))


def scale_counts(axes: Axes, counts: Sequence[int]) -> None:
    """The x axis: a tick at each value, such as a number of heads."""
    _scale_x(axes, counts, _thinned(sorted(set(counts))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def scale_dtypes(axes: Axes, places: Sequence[int]) -> None:
    """The x axis: a place for each dtype, in their order."""
    shown = sorted(set(places))
    axes.set_xlim(shown[0] - 0.35, shown[-1] + 0.15)
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FixedFormatter([DTYPES[place] for place in shown]))


def scale_intensities(axes: Axes, low: float, high: float) -> None:
    """The x axis from low to high FLOP per byte, a tick at powers of two."""
    _scale_x(axes, [low, high], _powers_of_two(low, high))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def scale_values(axes: Axes, low: float, high: float, unit: str, room: float) -> None:
    """The y axis from low to high in this unit, with this share of its height left free at the top."""
    axes.set_yscale("log", base=2 if unit == "bytes" else 10)
    octaves = math.log2(high / low)
    margin = max(0.06 * octaves, 0.15)
    bottom, top = low * 2**-margin, low * 2 ** ((octaves + margin) / (1 - room))
    axes.set_ylim(bottom, top)
    if unit == "bytes":
        axes.yaxis.set_major_locator(FixedLocator(_powers_of_two(bottom, top)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_size(value)))
    else:
        steps = (1.0, 2.0, 5.0) if octaves < 6 else (1.0, 3.0) if octaves < 12 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}{unit}"))
    axes.yaxis.set_minor_locator(NullLocator())
    if not any(bottom <= tick <= top for tick in axes.get_yticks()):  # between two round numbers
        axes.yaxis.set_major_locator(FixedLocator(sorted({low, high})))
        write = size if unit == "bytes" else lambda value: f"{significant(value)}{unit}"
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def _scale_x(axes: Axes, values: Sequence[float], ticks: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(values) / _LEFT, max(values) * _RIGHT)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())


def _powers_of_two(low: float, high: float) -> list[float]:
    return _thinned([2.0**power for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)])


def _thinned(ticks: list[float]) -> list[float]:
    """Every second, third, ... of them where they are many; the last one always."""
    step = max(1, math.ceil(len(ticks) / _MOST_TICKS))
    return ticks[::-step][::-1]


def _round_size(count: float) -> str:
    number, unit = size(count).split()
    return f"{float(number.replace(',', '')):g} {unit}"
