"""The host's memory: control groups made of files, and a resident peak that is known beforehand."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.measure import memory

MIB = 2**20
V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group(folder: Path, names: tuple[str, str, str], most: object, held: int, reclaimable: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    limit, used, kept = names
    (folder / limit).write_text(f"{most}\n")
    (folder / used).write_text(f"{held}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{kept} {reclaimable}\nslab 7\n")


@pytest.mark.parametrize(
    ("membership", "folder", "names"),
    [
        ("0::/user.slice/job", "user.slice/job", V2),
        ("0::/user.slice/job", "user.slice", V2),  # a limit on the parent holds for the child
        ("0::/", ".", V2),
        ("4:cpu:/x\n5:memory:/docker/abc\n", "memory", V1),  # inside a container its own group is the root
        ("4:cpu,memory:/docker/abc\n", "memory/docker/abc", V1),
    ],
)
def test_a_control_group_limits_what_is_available(
    tmp_path: Path, membership: str, folder: str, names: tuple[str, str, str]
) -> None:
    (tmp_path / "own").write_text(membership)
    group(tmp_path / "groups" / folder, names, 100 * MIB, held=70 * MIB, reclaimable=20 * MIB)
    assert memory.available_bytes(tmp_path / "groups", tmp_path / "own") == 50 * MIB


@pytest.mark.parametrize("most", ["max", 2**60])
def test_without_a_limit_the_system_tells(tmp_path: Path, most: object) -> None:
    (tmp_path / "own").write_text("0::/job\n")
    group(tmp_path / "groups" / "job", V2, most, held=MIB)
    available = memory.available_bytes(tmp_path / "groups", tmp_path / "own")
    assert available == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert memory.available_bytes(tmp_path / "none", tmp_path / "missing") == pytest.approx(available, rel=0.2)


def test_a_group_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/job\n")
    group(tmp_path / "groups" / "job", V2, 100, held=200)
    assert memory.available_bytes(tmp_path / "groups", tmp_path / "own") == 0


FRESH = """
from bench.measure.memory import ResidentPeak
peak = ResidentPeak()
block = bytearray(64 * 2**20)
del block
kept = bytearray(16 * 2**20)
print(peak.bytes())
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="this system has no /proc/self/clear_refs")
def test_the_resident_peak_counts_what_was_freed_and_not_what_was_held_before() -> None:
    before = bytearray(200 * MIB)
    printed = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert int(printed.stdout) == pytest.approx(64 * MIB, abs=MIB)
    assert len(before) == 200 * MIB


def test_where_the_system_tells_nothing_there_is_no_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "missing")
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "nowhere" / "missing")
    assert memory.held_bytes() is None
    assert memory.ResidentPeak().bytes() is None


def test_the_settings_of_the_allocator_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if memory._SETTINGS.fullmatch(name)]:
        monkeypatch.delenv(name)
    plain = memory.allocator()
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    monkeypatch.setenv("PATH", "/nowhere")
    told = memory.allocator()
    assert told == f"{plain}, GLIBC_TUNABLES=glibc.malloc.hugetlb=1, PYTORCH_ALLOC_CONF=expandable_segments:True"
