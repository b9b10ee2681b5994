"""Which kernel ran: the fused ones are named, and their absence too."""

import shutil

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import _len_torch_dispatch_stack

from bench.measure.kernels import KernelTrace, misfit

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


def test_a_compiled_variant_is_called_outside_of_any_dispatch_mode() -> None:
    torch._dynamo.reset()
    modes: list[int] = []

    def textbook(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).softmax(-1) @ v

    compiled = torch.compile(textbook, backend="eager")

    def attention(*inputs: torch.Tensor) -> torch.Tensor:
        modes.append(_len_torch_dispatch_stack())
        return compiled(*inputs)

    trace = KernelTrace(compiled=True)
    assert torch.equal(trace.wrap(attention)(Q, K, V), textbook(Q, K, V))
    assert modes == [0]
    assert trace.kernel() == "compiled"


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="torch.compile needs a C++ compiler")
def test_a_textbook_that_the_compiler_fused_is_found_out() -> None:
    torch._dynamo.reset()
    q, k, v = torch.randn(3, 2, 4, 64, 64)
    compiled = torch.compile(lambda q, k, v: (q @ k.transpose(-2, -1)).div(8.0).softmax(-1) @ v)
    trace = KernelTrace(compiled=True)
    with torch.no_grad():
        out = trace.wrap(compiled)(q, k, v)
    torch.testing.assert_close(out, (q @ k.mT / 8).softmax(-1) @ v)
    assert trace.kernel() == "compiled+flash"
    assert misfit(True, "math", trace.kernel()) == "forces the math kernel, but compiled+flash ran"


@pytest.mark.parametrize(
    ("compiled", "forced", "ran", "reason"),
    [
        (False, None, "math", None),
        (False, "flash", "flash", None),
        (False, "flash", "math", "forces the flash kernel, but math ran"),
        (False, "math", "flash+efficient", "forces the math kernel, but flash+efficient ran"),
        (True, None, "compiled", None),
        (True, None, "compiled+flash", None),
        (True, "math", "compiled", None),
        (True, None, "math", "was not compiled: torch.compile fell back to eager execution"),
    ],
)
def test_what_does_not_fit_is_told(compiled: bool, forced: str | None, ran: str, reason: str | None) -> None:
    assert misfit(compiled, forced, ran) == reason
