"""A mask, and the weights that a variant really gives under it, drawn as characters or as a picture.

It is the attention heat map of the tutorials, made from any kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

Matrix = Sequence[Sequence[float]]

_SHADES = "·░▒▓█"  # none; then by the part that the weight is of its row's largest


def lines(visible: Matrix, weights: Matrix | None) -> Iterator[str]:
    """A line a query: what it may see, and beside it what weight it gives each key, their sum and entropy in bits."""
    wide = len(str(len(visible) - 1))
    for row, seen in enumerate(visible):
        line = f"{row:{wide}} {''.join('█' if pair else '·' for pair in seen)}"
        if weights is not None:
            given = weights[row]
            line += f"  {_shaded(given)}  sum {sum(given):.6f}  entropy {entropy(given):.2f} bits"
        yield line


def entropy(weights: Sequence[float]) -> float:
    """Of one row, in bits: 0 where one key takes all, log2 n where n keys share it; NaN where a weight is no weight."""
    if not all(0 <= w < math.inf for w in weights):
        return math.nan
    return -sum(w * math.log2(w) for w in weights if w > 0) + 0.0


def _shaded(weights: Sequence[float]) -> str:
    top = max((w for w in weights if math.isfinite(w)), default=0.0)
    return "".join(map(_shade, weights, [top] * len(weights)))


def _shade(weight: float, top: float) -> str:
    """A character for a weight: - where it is negative, ? where it is no number."""
    if not math.isfinite(weight):
        return "?"
    if weight <= 0 or top <= 0:
        return "-" if weight < 0 else _SHADES[0]
    return _SHADES[math.ceil(weight / top * (len(_SHADES) - 1))]


def write(path: Path, title: str, visible: Matrix, weights: Matrix | None) -> Path:
    """The same as a picture, in the format that the path's ending names. OSError, ValueError for an unknown ending."""
    import matplotlib as mpl
    import seaborn as sns
    from matplotlib import pyplot as plt

    mpl.use("Agg")
    panels = [("mask", np.asarray(visible, dtype=float))]
    if weights is not None:
        panels.append(("weights", np.asarray(weights, dtype=float)))
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4.0), squeeze=False, layout="constrained")
    for ax, (name, values) in zip(axes[0], panels, strict=True):
        sns.heatmap(values, ax=ax, cmap="Blues", square=True, cbar=name == "weights", vmin=0.0, linewidths=0.3)
        ax.set(title=name, xlabel="key", ylabel="query")
    figure.suptitle(title, fontsize=9, parse_math=False)
    try:
        figure.savefig(path, dpi=150)
    finally:
        plt.close(figure)
    return path
