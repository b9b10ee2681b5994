"""What bench.show says of each variant: its masks, its sources, and why it cannot run here."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.analysis import heat
from bench.errors import UserError
from bench.show import here, main, masks
from variants import registry
from variants.machine import Machine

ROOT = Path(__file__).parents[1]
MACHINE = Machine("cpu", "any", memory_bytes=2**34)


def test_the_masks_of_a_variant_follow_from_its_signature() -> None:
    variants = registry.load()
    assert masks(variants["sdpa"]) == "all"
    assert masks(variants["longformer"]) == "window (needed), global (needed), causal"
    assert masks(variants["xformers"]) == "window, causal"


def test_what_cannot_run_says_why() -> None:
    variants = registry.load()
    assert here(variants["sdpa"], MACHINE) == "float32, bfloat16, float16"
    assert here(variants["sdpa_cudnn"], MACHINE) == "no: PyTorch has no cudnn kernel for CPU"
    assert here(variants["xformers"], MACHINE) == "no: needs the package xformers"
    with_compiler = Machine("cpu", "any", memory_bytes=2**34, cxx="g++")
    assert here(variants["flex"], MACHINE) == "no: torch.compile needs a C++ compiler"
    assert "forward only: FlexAttention has no backward pass on CPU" in here(variants["flex"], with_compiler)


def test_the_table_lists_what_is_asked_for_with_its_sources(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        '"""An [odd] one. https://example.org/a."""\n\nfrom variants.registry import variant\n\n\n'
        '@variant("[red]odd")\ndef odd(q, k, v):\n    return q\n'
    )
    command = [
        sys.executable,
        "-m",
        "bench.show",
        "--import",
        "odd.py",
        "--variants",
        "[red]odd,naive",
        "--device",
        "cpu",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    out = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    for text in ("[red]odd", "An [odd] one.", "https://example.org/a", "naive", "https://arxiv.org/abs/1706.03762"):
        assert text in out
    assert "chunked" not in out


def test_a_mask_is_drawn_a_line_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mask", "causal+window:3+global:1", "--seq", "6"]) == 0
    title, *drawn = capsys.readouterr().out.splitlines()
    assert title == "causal+window:3+global:1, 6 queries, 6 keys"
    assert drawn == ["0 █·····", "1 ██····", "2 ███···", "3 ████··", "4 █·███·", "5 █··███"]


def test_the_weights_of_a_variant_stand_beside_its_mask(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mask", "causal", "--seq", "4", "--seq-q", "2", "--variant", "naive", "--device", "cpu"]) == 0
    title, first, second = capsys.readouterr().out.splitlines()
    assert title.endswith("2 queries, 4 keys, weights of naive")
    assert first.startswith("0 ███·  ") and second.startswith("1 ████  ")
    assert first.split()[2][3] == "·" and first.split()[2].count("█") >= 1
    assert all("sum 1.000000  entropy" in line for line in (first, second))


def test_entropy_in_bits() -> None:
    assert heat.entropy([0.25] * 4) == 2.0
    assert heat.entropy([0.0, 1.0]) == 0.0
    assert heat.entropy([0.5, 0.25, 0.25, 0.0]) == 1.5


def test_what_is_no_weight_is_shown_as_such() -> None:
    (line,) = heat.lines([[True] * 4], [[math.nan, -0.5, math.inf, 1.0]])
    assert line.split()[2] == "?-?█"
    assert line.endswith("entropy nan bits")


def test_as_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    arguments = ["--mask", "window:3", "--seq", "8", "--variant", "sliding_window", "--figure", str(path)]
    assert main([*arguments, "--device", "cpu"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--variant", "sdpa"], "--mask: which mask is to be drawn?"),
        (["--mask", "full", "--seq", "1000"], "--seq: 1000 is too long to draw; accepted: 1..256"),
        (["--mask", "full", "--variant", "sliding_window"], "--variant: sliding_window does not take this: needs a"),
        (["--mask", "full", "--seq-q", "1000"], "--seq-q: 1000 is too long to draw; accepted: 1..256"),
        (["--mask", "full", "--variant", "sdpa,naive"], "--variant: 'sdpa,naive' is more than one"),
        (["--mask", "full", "--variant", "nope"], "--variant: 'nope' is not registered"),
        (["--mask", "full", "--figure", "mask.nope"], "--figure: mask.nope cannot be written: "),
    ],
)
def test_what_cannot_be_drawn(arguments: list[str], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        main([*arguments, "--device", "cpu"])
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)
