"""A race: one process measures several cases in turn, so that what the machine does meanwhile befalls all of them.

Times of two runs, or of two processes, differ by more than many a variant does from another; their ratio in turns of
a fraction of a second does not. A race says nothing of right or wrong, nor of memory: visits do.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from bench.measure.accuracy import judge
from bench.measure.device import Device, Pass, device_of
from bench.measure.inputs import make_inputs, make_upstream
from bench.measure.visit import pass_of, refuse_eager_execution, warm_up
from bench.measure.worker import limit_memory
from bench.results.columns import Case
from variants import registry
from variants.problem import Problem


@dataclass(frozen=True)
class Entrant:
    """A case, and what its variant's plan is to be told beyond the problem."""

    case: Case
    choice: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Effort:
    """How long to race: rounds until both limits are reached, each turn in a round at least `turn_ms` long."""

    least_s: float = 4.0
    least_rounds: int = 3
    turn_ms: float = 10.0


@dataclass(frozen=True)
class Race:
    """What a process is told: who races, the modules that register their variants, how long, its seed, its threads."""

    entrants: tuple[Entrant, ...]
    imports: tuple[str, ...] = ()
    effort: Effort = field(default_factory=Effort)
    seed: int = 0
    threads: int | None = None


@dataclass(frozen=True)
class Lane:
    """What one entrant did: time of a call in each round, in order, and how many calls each is the mean of."""

    samples_ms: tuple[float, ...]
    calls_per_sample: int


def race(told: Race, ready: Callable[[], None] = lambda: None) -> list[Lane]:
    """Races; calls `ready` when the set-up is over, which ends with a first call of each. Raises what they raise."""
    _configure(told)
    first = told.entrants[0].case
    device = device_of(first.device, first.cache)
    warm_up(torch.ones(1, device=first.device))
    passes = _passes(told)
    for step in passes:
        step()
        device.synchronize()
    ready()
    return run(device, passes, told.effort, random.Random(told.seed))


def check(told: Race) -> str | None:
    """What is wrong with the only entrant, by the judgement that every visit makes; None where it is right."""
    _configure(told)
    (entrant,) = told.entrants
    variant, problem = registry.find(entrant.case.variant, told.imports), entrant.case.problem()
    attention = variant.bind(problem, variant.prepare(problem, **entrant.choice))
    return judge(attention, problem, entrant.case.direction, told.seed + 1, exact=variant.exact).reason


def run(
    device: Device,
    passes: Sequence[Pass],
    effort: Effort,
    draw: random.Random,
    clock: Callable[[], float] = time.monotonic,
) -> list[Lane]:
    """Rounds, in each of which every pass has one turn, in an order drawn anew."""
    calls = [_calls(device, step, effort.turn_ms) for step in passes]
    times: list[list[float]] = [[] for _ in passes]
    begun, rounds = clock(), 0
    while rounds < effort.least_rounds or clock() - begun < effort.least_s:
        for at in draw.sample(range(len(passes)), len(passes)):
            times[at].append(round(device.time_ms(passes[at], calls[at]), 6))
        rounds += 1
    return [Lane(tuple(ms), count) for ms, count in zip(times, calls, strict=True)]


def _configure(told: Race) -> None:
    if told.threads is not None:
        torch.set_num_threads(told.threads)
    if told.entrants[0].case.device == "cpu":
        limit_memory()


def _calls(device: Device, step: Pass, turn_ms: float) -> int:
    device.settle(step)
    if not (device.blocks and step.repeatable):
        return 1
    first = device.time_ms(step, 1)
    if first >= turn_ms:
        return 1
    return math.ceil(turn_ms / max(min(first, device.time_ms(step, 1)), 1e-6))


def _passes(told: Race) -> list[Pass]:
    """A pass an entrant; those of the same sizes and direction share their inputs, which a right one only reads."""
    inputs: dict[tuple[object, ...], Sequence[torch.Tensor]] = {}
    passes = []
    for entrant in told.entrants:
        problem, direction = entrant.case.problem(), entrant.case.direction
        key = _sizes(problem), direction
        if key not in inputs:
            inputs[key] = _inputs(problem, told.seed, direction)
        passes.append(_pass_on(inputs[key], entrant, told.imports))
    return passes


def pass_for(entrant: Entrant, imports: tuple[str, ...], seed: int) -> Pass:
    """What one pass of an entrant does, on inputs of its own."""
    return _pass_on(_inputs(entrant.case.problem(), seed, entrant.case.direction), entrant, imports)


def _pass_on(inputs: Sequence[torch.Tensor], entrant: Entrant, imports: tuple[str, ...]) -> Pass:
    """What one pass of an entrant does, on these inputs."""
    case, problem = entrant.case, entrant.case.problem()
    variant = registry.find(case.variant, imports)
    refuse_eager_execution(variant)
    plan = variant.prepare(problem, **entrant.choice)
    q, k, v, *upstream = inputs
    return pass_of(variant.bind(problem, plan), case.direction, (q, k, v), *upstream)


def _sizes(p: Problem) -> tuple[object, ...]:
    return p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv, p.head_dim, p.dtype


def _inputs(problem: Problem, seed: int, direction: str) -> Sequence[torch.Tensor]:
    given = make_inputs(problem, seed, direction)
    return given if direction == "fwd" else (*given, make_upstream(problem, seed))
