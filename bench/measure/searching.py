"""Searches for the longest length that keeps limits of memory and time: which tries are made, and which foretold.

The search is a function of the tries before it, so one that was stopped goes on where it was when its tries are known.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from bench.plan.bisection import search
from bench.plan.forecast import Known, forecast
from bench.results.columns import FAILURES, Case, Environment, Facts, Row
from bench.results.limits import Limits, input_bytes
from variants.machine import Machine
from variants.registry import Variant

HOPELESS = 3  # times the limit of time: a call that is predicted to take longer is not tried

_GIB = 2**30
_CUT_SHORT = ("skipped", "timeout")  # what another limit, or more free memory, would have let come to an end


@dataclass(frozen=True)
class Searching:
    """What stays the same over the searches of a run. The executor and the memory that is free are arguments."""

    name: str
    variants: dict[str, Variant]
    machine: Machine
    environment: Environment
    limits: Limits
    execute: Callable[[Case], Facts]
    free_bytes: Callable[[], int]
    known: dict[Case, Row] = field(default_factory=dict)

    def rows(self, starts: Iterable[Case]) -> Iterator[Row]:
        """The rows of the searches that begin at these cases, each as soon as it is known, but for those `known`."""
        for start in starts:
            yield from self._search(start)

    def _search(self, start: Case) -> Iterator[Row]:
        at = partial(_at, start)
        prospect = Prospect(at, self.limits, self.free_bytes)
        first = next((n for n in self._doublings(start.seq_kv) if not self._refusal(at(n))), start.seq_kv)
        steps = search(
            self.limits.longest,
            self.limits.within,
            prospect.hopeful,
            lambda n: prospect.objection(n) is not None,
            first,
        )
        length, fitted = next(steps), False
        while True:
            case = at(length)
            row, objection = self.known.get(case), prospect.objection(length)
            if row is None or (row.facts.status in _CUT_SHORT and objection is None):
                row = self._row(case, objection, visit=1 + (row.visit if row else 0))
                yield row
            exceeded = self.limits.exceeded(row.flat())
            fitted |= not exceeded
            if exceeded in FAILURES or (exceeded == "unsupported" and not fitted):
                return
            prospect.learn(row)
            try:
                length = steps.send(not exceeded)
            except StopIteration:
                return

    def _doublings(self, length: int) -> Iterator[int]:
        while length <= self.limits.longest:
            yield length
            length *= 2

    def _refusal(self, case: Case) -> str | None:
        return self.variants[case.variant].refusal(case.problem(), self.machine, case.direction)

    def _row(self, case: Case, objection: str | None, visit: int) -> Row:
        """The row of a try, which is made unless something speaks against it."""
        started, before, visit_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic(), None
        if reason := self._refusal(case):
            facts = Facts("unsupported", reason)
        elif objection:
            facts = Facts("skipped", objection)
        else:
            facts = self.execute(case)
            visit_s = round(time.monotonic() - before, 3)
        variant = self.variants[case.variant]
        return Row(case, facts, self.environment, self.name, visit, started, visit_s, variant.exact, variant.exponent)


def _at(start: Case, length: int) -> Case:
    """The case at another length. Where queries and keys differ, the number of queries is fixed."""
    return replace(start, seq_q=length if start.seq_q == start.seq_kv else start.seq_q, seq_kv=length)


class Prospect:
    """What the tries of one search so far say of other lengths."""

    def __init__(self, at: Callable[[int], Case], limits: Limits, free_bytes: Callable[[], int]) -> None:
        self._at, self._limits, self._free_bytes = at, limits, free_bytes
        self._calls_ms: list[Known] = []
        self._peaks: list[Known] = []

    def learn(self, row: Row) -> None:
        """Takes in what a try found."""
        if row.facts.status == "ok":
            size = row.case.seq_q * row.case.seq_kv, row.case.problem().pairs
            self._calls_ms.append(Known(*size, row.derived.latency_ms or 0.0))
            self._peaks.append(Known(*size, float(row.facts.peak_bytes or 1)))

    def hopeful(self, length: int) -> bool:
        """Whether this length is expected to keep the limits."""
        inputs, peak, call_ms = self._expected(length)
        return inputs + peak <= self._limits.memory_bytes and call_ms <= self._limits.call_ms

    def objection(self, length: int) -> str | None:
        """Why this length is better not tried; None where nothing speaks against it."""
        inputs, peak, call_ms = self._expected(length)
        if call_ms > HOPELESS * self._limits.call_ms:
            return f"one call would take about {call_ms / 1e3:.3g} s"
        need, free = 2 * inputs + peak, self._free_bytes()
        if need > free:
            return f"needs about {need / _GIB:.3g} GiB with its check, {free / _GIB:.3g} GiB free"
        return None

    def _expected(self, length: int) -> tuple[int, float, float]:
        """Bytes of the inputs, peak bytes above them, and milliseconds of a call; 0 for what nothing is known of."""
        case = self._at(length)
        scores, pairs = case.seq_q * case.seq_kv, case.problem().pairs
        call_ms = _cost(self._calls_ms, scores, pairs)
        # Fused kernels need no memory for pairs, so once two lengths are known these say how it grows.
        peak = _cost(self._peaks, scores, pairs if len(self._peaks) < 2 else 0)
        return input_bytes(vars(case)), peak, call_ms


def _cost(known: Sequence[Known], scores: int, pairs: int) -> float:
    """The cost to expect: between two known lengths by the power law through both, beyond them as forecast."""
    shorter = max((k for k in known if k.scores < scores), key=lambda k: k.scores, default=None)
    longer = min((k for k in known if k.scores >= scores), key=lambda k: k.scores, default=None)
    if shorter is None or longer is None:
        return forecast(known, scores, pairs) or 0.0
    share = math.log(scores / shorter.scores) / math.log(longer.scores / shorter.scores)
    return float(shorter.cost * (longer.cost / shorter.cost) ** share)
