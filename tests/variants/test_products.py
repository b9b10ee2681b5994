"""Variants that multiply matrices themselves are right in 16 bits whatever the CPU has instructions for."""

import pytest
import torch

from bench.measure.accuracy import judge
from variants import products, registry
from variants.masks import Mask
from variants.problem import Problem

VARIANTS = registry.load()
CASES = [
    ("sliding_window", "causal+window:100"),
    ("longformer", "window:100+global:7"),
    ("global_tokens", "causal+global:7"),
    ("chunked", "causal"),
]


@pytest.mark.parametrize(("name", "mask"), CASES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("n_q", "n_kv"), [(1500, 1500), (600, 1500)])
def test_right_in_16_bits(
    name: str, mask: str, dtype: str, native: bool, n_q: int, n_kv: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_multiplies_bfloat16", lambda: native)
    problem = Problem(1, 4, 2, n_q, n_kv, 64, dtype, mask=Mask.parse(mask))
    attention = VARIANTS[name].bind(problem, VARIANTS[name].prepare(problem))
    assert judge(attention, problem, "fwdbwd", seed=5).reason is None


@pytest.mark.parametrize(
    ("device", "dtype", "native", "expected"),
    [
        ("cpu", "float32", True, torch.float32),
        ("cpu", "float16", True, torch.float32),
        ("cpu", "bfloat16", False, torch.float32),
        ("cpu", "bfloat16", True, torch.bfloat16),
        ("cuda", "float16", False, torch.float16),
        ("cuda", "bfloat16", False, torch.bfloat16),
    ],
)
def test_float32_stands_in_where_a_cpu_has_no_instructions(
    device: str, dtype: str, native: bool, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "_multiplies_bfloat16", lambda: native)
    assert products.product_dtype(Problem(1, 1, 1, 8, 8, 8, dtype, device)) == expected
