"""What the device reaches at most: the rate of its fastest matrix product in a dtype, and its copy bandwidth.

A share of these says how much room a variant leaves, and one above 100 % that something was counted wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from bench.measure.canary import operand
from bench.measure.device import Device, Pass, device_of
from bench.results.columns import Ceiling

_FIRST_SIDE, _LAST_SIDE = 128, 8192
_LONGEST_MS = 300.0  # for one product; that of the next size takes eight times as long
_TRIES = 5
_COPIED_BYTES = {"cpu": 128 * 2**20}
_COPIED_BYTES_ON_ACCELERATOR = 2**30


def ceilings(kind: str, dtypes: Sequence[str], threads: int) -> dict[str, Ceiling]:
    """The ceilings of a torch device type in each of these dtypes.

    No dtype's is below float32's: a kernel may always convert its inputs, and on a CPU without 16-bit arithmetic the
    products of 16-bit matrices are hundreds of times slower than those of float32.
    """
    if kind == "cpu":
        torch.set_num_threads(threads)
    device = device_of(kind, "hot")
    copy_gb_s = _copy_gb_s(device, kind)
    tflops = {dtype: _matmul_tflops(device, kind, dtype) for dtype in {*dtypes, "float32"}}
    return {dtype: Ceiling(round(max(tflops[dtype], tflops["float32"]), 4), copy_gb_s) for dtype in dtypes}


def _matmul_tflops(device: Device, kind: str, dtype: str) -> float:
    """The best rate over square products of growing size, until the next would take long."""
    best, side = 0.0, _FIRST_SIDE
    while side <= _LAST_SIDE:
        a = operand(side, kind).to(getattr(torch, dtype))
        ms = _least_ms(device, _product(a, torch.empty_like(a)))
        best = max(best, 2 * side**3 / ms / 1e9)
        if 8 * ms > _LONGEST_MS:
            break
        side *= 2
    return best


def _product(a: Tensor, out: Tensor) -> Pass:
    return Pass(lambda: None, lambda _: torch.mm(a, a.mT, out=out))


def _copy_gb_s(device: Device, kind: str) -> float:
    """Bytes read and written a second, in 10^9."""
    count = _COPIED_BYTES.get(kind, _COPIED_BYTES_ON_ACCELERATOR)
    source = torch.zeros(count, dtype=torch.int8, device=kind)
    target = torch.empty_like(source).copy_(source)
    return round(2 * count / _least_ms(device, Pass(lambda: None, lambda _: target.copy_(source))) / 1e6, 2)


def _least_ms(device: Device, work: Pass) -> float:
    """The least of several tries, each long enough for the clock: a ceiling is what the device can do."""
    first = device.time_ms(work, 1)
    calls = max(1, math.ceil(1.0 / first))
    tries = 1 if first > _LONGEST_MS else _TRIES
    return min(first if calls == 1 else math.inf, *(device.time_ms(work, calls) for _ in range(tries)))
