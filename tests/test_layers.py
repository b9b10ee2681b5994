"""Who may import whom: variants never import bench, and neither planning nor reading loads torch."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = sorted(p.stem for p in (ROOT / "bench").glob("*.py") if "cli.run(main)" in p.read_text())


def imported(path: Path) -> set[str]:
    """Every module that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "variants").glob("*.py")), ids=lambda p: p.stem)
def test_variants_never_import_bench(path: Path) -> None:
    assert not [name for name in imported(path) if name.split(".")[0] == "bench"]


@pytest.mark.parametrize(
    ("left", "forbidden"),
    [
        ("bench/plan", {"torch", "pandas", "seaborn", "bench.measure", "bench.analysis"}),
        ("bench/results", {"torch", "pandas", "seaborn", "bench.measure", "bench.analysis", "bench.plan"}),
        ("bench/measure", {"pandas", "seaborn", "bench.analysis", "bench.report"}),
        ("bench/pairs", {"pandas", "seaborn", "bench.analysis", "bench.gate"}),
        ("bench/checks", {"pandas", "seaborn", "bench.analysis", "bench.plan"}),
        ("bench/analysis", {"torch", "bench.measure", "bench.plan", "bench.figures", "bench.page"}),
        ("bench/figures", {"torch", "bench.measure", "bench.plan", "bench.page"}),
        ("bench/page", {"torch", "seaborn", "bench.measure", "bench.plan", "bench.figures"}),
    ],
)
def test_each_part_imports_only_what_is_its_own(left: str, forbidden: set[str]) -> None:
    paths = list((ROOT / left).glob("*.py"))
    assert paths
    for path in paths:
        assert not {name for name in imported(path) if any(name == f or name.startswith(f"{f}.") for f in forbidden)}, (
            path
        )


def loaded_by(code: str) -> set[str]:
    """The modules that are loaded once `code` has run in a fresh interpreter."""
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import bench.results.store",
        "import bench.analysis.frame",
        "import bench.report",
        "import variants.registry",
        "import bench.plan.arguments",
        "import bench.measure.rounds",
        "import bench.run",
        "import bench.limits, bench.models",
        "import bench.gate, bench.pairs.match, bench.pairs.choice",
    ],
)
def test_torch_is_not_loaded_for(code: str) -> None:
    assert "torch" not in loaded_by(code)


def test_torch_is_not_loaded_for_a_report(tmp_path: Path) -> None:
    csv = ROOT / "results" / "amd-epyc-avx512-2-cores" / "repeat-1.csv"
    quietly = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):"
    call = f"from bench import report; report.main([{str(csv)!r}, '--figures', {str(tmp_path)!r}])"
    loaded = loaded_by(f"{quietly} {call}")
    assert "pandas" in loaded and "torch" not in loaded
    assert {"repeat-1-latency.png", "repeat-1-memory.svg"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_answers_at_once_with_examples(command: str) -> None:
    best = float("inf")
    for _ in range(5):  # the least of five: the machine may be busy
        start = time.perf_counter()
        out = subprocess.run(
            [sys.executable, "-m", f"bench.{command}", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
        )
        best = min(best, time.perf_counter() - start)
    assert f"examples:\n  python -m bench.{command}" in out.stdout
    assert best < 0.5


def test_the_commands_are_all_here() -> None:
    assert set(COMMANDS) >= {"run", "report", "compare", "show", "verify", "claims", "tune", "gate", "limits", "models"}
