"""How quiet the machine is while a visit samples: what the system and the device's driver say of it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import psutil
import torch

from bench import cores
from bench.results.columns import Conditions

_ALLOWANCE_S = 0.03  # the system counts in ticks of 10 ms, and several kinds of time apart


class Watch:
    """Watches the machine from its making on."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._begun = time.perf_counter()
        self._switches, self._own_s = _involuntary_switches(), time.process_time()
        self._times = _cpu_times()

    def conditions(self, canary_samples_ms: tuple[float, ...]) -> Conditions:
        """What was seen up to now."""
        times, own_s, wall_s = _cpu_times(), time.process_time(), time.perf_counter() - self._begun
        switches = _involuntary_switches() - self._switches
        steal = _steal(self._times, times)
        others_s = _busy_s(times) - _busy_s(self._times) - (own_s - self._own_s) - _ALLOWANCE_S
        crowding = _crowding(others_s / wall_s) if self._kind == "cpu" else None
        gpu = nvidia(torch.cuda.get_device_properties().uuid) if _is_nvidia(self._kind) else {}
        load = round(psutil.getloadavg()[0], 2)
        return Conditions(
            canary_samples_ms, crowding=crowding, load=load, steal=steal, involuntary_switches=switches, **gpu
        )


def _involuntary_switches() -> int:
    """Of all threads of this process; psutil counts the first alone."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _cpu_times() -> dict[str, float]:
    """Seconds by kind since the system started, over the cores that this process may use."""
    every = psutil.cpu_times(percpu=True)
    return {name: sum(getattr(every[cpu], name) for cpu in _cores(len(every))) for name in every[0]._fields}


def _cores(count: int) -> list[int]:
    """The cores that this process may use, of so many; all where the system does not tell."""
    return [cpu for cpu in cores.allowed() if cpu < count] or list(range(count))


def _busy_s(times: Mapping[str, float]) -> float:
    """CPU time that all processes have had; guests are counted as users already."""
    return sum(times.get(name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))


def _crowding(others: float) -> float:
    """Others keep so many cores busy: how much of that the cores left free by our threads cannot hold, for each of
    these threads."""
    count, threads = len(_cores(psutil.cpu_count(logical=True) or 1)), torch.get_num_threads()
    return round(max(0.0, others - max(0, count - threads)) / threads, 3)


def _steal(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """The share of all CPU time between two readings that went to other guests; None where none is kept."""
    total = sum(after.values()) - sum(before.values())
    if "steal" not in after or total <= 0:
        return None
    return round((after["steal"] - before["steal"]) / total, 4)


def _is_nvidia(kind: str) -> bool:
    return kind == "cuda" and torch.version.cuda is not None


def nvidia(uuid: object) -> dict[str, Any]:
    """Clock, power, temperature and what throttles the device of this UUID, as far as its driver says."""
    pynvml: Any = import_module("pynvml")
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except pynvml.NVMLError:
        return {}
    readings: dict[str, Callable[[], Any]] = {
        "gpu_clock_mhz": lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        "gpu_power_w": lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "gpu_temperature_c": lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        "gpu_throttle": lambda: _reasons(pynvml, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
    }
    found = {}
    for name, read in readings.items():
        try:
            found[name] = read()
        except pynvml.NVMLError:  # not every device tells everything
            continue
    return found


_PREFIX = "nvmlClocksThrottleReason"


def _reasons(pynvml: Any, bits: int) -> str:
    """The names of what holds the clock back, as the driver's header has them: "HwSlowdown SwPowerCap"."""
    names = {value: name.removeprefix(_PREFIX) for name, value in vars(pynvml).items() if name.startswith(_PREFIX)}
    single = [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
    return " ".join(
        sorted(names.get(bit, f"bit {bit:#x}") for bit in single if bit != pynvml.nvmlClocksThrottleReasonGpuIdle)
    )
