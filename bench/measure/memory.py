"""The host's memory: how much may still be taken, what this process holds of it, and its resident peak."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import psutil

_UNLIMITED = 2**62
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_LIMITS = {  # version of control groups -> what a group may use, what it uses, what of that can be given back
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
_SETTINGS = re.compile(r"GLIBC_TUNABLES|MALLOC_\w*|MIMALLOC_\w*|LD_PRELOAD|THP_MEM_ALLOC_ENABLE|PYTORCH_\w*ALLOC_CONF")


def available_bytes(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """What the host can still give: what the system says is available, or less where a control group limits it."""
    return min(int(psutil.virtual_memory().available), *_left_in_groups(groups, own), _UNLIMITED)


def _left_in_groups(groups: Path, own: Path) -> Iterator[int]:
    """What each control group that this process is in leaves it; cgroups(7)."""
    try:
        memberships = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in memberships:
        if controllers and "memory" not in controllers.split(","):
            continue
        version, root = (1, groups / "memory") if controllers else (2, groups)
        within = Path(path.lstrip("/"))
        for folder in (within, *within.parents):
            left = _left_in_group(root / folder, *_LIMITS[version])
            if left is not None:
                yield left


def _left_in_group(folder: Path, limit: str, used: str, reclaimable: str) -> int | None:
    try:
        most, held = (int((folder / name).read_text()) for name in (limit, used))
        kept = (folder / "memory.stat").read_text()
    except (OSError, ValueError):  # no such group, or its limit is "max"
        return None
    found = re.search(rf"^{reclaimable} (\d+)$", kept, re.MULTILINE)
    return max(0, most - held + (int(found[1]) if found else 0))


def held_bytes(what: str = "VmRSS") -> int | None:
    """A line of the kernel's account of this process (VmRSS, VmHWM, VmData), in bytes; None where there is none."""
    try:
        found = re.search(rf"^{what}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


class ResidentPeak:
    """The most that the whole process holds in memory from here on, above what it holds now.

    True only in a fresh process: one that has freed memory takes from that, and its peak does not move.
    """

    def __init__(self) -> None:
        try:
            _CLEAR.write_text("5")  # resets VmHWM: proc(5)
        except OSError:
            self._before = None
        else:
            self._before = held_bytes("VmRSS")

    def bytes(self) -> int | None:
        """The peak so far; None where the system does not tell."""
        peak = held_bytes("VmHWM")
        return None if peak is None or self._before is None else max(0, peak - self._before)


def allocator() -> str:
    """What decides how the host's allocator behaves: C library, transparent huge pages, settings in the environment.

    Half of the time of a variant with large temporaries can be page faults, and these settings halve it.
    """
    parts = [" ".join(platform.libc_ver()).strip()]
    try:
        modes = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
        parts += [f"huge pages {mode}" for mode in re.findall(r"\[(\w+)\]", modes)]
    except OSError:
        pass
    parts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if _SETTINGS.fullmatch(name)]
    return ", ".join(filter(None, parts))
