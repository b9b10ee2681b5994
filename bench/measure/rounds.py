"""Rounds over the cases of a sweep: what is visited, what is not and why, and when to stop.

Round one comes to every case once, so that each has a row whatever happens later; further rounds visit what went
well again, in other processes, until the time budget is spent. The clock and the executor are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.measure.outlook import Outlook
from bench.results.columns import Case, Environment, Facts, Row
from variants.machine import Machine
from variants.registry import Variant

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


@dataclass(frozen=True)
class Visit:
    """A visit that is about to be made."""

    case: Case
    number: int


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
    outlook = Outlook(run.max_call_s, free_bytes)
    status: dict[Case, str] = {}
    done = {(row.case, row.visit) for row in known}
    for row in known:
        outlook.learn(row.case, row.facts)
        status[row.case] = _worse(status.get(row.case), row.facts.status)

    for number in range(1, run.visits + 1):
        for case in cases:
            if (case, number) in done or (number > 1 and status[case] != "ok"):
                continue
            if number > 1 and clock() - begun + outlook.visit_s(case) > run.time_budget_s:
                return
            started, before = datetime.now(UTC), clock()
            facts = _without_visit(run, outlook, case)
            if facts is None:
                announce(Visit(case, number))
                facts = execute(case, number)
                outlook.took(case, clock() - before)
            outlook.learn(case, facts)
            status[case] = _worse(status.get(case), facts.status)
            yield Row(
                case=case,
                facts=facts,
                environment=run.environment,
                run=run.name,
                visit=number,
                started=started.isoformat(timespec="seconds"),
                exact=run.variants[case.variant].exact,
            )


def _without_visit(run: Run, outlook: Outlook, case: Case) -> Facts | None:
    if reason := refusal(run, case):
        return Facts("unsupported", reason)
    if reason := outlook.objection(case):
        return Facts("skipped", reason)
    return None


def _worse(before: str | None, now: str) -> str:
    return now if before in (None, "ok") else before
