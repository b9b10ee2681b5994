"""Two sides against each other: their processes, what is right on either, and turns in pair after pair."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from bench import cores
from bench.errors import UserError
from bench.pairs.about import About
from bench.pairs.process import Lost, Process, Side
from bench.pairs.turns import Effort, Turns, take_turns
from bench.results.columns import Case, Facts, Row
from bench.results.paired import PAIRED_METHOD, Contest


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
    allowed = cores.allowed()
    return [allowed[(number + at) % len(allowed)] for at in range(min(threads, len(allowed)))]
