"""Which kernel really ran, read from PyTorch's dispatcher or, for compiled variants, from dynamo's own counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

MATH = "math"
COMPILED = "compiled"

_FUSED = ("flash", "efficient", "cudnn")


class KernelTrace:
    """Names the fused attention kernels that the wrapped function calls.

    A dispatch mode must never wrap a compiled function: FlexAttention has no rule for it, runs eagerly, and stays
    broken in that process. So compiled variants are called as they are, and dynamo tells what it compiled.
    """

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        self._names: set[str] = set()

    def wrap(self, attention: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The same function, traced."""
        if self.compiled:
            return attention

        def traced(*tensors: Tensor) -> Tensor:
            with _Recorder(self._names):
                return attention(*tensors)

        return traced

    def kernel(self) -> str:
        """What ran: fused kernels joined by +, `compiled`, or `math` where neither did."""
        if self.compiled:
            return COMPILED if _compiled_graphs() else MATH
        return "+".join(k for k in _FUSED if any(k in name for name in self._names)) or MATH


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
