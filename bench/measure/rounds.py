"""Rounds over the cases of a sweep: what is visited, what is not and why, and when to stop.

Round one comes to every case once, so that each has a row whatever happens later. Further rounds visit what went well
again, in other processes, cases without a quiet visit first. Two more at the end come to the cases that were
disturbed. The time budget bounds all but round one. The clock and the executor are arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench.measure.outlook import Outlook
from bench.results.columns import Case, Ceiling, Environment, Facts, Row, derive, disturbed
from variants.machine import Machine
from variants.registry import Variant

REVISITS = 2  # of a disturbed case, at most

Executor = Callable[[Case, int], Facts]
"""(case, visit) -> what the visit found; it never raises for what a variant does."""


@dataclass(frozen=True)
class Run:
    """What stays the same over a run."""

    name: str
    variants: Mapping[str, Variant]
    machine: Machine
    environment: Environment
    visits: int = 4
    time_budget_s: float = 120.0
    max_call_s: float = 5.0
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict)  # by dtype


@dataclass(frozen=True)
class Visit:
    """A visit that is about to be made."""

    case: Case
    number: int


class _Canaries:
    """The canary and the crowding of every visit that was ok, so that any can be held against the run's best."""

    def __init__(self) -> None:
        self._seen: dict[Case, list[tuple[float, float]]] = defaultdict(list)
        self._best: dict[str, float] = {}  # by cache: a cold one slows the canary too

    def learn(self, case: Case, facts: Facts) -> None:
        canary_ms = derive(case, facts).canary_ms
        if facts.status == "ok" and canary_ms is not None:
            self._seen[case].append((canary_ms, facts.conditions.crowding or 0.0))
            self._best[case.cache] = min(canary_ms, self._best.get(case.cache, canary_ms))

    def disturbed(self, case: Case) -> int:
        """How many of the visits to a case were disturbed."""
        return sum(disturbed(ms, self._best[case.cache], crowding) for ms, crowding in self._seen[case])

    def always_disturbed(self, case: Case) -> bool:
        """Whether no visit to the case was quiet."""
        return 0 < len(self._seen[case]) == self.disturbed(case)


def refusal(run: Run, case: Case) -> str | None:
    """Why the variant cannot take this case here, asked of its declaration alone; None where it can."""
    return run.variants[case.variant].refusal(case.problem(), run.machine, case.direction)


def rounds(
    run: Run,
    cases: Sequence[Case],
    execute: Executor,
    clock: Callable[[], float],
    *,
    announce: Callable[[Visit], None] = lambda visit: None,
    free_bytes: Callable[[], int | None] = lambda: None,
    known: Collection[Row] = (),
) -> Iterator[Row]:
    """The rows of a run, each as soon as it is known. Visits that `known` rows hold already are not made again."""
    begun = clock()
    outlook, canaries = Outlook(run.max_call_s, free_bytes), _Canaries()
    status: dict[Case, str] = {}
    done = {(row.case, row.visit) for row in known}

    def learn(case: Case, facts: Facts) -> None:
        outlook.learn(case, facts)
        canaries.learn(case, facts)
        status[case] = _worse(status.get(case), facts.status)

    def wanted(case: Case, number: int) -> bool:
        if (case, number) in done or (number > 1 and status[case] != "ok"):
            return False
        if number > run.visits and number - run.visits > canaries.disturbed(case):
            return False
        return number == 1 or clock() - begun + outlook.visit_s(case) <= run.time_budget_s

    for row in known:
        if row.environment == run.environment:
            learn(row.case, row.facts)
            outlook.took(row.case, row.visit_s or 0.0)
        else:  # taken over from elsewhere: it is done, and foretells nothing here
            status[row.case] = _worse(status.get(row.case), row.facts.status)

    for number in range(1, run.visits + REVISITS + 1):
        # Sorting is stable: round one keeps short lengths before long ones, which they foretell.
        for case in sorted(cases, key=lambda case: number > 1 and not canaries.always_disturbed(case)):
            if not wanted(case, number):
                continue
            started, before = datetime.now(UTC), clock()
            facts, visit_s = _without_visit(run, outlook, case), None
            if facts is None:
                announce(Visit(case, number))
                facts = execute(case, number)
                visit_s = round(clock() - before, 3)
                outlook.took(case, visit_s)
            learn(case, facts)
            yield Row(
                case=case,
                facts=facts,
                environment=run.environment,
                run=run.name,
                visit=number,
                started=started.isoformat(timespec="seconds"),
                visit_s=visit_s,
                exact=run.variants[case.variant].exact,
                declared_exponent=run.variants[case.variant].exponent,
                ceiling=run.ceilings.get(case.dtype, Ceiling()),
            )


def _without_visit(run: Run, outlook: Outlook, case: Case) -> Facts | None:
    if reason := refusal(run, case):
        return Facts("unsupported", reason)
    if reason := outlook.objection(case):
        return Facts("skipped", reason)
    return None


def _worse(before: str | None, now: str) -> str:
    return now if before in (None, "ok") else before
