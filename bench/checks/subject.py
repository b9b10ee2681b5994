"""What is checked: a variant on this machine, the problems that it takes, and what may come of asking it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.measure.visit import refuse_eager_execution
from variants.machine import Machine
from variants.problem import Problem
from variants.registry import Variant

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Trial:
    """One thing to try: a problem, in a direction, on inputs from a seed."""

    problem: Problem
    direction: str = "fwd"
    seed: int = 0


@dataclass(frozen=True)
class Subject:
    """A variant, and the machine that it is checked on."""

    variant: Variant
    machine: Machine

    def takes(self, trial: Trial) -> bool:
        """Whether the variant's declaration takes this problem here."""
        return self.variant.refusal(trial.problem, self.machine, trial.direction) is None

    def attention(self, problem: Problem) -> Attention:
        """The variant's function for a problem, planned anew."""
        if self.variant.compiled:
            torch._dynamo.reset()  # a few shapes in one process are past its limit, and it would fall back to eager
            torch._dynamo.utils.counters.clear()  # else what was compiled before would pass for this one
            refuse_eager_execution(self.variant)
        return self.variant.bind(problem, self.variant.prepare(problem))


@dataclass(frozen=True)
class Check:
    """A question to a variant.

    ask       (subject, trial) -> how much of what is allowed was used, 0 to 1; of an approximation's agreement, its
              error; None where the problem has nothing to ask. Raises Wrong for what is not allowed
    trials    (subject, thorough) -> what to try
    direction that its trials are in
    property  whether a failure is only a property, told and not judged: it fails under `--strict` alone
    exact     whether it is asked of exact variants alone
    """

    name: str
    meaning: str
    ask: Callable[[Subject, Trial], float | None]
    trials: Callable[[Subject, bool], Iterable[Trial]]
    direction: str = "fwd"
    property: bool = False
    exact: bool = True
