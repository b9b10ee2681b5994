"""A fixed piece of work, timed among a case's samples: where it took longer than usual, so did they.

A tight spread does not prove a quiet machine: a neighbour that takes half of it all the time leaves none. A float32
matrix product of some 10 ms (on a few cores; less on many) does show it. Between processes on a shared machine its
ratio to attention varied by 3-4 % where the times varied by 9-21 %; a shorter or memory-bound canary followed
attention less well than none.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.measure.device import Device, Pass
from bench.measure.sampling import Timer

_SIDE = {"cpu": 1024}
_SIDE_ON_ACCELERATOR = 4096
_EVERY_MS = 100.0
_AT_EACH_END = 2


def operand(side: int, kind: str) -> Tensor:
    """A matrix of values between -1 and 1, for which no random generator is touched; equal ones would draw less power
    than a device has to spend on real ones."""
    return torch.arange(side * side, dtype=torch.float32, device=kind).sin_().view(side, side)


def product(side: int, kind: str) -> Pass:
    """A matrix product, the same each time, into memory of its own."""
    values = operand(side, kind)
    out = torch.empty_like(values)
    return Pass(lambda: None, lambda _: torch.mm(values, values.mT, out=out))


class Canary:
    """Times its product before, among and after the samples; `samples_ms` in the order of time."""

    def __init__(self, device: Device, kind: str) -> None:
        self._device = device
        self._work = product(_SIDE.get(kind, _SIDE_ON_ACCELERATOR), kind)
        self._since_ms = 0.0
        self.samples_ms: tuple[float, ...] = ()

    def look(self) -> None:
        """Times the product once."""
        self.samples_ms += (round(self._device.time_ms(self._work, 1), 6),)
        self._since_ms = 0.0

    def at_an_end(self) -> None:
        """Times it before the first sample, or after the last. The first product of all warms up and is not kept."""
        if not self.samples_ms:
            self._device.time_ms(self._work, 1)
        for _ in range(_AT_EACH_END):
            self.look()

    def among(self, timer: Timer) -> Timer:
        """The timer, with a look after each sample that completes a tenth of a second of them."""

        def timed(calls: int) -> float:
            ms = timer(calls)
            self._since_ms += ms * calls
            if self._since_ms >= _EVERY_MS:
                self.look()
            return ms

        return timed
