"""Contests between two sides: what is right on either, then pairs of processes, each written to disk as it ends."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.pairs.about import About
from bench.pairs.process import Lost, Process, Side
from bench.pairs.turns import Contest, Effort, Turns, take_turns
from bench.results.columns import Case, Conditions, Facts, Row
from bench.results.paired import PAIRED_METHOD, SIDES, pair_number
from bench.results.store import Store

_START_S = 4.0  # to start a pair
_SETUP_S = 0.15  # of a contest in a pair: inputs, first calls
_REFERENCE_MS = 3.0  # of a block: the fixed product, and messages


@dataclass(frozen=True)
class Told:
    """What both sides are told: device, modules that register variants, threads, and how long an answer may take."""

    device: str
    imports: tuple[str, ...]
    threads: int
    timeout_s: float


Both = tuple[Process, Process]
FactsOfBoth = tuple[Facts, Facts]


class Match:
    """Base against new. `about` is what the sides tell of themselves. Use as a context manager."""

    def __init__(self, sides: tuple[Side, Side], commits: tuple[str, str], told: Told) -> None:
        self.sides, self._commits, self._told = sides, commits, told
        self._stack = ExitStack()
        self._both: Both | None = None
        self.about: tuple[About, About]
        self._fresh()

    def __enter__(self) -> Match:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _fresh(self) -> Both:
        """Two new processes in place of those that were, each with its variants loaded from its own folders."""
        self._stack.close()
        base, new = (self._stack.enter_context(Process(side)) for side in self.sides)
        for process in (base, new):
            process.tell("about", self._told.device, self._told.imports, self._told.threads)
        try:
            self.about = _own(base, self._told.timeout_s), _own(new, self._told.timeout_s)
        except Lost as lost:
            raise UserError(f"{lost.side}: its process does not start: {lost.reason}") from None
        self._both = base, new
        return self._both

    def refusals(self, contests: Sequence[Contest]) -> list[tuple[str | None, str | None]]:
        """For each contest, why either side cannot run it; None where it can."""
        base, new = self._both or self._fresh()
        of_base = base.ask("refusals", [c.base for c in contests], timeout_s=self._told.timeout_s)
        of_new = new.ask("refusals", [c.new for c in contests], timeout_s=self._told.timeout_s)
        return list(zip(of_base, of_new, strict=True))

    def facts(self, contest: Contest) -> FactsOfBoth:
        """What a visit finds on either side: status, memory, error, kernel, and a rough time."""
        processes = self._both or self._fresh()
        for process, case in zip(processes, (contest.base, contest.new), strict=True):
            process.tell("facts", case)
        base, new = (self._heard(process) for process in processes)
        return base, new

    def _heard(self, process: Process) -> Facts:
        try:
            facts: Facts = process.hear(self._told.timeout_s)
        except Lost as lost:
            self._both = None  # the next contest gets processes of its own
            return Facts(lost.status, lost.reason)
        return facts

    def play(self, contests: Sequence[Contest], number: int, effort: Effort) -> Iterator[tuple[Contest, Turns | Lost]]:
        """A fresh pair of processes over all contests, in an order of chance; another goes on where a side is lost."""
        draw = random.Random(number)
        base, new = self._pinned(number)
        for contest in draw.sample(list(contests), len(contests)):
            try:
                yield contest, take_turns(base, new, contest, effort, draw, self._told.timeout_s)
            except Lost as lost:
                yield contest, lost
                base, new = self._pinned(number)

    def _pinned(self, number: int) -> Both:
        processes = self._fresh()
        for process in processes:
            process.ask("stay", _cores(number, self._told.threads), timeout_s=self._told.timeout_s)
        return processes

    def row(self, at: int, case: Case, facts: Facts, run: str, number: int) -> Row:
        """The row of a side (0 is base) for one contest and pair."""
        about = self.about[at]
        environment = replace(about.environment, commit=self._commits[at], method=PAIRED_METHOD)
        exact = about.known[case.variant].exact if case.variant in about.known else True
        started = datetime.now(UTC).isoformat(timespec="seconds")
        return Row(case, facts, environment, f"{run}-{SIDES[at]}", number, started, None, exact)


def _own(process: Process, timeout_s: float) -> About:
    """What a process tells of itself. Raises where it did not load the packages of its own side: a comparison of the
    head with itself would always end well."""
    about: About = process.hear(timeout_s)
    packages = process.side.packages
    for found, name in ((about.suite, "bench"), (about.variants, "variants")):
        if not Path(found).samefile(packages / name):
            raise Lost(process.side.name, "error", f"{name} was loaded from {found}, not from {packages / name}")
    return about


def _cores(number: int, threads: int) -> list[int]:
    """As many cores as there are threads, the same for both sides of a pair, and others for the next one.

    Two processes that take turns each stay where they are: on a shared machine one core can be a tenth slower than
    another for seconds, and one side would have it. With both on one core, pairs of identical code were 1 to 3 % apart
    where they had been 5 to 15 %.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    return [allowed[(number + at) % len(allowed)] for at in range(min(threads, len(allowed)))]


