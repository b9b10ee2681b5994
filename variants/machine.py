"""What a variant may ask about the machine: a frozen record, made once, so that asking touches no device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Machine:
    """The device that problems run on, and the software beside it.

    device          a `torch.device` type: cpu, cuda, xpu, ...
    device_name     as its maker calls it
    capability      (major, minor) CUDA compute capability; None elsewhere
    memory_bytes    the device's memory; on CPU, the machine's
    cxx             path of a C++ compiler that torch.compile would use; None where there is none
    packages        installed package name -> version
    """

    device: str
    device_name: str
    memory_bytes: int
    capability: tuple[int, int] | None = None
    cxx: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
