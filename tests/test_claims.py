"""`python -m bench.claims` through real processes: measured, read again, and refused."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from bench import claims
from bench.errors import UserError

ROOT = Path(__file__).parents[1]

CLAIMS = """
[defaults]
heads = 2
head_dim = 16
seq = 64

[[claim]]
about = "windows"
of = "sliding_window window:8"
than = "naive full"
time_at_most = 1000

[[claim]]
about = "memory"
of = "naive full"
bytes_exactly = {naive}

[[claim]]
about = "mine"
of = "mine full"
than = "naive full"
time_at_most = 1000
"""
NAIVE = 2 * (2 * 64 * 64 + 64 * 16) * 4  # two heads of two matrices of scores and a result

MINE = '''"""A variant that is {}."""
import torch
from variants.registry import variant

@variant("mine")
def mine(q, k, v):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v * {}
'''


def files(tmp_path: Path, factor: float = 1.0, naive: int = NAIVE) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS.format(naive=naive))
    (tmp_path / "mine.py").write_text(MINE.format("scaled", factor))


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.claims", "claims.toml", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300, check=False)


def measure(tmp_path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    short = ("--races", "2", "--race-time", "0.01s", "--threads", "1", "--device", "cpu")
    return run("--import", "mine.py", *short, "--out", "out.csv", *more, cwd=tmp_path)


def test_measured_and_read_again(tmp_path: Path) -> None:
    files(tmp_path)
    out = measure(tmp_path, "--markdown", "a.md")
    assert out.returncode == 0, out.stderr
    assert "3 claims: 3 reached" in out.stdout and "windows" in out.stdout and "written: out.csv" in out.stdout
    rows = pd.read_csv(tmp_path / "out.csv")
    assert set(rows["method"]) == {"2 race"}
    races = rows[rows["run"].str.contains("race")].groupby(["run", "visit"])["variant"].apply(sorted)
    assert [list(names) for names in races] == [["mine", "naive", "sliding_window"]] * 2

    before = (tmp_path / "out.csv").read_bytes()
    assert run("--from", "out.csv", "--markdown", "-", cwd=tmp_path).stdout == (tmp_path / "a.md").read_text()
    again = measure(tmp_path)
    assert again.returncode == 2 and "--out: out.csv exists; name another file, or read it: --from" in again.stderr
    assert (tmp_path / "out.csv").read_bytes() == before


def test_what_is_wrong_has_no_speed_and_fails(tmp_path: Path) -> None:
    files(tmp_path, factor=1.1)
    out = measure(tmp_path, "--about", "mine")
    assert out.returncode == 1 and "1 claims: 1 not measured" in out.stdout
    rows = pd.read_csv(tmp_path / "out.csv").set_index("variant")
    assert rows.loc["mine", "status"] == "wrong" and pd.isna(rows.loc["mine", "samples_ms"])


def test_what_is_not_reached_fails(tmp_path: Path) -> None:
    files(tmp_path, naive=NAIVE + 1)
    out = measure(tmp_path, "--about", "memory")
    assert out.returncode == 1 and "not reached" in out.stdout


@pytest.mark.parametrize("of", ["all full", "sliding_window,naive full"])
def test_a_claim_names_one_variant(tmp_path: Path, of: str) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS.format(naive=NAIVE).replace("mine full", of))
    with pytest.raises(UserError, match="is not registered"):
        claims.main([str(tmp_path / "claims.toml")])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--about", "speed"], "--about: 'speed' is in no subject; accepted: windows, memory, mine"),
        (["--from", "a.csv", "--out", "b.csv"], "--out: nothing is measured with --from"),
        (["--markdown", "nowhere/a.md"], "--markdown: nowhere/a.md cannot be written"),
        (["--races", "1"], "--races: 1 gives no interval; accepted: 2 or more"),
        (["--from", str(ROOT / "results/amd-epyc-avx512-2-cores/repeat-1.csv")], "not measured by bench.claims"),
        ([], "CLAIMS: 'mine' is not registered"),
        (["--about", "memory", "--device", "tpu"], "--device: 'tpu' is not to be had here"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, more: list[str], told: str) -> None:
    files(tmp_path)
    with pytest.raises(UserError) as caught:
        claims.main([str(tmp_path / "claims.toml"), *more])
    assert told in str(caught.value)
