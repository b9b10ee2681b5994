"""`python -m bench.limits`: the search with made-up costs, and through real processes to a limit known beforehand."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench import limits
from bench.errors import UserError
from bench.measure.searching import Searching
from bench.plan.quantities import memory
from bench.results.columns import Case, Facts, Row
from bench.results.limits import Limits
from bench.results.store import Store
from tests.results.rows import CASE, ENVIRONMENT
from variants import registry
from variants.machine import Machine

ROOT = Path(__file__).parents[1]
HOSTILE = str(Path(__file__).parent / "measure" / "hostile.py")
MIB, GIB = 2**20, 2**30
MACHINE = Machine("cpu", "a made-up CPU", 64 * GIB, packages={"transformers": "5.0"})
START = replace(CASE, mask="full", heads=4, kv_heads=4, seq_q=512, seq_kv=512)


def inputs(n: int) -> int:
    return 3 * n * 4 * 64 * 4


def dense(n: int) -> Facts:
    """Two matrices of scores for each of four heads, in float32, and 8 operations a pair and nanosecond."""
    return Facts("ok", samples_ms=(4 * n * n * 64 / 8e6,), peak_bytes=4 * 4 * 2 * n * n)


def searched(
    cost: Callable[[int], Facts],
    memory_bytes: int = GIB,
    call_ms: float = 1e9,
    longest: int = 2**20,
    free_bytes: int = 64 * GIB,
    known: tuple[Row, ...] = (),
    variant: str = "naive",
    seq_q: int = 512,
) -> list[Row]:
    """The rows of one search, where a visit costs what `cost` says of the length."""
    searching = Searching(
        name="a-run",
        variants=registry.load(),
        machine=MACHINE,
        environment=ENVIRONMENT,
        limits=Limits(memory_bytes, call_ms, longest, within=0.01),
        execute=lambda case: cost(case.seq_kv),
        free_bytes=lambda: free_bytes,
        known={row.case: row for row in known},
    )
    return list(searching.rows([replace(START, variant=variant, seq_q=seq_q)]))


def lengths(rows: list[Row]) -> list[int]:
    return [row.case.seq_kv for row in rows]


def test_memory_binds_where_inputs_and_peak_exceed_it() -> None:
    rows = searched(dense)
    limit = next(n for n in range(512, 2**20) if inputs(n) + 32 * n * n > GIB) - 1
    fit = [n for n in lengths(rows) if n <= limit]
    assert max(fit) <= limit < min(set(lengths(rows)) - set(fit)) <= 1.01 * max(fit)
    assert len(rows) <= 7


def test_time_binds_where_it_is_the_shorter() -> None:
    rows = searched(dense, memory_bytes=2**50, free_bytes=2**50, call_ms=1000.0)
    limit = math.isqrt(int(1000 * 8e6 / 256))
    fit = [n for n in lengths(rows) if n <= limit]
    assert max(fit) <= limit < min(set(lengths(rows)) - set(fit)) <= 1.01 * max(fit)
    assert len(rows) <= 7


def test_memory_that_grows_with_the_length_alone_is_aimed_at_as_well() -> None:
    rows = searched(lambda n: Facts("ok", samples_ms=(1.0,), peak_bytes=2 * MIB + 10_000 * n), memory_bytes=64 * MIB)
    limit = 62 * MIB // (3 * 4 * 64 * 4 + 10_000)
    fit = [n for n in lengths(rows) if n <= limit]
    assert max(fit) <= limit < min(set(lengths(rows)) - set(fit)) <= 1.01 * max(fit)
    assert len(rows) <= 8


def test_where_nothing_binds_the_longest_is_tried_and_nothing_beyond() -> None:
    rows = searched(lambda n: Facts("ok", samples_ms=(1.0,), peak_bytes=n), longest=100_000, memory_bytes=64 * GIB)
    assert lengths(rows)[-1] == 100_000 and len(rows) <= 5
    assert {row.facts.status for row in rows} == {"ok"}


def test_what_is_predicted_not_to_be_free_is_never_tried_and_ends_the_search() -> None:
    tried: list[int] = []

    def cost(n: int) -> Facts:
        tried.append(n)
        return dense(n)

    rows = searched(cost, memory_bytes=GIB, free_bytes=GIB // 2)
    assert all(2 * inputs(n) + 32 * n * n <= GIB // 2 for n in tried)
    assert [row.facts.status for row in rows] == ["ok"] * len(tried) + ["skipped"]
    assert rows[-1].facts.reason.endswith("0.5 GiB free")
    assert rows[-1].case.seq_kv <= 1.01 * max(tried)


def test_a_call_predicted_to_take_three_times_the_limit_is_not_tried() -> None:
    """These calls do not grow at all, and are predicted to grow with the square of the length."""
    rows = searched(lambda n: Facts("ok", samples_ms=(90.0,), peak_bytes=1), call_ms=100.0, longest=100_000)
    assert all(longer <= shorter * math.sqrt(3 * 100 / 90) for shorter, longer in pairwise(lengths(rows)))
    assert lengths(rows)[-1] == 100_000 and len(rows) < 25


@pytest.mark.parametrize("status", ["oom", "timeout"])
def test_out_of_memory_and_out_of_time_bound_the_search(status: str) -> None:
    rows = searched(lambda n: dense(n) if n <= 3000 else Facts(status, "a reason"))
    fit, over = ({row.case.seq_kv for row in rows if (row.facts.status == "ok") is ok} for ok in (True, False))
    assert max(fit) <= 3000 < min(over) <= 1.01 * max(fit)


@pytest.mark.parametrize("status", ["wrong", "error", "crashed"])
def test_a_failure_ends_the_search_at_once(status: str) -> None:
    rows = searched(lambda n: dense(n) if n < 1024 else Facts(status, "a reason"))
    assert [(row.case.seq_kv, row.facts.status) for row in rows] == [(512, "ok"), (1024, status)]


def test_what_takes_no_such_problem_is_one_row_and_no_visit() -> None:
    (row,) = searched(dense, variant="sliding_window")
    assert (row.case.seq_kv, row.facts.status, row.facts.reason) == (512, "unsupported", "needs a window")
    assert row.visit_s is None


def test_a_variant_that_takes_no_short_problem_begins_where_it_does() -> None:
    assert lengths(searched(dense, variant="hf_bigbird", longest=2048)) == [1024, 2048]


def test_with_fixed_queries_the_keys_grow_alone() -> None:
    rows = searched(lambda n: Facts("ok", samples_ms=(1.0,), peak_bytes=16 * n), seq_q=1, memory_bytes=64 * MIB)
    assert {row.case.seq_q for row in rows} == {1}
    limit = (64 * MIB - 4 * 64 * 4) // (2 * 4 * 64 * 4 + 16)
    fit = [n for n in lengths(rows) if n <= limit]
    assert limit < min(set(lengths(rows)) - set(fit)) <= 1.01 * max(fit)


@pytest.mark.parametrize("stopped_after", [0, 1, 3, 5])
def test_a_search_goes_on_where_it_was_stopped(stopped_after: int) -> None:
    whole = searched(dense)
    rest = searched(dense, known=tuple(whole[:stopped_after]))
    assert lengths(rest) == lengths(whole)[stopped_after:]
    assert not searched(dense, known=tuple(whole))


def test_an_interrupt_leaves_the_tries_that_were_made(tmp_path: Path) -> None:
    def execute(case: Case) -> Facts:
        if case.seq_kv > 1024:
            raise KeyboardInterrupt
        return dense(case.seq_kv)

    bounds = Limits(GIB, 1e9, 2**20, within=0.01)
    searching = Searching("a-run", registry.load(), MACHINE, ENVIRONMENT, bounds, execute, lambda: 64 * GIB)
    with Store(tmp_path / "a.csv") as store:
        assert not limits._try_all(searching, [replace(START, variant="naive")], store)
    with Store(tmp_path / "a.csv", resume=True) as store:
        assert lengths(store.rows) == [512, 1024]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GiB", 24 * GIB),
        ("512MiB", 512 * MIB),
        ("1.5gib", 3 * GIB // 2),
        ("80GB", 80 * 10**9),
        ("80 GB", 80 * 10**9),
        ("3kB", 3000),
        ("2TiB", 2**41),
        ("4096B", 4096),
    ],
)
def test_memory(text: str, expected: int) -> None:
    assert memory(text) == expected


@pytest.mark.parametrize(
    "text", ["", "24", "0GiB", "0.0001B", "-1GiB", "GiB", "24Gi", "24 G", "1e3MiB", "infGiB", "24iB", "9" * 400 + "GiB"]
)
def test_memory_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: 24GiB, 512MiB") as refusal:
        memory(text)
    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--memory", "much"], "--memory: 'much': not a size of memory above zero; accepted: 24GiB, 512MiB"),
        (["--max-call", "0"], "--max-call: '0'"),
        (["--longest", "1k..4k"], "--longest: '1k..4k' is more than one length"),
        (["--longest", "100"], "--longest: 100 is below where a search begins; accepted: 512 or more"),
        (["--within", "2"], "--within: '2'"),
        (["--resume"], "--resume: which file? add --out FILE"),
        (["--from", "a.csv", "--out", "b.csv"], "--out: nothing is measured with --from"),
        (
            ["--longest", "1k", "--seq-q", "1k"],
            "--longest: 1024 is below where a search begins; accepted: 2048 or more",
        ),
        (["--markdown", "none/a.md"], "--markdown: none/a.md cannot be written"),
        (["--from", __file__], "--memory: the file does not say what limit"),
        (["--from", "none.csv"], "none.csv: No such file or directory"),
        (["--from", "none.csv", "--memory", "1GiB"], "none.csv: No such file or directory"),
        (["--variants", "nope"], "--variants: 'nope' is not registered"),
        (["--mask", "casual"], "--mask: mask 'casual'"),
        (["--model", "llama"], "--model: 'llama'"),
        (["--model", "llama-3-8b", "--heads", "4"], "--heads: '4' is for --model to set"),
        (["--model", "llama-3-8b", "--seq-q", "1"], "--seq-q: '1' is for --model to set"),
        (["--model", "bert-base", "--phase", "decode"], "--phase: bert-base has no 'decode'"),
        (["--phase", "decode"], "--phase: 'decode' of which model? add --model NAME"),
        (["--from", "a.csv", "--memory", "1GiB", "--markdown", "a.csv"], "--markdown: a.csv is read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_the_user_can_put_right_is_one_line(arguments: list[str], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        limits.main([*arguments, *([] if "--variants" in arguments else ["--variants", "naive"])])
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_was_predicted_not_to_fit_is_tried_when_more_memory_is_free() -> None:
    rows = searched(dense, memory_bytes=64 * GIB, free_bytes=GIB)
    predicted = [row for row in rows if row.facts.status == "skipped"]
    assert predicted
    again = searched(dense, memory_bytes=64 * GIB, known=tuple(rows))
    assert max(lengths(again)) > max(lengths(rows))
    assert all(row.visit == 2 for row in again if row.case in {row.case for row in predicted})
    assert searched(dense, memory_bytes=64 * GIB, free_bytes=GIB, known=tuple(rows)) == []


def starts(*arguments: str) -> list[tuple[str, int, int, int, int]]:
    """(mask, heads, kv_heads, queries, keys) of where the searches begin."""
    cases = limits._starts(limits.parser().parse_args(arguments), MACHINE, ["naive"])
    return [(case.mask, case.heads, case.kv_heads, case.seq_q, case.seq_kv) for case in cases]


def test_a_models_layers_are_searched_where_their_keys_grow() -> None:
    assert starts("--model", "llama-3-8b") == [("causal", 32, 8, 512, 512)]
    assert starts("--model", "llama-3-8b", "--phase", "decode") == [("causal", 32, 8, 1, 512)]
    both = starts("--model", "gemma-2-9b")
    assert both == [("causal+window:4096", 16, 8, 512, 512), ("causal", 16, 8, 512, 512)]
    assert starts("--model", "whisper-large-v3") == [("causal", 20, 20, 512, 512)]  # the decoder's own alone
    with pytest.raises(UserError, match="--model: 'vit-l-16' sets all its lengths itself"):
        starts("--model", "vit-l-16")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.limits", "--device", "cpu", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300, check=False)


def test_the_limit_that_is_measured_is_that_of_the_closed_form_and_a_resumed_search_makes_no_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """naive under a causal mask: of each of 4 heads q, k, v and the result, n x 64, and two n x n matrices of float32;
    of all heads together one n x n matrix of bools, made by the plan."""
    arguments = ("--variants", "naive", "--memory", "16MiB", "--max-call", "1m", "--out", "a.csv")
    limit = next(n for n in range(1, 10**4) if 4 * 4 * (4 * n * 64 + 2 * n * n) + n * n > 16 * MIB) - 1
    out = run(*arguments, cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    with Store(tmp_path / "a.csv", resume=True) as store:
        needs = {r.case.seq_kv: r.facts.peak_bytes + inputs(r.case.seq_kv) for r in store.rows}
    fits = max(n for n, need in needs.items() if need <= 16 * MIB)
    over = min(n for n, need in needs.items() if need > 16 * MIB)
    assert 0.97 * limit <= fits <= limit + 1 and over <= 1.01 * fits
    assert f"naive    {fits:>7}" in out.stdout

    before = (tmp_path / "a.csv").read_bytes()
    again = run(*arguments, "--resume", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, out.stdout)
    assert (tmp_path / "a.csv").read_bytes() == before
    limits.main(["--from", str(tmp_path / "a.csv"), "--memory", "16MiB", "--max-call", "1m"])
    assert capsys.readouterr().out == out.stdout.replace("written: a.csv\n", "")


def test_what_is_wrong_ends_its_search_is_told_and_fails(tmp_path: Path) -> None:
    names = ("--variants", "zeros,raises,unsupported", "--import", HOSTILE)
    out = run(*names, "--mask", "full", "--longest", "512", "--out", "a.csv", "--markdown", "a.md", cwd=tmp_path)
    assert out.returncode == 1
    assert "zeros: right nowhere, wrong at 512 (" in out.stdout
    assert "raises: right nowhere, error at 512 (ValueError: a [bold] reason,)" in out.stdout
    assert "unsupported: unsupported (only on Tuesdays)" in out.stdout
    assert "Traceback" not in out.stderr + out.stdout
    assert r"\[bold\]" in (tmp_path / "a.md").read_text()
