"""How long a sequence each variant could take within a limit of memory and of time, from the tries that were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.cases import KEY
from bench.analysis.groups import PROBLEM, by, describe, groups, records, varying
from bench.analysis.tables import Cell, Table, outcomes
from bench.analysis.text import percent, plain, significant, size
from bench.results.columns import FAILURES
from bench.results.limits import Limits, needed_bytes

HEADER = ("variant", "longest", "bound by", "shortest that did not fit", "memory at longest", "latency ms", "tries")

_NEAR = 0.10  # of the time limit: so much do latencies of two visits differ easily


class Reach(NamedTuple):
    """How far a variant came: its longest try that fitted, the shortest beyond that did not, and how many it took."""

    variant: str
    fits: dict[str, Any] | None
    over: dict[str, Any] | None
    tries: int
    binding: str  # memory, time, longest, "not known yet", or the status of what did not fit

    @property
    def length(self) -> int:
        """The longest length that fitted; 0 where none did."""
        return self.fits["seq_kv"] if self.fits else 0

    @property
    def exact(self) -> bool:
        """False for what approximates softmax attention."""
        return bool((self.fits or self.over or {})["exact"])

    @property
    def able(self) -> bool:
        """Whether the variant takes the problem at all."""
        return self.fits is not None or self.binding != "unsupported"

    @property
    def failed(self) -> bool:
        """Whether a failure ended the search, so that no limit is known."""
        return self.binding in FAILURES


def reach(variant: str, tries: Sequence[Mapping[str, Any]], limits: Limits) -> Reach:
    """How far these tries of one variant on one problem came, shortest first.

    Where a longer length fitted beyond one that did not, the shorter one counts: what is promised was never refuted.
    But a prediction, which is of the memory that was free and the limits of its time, gives way to what was measured.
    """
    fits = over = None
    furthest = max((trial["seq_kv"] for trial in tries if not limits.exceeded(trial)), default=0)
    for trial in tries:
        if trial["status"] == "skipped" and trial["seq_kv"] < furthest:
            continue
        if limits.exceeded(trial):
            over = dict(trial)
            break
        fits = dict(trial)
    made = sum(trial["status"] != "skipped" for trial in tries)
    if over is not None:
        return Reach(variant, fits, over, made, limits.exceeded(over))
    at_the_end = fits is not None and fits["seq_kv"] >= limits.longest
    return Reach(variant, fits, None, made, "longest" if at_the_end else "not known yet")


def settled(visits: pd.DataFrame) -> pd.DataFrame:
    """These tries, in the order in which they were made, less each timeout that was tried again since: a search with a
    larger limit of time tries them again, and then that is what counts. (Of a skip and anything else, that counts.)"""
    return visits[(visits["status"] != "timeout") | ~visits.duplicated(KEY, keep="last")]


def limit_tables(cases: pd.DataFrame, limits: Limits) -> list[Table]:
    """A table for each mask, combination of the other axes, and fixed number of queries: who came furthest, and what
    stopped each."""
    axes = (*PROBLEM, *varying(cases))
    return [
        _table(describe(problem, axes) + (f" · {fixed}" if fixed else ""), part, limits)
        for problem, group in groups(cases)
        for fixed, part in by(_with_fixed(group), "fixed")
    ]


def _with_fixed(cases: pd.DataFrame) -> pd.DataFrame:
    """The cases with the number of queries in words where it is `fixed`. A search may pass a length like it."""
    crossed = set(cases["seq_q"][cases["seq_q"] != cases["seq_kv"]])
    fixed = "seq_q " + cases["seq_q"].astype(str)
    return cases.assign(fixed=fixed.where(cases["seq_q"].isin(crossed), ""))


def statement(limits: Limits) -> Cell:
    """What stands above the tables: the limits, and what counts."""
    return Cell(
        f"at most {size(limits.memory_bytes)} for inputs and peak, {duration(limits.call_ms)} for a call, "
        f"{limits.longest} tokens; searched to within {percent(limits.within)}"
    )


def _table(title: str, cases: pd.DataFrame, limits: Limits) -> Table:
    found = [reach(name, records(own), limits) for name, own in by(cases, "variant")]
    able = sorted((r for r in found if r.able), key=lambda r: (r.failed, -r.length, r.variant))
    notes = [
        *_remarks(able, limits),
        *(_end(r) for r in able if r.over and r.over["status"] != "ok"),
        *outcomes(cases[~cases["variant"].isin({r.variant for r in able})]),
    ]
    return Table(title, HEADER, [[_row(r, limits) for r in able]] if able else [], notes)


def _row(r: Reach, limits: Limits) -> tuple[Cell, ...]:
    return (
        Cell(("" if r.exact else "≈ ") + plain(r.variant)),
        Cell(f"at least {r.length}" if r.binding == "longest" else str(r.length) if r.fits else "none"),
        Cell({"longest": "--longest", "skipped": "predicted"}.get(r.binding, r.binding), "bad" if r.failed else ""),
        Cell(_beyond(r)),
        Cell(size(needed_bytes(r.fits)) if r.fits else ""),
        Cell(significant(r.fits["latency_ms"]) if r.fits else ""),
        Cell(str(r.tries)),
    )


def _beyond(r: Reach) -> str:
    """The shortest length that did not fit, with what it took."""
    if r.over is None:
        return ""
    if r.over["status"] != "ok":
        return f"{r.over['seq_kv']} ({'not tried' if r.binding == 'skipped' else r.over['status']})"
    took = size(needed_bytes(r.over)) if r.binding == "memory" else duration(r.over["latency_ms"])
    return f"{r.over['seq_kv']} ({took})"


def _end(r: Reach) -> Cell:
    """What stopped a variant that was not measured there, and why."""
    assert r.over is not None
    so_far = (f"right up to {r.length}, " if r.fits else "right nowhere, ") if r.failed else ""
    text = f"{plain(r.variant)}: {so_far}{r.over['status']} at {r.over['seq_kv']} ({plain(r.over['reason'])})"
    return Cell(text, "bad" if r.failed else "")


def _remarks(reaches: Sequence[Reach], limits: Limits) -> Iterator[Cell]:
    """What a reader must know of how these limits were found."""
    if not all(r.exact for r in reaches):
        yield Cell("≈ approximates softmax attention")
    apart = [plain(r.variant) for r in reaches if not (r.failed or _close(r, limits))]
    if apart:
        yield Cell(f"not searched to within {percent(limits.within)}: {', '.join(apart)}")
    near = [plain(r.variant) for r in reaches if r.binding == "time" and _near(r, limits)]
    if near:
        yield Cell(
            f"by one visit, whose latency is within {percent(_NEAR)} of the limit; another may end differently: "
            + ", ".join(near)
        )


def _close(r: Reach, limits: Limits) -> bool:
    return r.over is None or r.over["seq_kv"] - r.length <= max(1.0, limits.within * r.length)


def _near(r: Reach, limits: Limits) -> bool:
    return any(end is not None and abs(end["latency_ms"] / limits.call_ms - 1) <= _NEAR for end in (r.fits, r.over))


def duration(ms: float) -> str:
    """Milliseconds, or seconds where there is at least one: 9.80 s."""
    return f"{significant(ms / 1e3)} s" if ms >= 1e3 else f"{significant(ms)} ms"
