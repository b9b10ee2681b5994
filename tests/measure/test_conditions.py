"""What is read of the machine's state: a real process that is set aside, and a driver that is made up."""

import sys
from collections import namedtuple
from collections.abc import Iterator
from types import ModuleType

import psutil
import pytest

from bench.measure import conditions
from bench.measure.conditions import Watch, nvidia
from bench.results.columns import Conditions


def test_the_canary_comes_through_and_the_system_is_asked() -> None:
    seen = Watch("cpu").conditions((10.0, 11.0))
    assert seen.canary_samples_ms == (10.0, 11.0)
    assert seen.load is not None and seen.load >= 0
    assert seen.involuntary_switches is not None and seen.involuntary_switches >= 0
    assert (seen.gpu_clock_mhz, seen.gpu_throttle) == (None, "")


def test_switches_and_steal_are_what_came_about_since_then(monkeypatch: pytest.MonkeyPatch) -> None:
    switches = iter([100, 107])
    times = iter([cpu_times(user=10, idle=80, steal=5), cpu_times(user=16.03, idle=81.97, steal=7)])
    monkeypatch.setattr(conditions, "_involuntary_switches", lambda: next(switches))
    monkeypatch.setattr(conditions, "_cpu_times", lambda: next(times))
    monkeypatch.setattr(psutil, "getloadavg", lambda: (1.234, 9.0, 9.0))
    monkeypatch.setattr(conditions.time, "perf_counter", iter([100.0, 104.0]).__next__)
    monkeypatch.setattr(conditions.time, "process_time", iter([7.0, 8.0]).__next__)
    monkeypatch.setattr(conditions, "_cores", lambda count: [0, 1])
    monkeypatch.setattr(conditions.torch, "get_num_threads", lambda: 2)
    # All processes had 6.03 s in 4 s, this one 1, and 0.03 are not believed: others keep 1.25 cores busy.
    assert Watch("cpu").conditions(()) == Conditions(crowding=0.625, load=1.23, steal=0.2, involuntary_switches=7)


@pytest.mark.parametrize(
    ("others", "cores", "threads", "crowding"),
    [(0.3, 2, 1, 0.0), (1.3, 2, 1, 0.3), (40.0, 64, 16, 0.0), (-0.1, 2, 2, 0.0)],
)
def test_others_crowd_only_what_no_free_core_holds(
    monkeypatch: pytest.MonkeyPatch, others: float, cores: int, threads: int, crowding: float
) -> None:
    monkeypatch.setattr(conditions, "_cores", lambda count: list(range(cores)))
    monkeypatch.setattr(conditions.torch, "get_num_threads", lambda: threads)
    assert conditions._crowding(others) == pytest.approx(crowding)


def test_where_no_steal_is_kept_none_is_told() -> None:
    assert conditions._steal({"user": 1.0}, {"user": 3.0}) is None
    still = cpu_times(user=1, idle=1, steal=1)
    assert conditions._steal(still, still) is None


def cpu_times(**seconds: float) -> dict[str, float]:
    return seconds


def test_only_the_cores_that_may_be_used_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    Times = namedtuple("Times", ["user", "idle"])
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [Times(1.0, 9.0), Times(2.0, 8.0), Times(4.0, 6.0)])
    monkeypatch.setattr(conditions.cores.os, "sched_getaffinity", lambda pid: {0, 2})
    assert conditions._cpu_times() == {"user": 5.0, "idle": 15.0}
    assert conditions._cores(2) == [0]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A stand-in for pynvml whose one device is hot, throttled, and does not tell its power."""
    made = ModuleType("pynvml")

    class NVMLError(Exception): ...

    def unknown(handle: str) -> int:
        raise NVMLError("not supported")

    def handle_of(uuid: str) -> str:
        if uuid != "GPU-0-1-2":
            raise NVMLError("not found")
        return "the device"

    members = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_SM": 1,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": handle_of,
        "nvmlDeviceGetClockInfo": lambda handle, which: {1: 1755}[which],
        "nvmlDeviceGetPowerUsage": unknown,
        "nvmlDeviceGetTemperature": lambda handle, which: {0: 81}[which],
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 1 | 4 | 32 | 4096,
        "nvmlClocksThrottleReasonGpuIdle": 1,
        "nvmlClocksThrottleReasonSwPowerCap": 4,
        "nvmlClocksThrottleReasonSwThermalSlowdown": 32,
        "nvmlClocksThrottleReasonNone": 0,
        "nvmlClocksThrottleReasonAll": 37,
    }
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, "pynvml", made)
    yield made


def test_what_an_nvidia_device_tells_is_told_and_the_rest_left_empty(driver: ModuleType) -> None:
    assert nvidia("0-1-2") == {
        "gpu_clock_mhz": 1755.0,
        "gpu_temperature_c": 81.0,
        "gpu_throttle": "SwPowerCap SwThermalSlowdown bit 0x1000",
    }


def test_a_device_or_driver_that_is_not_there_tells_nothing(driver: ModuleType) -> None:
    assert nvidia("9") == {}


def test_the_real_library_knows_the_names_that_are_asked_for() -> None:
    import pynvml  # noqa: PLC0415

    asked = (
        *("NVML_CLOCK_SM", "NVML_TEMPERATURE_GPU", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetClockInfo"),
        *("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        "nvmlClocksThrottleReasonGpuIdle",
    )
    assert not [name for name in asked if not hasattr(pynvml, name)]
