"""The README stays true: its commands are understood, its example variant is right, its pandas lines run."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from variants.masks import Mask

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python -m bench.")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_understood(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightly.txt").write_text("--seq 512..1024\n")
    _, _, module, *arguments = shlex.split(command, comments=True)
    if module == "bench.run":
        module = "bench.plan.arguments"
    assert importlib.import_module(module).parser().parse_args(arguments)


def test_the_set_up_is_what_ci_runs() -> None:
    set_up = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("python3 -m venv")]
    assert [line.split(" && ")[-1] for line in set_up] == [
        ".venv/bin/python -m bench.run",
        ".venv/bin/python -m pytest",
    ]
    assert all("-c constraints.txt" in line for line in set_up)
    script = (ROOT / ".ci" / "run").read_text()
    assert 'readme_command "-m bench.run"' in script
    assert 'readme_command "-m pytest"' in script


def test_the_example_variant_and_the_lines_of_pandas_run(tmp_path: Path) -> None:
    example, _, pandas_lines = blocks("python")
    (tmp_path / "mine.py").write_text(example)
    arguments = ["--import", "mine.py", "--variants", "mine,sdpa", "--mask", "full,causal", "--seq", "64,128"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "bench.run",
        *arguments,
        "--device",
        "cpu",
        "--visits",
        "1",
        "--out",
        "results.csv",
    ]
    out = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    script = (
        f"{pandas_lines.rstrip()}.pipe(lambda table: print(table.loc[[64, 128], ['mine', 'sdpa']].min().min() > 0))"
    )
    read = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert read.stdout.strip() == "True"


def test_the_example_of_a_pytest_function_runs(tmp_path: Path) -> None:
    example, function, _ = blocks("python")
    (tmp_path / "mine.py").write_text(example)
    (tmp_path / "test_mine.py").write_text(function.replace("bench.verify.checks()", "['hidden', 'weights']"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in out.stdout, out.stdout


def test_the_numbers_shown_are_those_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = re.findall(r"\[CSV\]\((\S+\.csv)\)", README)
    assert importlib.import_module("bench.report").main([str(ROOT / path), "--no-figures", "--markdown", "-"]) == 0
    printed = capsys.readouterr().out.splitlines()
    quoted = re.compile(r"\| \d|- \w+: skipped|- (Fastest|From|At|Leanest|Reach)\b")
    shown = [line for line in README.splitlines() if quoted.match(line)]
    assert len(shown) >= 8
    assert not [line for line in shown if line not in printed]
    assert all((ROOT / figure).exists() for figure in re.findall(r"!\[.*?\]\((\S+)\)", README))


def test_how_well_two_runs_agree_is_what_their_files_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "results" / "amd-epyc-avx512-2-cores")
    assert importlib.import_module("bench.compare").main(["repeat-1.csv", "repeat-2.csv", "--markdown", "-"]) == 0
    printed = capsys.readouterr().out
    assert Path("repeatability.md").read_text() == printed
    told = " ".join((ROOT / "results" / "README.md").read_text().split())
    numbers = re.findall(r"agree within \S+ %|overlap in \d+ of \d+|\d+ times of \d+", printed)
    assert len(numbers) == 3
    assert not [number for number in numbers if number not in told]


PLACES = [(0, 0), (0, 599), (5, 300), (300, 5), (15, 16), (16, 15), (300, 45), (300, 44), (300, 555), (300, 556)]
WORDS = {"always": "True", "in the window": "i - 256 < j < i + 256", ", and ": " and ", ", or ": " or "}


def as_python(meaning: str) -> str:
    """What a row of the README's table says, as an expression in i and j."""
    for phrase, expression in WORDS.items():
        meaning = meaning.replace(phrase, expression)
    first, conjunction, rest = meaning.partition(" and ")
    return f"({first}) and ({rest})" if conjunction else first


def test_the_masks_of_the_table_mean_what_it_says() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (.+?) \|", README, flags=re.MULTILINE)
    table = {text: meaning for text, meaning in rows if re.fullmatch(r"full|(causal|window|global).*", text)}
    assert len(table) == 7
    for text, meaning in table.items():
        dense = Mask.parse(text).dense(600, 600)
        assert str(Mask.parse(text)) == text
        for i, j in PLACES:
            assert bool(dense[i, j]) == eval(as_python(meaning), {"i": i, "j": j, "abs": abs}), (text, i, j)


def test_the_claims_shown_are_those_of_the_results(capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = re.findall(r"\[all of them\]\((\S+)\.md\)", README)
    claims = [str(ROOT / "results" / "claims.toml"), "--from", str(ROOT / f"{path}.csv"), "--markdown", "-"]
    importlib.import_module("bench.claims").main(claims)
    printed = capsys.readouterr().out
    assert printed == (ROOT / f"{path}.md").read_text()
    shown = [line for line in README.splitlines() if line.startswith("| ") and line.count("|") == 9 and "float" in line]
    assert len(shown) >= 10
    assert not [line for line in shown if line not in printed.splitlines()]
