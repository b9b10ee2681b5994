"""PyTorch's scaled_dot_product_attention: by the kernel it chooses, which is what users have today, or by one forced.

https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html; what each kernel
takes is in https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported, variant
from variants.shapes import dense_mask, drop_empty_rows, restore_empty_rows

_BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
_REFUSALS = ("No available kernel", "No viable backend")


@dataclass(frozen=True)
class Handover:
    """How the mask is handed over: by a flag, by a bool tensor (1, 1, rows, n_kv), or not at all."""

    is_causal: bool
    attn_mask: Tensor | None


def _flag_says_it(problem: Problem) -> bool:
    """`is_causal` aligns positions at the start, so it serves only where there are as many rows as keys."""
    n, mask = problem.seq_kv, problem.mask
    return mask.causal and n == problem.seq_q - problem.empty_rows and mask.pairs(n, n) == Mask(causal=True).pairs(n, n)


def _needs_tensor(problem: Problem) -> bool:
    rows = problem.seq_q - problem.empty_rows
    return not (_flag_says_it(problem) or problem.mask.hides_nothing(rows, problem.seq_kv))


def _plan(problem: Problem) -> Handover:
    mask = dense_mask(problem) if _needs_tensor(problem) else None
    return Handover(_flag_says_it(problem), None if mask is None else mask[None, None])


@variant("sdpa", plan=_plan)
def sdpa(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: Handover) -> Tensor:
    """Exact attention by the kernel that PyTorch chooses."""
    return _attend(q, k, v, mask, plan, nullcontext())


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask, plan: Handover, kernel: AbstractContextManager[None]
) -> Tensor:
    q, empty = drop_empty_rows(q, k, mask)
    with kernel:
        out = F.scaled_dot_product_attention(
            q, k, v, plan.attn_mask, is_causal=plan.is_causal, enable_gqa=q.shape[1] != k.shape[1]
        )
    return restore_empty_rows(out, empty)


def _forced(kernel: str) -> Callable[..., Tensor]:
    """SDPA that runs this kernel, or none."""
    backend = _BACKENDS[kernel]

    def forced(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: Handover) -> Tensor:
        if kernel == "efficient" and q.shape[1] != k.shape[1]:  # on CUDA it knows no grouped queries
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))

        def attend() -> Tensor:
            return _attend(q, k, v, mask, plan, sdpa_kernel(backend))

        try:
            return attend()
        except RuntimeError as error:
            if not str(error).startswith(_REFUSALS):
                raise
            raise Unsupported(_why(attend) or str(error).split(". ")[0]) from error

    return forced


def _why(refused: Callable[[], Tensor]) -> str:
    """What PyTorch warns of when it refuses a call, in one line."""
    with warnings.catch_warnings(record=True) as caught, suppress(RuntimeError):
        warnings.simplefilter("always")
        refused()
    texts = [str(w.message).split(" (Triggered internally")[0] for w in caught]
    return "; ".join(t for t in texts if not t.endswith(("not used because:", "runtime disabled.")))


def _limits(kernel: str) -> Callable[[Problem, Machine], str | None]:
    """What each fused kernel asks for, as far as it does not hang on versions of cuDNN and the like."""

    def limits(problem: Problem, machine: Machine) -> str | None:
        if problem.device == "cpu" and kernel != "flash":
            return f"PyTorch has no {kernel} kernel for CPU"
        if problem.device != "cuda":
            return None
        half, modern = problem.dtype != "float32", machine.capability is None or machine.capability >= (8, 0)
        multiple = {"flash": 1, "efficient": 8 if half else 4 if modern else 1, "cudnn": 8}[kernel]
        largest = {"flash": 256, "efficient": problem.head_dim, "cudnn": 256}[kernel]
        rules = {
            "takes bfloat16 and float16 only": kernel != "efficient" and not half,
            "needs compute capability 8.0": not modern and (kernel != "efficient" or problem.dtype == "bfloat16"),
            "takes no mask but causal with as many queries as keys": kernel == "flash" and _needs_tensor(problem),
            f"takes a head_dim of at most {largest}": problem.head_dim > largest,
            f"takes a head_dim that is a multiple of {multiple}": problem.head_dim % multiple != 0,
            "takes no single key": kernel == "cudnn" and problem.seq_kv == 1,
        }
        return next((f"the {kernel} kernel {rule} on CUDA" for rule, broken in rules.items() if broken), None)

    return limits


for _kernel in _BACKENDS:
    variant(f"sdpa_{_kernel}", plan=_plan, limits=None if _kernel == "math" else _limits(_kernel), kernel=_kernel)(
        _forced(_kernel)
    )
