"""How SDPA is given its mask, which kernel runs, and what is said where one cannot."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.measure.kernels import KernelTrace
from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

VARIANTS = registry.load()
CPU = Machine("cpu", "a machine", 1 << 34)
A100, V100 = (Machine("cuda", "a device", 1 << 36, capability=c) for c in ((8, 0), (7, 0)))
SQUARE = Problem(1, 2, 2, 64, 64, 16)
ON_CUDA = replace(SQUARE, device="cuda", dtype="bfloat16", mask=Mask(causal=True))


@pytest.mark.parametrize(
    ("text", "n_q", "n_kv", "is_causal", "has_tensor"),
    [
        ("full", 64, 64, False, False),
        ("causal", 64, 64, True, False),
        ("causal+window:64", 64, 64, True, False),
        ("causal+window:63", 64, 64, False, True),
        ("causal", 64, 32, True, False),  # the rows that see anything are as many as the keys
        ("causal", 32, 64, False, True),
        ("causal", 1, 64, False, False),
        ("causal+window:9", 1, 64, False, True),
        ("window:64", 64, 64, False, False),
        ("global:5", 64, 64, False, True),
    ],
)
def test_the_mask_is_handed_over_as_cheaply_as_it_can_be(
    text: str, n_q: int, n_kv: int, is_causal: bool, has_tensor: bool
) -> None:
    plan = VARIANTS["sdpa"].prepare(Problem(1, 1, 1, n_q, n_kv, 8, mask=Mask.parse(text)))
    assert (plan.is_causal, plan.attn_mask is not None) == (is_causal, has_tensor)


@pytest.mark.parametrize("name", ["sdpa_math", "sdpa_flash"])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_the_forced_kernel_runs(name: str, kv_heads: int) -> None:
    problem = replace(SQUARE, kv_heads=kv_heads, mask=Mask(causal=True, window=9))
    variant = VARIANTS[name]
    trace = KernelTrace(compiled=False)
    attention = trace.wrap(variant.bind(problem, variant.prepare(problem)))
    attention(*(torch.randn(1, heads, 64, 16) for heads in (2, kv_heads, kv_heads)))
    assert trace.kernel() == variant.kernel == name.removeprefix("sdpa_")


@pytest.mark.parametrize("name", ["sdpa_efficient", "sdpa_cudnn"])
def test_what_pytorch_refuses_is_unsupported_and_never_computed_otherwise(name: str) -> None:
    variant = VARIANTS[name]
    with pytest.raises(Unsupported, match="No viable backend for scaled_dot_product_attention was found"):
        variant.bind(SQUARE, variant.prepare(SQUARE))(*(torch.randn(1, 2, 64, 16) for _ in range(3)))
    assert variant.refusal(SQUARE, CPU) == f"PyTorch has no {variant.kernel} kernel for CPU"


@pytest.mark.filterwarnings("ignore:.*(not used because|stride)")
def test_the_reasons_that_pytorch_warns_of_are_passed_on() -> None:
    variant = VARIANTS["sdpa_flash"]
    transposed = torch.randn(1, 2, 16, 64).transpose(2, 3)
    with pytest.raises(Unsupported, match="stride"):
        variant.bind(SQUARE, variant.prepare(SQUARE))(transposed, transposed, transposed)


def test_keys_and_values_are_repeated_for_the_kernel_that_knows_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variants.sdpa.sdpa_kernel", lambda backend: nullcontext())
    given = []

    def attend(q: Tensor, k: Tensor, v: Tensor, *rest: object, enable_gqa: bool, **flags: object) -> Tensor:
        given.append((k.shape[1], v.shape[1], enable_gqa))
        return original(q, k, v, *rest, enable_gqa=enable_gqa, **flags)

    original = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", attend)
    problem = replace(SQUARE, heads=6)
    tensors = [torch.randn(1, heads, 64, 16) for heads in (6, 2, 2)]
    outs = [
        VARIANTS[name].bind(problem, VARIANTS[name].prepare(problem))(*tensors) for name in ("sdpa_efficient", "sdpa")
    ]
    assert given == [(6, 6, False), (2, 2, True)]
    torch.testing.assert_close(*outs)


def test_other_errors_are_not_unsupported() -> None:
    variant = VARIANTS["sdpa_flash"]
    with pytest.raises(RuntimeError, match="same dtype"):
        variant.bind(SQUARE, variant.prepare(SQUARE))(*(torch.zeros(1, 2, 64, 16).to(d) for d in DTYPES))


@pytest.mark.parametrize(
    ("name", "change", "machine", "reason"),
    [
        ("flash", {}, A100, None),
        ("flash", {"dtype": "float32"}, A100, "bfloat16 and float16 only"),
        ("flash", {"head_dim": 264}, A100, "at most 256"),
        ("flash", {}, V100, "compute capability 8.0"),
        ("flash", {"mask": Mask(window=8)}, A100, "no mask but causal"),
        ("flash", {"seq_q": 32}, A100, "no mask but causal"),
        ("flash", {"seq_q": 1}, A100, None),
        ("efficient", {"dtype": "float32", "mask": Mask(window=8)}, A100, None),
        ("efficient", {"head_dim": 20}, A100, "multiple of 8"),
        ("efficient", {"head_dim": 20, "dtype": "float32"}, A100, None),
        ("efficient", {"head_dim": 18, "dtype": "float32"}, A100, "multiple of 4"),
        ("efficient", {"head_dim": 18, "dtype": "float32"}, V100, None),
        ("efficient", {}, V100, "compute capability 8.0"),
        ("efficient", {"dtype": "float16"}, V100, None),
        ("cudnn", {"mask": Mask(window=8)}, A100, None),
        ("cudnn", {"dtype": "float32"}, A100, "bfloat16 and float16 only"),
        ("cudnn", {"head_dim": 12}, A100, "multiple of 8"),
        ("cudnn", {"seq_kv": 1}, A100, "no single key"),
        ("math", {"dtype": "float32", "head_dim": 7, "mask": Mask(window=8)}, V100, None),
    ],
)
def test_what_each_kernel_takes_on_cuda(
    name: str, change: dict[str, object], machine: Machine, reason: str | None
) -> None:
    given = VARIANTS[f"sdpa_{name}"].refusal(replace(ON_CUDA, **change), machine)
    assert (given is None) == (reason is None), given
    assert reason is None or (given is not None and reason in given and name in given)
