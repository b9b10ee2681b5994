"""The dtype that products of matrices are worth computing in, where a variant multiplies them itself."""

from __future__ import annotations

import torch

from variants.problem import Problem


def product_dtype(problem: Problem) -> torch.dtype:
    """The problem's own dtype, but float32 for 16 bits on a CPU, unless it is an x86 with instructions for bfloat16.

    Others multiply 16-bit matrices by the slowest of loops, and float32 is as fast there as anything else.
    """
    own: torch.dtype = getattr(torch, problem.dtype)
    if problem.device != "cpu" or (own == torch.bfloat16 and _multiplies_bfloat16()):
        return own
    return torch.float32


def _multiplies_bfloat16() -> bool:
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}  # not before 2.11
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
