"""`python -m bench.report`: what is printed and written, and one clear line for whatever is wrong with the request."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import report
from bench.errors import UserError
from tests.analysis.made_up import failed, row, write


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [
        row("sdpa", 512, 1.0),
        row("naive", 512, 2.0),
        row("sdpa", 1024, 2.0),
        failed("wrong", "far off", "naive", 1024),
    ]
    return write(tmp_path / "a.csv", rows)


def test_tables_then_figures_then_their_names(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(results)]) == 0
    out = capsys.readouterr().out
    assert out.index("a made-up CPU") < out.index("causal · fwd") < out.index("naive: wrong at 1024 (far off)")
    written = out.splitlines()[-1].removeprefix("written: ").split()
    assert written[:2] == [str(results.with_name(f"a-latency.{ending}")) for ending in ("png", "svg")]
    assert all(Path(path).read_bytes().startswith((b"\x89PNG", b"<?xml")) for path in written)


def test_show_is_what_a_run_ends_with(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = report.show([results], baseline="naive")
    assert results.with_name("a-memory.png") in written
    assert "naive" in capsys.readouterr().out


def test_show_does_not_mind_a_baseline_that_did_not_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report.show([results], baseline="flex")
    assert "flex is not in these results" in capsys.readouterr().out


def test_several_files_are_one(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write(tmp_path / "b.csv", [row("flex", 512, 4.0, run="b")])
    assert report.main([str(results), str(other), "--figures", str(tmp_path / "plots")]) == 0
    assert "0.250x" in capsys.readouterr().out
    assert {"a+b-latency.png", "a+b-memory.svg"} <= {path.name for path in (tmp_path / "plots").iterdir()}


def test_markdown_goes_where_it_is_told(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(results), "--no-figures", "--markdown", "-"]) == 0
    printed = capsys.readouterr().out
    assert "| 512 | **sdpa** | **1.00** | 1.00x |" in printed
    assert report.main([str(results), "--no-figures", "--markdown", str(tmp_path / "r.md")]) == 0
    assert (tmp_path / "r.md").read_text(encoding="utf-8") == printed
    assert capsys.readouterr().out.endswith(f"written: {tmp_path / 'r.md'}\n")


def test_the_baseline_can_be_chosen(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report.main([str(results), "--no-figures", "--baseline", "naive"])
    out = capsys.readouterr().out
    assert "2.00x" in out
    assert "vs\n" not in out


def refusal(*arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        report.main([str(a) for a in arguments])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_meant_is_repeated_with_what_can(results: Path, tmp_path: Path) -> None:
    assert "nope.csv" in refusal(tmp_path / "nope.csv")
    assert str(tmp_path) in refusal(tmp_path)
    assert refusal(results, "--baseline", "sdpb") == "--baseline: 'sdpb' is not in these results; accepted: naive, sdpa"
    assert "a.csv, line 2" in refusal(results, results)
    assert "--markdown" in refusal(results, "--no-figures", "--markdown", tmp_path)
    assert refusal(results, "--html", "-").startswith("--html: - is no file")
    over = write(tmp_path / "over.csv", [row(error=1.0, error_budget=1e-6)])
    assert "over.csv, line 2: column 'error': 1.0 is over its budget of 1e-06" in refusal(over)


def test_a_folder_for_figures_that_cannot_be_is_told_before_the_work(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = results.with_suffix(".html")
    told = refusal(results, "--figures", results, "--html", page)
    assert told.startswith(f"--figures: {results} is no folder to write to")
    assert capsys.readouterr().out == ""
    assert not page.exists()


def test_what_was_written_is_named_even_where_a_later_part_fails(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.figures.files.save", die)
    markdown = results.with_suffix(".md")
    refusal(results, "--markdown", markdown)
    assert capsys.readouterr().out.endswith(f"written: {markdown}\n")


def test_a_pipe_can_be_read_and_its_figures_go_here(results: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    command = f"{sys.executable} -m bench.report <(cat {results})"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=here, env=environment)
    assert "a made-up CPU" in out.stdout
    assert {path.suffix for path in here.iterdir()} == {".png", ".svg"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("rest", [[], ["--markdown", "-"]])
def test_a_full_disk_is_one_line_and_status_2(results: Path, rest: list[str]) -> None:
    command = [sys.executable, "-m", "bench.report", str(results), "--no-figures", *rest]
    with Path("/dev/full").open("w") as full:
        out = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (out.returncode, out.stderr.count("\n")) == (2, 1)


def test_a_file_has_one_content_by_whatever_name(results: Path, tmp_path: Path) -> None:
    before = results.read_bytes()
    other = tmp_path / "other.md"
    other.hardlink_to(results)
    assert f"--markdown: {other} is read" in refusal(results, "--no-figures", "--markdown", other)
    assert results.read_bytes() == before
    link = tmp_path / "link.md"
    link.symlink_to("target.md")
    assert report.main([str(results), "--no-figures", "--markdown", str(link)]) == 0
    assert link.is_symlink()
    assert "sdpa" in (tmp_path / "target.md").read_text()


def test_one_name_for_two_variants_is_refused(tmp_path: Path) -> None:
    csv = write(tmp_path / "b.csv", [row("mine", 512), row("mine", 1024, exact=False)])
    assert "line 3: 'mine' is exact in some of these rows and approximates in others" in refusal(csv)


def test_a_baseline_that_only_approximates_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row(v, n, ms, visit=at, exact=v != "mine")
        for v, ms in (("mine", 1.0), ("naive", 2.0))
        for n in (512, 1024)
        for at in (1, 2)
    ]
    assert report.main([str(write(tmp_path / "b.csv", rows)), "--no-figures", "--baseline", "mine"]) == 0
    out = capsys.readouterr().out
    assert "no speed-ups: mine only approximates; --baseline takes naive" in out
    assert "faster than" not in out


def test_drawing_leaves_the_callers_matplotlib_alone(results: Path) -> None:
    code = (
        "import matplotlib, warnings; matplotlib.use('svg'); from bench import report; "
        f"report.show([{str(results)!r}]); "
        "glyphs = [f for f in warnings.filters if 'Glyph' in str(f[1])]; "
        "raise SystemExit(matplotlib.get_backend() != 'svg' or len(glyphs))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_what_is_read_or_written_already_is_not_overwritten(results: Path, tmp_path: Path) -> None:
    before = results.read_bytes()
    for option in ("--markdown", "--html"):
        assert f"{option}: {results} is read" in refusal(results, "--no-figures", option, results)
    older = tmp_path / "older.csv"
    older.write_text("somebody's results")
    assert f"--markdown: {older} is there already" in refusal(results, "--no-figures", "--markdown", older)
    assert older.read_text() == "somebody's results"
    both = tmp_path / "both"
    assert f"--html: {both} is read, or written" in refusal(results, "--markdown", both, "--html", both)
    assert "--html" in refusal(results, "--no-figures", "--html", tmp_path / "none" / "page.html")
    assert results.read_bytes() == before
    assert not both.exists()


def test_a_pipe_whose_reader_has_seen_enough_is_no_error(results: Path, tmp_path: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m bench.report {results} --figures {tmp_path / 'plots'} | head -n 1"
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert out.stderr == ""
    assert "a made-up CPU" in out.stdout


def test_whole_models_come_before_single_cases(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report.main([str(results), "--no-figures", "--model", "llama-3-8b"])
    out = capsys.readouterr().out
    assert out.index("causal · fwd") < out.index("Llama 3 8B") < out.index("latency")


def test_a_csv_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("name,age\nx,3\n")
    assert "no results CSV" in refusal(tmp_path / "b.csv")


def test_from_the_shell_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    out = subprocess.run(
        [sys.executable, "-m", "bench.report", "nope.csv"], capture_output=True, text=True, check=False
    )
    assert out.returncode == 2
    assert out.stdout == ""
    assert out.stderr.count("\n") == 1
    assert "nope.csv" in out.stderr


@pytest.mark.parametrize("markdown", [[], ["--markdown", "-"]])
def test_a_terminal_that_knows_ascii_only_is_no_traceback(results: Path, markdown: list[str]) -> None:
    command = [sys.executable, "-m", "bench.report", str(results), "--no-figures", *markdown]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "causal ? fwd" in out.stdout


def test_no_torch_is_loaded_to_read_and_report(results: Path) -> None:
    code = (
        "import sys; from bench import report, compare; "
        f"report.show([{str(results)!r}]); compare.main([{str(results)!r}] * 2); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("job", ["bench.figures.files.save", "bench.page.vega.script"])
def test_a_process_that_is_killed_is_one_line(results: Path, monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    monkeypatch.setattr(job, die)
    told = refusal(results, "--html", results.with_suffix(".html"))
    assert told.startswith("a process beside this one was killed")
