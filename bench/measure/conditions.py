"""How quiet the machine is while a visit samples: what the system and the device's driver say of it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import psutil
import torch

from bench.results.columns import Conditions


class Watch:
    """Watches the machine from its making on."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._begun = time.perf_counter()
        self._switches, self._own_s = _involuntary_switches(), time.process_time()
        self._times = psutil.cpu_times()

    def conditions(self, canary_samples_ms: tuple[float, ...]) -> Conditions:
        """What was seen up to now."""
        times, own_s, wall_s = psutil.cpu_times(), time.process_time(), time.perf_counter() - self._begun
        switches = _involuntary_switches() - self._switches
        steal = _steal(self._times, times)
        others_s = _busy_s(times) - _busy_s(self._times) - (own_s - self._own_s)
        crowding = _crowding(others_s / wall_s) if self._kind == "cpu" else None
        gpu = nvidia(torch.cuda.get_device_properties().uuid) if _is_nvidia(self._kind) else {}
        load = round(psutil.getloadavg()[0], 2)
        return Conditions(
            canary_samples_ms, crowding=crowding, load=load, steal=steal, involuntary_switches=switches, **gpu
        )


def _involuntary_switches() -> int:
    """Of all threads of this process; psutil counts the first alone."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _busy_s(times: Any) -> float:
    """CPU time that all processes have had; guests are counted as users already."""
    return float(sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq")))


def _crowding(others: float) -> float:
    """Others keep so many cores busy: how much of that the cores left free by our threads cannot hold, for each of
    these threads."""
    cores, threads = psutil.cpu_count(logical=True) or 1, torch.get_num_threads()
    return round(max(0.0, others - max(0, cores - threads)) / threads, 3)


def _steal(before: Any, after: Any) -> float | None:
    """The share of all CPU time between two readings that went to other guests; None where none is kept."""
    total = sum(after) - sum(before)
    if not hasattr(after, "steal") or total <= 0:
        return None
    return float(round((after.steal - before.steal) / total, 4))


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
