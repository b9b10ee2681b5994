"""Agreement with exact attention by the numerics rule: the result, and its gradients."""

from __future__ import annotations

from bench.checks.subject import Subject, Trial
from bench.measure import accuracy
from bench.measure.conduct import Wrong
from bench.measure.kernels import KernelTrace, misfit


def agrees(subject: Subject, trial: Trial) -> float:
    """The judge of every timed visit: shape, dtype, inputs, rows, gradients. Of an approximation, its error."""
    variant = subject.variant
    verdict = accuracy.judge(
        subject.attention(trial.problem), trial.problem, trial.direction, trial.seed, exact=variant.exact
    )
    if verdict.reason:
        raise Wrong(verdict.reason)
    return verdict.error / verdict.budget if variant.exact else verdict.error


def kernel(subject: Subject, trial: Trial) -> float:
    """The kernel that the variant forces is the one that ran; what is compiled was compiled, and not into another."""
    variant = subject.variant
    trace = KernelTrace(variant.compiled)
    accuracy.judge(trace.wrap(subject.attention(trial.problem)), trial.problem, "fwd", trial.seed, exact=variant.exact)
    if reason := misfit(variant.compiled, variant.kernel, trace.kernel()):
        raise Wrong(reason)
    return 0.0
