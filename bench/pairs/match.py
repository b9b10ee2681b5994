"""Contests between two sides: what is right on either, then pairs of processes, each written to disk as it ends."""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.interrupts import held_back
from bench.pairs.about import About
from bench.pairs.process import Lost, Process, Side
from bench.pairs.turns import Effort, Turns, take_turns
from bench.results.columns import Case, Conditions, Facts, Row
from bench.results.paired import IN_TURNS, NO_TIME, PAIRED_METHOD, PRESSING, SIDES, Contest, pair_number, run_of
from bench.results.store import Store

_START_S = 4.0  # to start a pair
_SETUP_S = 0.15  # of a contest in a pair: inputs, first calls
_REFERENCE_MS = 3.0  # of a block: the fixed product, and messages


@dataclass(frozen=True)
class Told:
    """What both sides are told: device, modules that register variants, threads, how long an answer may take; and the
    repository whose own modules neither may load, where they are compared at two revisions."""

    device: str
    imports: tuple[str, ...]
    threads: int
    timeout_s: float
    repo: Path | None = None


Both = tuple[Process, Process]
FactsOfBoth = tuple[Facts, Facts]


class Match:
    """Base against new. `about` is what the sides tell of themselves. Use as a context manager."""

    def __init__(self, sides: tuple[Side, Side], commits: tuple[str, str], told: Told) -> None:
        self.sides, self._commits, self._told = sides, commits, told
        self._stack = ExitStack()
        self._both: Both | None = None
        self.about: tuple[About, About]

    def __enter__(self) -> Match:
        try:
            self._fresh()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _fresh(self) -> Both:
        """Two new processes in place of those that were, each with its variants loaded from its own folders."""
        self._stack.close()
        base, new = (self._stack.enter_context(Process(side)) for side in self.sides)
        for process in (base, new):
            process.tell("about", self._told.device, self._told.imports, self._told.threads)
        self.about = self._own(base), self._own(new)
        self._both = base, new
        return self._both

    def _own(self, process: Process) -> About:
        """What a process tells of itself. UserError where it does not start, or loaded what is not its side's own: a
        comparison of code with itself would always end well."""
        try:
            about: About = process.hear(self._told.timeout_s)
        except Lost as lost:
            raise UserError(f"{lost.side}: its process does not start: {lost.reason}") from None
        packages = process.side.packages
        for found, name in ((about.suite, "bench"), (about.variants, "variants")):
            if not Path(found).samefile(packages / name):
                raise UserError(f"{process.side.name}: {name} was loaded from {found}, not from {packages / name}")
        for file in map(Path, about.loaded):
            if self._told.repo is not None and _of_the_checkout(file, self._told.repo):
                raise UserError(
                    f"{process.side.name}: {file} was loaded, the same for both sides; accepted: modules in the "
                    "current folder, at the top of the repository, or in its src"
                )
        return about

    def refusals(self, contests: Sequence[Contest]) -> list[tuple[str | None, str | None]]:
        """For each contest, why either side cannot run it; None where it can."""
        base, new = self._both or self._fresh()
        of_base = base.ask("refusals", [c.base for c in contests], timeout_s=self._told.timeout_s)
        of_new = new.ask("refusals", [c.new for c in contests], timeout_s=self._told.timeout_s)
        return list(zip(of_base, of_new, strict=True))

    def facts(self, contest: Contest) -> FactsOfBoth:
        """What a visit finds on either side: status, memory, error, kernel, and a rough time."""
        processes = self._both or self._fresh()
        cases = (contest.base, contest.new)  # one after the other, for memory may not do for both at once
        base, new = (self._found(process, case) for process, case in zip(processes, cases, strict=True))
        return base, new

    def _found(self, process: Process, case: Case) -> Facts:
        try:
            facts: Facts = process.ask("facts", case, timeout_s=self._told.timeout_s)
        except Lost as lost:
            self._both = None  # the next contest gets processes of its own
            return Facts(lost.status, lost.reason)
        return facts

    def play(self, contests: Sequence[Contest], number: int, effort: Effort) -> Iterator[tuple[Contest, Turns | Lost]]:
        """A fresh pair of processes over all contests, in an order of chance; another goes on where a side is lost."""
        draw = random.Random(number)
        both = None
        for contest in draw.sample(list(contests), len(contests)):
            base, new = both or self._pinned(number)
            try:
                outcome: Turns | Lost = take_turns(base, new, contest, effort, draw, self._told.timeout_s)
                both = base, new
            except Lost as lost:
                outcome, both = lost, None
            yield contest, outcome

    def _pinned(self, number: int) -> Both:
        processes = self._fresh()
        for process in processes:
            process.ask("stay", _cores(number, self._told.threads), timeout_s=self._told.timeout_s)
        return processes

    def row(self, at: int, case: Case, facts: Facts, run: str, number: int) -> Row:
        """The row of a side (0 is base) for one contest and pair; it says when that ended."""
        about = self.about[at]
        environment = replace(about.environment, commit=self._commits[at], method=PAIRED_METHOD)
        exact = about.known[case.variant].exact if case.variant in about.known else True
        started = datetime.now(UTC).isoformat(timespec="seconds")
        return Row(case, facts, environment, run, number, started, None, exact)


