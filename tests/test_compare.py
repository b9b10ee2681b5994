"""`python -m bench.compare`: in which order it tells what, and when it refuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import compare
from bench.errors import UserError
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
