"""Which figures a run has: curves against length and against each other axis that was swept, the growth with the
length, the roofline, and errors beside their budgets. What they show is chosen here; `files` has them drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.contents import Contents
from bench.analysis.quantities import ERROR, LATENCY, MEMORY, Quantity, speedup
from bench.analysis.text import plain
from bench.figures.panels import by_axis, by_length, swept


class Drawing(NamedTuple):
    """A figure's name, the module of this package whose `draw` draws it, and what that is given."""

    name: str
    module: str
    arguments: tuple[Any, ...]


def drawings(contents: Contents) -> Iterator[Drawing]:
    """Each figure that has something to show, one after the other, for growths take time to fit.

    latency, memory, speedup  against the length, and -by-<axis> for each other axis that was swept
    roofline                  rates against arithmetic intensity
    error                     errors as shares of their budgets
    growth                    exponents in the length
    """
    cases, baseline = contents.cases, contents.baseline
    quantities = [LATENCY, MEMORY, *([speedup(baseline)] if _has_rivals(cases, baseline) else [])]
    lengths = by_length(cases)
    yield from _curves(lengths, quantities)
    for axis in swept(cases):
        yield from _curves(by_axis(cases, axis), quantities, axis)
    rated = lengths[lengths["tflops"] > 0]
    if len(rated):
        yield Drawing("roofline", "roofs", (rated, _approximations(cases, "rate")))
    yield from _curves(lengths[lengths["exact"]], [ERROR], notes=_approximations(cases, "error budget"))
    if contents.growths["exponent"].notna().any():
        yield Drawing("growth", "exponents", (contents.growths,))


def _curves(
    data: pd.DataFrame, quantities: list[Quantity], axis: str = "length", notes: tuple[str, ...] = ()
) -> Iterator[Drawing]:
    for quantity in quantities:
        if (data[quantity.column] > 0).any():
            by = "" if axis == "length" else f"-by-{axis}"
            yield Drawing(quantity.name + by, "curves", (data, quantity, axis, notes))


def _has_rivals(cases: pd.DataFrame, baseline: str) -> bool:
    """Whether anything but the baseline itself has a speed-up."""
    return bool((cases["speedup"] > 0)[cases["variant"] != baseline].any())


def _approximations(cases: pd.DataFrame, what: str) -> tuple[str, ...]:
    """Which variants approximate, and so have no such thing."""
    names = sorted(map(plain, cases["variant"][~cases["exact"]].unique()))
    return (f"not shown: {', '.join(names)}, for an approximation has no {what}",) if names else ()
