"""The cores that this process may use."""

from __future__ import annotations

import os


def allowed() -> list[int]:
    """Their numbers, in order; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
