"""Contests in pair after pair of processes, each written to disk as it ends, within a budget of time."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.interrupts import held_back
from bench.pairs.match import FactsOfBoth, Match
from bench.pairs.process import Lost
from bench.pairs.turns import Effort, Turns
from bench.results.columns import Conditions, Facts
from bench.results.paired import IN_TURNS, NO_TIME, PRESSING, SIDES, Contest, pair_number, run_of
from bench.results.store import Store

_START_S = 5.0  # to start a pair: two interpreters, each with torch
_SETUP_S = 0.15  # of a contest in a pair: inputs, first calls
_REFERENCE_MS = 3.0  # of a block: the fixed product, and messages


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
