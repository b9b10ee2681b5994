"""The translation to xformers' mask types and layouts, without a GPU: its masks are written out, its front end run."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported
from variants.xformers import bias, load

pytest.importorskip("xformers")
XFORMERS = registry.load()["xformers"]
CUDA = Machine("cuda", "a device", 1 << 36, capability=(8, 0), packages={"xformers": "0.0.35"})
MASKS = (
    "full",
    "causal",
    "causal+window:1",
    "causal+window:20",
    "causal+window:90",
    "window:1",
    "window:20",
    "window:90",
)
SIZES = ((64, 64), (40, 64), (64, 40), (1, 64))


@pytest.fixture(scope="module")
def ops() -> Any:
    return load(Problem(1, 1, 1, 1, 1, 8))


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize(("n_q", "n_kv"), SIZES)
def test_its_mask_is_our_mask(ops: Any, text: str, n_q: int, n_kv: int) -> None:
    mask = Mask.parse(text)
    n_q -= mask.empty_rows(n_q, n_kv)
    theirs = bias(ops.fmha.attn_bias, mask)
    visible = torch.ones(n_q, n_kv, dtype=torch.bool) if theirs is None else theirs.materialize((n_q, n_kv)) == 0
    assert torch.equal(visible, mask.dense(n_q, n_kv))


def attend(q: Tensor, k: Tensor, v: Tensor, attn_bias: Any) -> Tensor:
    """What xformers documents: (batch, n, heads, head_dim), or (batch, n, groups, heads, head_dim) of like shapes."""
    assert k.shape == v.shape and q.shape[2:] == k.shape[2:] and q.shape[0] == k.shape[0]
    scores = torch.einsum("bq...d,bk...d->b...qk", q, k) * q.shape[-1] ** -0.5
    if attn_bias is not None:
        scores = scores + attn_bias.materialize(scores.shape[-2:])
    return torch.einsum("b...qk,bk...d->bq...d", scores.softmax(-1), v)


@pytest.mark.parametrize("text", ["full", "causal", "causal+window:20", "window:20"])
@pytest.mark.parametrize(("n_q", "n_kv"), SIZES)
@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 3), (6, 2), (4, 1)])
def test_its_layout_is_filled_as_it_wants_it(
    ops: Any, text: str, n_q: int, n_kv: int, heads: int, kv_heads: int
) -> None:
    problem = Problem(2, heads, kv_heads, n_q, n_kv, 8, mask=Mask.parse(text))
    q, k, v = (torch.randn(2, h, n, 8) for h, n in ((heads, n_q), (kv_heads, n_kv), (kv_heads, n_kv)))
    ours = XFORMERS.bind(problem, SimpleNamespace(memory_efficient_attention=attend, fmha=ops.fmha))(q, k, v)
    naive = registry.REGISTRY["naive"]
    torch.testing.assert_close(ours, naive.bind(problem, naive.prepare(problem))(q, k, v))


@pytest.mark.parametrize(
    ("text", "dtype", "kv_heads", "forward", "backward"),
    [
        ("causal", "float32", 2, None, None),
        ("causal+window:9", "float32", 2, None, "backward pass through a window"),
        ("causal+window:9", "bfloat16", 2, None, None),
        ("window:9", "float32", 2, "two-sided window", "two-sided window"),
        ("window:9", "float16", 2, None, None),
        ("causal", "bfloat16", 1, None, "forward only"),
        ("global:9", "bfloat16", 2, "global", "global"),
    ],
)
def test_says_what_it_cannot_do(
    text: str, dtype: str, kv_heads: int, forward: str | None, backward: str | None
) -> None:
    problem = Problem(1, 2, kv_heads, 64, 64, 16, dtype, "cuda", Mask.parse(text))
    for direction, reason in (("fwd", forward), ("fwdbwd", backward)):
        given = XFORMERS.refusal(problem, CUDA, direction)
        assert (given is None) == (reason is None), given
        assert reason is None or reason in (given or "")


def test_what_the_library_refuses_is_unsupported_in_one_line(ops: Any) -> None:
    problem = Problem(1, 2, 2, 64, 64, 16)
    with pytest.raises(Unsupported, match="not supported because") as refusal:
        XFORMERS.bind(problem, ops)(*(torch.randn(1, 2, 64, 16) for _ in range(3)))
    assert "\n" not in str(refusal.value)


FRONT_END = """
import torch
from variants import registry
from variants.masks import Mask
from variants.problem import Problem

variant, naive = registry.load()["xformers"], registry.REGISTRY["naive"]
ops = variant.prepare(Problem(1, 1, 1, 1, 1, 8))
from xformers.ops.fmha import cutlass, dispatch

def kernel(q, k, v, bias, cu_q, cu_k, max_q, max_k, dropout, kind, logsumexp=False, *, window_size=None, **_):
    mask = Mask(causal=kind == 2, window=window_size or None)
    n_q, n_kv = q.shape[1], k.shape[1]
    visible = mask.dense(n_q, n_kv)
    out = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), attn_mask=visible)
    nothing = torch.empty(0)
    return out.transpose(1, 2).contiguous(), nothing, nothing, nothing, n_q, n_kv

library = torch.library.Library("aten", "IMPL")
library.impl("_efficient_attention_forward", kernel, "CPU")
cutlass.FwOp.SUPPORTED_DEVICES = {"cpu"}
dispatch._dispatch_fw_priority_list = lambda inputs, needs_gradient: [cutlass.FwOp]
for text in ("full", "causal", "causal+window:20"):
    for n_q, n_kv in ((64, 64), (40, 64), (64, 40)):
        problem = Problem(2, 3, 3, n_q, n_kv, 8, mask=Mask.parse(text))
        tensors = [torch.randn(2, 3, n, 8) for n in (n_q, n_kv, n_kv)]
        ours = variant.bind(problem, ops)(*tensors)
        torch.testing.assert_close(ours, naive.bind(problem, naive.prepare(problem))(*tensors))
print("agreed")
"""


def test_its_own_front_end_takes_what_we_hand_over() -> None:
    """Its checks, layout and lowering of masks, over a kernel of ours in the place of PyTorch's."""
    done = subprocess.run([sys.executable, "-c", FRONT_END], capture_output=True, text=True, check=False)
    assert done.stdout == "agreed\n", done.stderr
