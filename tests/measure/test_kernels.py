"""Which kernel ran: the fused ones are named, and their absence too."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.measure.kernels import KernelTrace

Q, K, V = torch.randn(3, 1, 2, 16, 8)


def forced(backend: SDPBackend) -> torch.Tensor:
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(Q, K, V)


@pytest.mark.parametrize(("backend", "kernel"), [(SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.MATH, "math")])
def test_the_backend_that_ran_is_named(backend: SDPBackend, kernel: str) -> None:
    trace = KernelTrace(compiled=False)
    trace.wrap(lambda q, k, v: forced(backend))(Q, K, V)
    assert trace.kernel() == kernel


def test_a_textbook_runs_no_fused_kernel() -> None:
    trace = KernelTrace(compiled=False)
    out = trace.wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v)(Q, K, V)
    assert trace.kernel() == "math"
    assert torch.equal(out, (Q @ K.mT).softmax(-1) @ V)


def test_a_silent_fallback_to_math_is_seen() -> None:
    trace = KernelTrace(compiled=False)
    strided = Q.mT.contiguous().mT  # the last dimension is not contiguous
    trace.wrap(lambda q, k, v: F.scaled_dot_product_attention(strided, k, v))(Q, K, V)
    assert trace.kernel() == "math"


def test_a_compiled_variant_that_compiled_nothing_is_found_out() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    trace = KernelTrace(compiled=True)
    trace.wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v)(Q, K, V)
    assert trace.kernel() == "math"


def test_a_compiled_variant_is_called_as_it_is() -> None:
    trace = KernelTrace(compiled=True)
    attention = torch.compile(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, backend="eager")
    assert trace.wrap(attention) is attention
    attention(Q, K, V)
    assert trace.kernel() == "compiled"
