"""pytest-benchmark cases for the report: of one run, and of 20,000 rows, with page, Markdown and every figure."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.results.columns import Row
from tests.analysis.made_up import row, write

RECORDED = Path(__file__).parents[1] / "data" / "scaling-two-cores.csv"
LENGTHS = [2**power for power in range(9, 17)]
VARIANTS = {f"v{at:02d}": 2.0 if at % 3 else 1.0 for at in range(13)}  # as which power of the length each grows


def rows(problems: int, visits: int) -> Iterator[Row]:
    """Visits to every variant at every length of so many problems, 24 samples each, a few per cent apart."""
    chance = np.random.default_rng(7)
    for at in range(problems):
        heads = 4 << at % 2
        problem = {
            "mask": ("full", "causal", "causal+window:256")[at % 3],
            "heads": heads,
            "kv_heads": heads,
            "head_dim": (64, 128)[at // 6 % 2],
            "dtype": ("float32", "bfloat16")[at // 12 % 2],
        }
        for variant, power in VARIANTS.items():
            for n in LENGTHS:
                for visit in range(1, visits + 1):
                    ms = (0.1 + 1e-6 * n**power) * np.exp(chance.normal(0, 0.02) + abs(chance.normal(0, 0.02, 24)))
                    samples = tuple(ms.round(6).tolist())
                    yield row(variant, n, samples, visit=visit, peak_bytes=int(1e6 + 4 * n**power), **problem)


def reported(*arguments: object) -> None:
    command = [sys.executable, "-m", "bench.report", *map(str, arguments)]
    subprocess.run(command, capture_output=True, check=True)


def test_the_report_of_a_run(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    benchmark.pedantic(reported, (RECORDED, "--figures", tmp_path), rounds=3)
    assert len(list(tmp_path.glob("*.svg"))) == 6


@pytest.mark.slow
def test_the_whole_report_of_20_000_rows(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="the package that carries Vega is not installed")
    csv = write(tmp_path / "many.csv", rows(problems=24, visits=8))
    others = "--baseline", "v01", "--html", tmp_path / "many.html", "--markdown", tmp_path / "many.md"
    benchmark.pedantic(reported, (csv, *others), rounds=1)
    assert len(csv.read_text().splitlines()) > 19_900
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".html", ".md", ".png", ".svg"}
    assert len(list(tmp_path.glob("*.svg"))) == 15
