"""Which kernel really ran, read from PyTorch's dispatcher or, for compiled variants, from dynamo and the profiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

MATH = "math"
COMPILED = "compiled"

_FUSED = ("flash", "efficient", "cudnn")
_FUSED_OPERATORS = ("aten::_scaled_dot_product_", "aten::_flash_attention", "aten::_efficient_attention")


class KernelTrace:
    """Names the fused attention kernels that the wrapped function calls.

    A dispatch mode must never wrap a compiled function: FlexAttention has no rule for it, runs eagerly, and stays
    broken in that process. So compiled variants are called as they are: dynamo tells that it compiled, and the
    profiler whether the compiler put a fused kernel in place of what was written.
    """

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        self._names: set[str] = set()

    def wrap(self, attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The same function, traced."""
        if self.compiled:

            def profiled(*tensors: Tensor) -> Tensor:
                with profile(activities=[ProfilerActivity.CPU]) as profiler:
                    out = attention(*tensors)
                self._names.update(e.name for e in profiler.events() or () if e.name.startswith(_FUSED_OPERATORS))
                return out

            return profiled

        def traced(*tensors: Tensor) -> Tensor:
            with _Recorder(self._names):
                return attention(*tensors)

        return traced

    def kernel(self) -> str:
        """What ran: fused kernels joined by +, after `compiled` if they were; `math` where neither did."""
        fused = [kernel for kernel in _FUSED if any(kernel in name for name in self._names)]
        compiled = [COMPILED] if self.compiled and _compiled_graphs() else []
        return "+".join([*compiled, *fused]) or MATH


def misfit(compiled: bool, forced: str | None, ran: str) -> str | None:
    """What is wrong with the kernel that ran, for a variant that is compiled or forces one; None where nothing is."""
    kernels = ran.split("+")
    if compiled and COMPILED not in kernels:
        return "was not compiled: torch.compile fell back to eager execution"
    fused = "+".join(kernel for kernel in kernels if kernel != COMPILED) or MATH
    if forced and fused != forced:
        return f"forces the {forced} kernel, but {ran} ran"
    return None


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, names: set[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._names = names

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if "attention" in name:
            self._names.add(name)
        return func(*args, **(kwargs or {}))


def _compiled_graphs() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])
