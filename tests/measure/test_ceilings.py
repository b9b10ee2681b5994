"""Ceilings from a device whose every time is made up."""

import pytest
import torch

from bench.measure import ceilings as module
from bench.measure.ceilings import ceilings
from bench.measure.device import Pass


class MadeUp:
    """Multiplies at so many FLOP a millisecond in each dtype, and copies at so many bytes; each try a bit slower."""

    blocks = True

    def __init__(self, flops_a_ms: dict[torch.dtype, float], bytes_a_ms: float) -> None:
        self.flops_a_ms, self.bytes_a_ms = flops_a_ms, bytes_a_ms
        self.sides: dict[torch.dtype, list[int]] = {}
        self.slower = 1.0

    def time_ms(self, work: Pass, calls: int) -> float:
        self.slower += 1e-6
        result = work.call(None)
        if result.dtype == torch.int8:
            return 2 * result.nbytes / self.bytes_a_ms * self.slower
        side = result.shape[0]
        self.sides.setdefault(result.dtype, []).append(side)
        return 2 * side**3 / self.flops_a_ms[result.dtype] * self.slower


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    rates = {torch.float32: 1e8, torch.bfloat16: 1e9, torch.float16: 1e5}
    made = MadeUp(rates, bytes_a_ms=3e7)
    monkeypatch.setattr(module, "device_of", lambda kind, cache: made)
    monkeypatch.setattr(module, "_LAST_SIDE", 512)
    monkeypatch.setattr(module, "_COPIED_BYTES", {"cpu": 1000})
    return made


def test_the_rates_are_found_and_no_dtype_falls_below_float32(device: MadeUp) -> None:
    found = ceilings("cpu", ["float32", "bfloat16", "float16"], torch.get_num_threads())
    rates = {dtype: ceiling.ceiling_tflops for dtype, ceiling in found.items()}
    assert rates == pytest.approx({"float32": 0.1, "bfloat16": 1.0, "float16": 0.1}, rel=1e-3)
    assert {ceiling.copy_gb_s for ceiling in found.values()} == {30.0}


def test_a_product_that_would_take_long_is_not_tried(device: MadeUp) -> None:
    ceilings("cpu", ["float16"], torch.get_num_threads())
    # 128 wide it takes 42 ms, so 256 wide eight times that, which is more than 300.
    assert set(device.sides[torch.float16]) == {128}
    assert set(device.sides[torch.float32]) == {128, 256, 512}


def test_the_real_thing_is_above_zero_and_ends_soon() -> None:
    found = ceilings("cpu", ["float32"], torch.get_num_threads())
    assert found["float32"].ceiling_tflops > 0
    assert found["float32"].copy_gb_s > 0
