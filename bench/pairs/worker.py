"""A process of one side, which does what it is told, message by message.

It keeps one case ready at a time. What it is told is the name of a method of `Worker` and its arguments; it answers
(True, result) or (False, (status, reason)), for an exception of one side's libraries may not be known to the other.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch

import bench
import variants
from bench.measure.canary import product
from bench.measure.device import Device, Pass, device_of
from bench.measure.environment import probe
from bench.measure.race import Entrant, pass_for
from bench.measure.sampling import Policy
from bench.measure.visit import Request, warm_up
from bench.measure.worker import die_with_the_run, reason_of, status_of, visit_facts
from bench.pairs.about import About, Known
from bench.results.columns import Case, Facts
from variants import registry
from variants.machine import Machine
from variants.registry import Variant

_REFERENCE_SIDE = {"cpu": 384}
_REFERENCE_SIDE_ON_ACCELERATOR = 4096


@dataclass(frozen=True)
class Ready:
    """A case that was made ready, and the fixed product that is timed among its turns."""

    device: Device
    step: Pass
    reference: Pass


class Worker:
    """What a side can be told to do."""

    def __init__(self) -> None:
        self._machine: Machine
        self._ready: Ready | None = None

    def about(self, device: str, imports: Sequence[str], threads: int) -> About:
        """Loads the variants and tells where everything is from. Comes first."""
        torch.set_num_threads(threads)
        registry.load()
        failed = {name: reason for name in imports if (reason := _import(name))}
        packages = tuple(sorted({package for v in registry.REGISTRY.values() for package in v.requires}))
        self._machine, environment = probe(device, packages, threads)
        return About(
            suite=_folder(bench),
            variants=_folder(variants),
            machine=self._machine,
            environment=environment,
            known={name: Known(v.exact, v.compiled, _file(v)) for name, v in registry.REGISTRY.items()},
            failed=failed,
            loaded=tuple(file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))),
        )

    def stay(self, cores: Sequence[int]) -> None:
        """Runs on these cores alone from here on, where the system lets it. Comes before anything that is timed."""
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)

    def refusals(self, cases: Sequence[Case]) -> list[str | None]:
        """For each case, why it cannot be run on this side; None where it can, and where asking raises."""
        found: list[str | None] = []
        for case in cases:
            try:
                found.append(self._refusal(case))
            except Exception:
                found.append(None)
        return found

    def facts(self, case: Case) -> Facts:
        """Whether a case is right, how much memory it takes, which kernel it runs: what a visit finds, barely timed."""
        if refusal := self._refusal(case):
            return Facts("unsupported", refusal)
        found = visit_facts(Request(case, policy=Policy(budget_ms=0.0)))
        _free(case.device)
        return found

    def enter(self, case: Case) -> tuple[float, bool]:
        """Makes a case ready. How many milliseconds a call of it takes by now, and whether calls may be timed several
        at a time."""
        self._ready = None  # what it holds is free before more is taken
        _free(case.device)
        device = device_of(case.device, case.cache)
        warm_up(torch.ones(1, device=case.device))
        step = pass_for(Entrant(case), imports=(), seed=0)
        reference = product(_REFERENCE_SIDE.get(case.device, _REFERENCE_SIDE_ON_ACCELERATOR), case.device)
        for each in (step, reference):
            each()
            device.synchronize()
        device.settle(step)
        self._ready = Ready(device, step, reference)
        return min(self.turn(1) for _ in range(2)), device.blocks and step.repeatable

    def turn(self, calls: int) -> float:
        """Milliseconds a call, over so many calls."""
        assert self._ready is not None
        return self._ready.device.time_ms(self._ready.step, calls)

    def reference(self) -> float:
        """Milliseconds that the fixed product takes."""
        assert self._ready is not None
        return self._ready.device.time_ms(self._ready.reference, 1)

    def _refusal(self, case: Case) -> str | None:
        variant = registry.REGISTRY.get(case.variant)
        if variant is None:
            return "not registered"
        return variant.refusal(case.problem(), self._machine, case.direction)


def _folder(package: object) -> str:
    return str(Path(inspect.getfile(package)).parent)  # type: ignore[arg-type]


def _import(name: str) -> str | None:
    """Imports a module that registers variants; why it cannot be, or None."""
    try:
        registry.load([name])
    except registry.ImportFailed as failure:
        return str(failure)
    return None


def _file(variant: Variant) -> str:
    """The file that a variant's function is in; of what is no function, that of the module that it says it is of."""
    function = inspect.unwrap(variant.function)
    try:
        return inspect.getfile(function)
    except TypeError:
        module = sys.modules.get(getattr(function, "__module__", ""))
        return getattr(module, "__file__", None) or ""


def _free(device: str) -> None:
    """Gives back what the device's allocator keeps: the other side is on the same device."""
    if device != "cpu":
        torch.accelerator.empty_cache()


def serve(descriptor: int) -> None:
    """Answers what comes on a socket, until nobody asks any more."""
    messages = Connection(descriptor)
    die_with_the_run(messages)
    worker = Worker()
    while True:
        try:
            command, arguments = messages.recv()
        except EOFError:
            return
        answer: tuple[bool, object]
        try:
            answer = True, getattr(worker, command)(*arguments)
        except BaseException as error:
            answer = False, (status_of(error), reason_of(error))
        messages.send(answer)
