"""The device layer: bytes that are known beforehand, a clock that is made up, and the order of calls on a device."""

from collections.abc import Iterator

import pytest
import torch

from bench.measure import device as device_module
from bench.measure.device import Accelerator, Cpu, Pass, Usage, device_of
from bench.measure.sampling import Policy, Samples, sample

MIB = 2**20


class Clock:
    """Gives the moments that it was made with."""

    def __init__(self, *moments: float) -> None:
        self._moments = iter(moments)

    def __call__(self) -> float:
        return next(self._moments)


def test_a_sample_is_the_mean_over_its_calls_and_leaves_the_preparation_out() -> None:
    log: list[str] = []
    step = Pass(lambda: log.append("prepare") or "argument", lambda argument: log.append(f"call {argument}"))
    clock = Clock(10.0, 10.5)
    assert Cpu(clock).time_ms(step, calls=4) == pytest.approx(125.0)
    assert log == ["prepare", *["call argument"] * 4]


def test_64_mib_are_64_mib() -> None:
    usage = Cpu().usage(lambda: torch.empty(64 * MIB, dtype=torch.uint8))
    assert usage == Usage(held=64 * MIB, peak=64 * MIB)


def test_what_is_freed_counts_in_the_peak_alone() -> None:
    def step() -> torch.Tensor:
        scratch = torch.empty(48 * MIB, dtype=torch.uint8)
        kept = torch.empty(16 * MIB, dtype=torch.uint8)
        del scratch
        return kept

    assert Cpu().usage(step) == Usage(held=16 * MIB, peak=64 * MIB)


def test_what_was_held_before_does_not_count() -> None:
    before = torch.empty(500 * MIB, dtype=torch.uint8)
    assert Cpu().usage(lambda: torch.empty(MIB, dtype=torch.uint8)).peak == MIB
    assert before.numel() == 500 * MIB


def test_a_step_without_tensors_uses_nothing() -> None:
    assert Cpu().usage(lambda: None) == Usage(0, 0)


def test_the_textbook_peaks_at_two_score_matrices() -> None:
    n, d = 512, 64
    q, k, v = torch.randn(3, 1, 4, n, d)
    usage = Cpu().usage(lambda: (q @ k.mT).softmax(-1) @ v)
    assert usage == Usage(held=4 * n * d * 4, peak=2 * 4 * n * n * 4)


class Recorder:
    """Stands in for torch.accelerator and torch.Event, and writes down what is called."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.now_ms = 0.0
        self.allocated = 1000

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def memory_allocated(self) -> int:
        return self.allocated

    def max_memory_allocated(self) -> int:
        return 5000

    def max_memory_reserved(self) -> int:
        return 8192

    def memory_reserved(self) -> int:
        return 2048

    def empty_cache(self) -> None:
        self.log.append("empty cache")

    def reset_peak_memory_stats(self) -> None:
        self.log.append("reset peak")

    def event(self, kind: str, enable_timing: bool) -> "Event":
        assert (kind, enable_timing) == ("cpu", True)
        return Event(self)

    def flush(self) -> None:
        self.log.append("flush")
        self.now_ms += 100.0


class Event:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.at_ms = recorder, 0.0

    def record(self) -> None:
        self.recorder.log.append("record")
        self.at_ms = self.recorder.now_ms

    def elapsed_time(self, end: "Event") -> float:
        return end.at_ms - self.at_ms


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    made = Recorder()
    monkeypatch.setattr(device_module.torch, "accelerator", made)
    monkeypatch.setattr(device_module.torch, "Event", made.event)
    monkeypatch.setattr(device_module, "_FLUSH_BYTES", 1)
    yield made


def fake_accelerator(recorder: Recorder, cache: str) -> Accelerator:
    device = Accelerator("cpu", cache, clock=Clock(0.0, 0.01, 0.02, 0.06))
    if device._flush is not None:
        device._flush = type("Buffer", (), {"zero_": staticmethod(recorder.flush)})()
    return device


def timed_pass(recorder: Recorder) -> Pass:
    def call(argument: object) -> None:
        recorder.log.append("call")
        recorder.now_ms += 2.5

    return Pass(lambda: recorder.log.append("prepare"), call)


def test_with_a_cold_cache_each_call_is_flushed_before_and_timed_alone_between_two_events(recorder: Recorder) -> None:
    device = fake_accelerator(recorder, "cold")
    found = sample(lambda calls: device.time_ms(timed_pass(recorder), calls), Policy(most=2, least=2), device.blocks)
    assert found == Samples((2.5, 2.5), calls_per_sample=1)
    assert recorder.log == ["prepare", "flush", "record", "call", "record", "synchronize"] * 2


def test_with_a_hot_cache_calls_run_back_to_back_and_nothing_is_flushed(recorder: Recorder) -> None:
    device = fake_accelerator(recorder, "hot")
    assert device.blocks
    assert device.time_ms(timed_pass(recorder), calls=3) == 2.5
    assert recorder.log == ["prepare", "record", *["call"] * 3, "record", "synchronize"]


def test_on_a_device_the_peak_is_reset_before_the_step_and_read_after_it(recorder: Recorder) -> None:
    def step() -> None:
        recorder.log.append("step")
        recorder.allocated = 3000

    assert fake_accelerator(recorder, "cold").usage(step) == Usage(held=2000, peak=4000, reserved=6144)
    assert recorder.log == ["synchronize", "empty cache", "reset peak", "step", "synchronize"]


def test_a_device_is_kept_busy_until_it_has_settled(recorder: Recorder) -> None:
    step = Pass(lambda: None, lambda _: recorder.log.append("call"))
    fake_accelerator(recorder, "cold").settle(step)
    assert recorder.log == ["call", "synchronize"] * 2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here")
def test_a_real_device_times_and_weighs() -> None:
    kind = torch.accelerator.current_accelerator().type
    device = device_of(kind, "cold")
    a = torch.randn(4096, 4096, device=kind)
    step = Pass(lambda: None, lambda _: a @ a)
    device.settle(step)
    assert 0.01 < device.time_ms(step, 1) < 1000
    used = device.usage(lambda: torch.empty(64 * MIB, dtype=torch.uint8, device=kind))
    assert (used.held, used.peak) == (64 * MIB, 64 * MIB)
    assert used.reserved is not None and used.reserved >= 64 * MIB
