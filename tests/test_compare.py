"""`python -m bench.compare`: in which order it tells what, and when it refuses."""

import csv
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import compare
from bench.errors import UserError
from bench.results.columns import Row
from tests.analysis.made_up import failed, row, write


def test_the_environments_come_first_then_changes_then_ratios_then_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = write(tmp_path / "base.csv", [row(ms=1.0), row("naive"), row("flex", 2048)])
    there = {"device_name": "another machine", "run": "b"}
    new = write(
        tmp_path / "new.csv",
        [row(ms=1.08, **there), failed("wrong", "far off", "naive", **there), row("mine", **there)],
    )
    assert compare.main([str(base), str(new)]) == 0
    out = capsys.readouterr().out
    told = [
        "device_name: a made-up CPU → another machine",
        "absolute times are not comparable",
        "ratios are new / base",
        "naive: ok → wrong at 1024 (far off)",
        "1.08x",
        f"only in {base}: flex at 2048",
        f"only in {new}: mine at 1024",
    ]
    places = [out.rindex(text) if text == "1.08x" else out.index(text) for text in told]
    assert places == sorted(places)


def test_agreement_is_told_of_the_same_environment_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [row(n=n, visit=visit) for n in range(1, 13) for visit in (1, 2)]
    same, other = (
        [replace(r, environment=replace(r.environment, torch=t)) for r in cases] for t in ("2.13.0+cpu", "3")
    )
    base, again, torch3 = (write(tmp_path / f"{i}.csv", rows) for i, rows in enumerate((cases, same, other)))
    compare.main([str(base), str(again)])
    assert "95 % intervals overlap in 12 of 12 cases" in capsys.readouterr().out
    compare.main([str(base), str(torch3)])
    assert "95 % intervals" not in capsys.readouterr().out


def test_as_markdown_it_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(write(tmp_path / name, [row()])) for name in ("1.csv", "2.csv")]
    assert compare.main([*files, "--markdown", "-"]) == 0
    printed = capsys.readouterr().out
    assert "| length | variant | base ms | new ms |" in printed
    assert "| 1024 | sdpa | 1.00 | 1.00 | 1.00x | 1.00x | 1.00x |" in printed
    assert compare.main([*files, "--markdown", str(tmp_path / "a.md")]) == 0
    assert (tmp_path / "a.md").read_text() == printed
    with pytest.raises(UserError, match=r"--markdown: .*nowhere.* cannot be written: No such file"):
        compare.main([*files, "--markdown", str(tmp_path / "nowhere" / "a.md")])


@pytest.mark.parametrize("option", ["--markdown", "--pytest-benchmark"])
def test_results_are_never_written_over(tmp_path: Path, option: str) -> None:
    base, new, other = (write(tmp_path / name, [row()]) for name in ("1.csv", "2.csv", "3.csv"))
    (tmp_path / "link.md").symlink_to(base)
    before = base.read_bytes()
    for target, told in ((base, "is read, or written"), (other, "is there already"), (tmp_path / "link.md", "is read")):
        with pytest.raises(UserError, match=f"{option}: {target} {told}"):
            compare.main([str(base), str(new), option, str(target)])
    assert base.read_bytes() == other.read_bytes() == before


def refusal(*paths: Path) -> str:
    with pytest.raises(UserError) as caught:
        compare.main([str(path) for path in paths])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_in_common_is_the_users_mistake(tmp_path: Path) -> None:
    base = write(tmp_path / "base.csv", [row(dtype="float32")])
    new = write(tmp_path / "new.csv", [row(dtype="bfloat16")])
    assert refusal(base, new).endswith("no case in common: dtype (float32; bfloat16)")


