"""The axes of a figure: log-log, lengths and bytes in powers of two, labels that a reader knows."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from bench.analysis.text import size, tokens

_MOST_TICKS = 7


def scale_lengths(axes: Axes, lengths: pd.Series[int]) -> None:
    """The x axis: powers of two as 512, 1k, 2k; or the lengths themselves where none of them is one."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(lengths.min() / 1.3, lengths.max() * 1.3)
    ticks = _powers_of_two(lengths.min(), lengths.max())
    if not lengths.isin(ticks).any():
        ticks = _thinned(sorted(lengths.unique()))
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tokens(round(value))))
    axes.xaxis.set_minor_locator(NullLocator())


def scale_values(axes: Axes, low: float, high: float, binary: bool, room: float) -> None:
    """The y axis from low to high, in bytes if binary, with this share of its height left free at the top."""
    axes.set_yscale("log", base=2 if binary else 10)
    octaves = math.log2(high / low)
    margin = max(0.06 * octaves, 0.15)
    bottom, top = low * 2**-margin, low * 2 ** ((octaves + margin) / (1 - room))
    axes.set_ylim(bottom, top)
    if binary:
        axes.yaxis.set_major_locator(FixedLocator(_powers_of_two(bottom, top)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _round_size(value)))
    else:
        steps = (1.0, 2.0, 5.0) if octaves < 6 else (1.0, 3.0) if octaves < 12 else (1.0,)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=steps))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _powers_of_two(low: float, high: float) -> list[float]:
    return _thinned([2.0**power for power in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)])


def _thinned(ticks: list[float]) -> list[float]:
    """Every second, third, ... of them where they are many; the last one always."""
    step = max(1, math.ceil(len(ticks) / _MOST_TICKS))
    return ticks[::-step][::-1]


def _round_size(count: float) -> str:
    number, unit = size(count).split()
    return f"{float(number.replace(',', '')):g} {unit}"
