"""One small layer over devices: a clock and a memory meter.

On CPU the clock is `time.perf_counter`, and memory is read from the torch profiler's allocation events, which are
exact to the byte and see the kernels' own scratch. Everything else goes through `torch.accelerator` and
`torch.Event`, so that CUDA, ROCm and XPU are one path: an event on either side of each call, the L2 cache flushed
before it, and the allocator's own peak.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.profiler import ProfilerActivity, profile

_FLUSH_BYTES = 256 * 2**20  # several times the largest L2 cache in use
_SETTLE_S = 0.05


@dataclass(frozen=True)
class Pass:
    """One pass of a case. `call(prepare())` is what is measured, and only `call` is timed."""

    prepare: Callable[[], Any]
    call: Callable[[Any], object]

    def __call__(self) -> object:
        return self.call(self.prepare())


@dataclass(frozen=True)
class Usage:
    """Bytes still held when a step has ended, its result alive, and the most that it held at once."""

    held: int
    peak: int


class Device(Protocol):
    """What a visit needs of a device. `blocks` says whether short calls are to be timed several at a time."""

    blocks: bool

    def settle(self, step: Pass) -> None:
        """Repeats the pass until the device runs at its steady clock."""

    def time_ms(self, step: Pass, calls: int) -> float:
        """Milliseconds a call, over `calls` of them back to back."""

    def usage(self, step: Callable[[], object]) -> Usage:
        """Bytes that a step allocates, above what was held before it."""

    def synchronize(self) -> None:
        """Waits until the device has nothing left to do."""


class Cpu:
    """The host."""

    blocks = True

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock

    def settle(self, step: Pass) -> None:
        """A CPU needs no more than the first call, which came before."""

    def time_ms(self, step: Pass, calls: int) -> float:
        argument, call = step.prepare(), step.call
        start = self._clock()
        for _ in range(calls):
            call(argument)
        return (self._clock() - start) * 1e3 / calls

    def usage(self, step: Callable[[], object]) -> Usage:
        gc.collect()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
            result = step()
        results = profiler.profiler.kineto_results if profiler.profiler else None
        events = [e for e in results.events() if e.name() == "[memory]"] if results else []
        held = peak = 0
        for event in sorted(events, key=lambda e: e.start_ns()):
            held += event.nbytes()
            peak = max(peak, held)
        del result
        return Usage(held, peak)

    def synchronize(self) -> None:
        """Calls on CPU have ended when they return."""


class Accelerator:
    """Whatever `torch.accelerator` drives. Each call is timed alone, between two events, on a cold L2 cache."""

    blocks = False

    def __init__(self, kind: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self._kind = kind
        self._clock = clock
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device=kind)

    def settle(self, step: Pass) -> None:
        end = self._clock() + _SETTLE_S
        while self._clock() < end:
            step()
            self.synchronize()

    def time_ms(self, step: Pass, calls: int) -> float:
        return sum(self._time_one(step) for _ in range(calls)) / calls

    def _time_one(self, step: Pass) -> float:
        start, end = (torch.Event(self._kind, enable_timing=True) for _ in range(2))
        argument = step.prepare()
        self._flush.zero_()  # keeps the device busy, too, while the host queues the call
        start.record()
        step.call(argument)
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end))

    def usage(self, step: Callable[[], object]) -> Usage:
        gc.collect()
        self.synchronize()
        before = torch.accelerator.memory_allocated()
        torch.accelerator.reset_peak_memory_stats()
        result = step()
        self.synchronize()
        usage = Usage(torch.accelerator.memory_allocated() - before, torch.accelerator.max_memory_allocated() - before)
        del result
        return usage

    def synchronize(self) -> None:
        torch.accelerator.synchronize()


def device_of(kind: str) -> Device:
    """The device layer for a torch device type."""
    return Cpu() if kind == "cpu" else Accelerator(kind)