def test_what_cannot_be_read_or_joined(tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", [row()])
    assert "nope.csv" in refusal(good, tmp_path / "nope.csv")
    assert "several environments" in refusal(write(tmp_path / "two.csv", [row(), row(threads=1, run="b")]), good)


def test_cases_that_only_failed_are_still_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = write(tmp_path / "1.csv", [failed("oom")]), write(tmp_path / "2.csv", [failed("timeout")])
    assert compare.main([str(base), str(new)]) == 0
    assert "sdpa: oom → timeout at 1024" in capsys.readouterr().out


def test_markup_in_names_is_shown_as_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = write(tmp_path / "1.csv", [row("[red]x[/]"), row("[/]", 2048)])
    new = write(tmp_path / "2.csv", [failed("error", "[/bold] [link]", "[red]x[/]")])
    compare.main([str(base), str(new)])
    out = capsys.readouterr().out
    assert "[red]x[/]: ok → error at 1024 ([/bold] [link])" in out
    assert "[/] at 2048" in out


def visits(variant: str = "sdpa", slow: float = 1.0, run: str = "a", **changes: object) -> list[Row]:
    """Four visits that agree within a percent."""
    times = (1.0, 1.002, 1.004, 1.006)
    return [
        row(variant, ms=(slow * ms,) * 3, visit=at, run=run, **{"canary_samples_ms": (10.0,), **changes})
        for at, ms in enumerate(times, 1)
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Results to compare: of one machine in `base`, `same`, `slow` and `once`, of another in `there`."""
    other = {"device_name": "another machine", "run": "c"}
    rows = {
        "base": [*visits(), *visits("flex", 2.0)],
        "same": [*visits(run="b"), *visits("flex", 2.0, run="b")],
        "slow": [*visits(run="b"), *visits("flex", 3.0, run="b")],
        "once": [row(run="b"), row("flex", ms=2.0, run="b")],
        "there": [*visits("sdpa", 5.0, **other), *visits("flex", 10.0, **other)],  # type: ignore[arg-type]
        "milli": [*visits("sdpa", 1e-3, run="b"), *visits("flex", 2e-3, run="b")],
        "failed": [failed("oom", run="b"), failed("oom", variant="flex", run="b")],
    }
    return {name: str(write(tmp_path / f"{name}.csv", own)) for name, own in rows.items()}


@pytest.mark.parametrize(
    ("new", "options", "status"),
    [
        ("same", ["--fail-on", "latency:5%,memory:1%,accuracy,status"], 0),
        ("slow", ["--fail-on", "latency:5%"], 1),
        ("slow", ["--fail-on", "status"], 0),
        ("slow", [], 0),
        ("once", ["--fail-on", "latency:5%"], 3),
        ("once", ["--fail-on", "latency:5%", "--allow-inconclusive"], 0),
        ("failed", ["--fail-on", "latency:5%,status"], 1),
        ("base", ["--fail-on", "latency:5%,memory:1%,accuracy,status"], 0),
        ("there", ["--fail-on", "latency:5%", "--relative-to", "sdpa"], 0),
        ("there", ["--fail-on", "status,memory:1%"], 0),
        ("milli", ["--fail-on", "latency:5%"], 0),
    ],
)
def test_the_exit_status(files: dict[str, str], new: str, options: list[str], status: int) -> None:
    assert compare.main([files["base"], files[new], *options]) == status


def test_comparing_no_case_is_no_success(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="nothing to compare by latency"):
        compare.main([files["base"], files["failed"], "--fail-on", "latency:5%", "--allow-inconclusive"])
    assert "NOT COMPARABLE" in capsys.readouterr().out


def test_the_command_exits_with_it(files: dict[str, str]) -> None:
    def exits(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "bench.compare", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    assert exits(files["base"], files["slow"], "--fail-on", "latency:5%") == (1, "")
    status, told = exits(files["base"], files["slow"], "--fail-on", "speed:5%")
    assert status == 2
    assert told.startswith("error: --fail-on: 'speed:5%' is not understood; accepted: latency:5%")
    assert told.count("\n") == 1


def test_verdicts_are_shown_with_their_intervals(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    compare.main([files["base"], files["slow"], "--fail-on", "latency:5%", "--markdown", "-"])
    out = capsys.readouterr().out
    found = re.search(
        r"\| 1024 \| flex \| 1.50x \| ([\d.]+)\W([\d.]+) \| 1.50x \| \S+ \| \S+ % \| \*\*SLOWER\*\* \|", out
    )
    assert found and 1.4 < float(found[1]) < 1.5 < float(found[2]) < 1.6
    assert "| SAME |" in out
    assert "latency, 5 %: 1 SLOWER, 1 SAME" in out
    compare.main([files["base"], files["slow"], "--fail-on", "latency:5%"])
    assert re.search(r"flex +1.50x +\S+ +1.50x .* SLOWER", capsys.readouterr().out)


def test_a_file_against_itself_is_called_that(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    compare.main([files["base"], files["base"], "--fail-on", "latency:5%"])
    out = capsys.readouterr().out
    assert "8 visits stand in both files: one measurement, not two" in out
    assert "latency, 5 %: 2 SAME" in out


def test_across_machines_only_multiples_of_a_variant_decide(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"different machines .*--relative-to .* takes flex, sdpa$"):
        compare.main([files["base"], files["there"], "--fail-on", "latency:5%"])
    compare.main([files["base"], files["there"]])
    assert "--relative-to VARIANT makes them comparable" in capsys.readouterr().out
    compare.main([files["base"], files["there"], "--relative-to", "sdpa", "--markdown", "-"])
    out = capsys.readouterr().out
    assert "| length | variant | base /sdpa | new /sdpa | time/sdpa new/base | 95 % interval |" in out
    assert re.search(r"\| 1024 \| flex \| 2.00x \| 2.00x \| 1.00x \| 0\.9\d+\W1\.0\d+ \|", out)
    assert "| 1024 | sdpa |" not in out


def test_a_reference_that_is_nowhere_or_missing_in_a_file(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"--relative-to: 'nope' is in none of the files; accepted: flex, sdpa$"):
        compare.main([files["base"], files["same"], "--relative-to", "nope"])
    without = write(tmp_path / "without.csv", visits("flex", run="b"))
    compare.main([files["base"], str(without), "--relative-to", "sdpa"])
    assert "for want of an ok sdpa on the same problem: flex at 1024 (causal)" in capsys.readouterr().out


def test_another_unit_is_suspected(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    compare.main([files["milli"], files["base"], "--fail-on", "latency:5%"])
    out = capsys.readouterr().out
    assert "2 of them differ over 300x: is one file in seconds, not in milliseconds?" in out
    assert "1,000x" in out and "SLOWER" in out
    compare.main([files["base"], files["slow"]])
    assert "seconds" not in capsys.readouterr().out


def test_more_files_are_a_trend_oldest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    months = {"may": ("2026-05", 4.0), "june": ("2026-06", 2.0), "july": ("2026-07", 1.0)}
    paths = {
        name: str(write(tmp_path / f"{name}.csv", visits(slow=ms, run=name, started=f"{month}-01T00:00:00+00:00")))
        for name, (month, ms) in months.items()
    }
    shuffled = [paths["july"], paths["may"], paths["june"]]
    assert compare.main([*shuffled, "--markdown", "-"]) == 0
    out = capsys.readouterr().out
    assert "| length | variant | may | june | july | last/first |" in out
    assert "| 1024 | sdpa | 4.01 | 2.01 | 1.00 | 0.250x |" in out
    assert compare.main([*shuffled, "--fail-on", "latency:5%", "--markdown", "-"]) == 0
    out = capsys.readouterr().out
    assert f"verdicts: {paths['july']} held to {paths['may']}" in out
    assert "1 FASTER" in out


def test_allowing_what_nothing_asks_for_is_refused(files: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"--allow-inconclusive .* --fail-on"):
        compare.main([files["base"], files["same"], "--allow-inconclusive"])


def test_pytest_benchmark_reads_what_is_written(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new.json"
    assert compare.main([files["base"], files["slow"], "--pytest-benchmark", str(target)]) == 0
    assert f"written: {target}, 2 cases of {files['slow']}" in capsys.readouterr().out
    assert [len(one["stats"]["data"]) for one in json.loads(target.read_text())["benchmarks"]] == [12, 12]
    command = [sys.executable, "-m", "pytest_benchmark", "compare", target.name, "--columns=min,median,max"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "2 tests" in shown and "time in ms" in shown
    assert re.search(r"sdpa at 1024 .*1\.0000 .* 1\.0030 .* 1\.0060 ", shown)
    assert re.search(r"flex at 1024 .*3\.0000 .* 3\.0090 .* 3\.0180 ", shown)


def test_pytest_benchmark_of_nothing_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"--pytest-benchmark: none of the 2 cases of .*failed\.csv is ok"):
        compare.main([files["base"], files["failed"], "--pytest-benchmark", str(tmp_path / "x.json")])
    with pytest.raises(UserError, match=r"--pytest-benchmark: .*nowhere.* cannot be written: No such file"):
        compare.main([files["base"], files["same"], "--pytest-benchmark", str(tmp_path / "nowhere" / "x.json")])


@pytest.mark.parametrize("sample", ["0.0", "-1.0", "nan", "inf"])
@pytest.mark.parametrize("column", ["samples_ms", "canary_samples_ms"])
def test_what_is_no_time_is_refused_with_its_place(
    tmp_path: Path, files: dict[str, str], column: str, sample: str
) -> None:
    bad = write(tmp_path / "bad.csv", [row(**{column: (1.0,)})])
    header, line = bad.read_text().splitlines()
    cells = dict(zip(header.split(","), next(csv.reader([line])), strict=True)) | {column: f"1.0 {sample}"}
    with bad.open("w", newline="") as file:
        csv.writer(file).writerows([cells.keys(), cells.values()])
    assert re.search(rf"bad\.csv, line 2: column '{column}': {re.escape(sample)} is not a time", refusal(bad, bad))


def test_files_without_rows_are_refused(tmp_path: Path, files: dict[str, str]) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    assert "the file is empty" in refusal(Path(files["base"]), empty)
    assert "a header, but no rows" in refusal(write(tmp_path / "header.csv", []), Path(files["base"]))


def test_rows_of_a_gate_are_read_as_pairs_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = {"base": (1.0, 2.0, 4.0), "new": (1.01, 2.02, 4.04)}
    rows = [
        row(ms=ms, run=f"r-at-0.02-{side}", visit=visit, canary_samples_ms=(1.0,) * 4)
        for side, ms in sides.items()
        for visit in range(1, 9)
    ]
    rows = [replace(r, environment=replace(r.environment, method="2 gate")) for r in rows]
    gate, plain = write(tmp_path / "gate.csv", rows), write(tmp_path / "plain.csv", [row()])
    assert compare.main([str(gate), "--paired", "--markdown", "-"]) == 0
    printed = capsys.readouterr().out
    assert "threshold 2.0 %" in printed and "| 8 | SAME |" in printed and "+1.0 %" in printed
    assert compare.main([str(gate), "--paired", "--threshold", "0.5%"]) == 3  # constant, and so surely above it
    assert "written by bench.gate" in refusal(gate, plain)
    with pytest.raises(UserError, match="these rows are not paired"):
        compare.main([str(plain), "--paired"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.csv"], "one file alone; accepted: base and new, or --paired"),
        (["a.csv", "b.csv", "--paired"], "--paired takes one file"),
        (["a.csv", "--paired", "--fail-on", "status"], "--paired takes one file"),
        (["a.csv", "b.csv", "--threshold", "3%"], "--threshold goes with --paired"),
        (["a.csv", "b.csv", "--allow-inconclusive"], "give one of them"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        compare.main(arguments)
    assert told in str(caught.value) and "\n" not in str(caught.value)
