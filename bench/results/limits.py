"""Limits of memory and time, and whether a try keeps them.

What counts against the limit of memory is all that a call has on the device: q, k and v, for a backward pass the
upstream gradient, and the peak above them. What counts as time is the latency of one visit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from variants.problem import ITEM_BYTES

_STATUS_IS = {"oom": "memory", "timeout": "time"}


@dataclass(frozen=True)
class Limits:
    """What a call may take at most, the longest length that is asked for, and how closely the limit is searched for:
    the longest that fits and the shortest that does not are to differ by this share at most."""

    memory_bytes: int
    call_ms: float
    longest: int
    within: float

    def exceeded(self, trial: Mapping[str, Any]) -> str:
        """Why a try did not fit: memory, time, or its status where that is neither; empty where it fitted.

        A try is the columns of a visit or of a case by name.
        """
        if trial["status"] != "ok":
            return _STATUS_IS.get(trial["status"], str(trial["status"]))
        if trial["peak_bytes"] is None or math.isnan(trial["peak_bytes"]):
            return "memory not known"
        if needed_bytes(trial) > self.memory_bytes:
            return "memory"
        return "time" if trial["latency_ms"] > self.call_ms else ""


def input_bytes(trial: Mapping[str, Any]) -> int:
    """Bytes of q, k and v, and of the upstream gradient where there is a backward pass."""
    queries = trial["heads"] * trial["seq_q"] * (1 if trial["direction"] == "fwd" else 2)
    keys_and_values = 2 * trial["kv_heads"] * trial["seq_kv"]
    return int(trial["batch"] * (queries + keys_and_values) * trial["head_dim"] * ITEM_BYTES[trial["dtype"]])


def needed_bytes(trial: Mapping[str, Any]) -> float:
    """All that a call that was measured has in memory at its peak, inputs included."""
    return input_bytes(trial) + float(trial["peak_bytes"])
