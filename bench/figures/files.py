"""A figure as files, PNG and SVG, in the style that all figures have (seaborn)."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.figures.drawings import Drawing

_SAVED: dict[str, dict[str, Any]] = {  # the same bytes from the same cases: no date
    "png": {"pil_kwargs": {"compress_level": 4}},
    "svg": {"metadata": {"Date": None}},
}


class NotWritten(Exception):
    """A file could not be written; the text names it and says why."""


def save(drawing: Drawing, folder: Path, stem: str) -> list[Path]:
    """Draws it, and writes <stem>-<name>.png and .svg, which are returned. NotWritten."""
    import matplotlib as mpl  # here, for it takes a second, and who submits this to other processes needs none of it
    import seaborn as sns

    from bench.figures.sheet import STYLE

    draw = import_module(f"bench.figures.{drawing.module}").draw
    style: Any = {**sns.axes_style("whitegrid"), **STYLE}
    paths = [folder / f"{stem}-{drawing.name}.{ending}" for ending in _SAVED]
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in letters that the font lacks is drawn as boxes
        figure = draw(*drawing.arguments)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path, how in zip(paths, _SAVED.values(), strict=True):
                figure.savefig(path, **how)
        except OSError as error:
            raise NotWritten(f"{error.filename or folder}: {error.strerror}") from None
    return paths
