"""The machine and its software, read once a run by a process of its own, so that the run itself touches no device."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import psutil
import torch

from bench.errors import UserError
from bench.measure import memory
from bench.measure.server import Died, Server
from bench.results.columns import METHOD, Environment
from variants.machine import Machine
from variants.registry import Variant

_PACKAGES = ("torch", "xformers", "triton")


def ask(
    server: Server, asked: str, variants: Iterable[Variant], timeout_s: float, threads: int | None = None
) -> tuple[Machine, Environment]:
    """What `probe` finds for the device asked for, and of the packages that these variants need. UserError."""
    packages = tuple(sorted({package for variant in variants for package in variant.requires}))
    try:
        found: tuple[Machine, Environment] = server.call(probe, asked, packages, threads, timeout_s=timeout_s)
    except Died as death:
        raise UserError(f"--device: {asked!r} does not answer: {death}") from None
    return found


def probe(asked: str, packages: tuple[str, ...] = (), threads: int | None = None) -> tuple[Machine, Environment]:
    """The device that `asked` names (auto: an accelerator where there is one), and what surrounds it.

    `packages` are further package names whose presence variants ask about; `threads` is how many CPU threads torch is
    to use, None for as many as it uses by itself. UserError where the device is not here, or not so many threads.
    """
    kind = _resolve(asked)
    cores = psutil.cpu_count(logical=True) or 1
    if threads is not None and threads > cores:
        raise UserError(f"--threads: {threads} is more than this machine's {cores} cores; accepted: 1..{cores}")
    installed = {name: version for name in (*_PACKAGES, *packages) if (version := _version(name))}
    machine = Machine(
        device=kind,
        device_name=_device_name(kind),
        memory_bytes=_memory_bytes(kind),
        capability=torch.cuda.get_device_capability() if kind == "cuda" else None,
        cxx=shutil.which("g++") or shutil.which("clang++"),
        packages=installed,
    )
    environment = Environment(
        device_name=machine.device_name,
        threads=threads or torch.get_num_threads(),
        matmul_precision=torch.get_float32_matmul_precision(),
        tf32=torch.backends.cuda.matmul.allow_tf32,
        reduced_precision=_reduced_precision(),
        allocator=memory.allocator(),
        python=platform.python_version(),
        torch=torch.__version__,
        cuda=torch.version.cuda or torch.version.hip or "",
        driver=_driver() if kind == "cuda" else "",
        xformers=installed.get("xformers", ""),
        triton=installed.get("triton", ""),
        commit="",
        method=METHOD,
    )
    return machine, environment


def _resolve(asked: str) -> str:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    here = ["cpu", *([accelerator.type] if accelerator else [])]
    if asked == "auto":
        return here[-1]
    if asked not in here:
        raise UserError(
            f"--device: {asked!r} is not to be had here (torch {torch.__version__}); accepted: auto, {', '.join(here)}"
        )
    return asked


def _device_name(kind: str) -> str:
    if kind == "cpu":
        return f"{_cpu_model()}, {torch.backends.cpu.get_cpu_capability()}, {psutil.cpu_count(logical=True)} cores"
    name = getattr(torch.get_device_module(kind), "get_device_name", None)
    return str(name()) if name else kind


def _cpu_model() -> str:
    """The model as the CPU names itself, with the numbers that tell it from others that bear the same name."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return platform.processor() or platform.machine()
    values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in told.splitlines())}
    numbers = [f"{name.split()[-1]} {values[name]}" for name in ("cpu family", "model") if name in values]
    return " ".join([values.get("model name", platform.machine()), *numbers])


def _reduced_precision() -> str:
    """The dtypes whose CUDA matrix products may accumulate in less than float32."""
    matmul = torch.backends.cuda.matmul
    allowed = {
        "float16": matmul.allow_fp16_reduced_precision_reduction,
        "bfloat16": matmul.allow_bf16_reduced_precision_reduction,
    }
    return " ".join(dtype for dtype, reduced in allowed.items() if reduced)


def _memory_bytes(kind: str) -> int:
    if kind != "cpu":
        try:
            return int(torch.accelerator.get_memory_info()[1])
        except (RuntimeError, NotImplementedError):
            pass  # a device that shares the host's memory has none of its own to tell of
    return int(psutil.virtual_memory().total)


def _driver() -> str:
    """The NVIDIA driver's version, as its kernel module states it; empty where it does not (ROCm)."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as lines:  # noqa: PTH123
            words = next(lines).split()
    except (OSError, StopIteration):
        return ""
    return next((word for word in words if word[:1].isdigit() and "." in word), "")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
