"""The figures of a run, as PNG and SVG: curves against length and against each other axis that was swept, the growth
with the length, the roofline, and errors beside their budgets (seaborn)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from bench.analysis.quantities import ERROR, LATENCY, MEMORY, Quantity, speedup, with_budget_used, with_speedups
from bench.analysis.text import plain
from bench.figures import curves, exponents, processes, roofs
from bench.figures.panels import by_axis, by_length, swept, titled
from bench.figures.sheet import STYLE

_SAVED: dict[str, dict[str, Any]] = {  # the same bytes from the same cases: no date
    "png": {"pil_kwargs": {"compress_level": 4}},
    "svg": {"metadata": {"Date": None}},
}


class NotWritten(Exception):
    """A file could not be written; the text names it and says why."""


def write(cases: pd.DataFrame, growths: pd.DataFrame, folder: Path, stem: str, baseline: str) -> list[Path]:
    """Writes all figures, and returns the files. NotWritten."""
    with writing(cases, growths, folder, stem, baseline) as files:
        return files


@contextmanager
def writing(cases: pd.DataFrame, growths: pd.DataFrame, folder: Path, stem: str, baseline: str) -> Iterator[list[Path]]:
    """The files that are written beside the block, each as .png and .svg, less those that would be empty. NotWritten.

    <stem>-latency, -memory, -speedup  against the length, and -by-<axis> for each other axis that was swept
    <stem>-growth                      exponents in the length, of `growths`
    <stem>-roofline                    rates against arithmetic intensity
    <stem>-error                       errors as shares of their budgets
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritten(f"{error.filename or folder}: {error.strerror}") from None
    todo = {folder / f"{stem}-{name}": draw for name, draw in drawings(cases, growths, baseline)}
    with processes.running(partial(_save, draw, path) for path, draw in todo.items()):
        yield [path.with_name(f"{path.name}.{ending}") for path in todo for ending in _SAVED]


def _save(draw: Callable[[], Figure], path: Path) -> None:
    """Draws a figure, and saves it in every format."""
    mpl.use("Agg")  # files only, whatever display there is
    warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in letters that the font lacks is drawn as boxes
    style: Any = {**sns.axes_style("whitegrid"), **STYLE}
    with mpl.rc_context(style):
        figure = draw()
        try:
            for ending, how in _SAVED.items():
                figure.savefig(path.with_name(f"{path.name}.{ending}"), **how)
        except OSError as error:
            raise NotWritten(f"{error.filename or path}: {error.strerror}") from None
        finally:
            plt.close(figure)


def drawings(cases: pd.DataFrame, growths: pd.DataFrame, baseline: str) -> Iterator[tuple[str, Callable[[], Figure]]]:
    """(name, what draws it) of each figure that has something to show."""
    cases = with_budget_used(with_speedups(cases, baseline))
    against = speedup(baseline)
    quantities = [LATENCY, MEMORY, *([against] if _has_rivals(cases, against, baseline) else [])]
    lengths = by_length(cases)
    yield from _curves(lengths, quantities)
    for axis in swept(cases):
        data = by_axis(cases, axis)
        yield from _curves(data, quantities, axis)
    fitted = growths[growths["exponent"].notna()]
    if len(fitted):
        yield "growth", partial(exponents.draw, titled(fitted), exponents.missing(growths))
    rated = roofs.with_intensities(lengths)
    if len(rated):
        yield "roofline", partial(roofs.draw, rated, _approximations(cases, "rate"))
    yield from _curves(lengths[lengths["exact"]], [ERROR], notes=_approximations(cases, "error budget"))


def _curves(
    data: pd.DataFrame, quantities: list[Quantity], axis: str = "length", notes: tuple[str, ...] = ()
) -> Iterator[tuple[str, Callable[[], Figure]]]:
    for quantity in quantities:
        if (data[quantity.column] > 0).any():
            by = "" if axis == "length" else f"-by-{axis}"
            yield quantity.name + by, partial(curves.draw, data, quantity, axis, notes)


def _has_rivals(cases: pd.DataFrame, quantity: Quantity, baseline: str) -> bool:
    """Whether anything but the baseline itself has a speed-up."""
    return bool((cases[quantity.column] > 0)[cases["variant"] != baseline].any())


def _approximations(cases: pd.DataFrame, what: str) -> tuple[str, ...]:
    """Which variants approximate, and so have no such thing."""
    names = sorted(map(plain, cases["variant"][~cases["exact"]].unique()))
    return (f"not shown: {', '.join(names)}, for an approximation has no {what}",) if names else ()
