"""What bench.show says of each variant: its masks, its sources, and why it cannot run here."""

import os
import subprocess
import sys
from pathlib import Path

from bench.show import here, masks
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
