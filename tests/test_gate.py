"""`python -m bench.gate` at work: real revisions, real processes, and every kind of change for the worse."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import gate
from bench.analysis.frame import read
from bench.errors import UserError

ROOT = Path(__file__).parents[1]

BASE = '''
"""Variants to change."""

import torch
from variants.registry import variant


def attention(q, k, v):
    return torch.softmax((q * q.shape[-1] ** -0.5) @ k.mT, -1) @ v


@variant("bigger")
def bigger(q, k, v):
    return attention(q, k, v)


@variant("spoiled")
def spoiled(q, k, v):
    return attention(q, k, v)


@variant("mended")
def mended(q, k, v):
    return attention(q, k, v) * 1.01


@variant("dying")
def dying(q, k, v):
    return attention(q, k, v)


@variant("gone")
def gone(q, k, v):
    return attention(q, k, v)
'''
NEW = (
    BASE.replace('"bigger")\ndef bigger(q, k, v):\n', '"bigger")\ndef bigger(q, k, v):\n    torch.empty(2**21)\n')
    .replace(
        '"spoiled")\ndef spoiled(q, k, v):\n    return attention(q, k, v)',
        '"spoiled")\ndef spoiled(q, k, v):\n    return attention(q, k, v) * 1.01',
    )
    .replace('(q, k, v) * 1.01\n\n\n@variant("dying")', '(q, k, v)\n\n\n@variant("dying")')
    .replace('"dying")\ndef dying(q, k, v):\n', '"dying")\ndef dying(q, k, v):\n    import os; os.abort()\n')
    .replace('"gone"', '"added"')
)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of somebody's own, with mine.py committed."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "mine.py").write_text(BASE)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "base")
    return folder


def ran(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.gate", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


SMALL = ("--import", "mine.py", "--mask", "full", "--seq", "256", "--heads", "1", "--direction", "fwd")


def test_whatever_became_worse_is_named_with_its_reason(repository: Path) -> None:
    (repository / "mine.py").write_text(NEW)
    outputs = ("--out", "gate.csv", "--markdown", "gate.md", "--junit", "gate.xml", "--github")
    done = ran(repository, "--against", "HEAD", *SMALL, *outputs)
    assert done.returncode == 1, done.stderr
    markdown = (repository / "gate.md").read_text()
    told = {line.split(",")[0].strip("- *"): line for line in markdown.splitlines() if line.startswith("- ")}
    assert "peak memory" in told["bigger"] and "→ 8." in told["bigger"]
    assert "ok → wrong" in told["spoiled"] and "over its budget" in told["spoiled"]
    assert "wrong" in told["mended"] and told["mended"].rstrip().endswith("→ ok")
    assert "ok → crashed" in told["dying"] and "SIGABRT" in told["dying"]
    assert "ok → unsupported (not registered)" in told["gone"]
    assert "unsupported (not registered) → ok" in told["added"]
    worse = {
        line.split(" title=")[1].split("%2C")[0] for line in done.stdout.splitlines() if line.startswith("::error")
    }
    assert worse == {"bigger", "spoiled", "dying", "gone"}
    suite = ElementTree.parse(repository / "gate.xml").getroot()
    failed = {case.get("classname") for case in suite.iter("testcase") if case.find("failure") is not None}
    assert failed == {f"gate.{name}" for name in worse}
    again = subprocess.run(
        [sys.executable, "-m", "bench.compare", "--paired", str(repository / "gate.csv"), "--markdown", "-"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (again.returncode, again.stdout) == (1, markdown)
    rows = read([repository / "gate.csv"])
    timed = rows[rows["variant"] == "bigger"]
    assert len(timed) >= 16 and all(len(samples) >= 10 for samples in timed["samples_ms"])
    assert timed["commit"].nunique() == 2 and all(
        timed.loc[timed["run"].str.endswith("-new"), "commit"].str.endswith("+")
    )


WASTEFUL = """
import torch
import torch.nn.functional as F
from variants.registry import variant

ROWS = 512


@variant("mine")
def mine(q, k, v):
    rows = torch.cat((q, q), -2)[..., :ROWS, :]
    return F.scaled_dot_product_attention(rows, k, v)[..., : q.shape[-2], :]
"""


@pytest.mark.slow  # it measures, for a minute or two
@pytest.mark.parametrize(("rows", "statuses"), [(512, {0, 3}), (538, {1})])
def test_a_twentieth_more_work_is_found(repository: Path, rows: int, statuses: set[int]) -> None:
    """New does 538 query rows where base does 512: 5.1 % more work, by counting."""
    (repository / "mine.py").write_text(WASTEFUL)
    git(repository, "commit", "--quiet", "--all", "--message", "512 rows")
    (repository / "mine.py").write_text(WASTEFUL.replace("ROWS = 512", f"ROWS = {rows}"))
    sizes = ("--import", "mine.py", "--mask", "full", "--seq", "512", "--heads", "8", "--direction", "fwd")
    done = ran(repository, "--against", "HEAD", *sizes)
    assert done.returncode in statuses, done.stdout
    assert ("SLOWER" in done.stdout) == (statuses == {1})


def refusal(*arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        gate.main(list(arguments))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing to compare with; accepted: --against REV"),
        (("--against", "no-such-branch"), "'no-such-branch' is no revision"),
        (("--against", "HEAD", "--out", "there.csv"), "there.csv exists"),
        (("--against", "HEAD", "--junit", "nowhere/gate.xml"), "nowhere/gate.xml cannot be written"),
        (("--against", "HEAD", "--markdown", "there.csv"), "--markdown: there.csv is there already"),
        (
            ("--against", "HEAD", "--junit", "a.x", "--markdown", "a.x"),
            "--markdown: a.x is read, or written by another",
        ),
        (("--base-python", "no/python"), "'no/python' is no program"),
        (("--base-variant", "sdpa"), "give both"),
        (("--base-variant", "a", "--variant", "b", "--variants", "c"), "leave one of the two out"),
        (("--against", "HEAD", "--threshold", "3 percent"), "'3 percent': not a share"),
        (("--against", "HEAD", "--budget", "soon"), "'soon': not a duration"),
    ],
)
def test_mistakes_are_one_line(
    repository: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], told: str
) -> None:
    monkeypatch.chdir(repository)
    (repository / "there.csv").write_text("")
    assert told in refusal(*arguments)


def test_outside_of_a_repository_there_is_no_other_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "git finds no repository in" in refusal("--against", "main")


def test_the_same_code_on_both_sides_is_not_compared(repository: Path) -> None:
    done = ran(repository, "--against", "HEAD", "--variants", "sdpa")
    assert done.returncode == 2
    assert "of sdpa both sides would run the same code" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