class Series:
    """Contests and the pairs of processes that hold them, kept in a results file as they come.

    `timed` are the contests in which both sides are right, and what was found of them.
    """

    def __init__(
        self, match: Match, store: Store, run: str, effort: Effort, deadline: float, say: Callable[[str], None]
    ) -> None:
        self._match, self._store, self._run, self._effort = match, store, run, effort
        self._deadline, self._say = deadline, say
        self.timed: list[tuple[Contest, FactsOfBoth]] = []
        self._pairs: Counter[Contest] = Counter()
        self._processes = 0

    def examine(self, contests: Sequence[Contest], within_s: float, pairs: int) -> list[Contest]:
        """Finds out what is right on either side, and how many contests so many pairs can hold within a time; returns
        those that they cannot."""
        ends = time.monotonic() + within_s
        need_s = pairs * _START_S
        left_out = []
        for contest in contests:
            if time.monotonic() + need_s > ends:
                left_out.append(contest)
                continue
            facts = self._match.facts(contest)
            if not facts[0].status == facts[1].status == "ok":
                self._store_both(contest, facts)
                continue
            costs_s = pairs * _cost_s(facts, self._effort)
            if time.monotonic() + need_s + costs_s > ends:
                left_out.append(contest)
                continue
            need_s += costs_s
            self.timed.append((contest, facts))
        self._say(f"{len(contests) - len(left_out)} cases examined, {len(self.timed)} of them right on both sides")
        if left_out and not self._pairs and not self.timed:
            raise UserError(f"--budget: not one of {len(contests)} cases can be compared in this time; accepted: more")
        return left_out

    def draw(self, at: NDArray[np.intp], pairs: int, confirming: bool) -> NDArray[np.float64] | None:
        """log(new / base) of these contests in so many more pairs of processes (contests, pairs).

        None where the time is up, unless it is to confirm what stood out.
        """
        if self._processes and not confirming and time.monotonic() > self._deadline:
            return None
        wanted = [self.timed[i] for i in at]
        rounds = []
        for number in range(1, pairs + 1):
            self._say(f"{'to confirm, ' * confirming}pair {number} of {pairs}: {len(wanted)} cases")
            rounds.append(self._pair(dict(wanted)))
        return np.array([[numbers[contest] for numbers in rounds] for contest, _ in wanted])

    def _pair(self, facts: dict[Contest, FactsOfBoth]) -> dict[Contest, float]:
        numbers = {}
        self._processes += 1
        for contest, outcome in self._match.play(list(facts), self._processes, self._effort):
            if isinstance(outcome, Lost):
                numbers[contest] = np.nan
                self._store_both(contest, _with_loss(facts[contest], outcome))
            else:
                numbers[contest] = pair_number(outcome.base_ms, outcome.new_ms, outcome.reference_ms)
                self._store_both(contest, _with_turns(facts[contest], outcome))
        return numbers

    def _store_both(self, contest: Contest, facts: FactsOfBoth) -> None:
        self._pairs[contest] += 1
        for at, case in enumerate((contest.base, contest.new)):
            self._store.append(self._match.row(at, case, facts[at], self._run, self._pairs[contest]))


def _cost_s(facts: FactsOfBoth, effort: Effort) -> float:
    """What a pair spends on a contest, about."""
    call_ms = min(statistics.median(each.samples_ms) for each in facts)
    turn_ms = call_ms * effort.calls(call_ms)
    return _SETUP_S + (4 * call_ms + effort.blocks(turn_ms) * (2 * turn_ms + _REFERENCE_MS)) / 1e3


def _with_turns(alone: FactsOfBoth, turns: Turns) -> FactsOfBoth:
    base, new = (
        replace(facts, samples_ms=ms, calls_per_sample=turns.calls, conditions=Conditions(turns.reference_ms))
        for facts, ms in zip(alone, (turns.base_ms, turns.new_ms), strict=True)
    )
    return base, new


def _with_loss(alone: FactsOfBoth, lost: Lost) -> FactsOfBoth:
    base, new = (
        Facts(lost.status, f"in turns: {lost.reason}") if side == lost.side else facts
        for side, facts in zip(SIDES, alone, strict=True)
    )
    return base, new
