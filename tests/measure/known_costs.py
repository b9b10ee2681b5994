"""Variants whose time and memory are known beforehand."""

import time

import torch
from torch import Tensor

from variants.registry import Variant, variant

MIB = 2**20


def right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def spinning(microseconds: int) -> Variant:
    """A variant that returns after exactly so long."""

    @variant(f"spins_{microseconds}_us")
    def spin(q, k, v):
        end = time.perf_counter() + microseconds * 1e-6
        out = right(q, k, v)
        while time.perf_counter() < end:
            pass
        return out

    return spin


SPINS = [spinning(microseconds) for microseconds in (50, 500, 5_000, 50_000)]


@variant("takes_64_mib")
def takes_64_mib(q, k, v):
    torch.ones(64 * MIB, dtype=torch.uint8)
    return right(q, k, v)


def plan_of_16_mib(problem):
    torch.ones(48 * MIB, dtype=torch.uint8)
    return torch.ones(16 * MIB, dtype=torch.uint8)


@variant("plans_16_mib", plan=plan_of_16_mib)
def plans_16_mib(q, k, v, *, plan):
    torch.ones(8 * MIB, dtype=torch.uint8)
    return right(q, k, v)


class Keeps(torch.autograd.Function):
    """Attention that keeps 4 MiB from forward to backward."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v, torch.ones(4 * MIB, dtype=torch.uint8))
        return right(q, k, v)

    @staticmethod
    def backward(ctx, upstream):
        q, k, v, _ = ctx.saved_tensors
        with torch.enable_grad():
            inputs = [x.detach().requires_grad_() for x in (q, k, v)]
            return torch.autograd.grad(right(*inputs), inputs, upstream)


@variant("keeps_4_mib")
def keeps_4_mib(q, k, v):
    return Keeps.apply(q, k, v)
