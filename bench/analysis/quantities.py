"""What a figure of curves shows: its words, its columns in the cases, and how its axis counts."""

from __future__ import annotations

from typing import NamedTuple

from bench.analysis.text import plain


class Quantity(NamedTuple):
    """A file's name, an axis' label, columns of value and interval, the unit (bytes, x or none), what 1 means."""

    name: str
    label: str
    column: str
    interval: tuple[str, ...] = ()
    unit: str = ""
    one: str = ""


LATENCY = Quantity("latency", "latency (ms)", "latency_ms", ("low_ms", "high_ms"))
MEMORY = Quantity("memory", "peak memory above inputs", "peak_bytes", unit="bytes")
ERROR = Quantity("error", "error over its budget", "budget_used", one="budget")


def speedup(baseline: str) -> Quantity:
    """The speed-up over a baseline."""
    label = f"speed-up over {plain(baseline, 30)}"
    return Quantity("speedup", label, "speedup", ("least_speedup", "most_speedup"), unit="x")
