"""One visit: one process measures one case once, in a fixed order.

Inputs; plan; first call, with the resident peak of both; timed samples, a canary among them; the judgement, on another
seed, so that a memoised answer shows; memory, last, in passes of its own. What is wrong never has a speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from bench.measure import accuracy, globals
from bench.measure.canary import Canary
from bench.measure.conditions import Watch
from bench.measure.device import Device, Pass, Usage, device_of
from bench.measure.inputs import make_inputs, make_upstream
from bench.measure.kernels import KernelTrace, misfit
from bench.measure.memory import ResidentPeak
from bench.measure.sampling import Policy, Samples, sample
from bench.results.columns import Case, Conditions, Facts
from variants import registry
from variants.problem import Problem
from variants.registry import Variant

T = TypeVar("T")
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Request:
    """What a visit is told: the case, the modules that register its variant, how long to sample, its seed, and on how
    many CPU threads; None leaves that to torch."""

    case: Case
    imports: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    seed: int = 0
    threads: int | None = None


def visit(request: Request, ready: Callable[[], None] = lambda: None) -> Facts:
    """Measures one case. Raises what the variant raises; what it gets wrong comes back as facts.

    `ready` is called when the set-up, which ends with the first call, is over.
    """
    case = request.case
    variant = registry.find(case.variant, request.imports)
    problem = case.problem()
    device = device_of(problem.device, case.cache)
    _configure(request, variant)
    state = globals.snapshot()

    q, k, v = make_inputs(problem, request.seed, case.direction)
    upstream = make_upstream(problem, request.seed) if case.direction != "fwd" else None
    warm_up(q)
    resident = ResidentPeak()
    plan, plan_ms = _stopwatch(device, lambda: variant.prepare(problem))
    attention = variant.bind(problem, plan)
    step = pass_of(attention, case.direction, (q, k, v), upstream)
    first_call_ms = _stopwatch(device, step)[1]  # its result is not kept: it would weigh on all that follows
    peak_rss_bytes = resident.bytes() if problem.device == "cpu" else None
    ready()
    samples, conditions = _sample(device, step, request)

    trace = KernelTrace(variant.compiled)
    verdict, check_ms = _stopwatch(
        device,
        lambda: accuracy.judge(trace.wrap(attention), problem, case.direction, request.seed + 1, exact=variant.exact),
    )
    reason = verdict.reason or globals.changed(state) or misfit(variant.compiled, variant.kernel, trace.kernel())
    found = partial(
        Facts,
        plan_ms=plan_ms,
        first_call_ms=first_call_ms,
        check_ms=check_ms,
        peak_rss_bytes=peak_rss_bytes,
        error=verdict.error if verdict.budget else None,
        error_budget=verdict.budget if verdict.budget and variant.exact else None,
        kernel=trace.kernel(),
        conditions=conditions,
    )
    if reason:
        return found("wrong", reason)
    return found(
        "ok",
        samples_ms=samples.samples_ms,
        calls_per_sample=samples.calls_per_sample,
        memory_source=_memory_source(device, problem.device, peak_rss_bytes),
        **_memory(device, variant, problem, step, lambda: attention(q, k, v), case.direction),
    )


def _configure(request: Request, variant: Variant) -> None:
    """What is set before anything runs; a user's own program has all but the seed and the warning as torch has it."""
    if request.threads is not None:
        torch.set_num_threads(request.threads)
    refuse_eager_execution(variant)
    torch.manual_seed(request.seed + _UNUSUAL)


def refuse_eager_execution(variant: Variant) -> None:
    """Past a few shapes dynamo would run a compiled variant eagerly, with only a warning; from here on it raises."""
    if variant.compiled:
        torch._dynamo.config.fail_on_recompile_limit_hit = True


def _sample(device: Device, step: Pass, request: Request) -> tuple[Samples, Conditions]:
    """The samples, and how quiet the machine was among them."""
    case = request.case
    device.settle(step)
    watch, canary = Watch(case.device), Canary(device, case.device)
    canary.at_an_end()
    timer = canary.among(lambda calls: device.time_ms(step, calls))
    samples = sample(timer, request.policy, blocks=device.blocks and step.repeatable)
    canary.at_an_end()
    return samples, watch.conditions(canary.samples_ms)


def _memory(
    device: Device, variant: Variant, problem: Problem, step: Pass, forward: Callable[[], Tensor], direction: str
) -> dict[str, Any]:
    """The memory columns, each from a pass of its own."""
    plan = device.usage(lambda: variant.prepare(problem)) if variant.plan else Usage(0, 0)
    used = device.usage(step)
    saved_bytes = None
    if direction != "fwd":
        output: list[Tensor] = []
        kept = device.usage(lambda: output.append(forward()))
        saved_bytes = kept.held - output.pop().untyped_storage().nbytes()
    return {
        "plan_bytes": plan.held,
        "result_bytes": used.held,
        "saved_bytes": saved_bytes,
        "peak_bytes": max(plan.peak, plan.held + used.peak),
        "reserved_bytes": used.reserved,
    }


def _memory_source(device: Device, kind: str, peak_rss_bytes: int | None) -> str:
    if kind != "cpu":
        return device.memory_source
    resident = "/proc" if peak_rss_bytes is not None else "no resident peak: this system has no /proc/self/clear_refs"
    return f"{device.memory_source}, {resident}"


def pass_of(
    attention: Attention, direction: str, inputs: tuple[Tensor, Tensor, Tensor], upstream: Tensor | None = None
) -> Pass:
    """What one pass does: the forward call, the backward call of a forward that went before, or both."""
    if direction == "fwd":
        return Pass(lambda: None, lambda _: attention(*inputs))

    def backward(out: Tensor) -> object:
        return torch.autograd.grad(out, inputs, upstream)

    if direction == "bwd":
        return Pass(lambda: attention(*inputs), backward, repeatable=False)  # a graph serves for one backward call
    return Pass(lambda: None, lambda _: backward(attention(*inputs)))


_UNUSUAL = 7_340_033  # a variant that calls torch.manual_seed(0) is caught by it


def warm_up(q: Tensor) -> None:
    """Starts torch's threads and libraries with a product that is no variant's, of q's dtype on its device."""
    small = torch.ones(64, 64, dtype=q.dtype, device=q.device)
    (small @ small).sum().item()
    _age_allocator()


def _age_allocator() -> None:
    """Brings the host's allocator into the state that it reaches by itself in a program that lives long.

    glibc keeps freed memory up to a limit, which grows with the largest block freed so far, to 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD). In a fresh process it is left to chance how soon that happens, and with it the time of variants
    with large temporaries: naive at n = 1024 took 10 ms in one process and 20 in the next.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)


def _stopwatch(device: Device, step: Callable[[], T]) -> tuple[T, float]:
    device.synchronize()
    start = time.perf_counter()
    result = step()
    device.synchronize()
    return result, round((time.perf_counter() - start) * 1e3, 6)
