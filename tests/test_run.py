"""The main job through real processes, on sizes that take no time: its files, its statuses, its refusals."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from bench.results.store import Store

ROOT = Path(__file__).parents[1]
HOSTILE = str(Path(__file__).parent / "measure" / "hostile.py")
SMALL = ["--seq", "32,64", "--heads", "2", "--head-dim", "16", "--device", "cpu", "--visits", "1"]

PLUGIN = '''"""Plain attention, in ten lines."""

from variants.registry import variant


@variant("mine")
def mine(q, k, v):
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    return scores.softmax(-1) @ v
'''


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.run", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300, check=False)


def rows(path: Path) -> list[tuple[str, str, int, str]]:
    with Store(path, resume=True) as store:
        return [(r.case.variant, r.case.mask, r.case.seq_kv, r.facts.status) for r in store.rows]


def once(path: Path) -> list[tuple[str, str, int, str]]:
    """The rows of first visits, each of which stands there once; a disturbed one brings others."""
    with Store(path, resume=True) as store:
        assert len({row.key for row in store.rows}) == len(store.rows)
        first = [row for row in store.rows if row.visit == 1]
    return sorted((r.case.variant, r.case.mask, r.case.seq_kv, r.facts.status) for r in first)


def test_a_variant_of_the_users_own_is_checked_timed_and_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    out = run(
        *SMALL, "--mask", "full,causal", "--variants", "mine,sdpa", "--import", "mine", "--out", "a.csv", cwd=tmp_path
    )
    assert out.returncode == 0, out.stderr
    expected = [
        *[("mine", "full", n, "ok") for n in (32, 64)],
        *[("sdpa", "full", n, "ok") for n in (32, 64)],
        *[("mine", "causal", n, "unsupported") for n in (32, 64)],
        *[("sdpa", "causal", n, "ok") for n in (32, 64)],
    ]
    assert once(tmp_path / "a.csv") == sorted(expected)
    assert "takes no causal mask" in out.stdout
    for name in ("a.csv", "a-latency.png", "a-memory.png"):
        assert name in out.stdout
        assert (tmp_path / name).stat().st_size > 0
    assert "python -m bench.report a.csv" in out.stdout


def test_what_fails_is_a_row_the_sweep_goes_on_and_the_exit_status_tells(tmp_path: Path) -> None:
    names = "zeros,segfaults,raises,greedy,good"
    out = run(*SMALL, "--mask", "full", "--variants", names, "--import", HOSTILE, "--out", "a.csv", cwd=tmp_path)
    assert out.returncode == 1
    statuses = {"zeros": "wrong", "segfaults": "crashed", "raises": "error", "good": "ok"}
    expected = [(name, "full", n, status) for name, status in statuses.items() for n in (32, 64)]
    expected += [("greedy", "full", 32, "oom"), ("greedy", "full", 64, "skipped")]
    assert once(tmp_path / "a.csv") == sorted(expected)
    assert "Traceback" not in out.stderr + out.stdout
    assert "[bold] reason" in out.stdout


KILLED = [*SMALL, "--mask", "full", "--variants", "good,sdpa,raises", "--import", HOSTILE]


def start(*arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bench.run", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_run_killed_in_the_middle_is_resumed_to_the_same_rows(tmp_path: Path) -> None:
    assert run(*KILLED, "--out", "whole.csv", cwd=tmp_path).returncode == 1
    path = tmp_path / "killed.csv"
    process = start(*KILLED, "--out", str(path), cwd=tmp_path)
    deadline = time.monotonic() + 120
    while (not path.exists() or path.read_bytes().count(b"\n") < 3) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = rows(path)
    assert len(before) >= 2
    assert run(*KILLED, "--out", str(path), "--resume", cwd=tmp_path).returncode == 1
    assert rows(path)[: len(before)] == before
    assert once(path) == once(tmp_path / "whole.csv")


@pytest.mark.slow
def test_twenty_runs_killed_at_random_moments_lose_tear_and_repeat_nothing(tmp_path: Path) -> None:
    arguments = [*KILLED, "--seq", "32..256"]
    assert run(*arguments, "--out", "whole.csv", cwd=tmp_path).returncode == 1
    whole, draw = once(tmp_path / "whole.csv"), random.Random(20261129)
    path, seen, cut_short = tmp_path / "killed.csv", [], 0
    for kill in range(20):
        size = path.stat().st_size if path.exists() else 0
        process = start(*arguments, "--out", str(path), *(["--resume"] if size else []), cwd=tmp_path)
        if kill % 4:  # most often soon after a row has come, else at any time
            while process.poll() is None and not (path.exists() and path.stat().st_size > size):
                time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 1.0 if kill % 4 else 9.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = rows(path) if path.exists() and path.stat().st_size else []
        assert now[: len(seen)] == seen
        cut_short += len(seen) < len(now) < len(whole)
        seen = now
        if seen and once(path) == whole:  # begin anew
            path, seen = tmp_path / f"killed-{kill}.csv", []
    assert cut_short >= 5
    run(*arguments, "--out", str(path), *(["--resume"] if path.exists() else []), cwd=tmp_path)
    assert once(path) == whole
    assert not orphans()


def orphans() -> list[psutil.Process]:
    """Visits and servers that outlived their run."""
    time.sleep(1.0)
    return [
        p for p in psutil.process_iter(["cmdline"]) if "multiprocessing.forkserver" in " ".join(p.info["cmdline"] or ())
    ]


THREADS = '''"""Right, but only on so many threads."""

import torch
from variants.registry import Unsupported, variant


@variant("single")
def single(q, k, v):
    if torch.get_num_threads() != 1:
        raise Unsupported(f"on {torch.get_num_threads()} threads")
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
'''


def test_the_threads_asked_for_are_used_and_recorded(tmp_path: Path) -> None:
    (tmp_path / "single.py").write_text(THREADS)
    arguments = ["--mask", "full", "--variants", "single", "--import", "single.py", "--threads", "1", "--out", "a.csv"]
    assert run(*SMALL, *arguments, cwd=tmp_path).returncode == 0
    with Store(tmp_path / "a.csv", resume=True) as store:
        assert {(row.facts.status, row.environment.threads) for row in store.rows} == {("ok", 1)}
        assert all(row.ceiling.ceiling_tflops and row.derived.ceiling_share for row in store.rows)
        assert all(row.derived.canary_ms and row.visit_s for row in store.rows)


def test_a_file_measured_elsewhere_is_refused_by_what_differs_or_added_to(tmp_path: Path) -> None:
    arguments = [*SMALL, "--mask", "full", "--variants", "sdpa", "--out", "a.csv"]
    assert run("--seq", "32", *SMALL[2:], *arguments[len(SMALL) :], cwd=tmp_path).returncode == 0
    path = tmp_path / "a.csv"
    path.write_text(path.read_text().replace(f",{torch.__version__},", ",1.13.1,"))
    refused = run(*arguments, "--resume", cwd=tmp_path)
    assert refused.returncode == 2
    assert f"torch is '{torch.__version__}' here, '1.13.1' there" in refused.stderr
    assert "--append-anyway" in refused.stderr
    assert run(*arguments, "--resume", "--append-anyway", cwd=tmp_path).returncode == 0
    with Store(path, resume=True) as store:
        versions = {row.case.seq_kv: row.environment.torch for row in store.rows}
        assert versions == {32: "1.13.1", 64: torch.__version__}
        assert len({row.run for row in store.rows}) == 1


GREEDY = '''"""Right, and asks for a part of the memory that grows with the square of the length."""

import psutil
import torch
from variants.registry import variant

FREE = psutil.virtual_memory().available


@variant("hungry")
def hungry(q, k, v):
    torch.empty(int(FREE * 0.4 * (k.shape[-2] / 32) ** 2), dtype=torch.uint8)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)
'''


@pytest.mark.parametrize(("force", "status"), [([], "skipped"), (["--force"], "oom")])
def test_what_will_not_fit_is_skipped_unless_forced(tmp_path: Path, force: list[str], status: str) -> None:
    (tmp_path / "hungry.py").write_text(GREEDY)
    arguments = ["--mask", "full", "--variants", "hungry", "--import", "hungry.py", "--out", "a.csv", *force]
    assert run(*SMALL, *arguments, cwd=tmp_path).returncode == 0
    first, second = (row for row in Store(tmp_path / "a.csv", resume=True).rows if row.visit == 1)
    assert (first.facts.status, second.facts.status) == ("ok", status)
    assert ("needs about" in second.facts.reason) == (not force)


def test_interrupted_it_shows_what_there_is_and_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    arguments = [*SMALL, "--mask", "full", "--variants", "sdpa,hangs", "--import", HOSTILE, "--out", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.run", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while (not path.exists() or path.read_bytes().count(b"\n") < 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "sdpa" in stdout
    assert "--resume" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--seq", "512...1024"], "--seq: '512...1024' is not understood; accepted: 512..16384"),
        (["--seq", "1024..512"], "--seq: '1024..512' runs backwards"),
        (["--seq", ""], "--seq: '' is not understood"),
        (["--heads", "0"], "--heads: '0' is not a whole number"),
        (["--mask", "casual"], "--mask: mask 'casual': 'casual' is not understood; accepted: full, or terms"),
        (["--mask", "window:0"], "window:0"),
        (["--dtype", "float64"], "--dtype: 'float64' is not understood; accepted: float32, bfloat16, float16"),
        (["--direction", "up"], "--direction: 'up' is not understood; accepted: fwd, bwd, fwdbwd"),
        (["--variants", "nope"], "--variants: 'nope' is not registered; accepted: all, chunked"),
        (["--import", "no_such_module"], "--import: 'no_such_module' cannot be imported: ModuleNotFoundError"),
        (["--import", "no_such.py"], "--import: 'no_such.py' cannot be imported: ImportError: there is no such file"),
        (["--device", "abacus"], "--device: 'abacus' is not to be had here"),
        (["--heads", "4", "--kv-heads", "3"], "--kv-heads: 3 does not divide 4 heads"),
        (["--resume"], "--resume: which file? add --out FILE"),
        (["--out", "there.csv"], "--out: there.csv exists; add --resume"),
        (["--baseline", "nope"], "--baseline: 'nope' does not run"),
        (["--time-budget", "soon"], "--time-budget: 'soon'"),
        (["--threads", "0"], "--threads: '0' is not a whole number of at least 1"),
        (["--threads", "100000"], "--threads: 100000 is more than this machine's"),
        (["--cache", "warm"], "--cache: 'warm' is not understood; accepted: cold, hot"),
        (["--cache", "cold", "--device", "cpu"], "--cache: 'cold' is not to be had on a CPU; accepted: hot"),
        (["--setup-timeout", "0"], "--setup-timeout: '0'"),
        (["--append-anyway"], "--append-anyway: to which file? add --resume --out FILE"),
        (["--model", "llama-4"], "--model: 'llama-4' is not a model known here; accepted: llama-3-8b, "),
        (["--model", "gpt2", "--heads", "4"], "--heads: '4' is for --model to set; leave out one of the two"),
        (["--model", "gpt2", "--kv-heads", "2"], "--kv-heads: '2' is for --model to set"),
        (["--model", "gpt2", "--head-dim", "8"], "--head-dim: '8' is for --model to set"),
        (["--model", "gpt2", "--mask", "full,causal"], "--mask: 'full,causal' is for --model to set"),
        (["--model", "gpt2", "--seq-q", "1"], "--seq-q: '1' is for --model to set"),
        (["--model", "gpt2,bert-base", "--phase", "decode"], "--phase: bert-base has no 'decode'"),
        (["--model", "gpt2", "--phase", "train"], "--phase: 'train' is not understood; accepted: prefill, decode"),
        (["--phase", "decode"], "--phase: 'decode' of which model? add --model NAME"),
        (
            ["--model", "gpt2", "--phase", "decode", "--direction", "fwd,bwd"],
            "--direction: 'fwd,bwd' is not to be had of decoding; accepted: fwd",
        ),
        (["--speed", "11"], "unrecognized arguments: --speed 11"),
        (["@missing.txt"], "missing.txt"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_the_user_can_put_right_is_one_line_and_status_2(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    (tmp_path / "there.csv").write_text("mine\n")
    out = run(*arguments, cwd=tmp_path)
    assert out.returncode == 2
    assert complaint in out.stderr
    assert out.stderr.count("\n") == 1
    assert not out.stdout
    assert (tmp_path / "there.csv").read_text() == "mine\n"


def test_a_dry_run_prints_the_cases_and_why_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "arguments.txt").write_text("--seq 32..64   # two lengths\n--heads 2 --device cpu\n--mask causal\n")
    out = run("@arguments.txt", "--variants", "sdpa,sdpa_cudnn,longformer", "--dry-run", cwd=tmp_path)
    assert out.returncode == 0
    lines = out.stdout.splitlines()
    assert len([line for line in lines if line.startswith("sdpa causal fwd") and line.endswith("runs")]) == 2
    assert len([line for line in lines if line.startswith("longformer") and "unsupported: needs a window" in line]) == 2
    assert len([line for line in lines if line.startswith("sdpa_cudnn") and "unsupported: " in line]) == 2
    assert lines[-1].startswith("6 cases: 2 run on ")
    assert [path.name for path in tmp_path.iterdir()] == ["arguments.txt"]


def test_a_models_layers_are_measured_and_added_up(tmp_path: Path) -> None:
    problems = ["--model", "gemma-3-4b", "--phase", "prefill,decode", "--seq", "64,128", "--device", "cpu"]
    effort = ["--variants", "sdpa,sliding_window", "--visits", "1", "--time-budget", "1s", "--out", "a.csv"]
    out = run(*problems, *effort, cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    # two kinds of layers at two lengths in two phases, and what takes no mask without a window
    expected = [("sdpa", mask, n, "ok") for mask in ("causal", "causal+window:1024") for n in (64, 128)]
    expected += [("sliding_window", "causal", n, "unsupported") for n in (64, 128)]
    expected += [("sliding_window", "causal+window:1024", n, "ok") for n in (64, 128)]
    assert once(tmp_path / "a.csv") == sorted(expected * 2)
    for phase in ("prefill", "decode"):
        assert f"Gemma 3 4B, {phase}, all 34 attention layers" in out.stdout
    assert "global: sliding_window: unsupported (needs a window)" in out.stdout
    assert "left out: images: the vision encoder" in out.stdout
    assert "times of attention alone: no projections" in out.stdout


def test_a_dry_run_of_a_model_says_what_it_leaves_out_and_what_lies_beyond_it(tmp_path: Path) -> None:
    arguments = ["--model", "gpt2", "--seq", "1k,2k", "--device", "cpu", "--variants", "sdpa", "--dry-run"]
    out = run(*arguments, cwd=tmp_path)
    assert out.returncode == 0
    assert "GPT-2, 124M, prefill: left out: dropout of the weights in training" in out.stdout
    assert "GPT-2, 124M, prefill: beyond its context of 1024: 2048" in out.stdout
    assert "times of attention alone" in out.stdout
    assert out.stdout.splitlines()[-1].startswith("2 cases: 2 run on ")
