"""`python -m bench.tune` through real processes: every choice is checked and raced beside the default."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import tune
from bench.errors import UserError
from variants import registry

ROOT = Path(__file__).parents[1]
SMALL = [
    "--seq",
    "64",
    "--heads",
    "2",
    "--head-dim",
    "16",
    "--races",
    "2",
    "--race-time",
    "0.01s",
    "--threads",
    "1",
    "--device",
    "cpu",
]

MINE = '''"""A variant whose larger choice is wrong."""
from variants.registry import variant


def plan(problem, factor: int = 1):
    return factor


@variant("mine", plan=plan, tunable={"factor": (1, 2)})
def mine(q, k, v, *, plan):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v * plan
'''


def test_each_choice_is_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["global_tokens", "--mask", "global:3", "--direction", "fwdbwd", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "global_tokens global:3 fwdbwd n=64" in out
    for choice in ("default", *(f"numbers {2**power}" for power in range(16, 21))):
        assert len([line for line in out.splitlines() if line.startswith(f"{choice} ")]) == 1


def test_a_wrong_choice_is_told_and_not_raced(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "bench.tune", "mine", "--import", "mine.py", *SMALL]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert out.returncode == 1, out.stderr
    assert "factor 2: " in out.stdout and out.stdout.count("factor 2") == 1 and "factor 1" in out.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["naive"], "VARIANT: 'naive' leaves nothing to choose; accepted: chunked"),
        (["nothing"], "VARIANT: 'nothing' is not registered"),
        (["all"], "VARIANT: 'all' is not registered"),
        (["chunked,flex"], "VARIANT: 'chunked,flex' is not registered"),
        (["sliding_window", "--mask", "full"], "needs a window"),
        (["chunked", "--heads", "3", "--kv-heads", "2"], "2 does not divide 3"),
    ],
)
def test_what_cannot_be_tuned_is_refused(arguments: list[str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        tune.main([*arguments, "--device", "cpu"])
    assert told in str(caught.value)


def test_every_tunable_argument_is_one_that_the_plan_takes() -> None:
    for variant in registry.load().values():
        assert variant.plan or not variant.tunable
        for name in variant.tunable:
            assert variant.plan is not None and name in inspect.signature(variant.plan).parameters
