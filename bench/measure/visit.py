"""One visit: one process measures one case once, in a fixed order.

Inputs; plan; first call; timed samples; the judgement, on another seed, so that a memoised answer shows; memory,
last, in a pass of its own. What is wrong never has a speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from bench.measure import accuracy, globals
from bench.measure.device import Device, Pass, Usage, device_of
from bench.measure.inputs import make_inputs, make_upstream
from bench.measure.kernels import COMPILED, KernelTrace
from bench.measure.sampling import Policy, sample
from bench.results.columns import Case, Facts
from variants import registry
from variants.registry import Variant

T = TypeVar("T")
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Request:
    """What a visit is told: the case, the modules that register its variant, how long to sample, and its seed."""

    case: Case
    imports: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    seed: int = 0


def visit(request: Request) -> Facts:
    """Measures one case. Raises what the variant raises; what it gets wrong comes back as facts."""
    case = request.case
    variant = registry.find(case.variant, request.imports)
    problem = case.problem()
    device = device_of(problem.device)
    if variant.compiled:
        # Past a few shapes dynamo would fall back to eager execution with only a warning.
        torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch.manual_seed(request.seed + _UNUSUAL)
    state = globals.snapshot()

    q, k, v = make_inputs(problem, request.seed, case.direction)
    _warm_up(q)
    plan, plan_ms = _stopwatch(device, lambda: variant.prepare(problem))
    attention = variant.bind(problem, plan)
    upstream = make_upstream(problem, request.seed) if case.direction != "fwd" else None
    step = pass_of(attention, case.direction, (q, k, v), upstream)
    first_call_ms = _stopwatch(device, step)[1]  # its result is not kept: it would weigh on all that follows
    device.settle(step)
    blocks = device.blocks and case.direction != "bwd"
    samples = sample(lambda calls: device.time_ms(step, calls), request.policy, blocks)

    trace = KernelTrace(variant.compiled)
    verdict = accuracy.judge(trace.wrap(attention), problem, case.direction, request.seed + 1, exact=variant.exact)
    reason = verdict.reason or globals.changed(state) or _other_kernel(variant, trace.kernel())
    found = partial(
        Facts,
        plan_ms=plan_ms,
        first_call_ms=first_call_ms,
        error=verdict.error if verdict.budget else None,
        error_budget=verdict.budget if verdict.budget and variant.exact else None,
        kernel=trace.kernel(),
    )
    if reason:
        return found("wrong", reason)
    kept = device.usage(lambda: variant.prepare(problem)) if variant.plan else Usage(0, 0)
    used = device.usage(step)
    return found(
        "ok",
        samples_ms=samples.samples_ms,
        calls_per_sample=samples.calls_per_sample,
        plan_bytes=kept.held,
        peak_bytes=max(kept.peak, kept.held + used.peak),
    )


def pass_of(
    attention: Attention, direction: str, inputs: tuple[Tensor, Tensor, Tensor], upstream: Tensor | None = None
) -> Pass:
    """What one pass does: the forward call, the backward call of a forward that went before, or both."""
    if direction == "fwd":
        return Pass(lambda: None, lambda _: attention(*inputs))

    def backward(out: Tensor) -> object:
        return torch.autograd.grad(out, inputs, upstream)

    if direction == "bwd":
        return Pass(lambda: attention(*inputs), backward)
    return Pass(lambda: None, lambda _: backward(attention(*inputs)))


_UNUSUAL = 7_340_033  # a variant that calls torch.manual_seed(0) is caught by it


def _warm_up(q: Tensor) -> None:
    """Starts torch's threads and libraries with a product that is no variant's."""
    small = torch.ones(64, 64, dtype=q.dtype, device=q.device)
    (small @ small).sum().item()


def _stopwatch(device: Device, step: Callable[[], T]) -> tuple[T, float]:
    device.synchronize()
    start = time.perf_counter()
    result = step()
    device.synchronize()
    return result, round((time.perf_counter() - start) * 1e3, 6)


def _other_kernel(variant: Variant, ran: str) -> str | None:
    if variant.compiled and ran != COMPILED:
        return "was not compiled: torch.compile fell back to eager execution"
    if variant.kernel and ran != variant.kernel:
        return f"forces the {variant.kernel} kernel, but {ran} ran"
    return None
