"""Cases from public bug reports, each with the value that it must give."""

import math
import shutil

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.measure.kernels import KernelTrace
from tests.variants.test_contract import NOT_ON_CPU, VARIANTS
from variants.masks import Mask
from variants.problem import Problem

EXACT = sorted(name for name, v in VARIANTS.items() if v.exact and name not in NOT_ON_CPU and not v.compiled)


def run(name: str, problem: Problem, *inputs: Tensor) -> Tensor:
    variant = VARIANTS[name]
    return variant.bind(problem, variant.prepare(problem))(*inputs)


def taking(text: str) -> list[str]:
    return [name for name in EXACT if VARIANTS[name].refuses(Mask.parse(text)) is None]


def dense(text: str, n: int, m: int | None = None) -> Tensor:
    return Mask.parse(text).dense(n, m or n)


@pytest.mark.parametrize("name", taking("causal"))
def test_rows_that_see_nothing_are_zeros_forward_and_in_the_gradient(name: str) -> None:
    problem = Problem(1, 2, 2, 12, 8, 16, mask=Mask(causal=True))  # rows 0 to 3 stand before the first key
    q, k, v = (torch.randn(1, 2, n, 16, requires_grad=True) for n in (12, 8, 8))
    out = run(name, problem, q, k, v)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.randn_like(out))
    assert (out[:, :, :4] == 0).all() and (dq[:, :, :4] == 0).all()
    assert all(x.isfinite().all() for x in (out, dq, dk, dv))
    assert (out[:, :, 4:] != 0).all()


@pytest.mark.parametrize("name", taking("full"))
def test_half_precision_products_that_overflow_unless_scaled_before(name: str) -> None:
    """576 x 383 x 64 is 14 million, past float16's 65504; scaled by 1/8 before the product it is 1.76 million a row,
    past it still: so the scores that a kernel keeps must be float32, and a textbook in float16 gives NaN or infinity.
    With one entry of 64 set, the product is 220,608, and a quarter of that fits after scaling first."""
    problem = Problem(1, 1, 1, 4, 4, 64, "float16")
    q, k = torch.zeros(1, 1, 4, 64).half(), torch.zeros(1, 1, 4, 64).half()
    q[..., 0], k[..., 0] = 576.0, torch.tensor([383.0, -383.0, 0.0, 383.0])
    v = torch.randn(1, 1, 4, 64).half()
    assert (q @ k.mT).isinf().any()
    out = run(name, problem, q, k, v)
    expected = (v[:, :, 0].float() + v[:, :, 3].float()) / 2
    torch.testing.assert_close(out[:, :, 1].float(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", taking("causal+window:100"))
def test_a_sliding_mask_at_600(name: str) -> None:
    problem = Problem(1, 2, 2, 600, 600, 32, mask=Mask(causal=True, window=100))
    q, k, v = torch.randn(3, 1, 2, 600, 32)
    scores = (q.double() @ k.double().mT / math.sqrt(32)).masked_fill(~dense("causal+window:100", 600), -math.inf)
    out = run(name, problem, q, k, v)
    torch.testing.assert_close(out.double(), scores.softmax(-1) @ v.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", taking("causal"))
def test_one_query_against_a_cache_sees_all_of_it(name: str) -> None:
    """PyTorch's own is_causal aligns at the start, and lets it see the first key alone."""
    q, k, v = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 8, 16), torch.randn(1, 1, 8, 16)
    assert torch.equal(F.scaled_dot_product_attention(q, k, v, is_causal=True), v[:, :, :1])
    out = run(name, Problem(1, 1, 1, 1, 8, 16, mask=Mask(causal=True)), q, k, v)
    torch.testing.assert_close(out, (q @ k.mT / 4).softmax(-1) @ v)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("text", ["full", "causal", "causal+window:33", "window:16+global:4"])
def test_a_last_dimension_that_is_not_contiguous(name: str, text: str) -> None:
    if VARIANTS[name].refuses(Mask.parse(text)) or name == "sdpa_flash":
        pytest.skip("not for this mask, or a kernel that does not take it")
    problem = Problem(1, 2, 2, 65, 65, 32, mask=Mask.parse(text))
    q, k, v = (torch.randn(1, 2, 32, 65).mT for _ in range(3))
    apart = run(name, problem, q, k, v)
    torch.testing.assert_close(apart, run(name, problem, *(x.contiguous() for x in (q, k, v))), rtol=1e-4, atol=1e-5)


def test_grouped_heads_in_float32_run_a_fused_kernel_or_say_so() -> None:
    """PyTorch's enable_gqa was seen to fall back to the math kernel without a word: the trace tells which ran."""
    q, k, v = torch.randn(1, 4, 64, 32), torch.randn(1, 2, 64, 32), torch.randn(1, 2, 64, 32)
    trace = KernelTrace(compiled=False)
    trace.wrap(lambda *x: F.scaled_dot_product_attention(*x, enable_gqa=True))(q, k, v)
    told = trace.kernel()
    again = KernelTrace(compiled=False)
    again.wrap(lambda *x: run("sdpa", Problem(1, 4, 2, 64, 64, 32), *x))(q, k, v)
    assert told in ("flash", "math")
    assert again.kernel() == "flash"


@pytest.mark.parametrize("text", ["window:0", "window:-3", "window:1.5", "global:0", "causal+window:0"])
def test_a_window_of_nothing_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=r"accepted|at least 1"):
        Mask.parse(text)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        # Hugging Face: sliding_window=W keys, the query's own included (Mistral).
        (lambda i, j: (j <= i) & (i - j < 7), "causal+window:7"),
        # flash-attention: window_size=(left, right), both inclusive.
        (lambda i, j: (i - j <= 6) & (j - i <= 0), "causal+window:7"),
        (lambda i, j: (i - j <= 6) & (j - i <= 6), "window:7"),
        # Longformer: attention_window is both sides together, so 12 is six a side.
        (lambda i, j: (i - j).abs() <= 12 // 2, "window:7"),
        # PyTorch's FlexAttention tutorial: q_idx - kv_idx <= window_size.
        (lambda i, j: (j <= i) & (i - j <= 6), "causal+window:7"),
    ],
)
def test_other_libraries_windows_in_our_terms(theirs, ours: str) -> None:
    i, j = torch.arange(40)[:, None], torch.arange(40)
    assert torch.equal(theirs(i, j), dense(ours, 40))


