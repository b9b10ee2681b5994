"""What `bench.compare --fail-on` takes: which changes for the worse count, and from what size on."""

from __future__ import annotations

import math
from typing import NamedTuple

MEASURED, TOLD = ("latency", "memory"), ("accuracy", "status")
ACCEPTED = "latency:5%, memory:1%, accuracy, status, joined by commas, each once; 5% may be written 0.05"


class Criteria(NamedTuple):
    """What counts. Thresholds are fractions, 0.05 for 5 %; None where it does not count."""

    latency: float | None = None
    memory: float | None = None
    accuracy: bool = False
    status: bool = False


def parse(text: str) -> Criteria:
    """The criteria of a text such as "latency:5%,memory:1%,accuracy,status". ValueError says what is accepted."""
    found: dict[str, float | bool] = {}
    for part in text.split(","):
        name, colon, threshold = (piece.strip() for piece in part.partition(":"))
        if name in found:
            raise ValueError(f"{name!r} stands twice in {text!r}; accepted: {ACCEPTED}")
        if name in MEASURED and colon:
            found[name] = _fraction(threshold, part.strip())
        elif name in TOLD and not colon:
            found[name] = True
        else:
            raise ValueError(f"{part.strip()!r} is not understood; accepted: {ACCEPTED}")
    return Criteria(**found)  # type: ignore[arg-type]


def _fraction(text: str, part: str) -> float:
    """5% and 0.05 alike; a bare 5 is refused, for it could be meant as either."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < (math.inf if text.endswith("%") else 1):
        raise ValueError(f"{part!r} has no threshold that is understood; accepted: {ACCEPTED}")
    return value
