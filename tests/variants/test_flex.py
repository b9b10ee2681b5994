"""FlexAttention's block masks, made by arithmetic, and what it says where it cannot run; the contract compiles it."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from variants import registry
from variants.flex import block_mask
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported

FLEX = registry.load()["flex"]
MASKS = [
    "full",
    "causal",
    "window:1",
    "window:200",
    "causal+window:130",
    "global:5",
    "causal+global:300",
    "window:64+global:150",
]


@pytest.mark.parametrize("text", MASKS)
@pytest.mark.parametrize(("n_q", "n_kv"), [(512, 512), (1000, 1000), (1, 300), (300, 1000), (1000, 900)])
def test_block_masks_are_those_that_flex_attention_makes(text: str, n_q: int, n_kv: int) -> None:
    mask = Mask.parse(text)
    n_q -= mask.empty_rows(n_q, n_kv)
    ours = block_mask(mask, n_q, n_kv)
    theirs = create_block_mask(mask.at(n_q, n_kv), None, None, n_q, n_kv, device="cpu")
    assert (ours.shape, ours.BLOCK_SIZE, ours.seq_lengths) == (theirs.shape, theirs.BLOCK_SIZE, theirs.seq_lengths)
    for name in ("kv", "full_kv", "q", "full_q"):
        count, counts = (getattr(m, f"{name}_num_blocks") for m in (ours, theirs))
        index, indices = (getattr(m, f"{name}_indices") for m in (ours, theirs))
        assert torch.equal(count, counts)
        valid = torch.arange(index.shape[-1]) < count[..., None]
        assert torch.equal(index.where(valid, 0), indices.where(valid, 0))


def test_says_what_it_needs() -> None:
    problem = Problem(1, 2, 2, 64, 64, 8)
    with_compiler = Machine("cpu", "a machine", 1 << 34, cxx="c++")
    assert FLEX.refusal(problem, Machine("cpu", "a machine", 1 << 34)) == "torch.compile needs a C++ compiler"
    assert FLEX.refusal(problem, with_compiler) is None
    assert FLEX.refusal(problem, with_compiler, "bwd") == "FlexAttention has no backward pass on CPU"
    on_device = Problem(1, 2, 2, 64, 64, 8, device="cuda")
    assert "at least 16" in (FLEX.refusal(on_device, Machine("cuda", "a device", 1 << 34)) or "")


def test_what_the_library_refuses_is_unsupported() -> None:
    problem = Problem(1, 1, 1, 64, 64, 16)
    q, k, v = (torch.randn(1, 1, 64, 16, requires_grad=True) for _ in range(3))
    with pytest.raises(Unsupported, match="does not support backward on CPU"):
        FLEX.bind(problem, FLEX.prepare(problem))(q, k, v)