@pytest.mark.parametrize("name", taking("window:16+global:4"))
@pytest.mark.parametrize(
    "text",
    [
        *("window:15+global:4", "window:5000+global:2", "window:16+global:600", "window:16+global:2"),
        *("window:64+global:64", "window:64+global:65", "window:128+global:128"),
    ],
)
def test_odd_windows_and_globals_at_the_edges_of_blocks(name: str, text: str) -> None:
    n = 300
    problem = Problem(1, 2, 1, n, n, 32, mask=Mask.parse(text))
    q, k, v = torch.randn(1, 2, n, 32), torch.randn(1, 1, n, 32), torch.randn(1, 1, n, 32)
    scores = (q.double() @ k.double().mT / math.sqrt(32)).masked_fill(~dense(text, n), -math.inf)
    out = run(name, problem, q, k, v)
    torch.testing.assert_close(out.double(), scores.softmax(-1) @ v.double(), rtol=1e-4, atol=1e-5)


def test_masks_and_inputs_of_other_ranks_run_no_fused_kernel_so_ours_are_2d_and_4d() -> None:
    """PyTorch broadcasts them, and falls back without a word; a variant passes (n_q, n_kv) and 4-D inputs."""
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    visible = torch.ones(8, 8, dtype=torch.bool).tril()
    calls = {
        "ours": lambda *x: run("sdpa", Problem(1, 2, 2, 8, 8, 16, mask=Mask(window=3)), *x),
        "3-D mask": lambda *x: F.scaled_dot_product_attention(*x, attn_mask=visible.expand(2, 8, 8)),
        "3-D inputs": lambda *x: F.scaled_dot_product_attention(*(y[0] for y in x), attn_mask=visible),
    }
    ran = {}
    for name, call in calls.items():
        trace = KernelTrace(compiled=False)
        trace.wrap(call)(q, k, v)
        ran[name] = trace.kernel()
    assert ran == {"ours": "flash", "3-D mask": "math", "3-D inputs": "math"}


COMPILER = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler")


@COMPILER
@pytest.mark.parametrize("n", [137, 1025])
def test_flex_attention_at_lengths_that_its_blocks_do_not_divide(n: int) -> None:
    torch._dynamo.reset()
    problem = Problem(1, 2, 2, n, n, 32, mask=Mask(causal=True, window=33))
    q, k, v = torch.randn(3, 1, 2, n, 32)
    scores = (q.double() @ k.double().mT / math.sqrt(32)).masked_fill(~dense("causal+window:33", n), -math.inf)
    out = run("flex", problem, q, k, v)
    torch.testing.assert_close(out.double(), scores.softmax(-1) @ v.double(), rtol=1e-4, atol=1e-5)


@COMPILER
def test_flex_attention_refuses_a_block_mask_for_another_length() -> None:
    torch._dynamo.reset()
    flex, mask = VARIANTS["flex"], Mask(causal=True)
    planned = flex.prepare(Problem(1, 2, 2, 256, 256, 32, mask=mask))
    q, k, v = torch.randn(3, 1, 2, 512, 32)
    with pytest.raises(Exception, match="block_mask was created for"):
        flex.bind(Problem(1, 2, 2, 512, 512, 32, mask=mask), planned)(q, k, v)
