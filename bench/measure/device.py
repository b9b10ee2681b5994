"""One small layer over devices: a clock and a memory meter.

On CPU the clock is `time.perf_counter`, and memory is read from the torch profiler's allocation events, which are
exact to the byte and see the kernels' own scratch. Everything else goes through `torch.accelerator` and
`torch.Event`, so that CUDA, ROCm and XPU are one path: an event on either side of what is timed, and the allocator's
own peak. With a cold cache each call is timed alone, the L2 cache flushed before it and outside the timed window; with
a hot one calls run back to back.
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
    """One pass of a case. `call(prepare())` is what is measured, and only `call` is timed.

    `repeatable` is whether what one `prepare` returned serves for several calls.
    """

    prepare: Callable[[], Any]
    call: Callable[[Any], object]
    repeatable: bool = True

    def __call__(self) -> object:
        return self.call(self.prepare())


@dataclass(frozen=True)
class Usage:
    """Bytes still held when a step has ended, its result alive, and the most that it held at once.

    `reserved` is the most that the device's allocator held for the process meanwhile; None on CPU, which has none.
    """

    held: int
    peak: int
    reserved: int | None = None


class Device(Protocol):
    """What a visit needs of a device. `blocks` says whether short calls may be timed several at a time."""

    blocks: bool
    memory_source: str

    def settle(self, step: Pass) -> None:
        """Repeats the pass until the device runs at its steady clock."""

    def time_ms(self, step: Pass, calls: int) -> float:
        """Milliseconds a call, over `calls` of them back to back."""

    def usage(self, step: Callable[[], object]) -> Usage:
        """Bytes that a step allocates, above what was held before it."""

    def synchronize(self) -> None:
        """Waits until the device has nothing left to do."""


class Cpu:
    """The host. Its caches are as the calls before left them."""

    blocks = True
    memory_source = "profiler events"

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
    """Whatever `torch.accelerator` drives."""

    memory_source = "device allocator"

    def __init__(self, kind: str, cache: str, clock: Callable[[], float] = time.perf_counter) -> None:
        self._kind = kind
        self._clock = clock
        self.blocks = cache == "hot"
        self._flush = None if self.blocks else torch.empty(_FLUSH_BYTES, dtype=torch.int8, device=kind)

    def settle(self, step: Pass) -> None:
        end = self._clock() + _SETTLE_S
        while self._clock() < end:
            step()
            self.synchronize()

    def time_ms(self, step: Pass, calls: int) -> float:
        start, end = (torch.Event(self._kind, enable_timing=True) for _ in range(2))
        argument = step.prepare()
        if self._flush is not None:
            self._flush.zero_()  # keeps the device busy, too, while the host queues the call
        start.record()
        for _ in range(calls):
            step.call(argument)
        end.record()
        self.synchronize()
        return float(start.elapsed_time(end)) / calls

    def usage(self, step: Callable[[], object]) -> Usage:
        gc.collect()
        self.synchronize()
        torch.accelerator.empty_cache()  # else what earlier passes reserved would be reserved still
        before, reserved = torch.accelerator.memory_allocated(), torch.accelerator.memory_reserved()
        torch.accelerator.reset_peak_memory_stats()
        result = step()
        self.synchronize()
        held, peak = torch.accelerator.memory_allocated() - before, torch.accelerator.max_memory_allocated() - before
        del result
        return Usage(held, peak, torch.accelerator.max_memory_reserved() - reserved)

    def synchronize(self) -> None:
        torch.accelerator.synchronize()


def device_of(kind: str, cache: str) -> Device:
    """The device layer for a torch device type, and for a hot or cold cache, which a CPU does not choose."""
    return Cpu() if kind == "cpu" else Accelerator(kind, cache)