def _of_the_checkout(file: Path, repo: Path) -> bool:
    """Whether a module is of the repository itself, and of no environment that is kept in it."""
    installed = any(file.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix))
    return file.is_relative_to(repo) and not installed and "site-packages" not in file.parts


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

    def __init__(self, match: Match, store: Store, run: str, threshold: float, effort: Effort, deadline: float) -> None:
        self._match, self._store, self._effort, self._deadline = match, store, effort, deadline
        self._runs = [run_of(run, threshold, side) for side in SIDES]
        self.timed: list[tuple[Contest, FactsOfBoth]] = []
        self._pairs: Counter[Contest] = Counter()
        self._lost: set[Contest] = set()
        self._processes = 0

    def examine(self, contests: Sequence[Contest], within_s: float, pairs: int) -> None:
        """Finds out what is right on either side, and which contests so many pairs can hold within a time; the others
        are written down as skipped."""
        ends = time.monotonic() + within_s
        need_s = pairs * _START_S
        for contest in contests:
            if time.monotonic() + need_s > ends:
                self._skip(contest, (Facts("skipped", NO_TIME), Facts("skipped", NO_TIME)))
                continue
            facts = self._match.facts(contest)
            if not facts[0].status == facts[1].status == "ok":
                self._store_both(contest, facts)
                continue
            costs_s = pairs * _cost_s(facts, self._effort)
            if time.monotonic() + need_s + costs_s > ends:
                self._skip(contest, facts)
                continue
            need_s += costs_s
            self.timed.append((contest, facts))
        if not self.timed and all(row.facts.status == "skipped" for row in self._store.rows):
            raise UserError(f"--budget: not one of {len(contests)} cases can be compared in this time; accepted: more")

    def draw(self, at: NDArray[np.intp], pairs: int, confirming: bool) -> NDArray[np.float64] | None:
        """log(new / base) of these contests in so many more pairs of processes (contests, pairs).

        NaN once one was lost. None where the time is up, unless it is to confirm what stood out.
        """
        if self._processes and not confirming and time.monotonic() > self._deadline:
            return None
        wanted = [self.timed[i] for i in at]
        rounds = []
        for number in range(1, pairs + 1):
            left = {contest: facts for contest, facts in wanted if contest not in self._lost}
            print(
                f"{'to confirm, ' * confirming}pair {number} of {pairs}: {len(left)} cases", file=sys.stderr, flush=True
            )
            rounds.append(self._pair(left))
        return np.array([[numbers.get(contest, np.nan) for numbers in rounds] for contest, _ in wanted])

    def _pair(self, facts: dict[Contest, FactsOfBoth]) -> dict[Contest, float]:
        numbers = {}
        self._processes += 1
        for contest, outcome in self._match.play(list(facts), self._processes, self._effort):
            if isinstance(outcome, Lost):
                self._lost.add(contest)
                self._store_both(contest, _with_loss(facts[contest], outcome))
            else:
                numbers[contest] = pair_number(outcome.base_ms, outcome.new_ms, outcome.reference_ms)
                self._store_both(contest, _with_turns(facts[contest], outcome))
        return numbers

    def _skip(self, contest: Contest, facts: FactsOfBoth) -> None:
        """Writes down that there was no time for a contest, with what is known of its memory and error."""
        reason = PRESSING if contest.pressing else NO_TIME
        base, new = (replace(each, status="skipped", reason=reason, samples_ms=()) for each in facts)
        self._store_both(contest, (base, new))

    def _store_both(self, contest: Contest, facts: FactsOfBoth) -> None:
        self._pairs[contest] += 1
        with held_back():  # a pair is two rows, or none
            for at, case in enumerate((contest.base, contest.new)):
                self._store.append(self._match.row(at, case, facts[at], self._runs[at], self._pairs[contest]))


def _cost_s(facts: FactsOfBoth, effort: Effort) -> float:
    """What a pair spends on a contest, about."""
    base_ms, new_ms = (statistics.median(each.samples_ms) for each in facts)
    calls = effort.calls(min(base_ms, new_ms))
    block_ms = calls * (base_ms + new_ms)
    setup_ms = sum((each.plan_ms or 0) + (each.first_call_ms or 0) for each in facts) + 4 * block_ms
    return _SETUP_S + (setup_ms + effort.blocks(block_ms / 2) * (block_ms + _REFERENCE_MS)) / 1e3


def _with_turns(alone: FactsOfBoth, turns: Turns) -> FactsOfBoth:
    base, new = (
        replace(facts, samples_ms=ms, calls_per_sample=turns.calls, conditions=Conditions(turns.reference_ms))
        for facts, ms in zip(alone, (turns.base_ms, turns.new_ms), strict=True)
    )
    return base, new


def _with_loss(alone: FactsOfBoth, lost: Lost) -> FactsOfBoth:
    base, new = (
        Facts(lost.status, f"{IN_TURNS}{lost.reason}") if side == lost.side else facts
        for side, facts in zip(SIDES, alone, strict=True)
    )
    return base, new
