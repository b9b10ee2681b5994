"""The answer first: a paragraph a problem, in words, of what to use at which length and how far it goes.

Only exact variants that were right are ranked, and only among those that solve the same problem. A variant is called
the fastest at a length where the interval of its ratio to every other is clear of 1 (`bench.analysis.scatter.leaders`).
Where several are left, it is too close to call between them, and the advice is to change as seldom as that allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from bench.analysis.crossings import Crossing, crossings
from bench.analysis.groups import Group, by, records
from bench.analysis.lengths import titles
from bench.analysis.scatter import Ratio, leaders, ratio
from bench.analysis.tables import Cell
from bench.analysis.text import TO, percent, plain, round_count, round_outward, significant, size, times, tokens
from bench.results.columns import FAILURES
from variants.masks import Mask

SAME_MEMORY = 1.02  # peaks that differ by less are alike

Case = dict[str, Any]
T = TypeVar("T")


class Paragraph(NamedTuple):
    """What is said of one problem."""

    title: str
    lines: list[Cell]


class _Field(NamedTuple):
    """The exact variants of one problem that were right: variant -> length -> case, and all lengths, ascending."""

    cases: dict[str, dict[int, Case]]
    lengths: list[int]

    def at(self, n: int) -> list[Case]:
        """The cases of a length, the fastest first."""
        here = (own[n] for own in self.cases.values() if n in own)
        return sorted(here, key=lambda case: (case["latency_ms"], case["variant"]))


def answer(series: Sequence[Group], baseline: str) -> list[Paragraph]:
    """A paragraph for each series: the fastest, where that changes, the leanest, how far each went, what was wrong."""
    fields: dict[tuple[str, ...], _Field] = {}
    paragraphs = []
    for title, (problem, part) in zip(titles(series), series, strict=True):
        rest = tuple(str(value) for axis, value in problem.items() if axis != "mask")
        field = fields[problem["mask"], *rest] = _field(part)
        wider = fields.get((str(_widened(problem["mask"])), *rest), field)
        paragraphs.append(Paragraph(title, list(_lines(field, part, baseline, wider))))
    return paragraphs


def _field(part: pd.DataFrame) -> _Field:
    """What is ranked: a variant that is wrong at one length is trusted at none."""
    wrong = part["variant"].isin(part["variant"][part["status"] == "wrong"])
    ok = part[(part["status"] == "ok") & part["exact"] & ~wrong].drop_duplicates(["variant", "length"])
    found: dict[str, dict[int, Case]] = {}
    for case in records(ok, "variant", "length"):
        found.setdefault(case["variant"], {})[case["length"]] = case
    return _Field(found, sorted(ok["length"].unique().tolist()))


def _lines(field: _Field, part: pd.DataFrame, baseline: str, wider: _Field) -> Iterator[Cell]:
    if not field.lengths:
        yield Cell("No exact variant has a time here.", "bad")
    elif len(field.cases) == 1:
        yield Cell(f"Only {plain(next(iter(field.cases)))} was measured, so there is nothing to rank.")
    elif part["variance"].isna().all():
        yield Cell("Each case was visited once, so nothing tells how far to trust the times: nothing is ranked.")
    else:
        yield from map(Cell, _fastest(field, baseline))
        yield from map(Cell, _disturbed(field))
    yield from map(Cell, _approximations(field, part))
    yield from map(Cell, _leanest(field, baseline))
    if wider is not field:
        yield from map(Cell, _saving(field, wider))
    yield from map(Cell, _reach(part))
    yield from _failures(part)


def _fastest(field: _Field, baseline: str) -> Iterator[str]:
    """Who is fastest over which lengths; then each change of what is advised, or its lead where there is none."""
    at = {n: leaders(field.at(n)) for n in field.lengths}
    told = {n: [name for name in names if field.cases[name][n]["variance"] >= 0] for n, names in at.items()}
    stretches = _stretches({n: (tuple(sorted(names)), _doubt(names, told[n])) for n, names in at.items()})
    words = [f"{_joined(names, 'or')}{doubt} {_over(lengths)}" for (names, doubt), lengths in stretches]
    yield f"Fastest: {'; '.join(words)}."
    advised = _fewest({n: told[n] or names for n, names in at.items()}, baseline)
    for before, after in pairwise(advised):
        yield _change(field, before, after)
    if len(advised) == 1:
        yield from _lead(field, advised[0], baseline)


def _doubt(names: Sequence[str], told: Sequence[str]) -> str:
    """Why there are several: their times are alike, or visits tell nothing of how far to trust one of them."""
    if len(names) == 1:
        return ""
    return " (too close to call)" if len(told) == len(names) else " (not told by these visits)"


class _Advice(NamedTuple):
    """A variant that may be the fastest at each of these lengths."""

    variant: str
    lengths: list[int]


def _fewest(at: Mapping[int, Sequence[str]], baseline: str) -> list[_Advice]:
    """The fewest variants that, one after the other, may be the fastest throughout; the baseline where it will do."""
    advised: list[_Advice] = []
    able: list[str] = []
    for n, names in at.items():
        still = [name for name in able if name in names]
        lengths = advised.pop().lengths if still else []
        able = still or list(names)
        advised.append(_Advice(baseline if baseline in able else able[0], [*lengths, n]))
    return advised


def _change(field: _Field, before: _Advice, after: _Advice) -> str:
    """From which length on, and to which, the one is to be used instead of the other."""
    old, new = field.cases[before.variant], field.cases[after.variant]
    first, last = after.lengths[0], after.lengths[-1]
    found = [it for it in crossings(new, old) if it.one_is_faster and it.tokens <= first]
    until = "on" if last == field.lengths[-1] else f"to {tokens(last)}"
    start = f"From {about(found[-1]) if found else tokens(first)} {until}"
    if not found and first == last:
        start = f"At {tokens(first)}"
    leads = {n: ratio(old[n], new[n]) for n in after.lengths if n in old}
    clear = [n for n, lead in leads.items() if lead.low > 1]
    lead = f": {_as_fast(leads[clear[-1]])} at {tokens(clear[-1])}" if clear else ""
    return f"{start} use {plain(after.variant)} instead of {plain(before.variant)}{lead}."


def _lead(field: _Field, advice: _Advice, baseline: str) -> Iterator[str]:
    """How far ahead what is advised is at the longest length: of the baseline, or else of the next."""
    n = field.lengths[-1]
    ahead, cases = leaders(field.at(n)), {case["variant"]: case for case in field.at(n)}
    behind = [name for name in cases if name not in ahead]
    rival = baseline if baseline in behind else behind[0] if behind and len(ahead) == 1 else None
    # What is clear of the fastest is not yet clear of what may be as fast.
    if rival is not None and (lead := ratio(cases[rival], cases[advice.variant])).low > 1:
        yield f"At {tokens(n)} {plain(advice.variant)} is {_as_fast(lead)} as {plain(rival)}."


def _disturbed(field: _Field) -> Iterator[str]:
    """Whose times are of disturbed visits alone, of which no interval says how much too long they are."""
    none_quiet = {
        variant: [n for n, case in own.items() if not case["quiet"]] for variant, own in sorted(field.cases.items())
    }
    words = [f"{plain(variant)} at {', '.join(map(tokens, at))}" for variant, at in none_quiet.items() if at]
    if words:
        yield f"No visit was quiet, and the time may well be too long: {'; '.join(words)}."


def about(crossing: Crossing) -> str:
    """A crossing in words: 2,900 tokens (2,600-3,300)."""
    return f"{round_count(crossing.tokens)} tokens ({round_outward(crossing.low, crossing.high)})"


def _as_fast(lead: Ratio) -> str:
    interval = "" if math.isnan(lead.low) else f" ({significant(lead.low)}{TO}{significant(lead.high)})"
    return f"{times(lead.value)}{interval} as fast"


def _approximations(field: _Field, part: pd.DataFrame) -> Iterator[str]:
    """What approximates and is faster than the fastest exact one, at the longest length that both have."""
    ok = part[(part["status"] == "ok") & ~part["exact"]]
    for variant, own in by(ok, "variant"):
        shared = records(own[own["length"].isin(field.lengths)], "length")
        if shared:
            case = shared[-1]
            best = field.at(case["length"])[0]
            lead = ratio(best, case)
            if lead.low > 1:
                ahead = f"{_as_fast(lead)} as {plain(best['variant'])} at {tokens(case['length'])}"
                yield f"≈ {plain(variant)} approximates attention, and is {ahead}."


def _leanest(field: _Field, baseline: str) -> Iterator[str]:
    """Who needs least memory over which lengths, and how much less than the baseline."""
    stretches = _stretches({n: _smallest(field.at(n)) for n in field.lengths})
    known = [(names, lengths) for names, lengths in stretches if names]
    if known and len(field.cases) > 1:
        names, (*_, last) = known[-1]
        peaks = {case["variant"]: case["peak_bytes"] for case in field.at(last)}
        least = min(peaks[name] for name in names)
        words = "; ".join(f"{_joined(names, 'and')} {_over(lengths)}" for names, lengths in known)
        less = peaks.get(baseline, math.nan) / least
        versus = f", {times(less)} less than {plain(baseline)}" if less > SAME_MEMORY else ""
        partly = [v for v, own in field.cases.items() if not all(case["peak_bytes"] > 0 for case in own.values())]
        besides = f"; not known everywhere of {', '.join(map(plain, sorted(partly)))}" if partly else ""
        yield f"Leanest: {words} ({size(least)} above the inputs at {tokens(last)}{versus}{besides})."


def _smallest(cases: Sequence[Case]) -> tuple[str, ...]:
    known = [case for case in cases if case["peak_bytes"] > 0]
    least = min((case["peak_bytes"] for case in known), default=0)
    return tuple(sorted(case["variant"] for case in known if case["peak_bytes"] <= SAME_MEMORY * least))


def _saving(field: _Field, wider: _Field) -> Iterator[str]:
    """What the mask leaves of the work and of the time, beside the same mask without its window and global tokens."""
    shared = [n for n in field.lengths if n in wider.lengths]
    if shared:
        best, whole = field.at(shared[-1])[0], wider.at(shared[-1])[0]
        spent = ratio(best, whole)
        if not math.isnan(spent.low):
            sizes = best["seq_q"], best["seq_kv"]
            pairs = Mask.parse(best["mask"]).pairs(*sizes) / Mask.parse(whole["mask"]).pairs(*sizes)
            share = f"{percent(spent.value)} ({percent(spent.low).removesuffix(' %')}{TO}{percent(spent.high)})"
            yield (
                f"At {tokens(shared[-1])} the mask leaves {percent(pairs)} of {whole['mask']}'s pairs, and "
                f"{plain(best['variant'])} takes {share} of the time of {plain(whole['variant'])} under "
                f"{whole['mask']}."
            )


def _widened(mask: str) -> Mask:
    """The mask without its window and global tokens."""
    return replace(Mask.parse(mask), window=None, global_tokens=None)


def _reach(part: pd.DataFrame) -> Iterator[str]:
    """How far each variant went, and what stopped it before the longest length."""
    longest = int(part["length"].max())
    reached: dict[str, list[str]] = {}
    for variant, found in groupby(records(part, "variant", "length"), key=itemgetter("variant")):
        own = list(found)
        last = max((case["length"] for case in own if case["status"] == "ok"), default=None)
        if last is not None:
            after = next((case for case in own if case["length"] > last), None)
            stopped = f", then {after['status']} ({plain(after['reason'])})" if after else ""
            missed = "".join(
                f", but {case['status']} at {tokens(case['length'])}"
                for case in own
                if case["length"] < last and case["status"] in ("oom", "timeout", "skipped")
            )
            name = ("" if own[0]["exact"] else "≈ ") + plain(variant)
            reached.setdefault(f"{tokens(last)}{missed}{stopped}", []).append(name)
    full = reached.pop(tokens(longest), [])
    words = [f"{', '.join(names)} to {where}" for where, names in reached.items()]
    if words:
        words.insert(0, f"{', '.join(full)} to {tokens(longest)}, the longest asked for" if full else "none to the end")
        yield f"Reach: {'; '.join(words)}."


def _failures(part: pd.DataFrame) -> Iterator[Cell]:
    """What failed, where and why; what was wrong anywhere is not ranked."""
    for variant, own in by(part[part["status"].isin(FAILURES)], "variant"):
        for status, failed in by(own, "status"):
            for reason, same in by(failed, "reason"):
                at = ", ".join(tokens(n) for n in sorted(same["length"].unique()))
                words = "Not ranked, for it is wrong" if status == "wrong" else f"Status {status}"
                yield Cell(f"{words} at {at}: {plain(variant)} ({plain(reason)}).", "bad")


def _stretches(at: Mapping[int, T]) -> list[tuple[T, list[int]]]:
    """Neighbouring lengths of which the same is to be said."""
    return [(same, [n for n, _ in found]) for same, found in groupby(at.items(), key=itemgetter(1))]


def _joined(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(part for part in (", ".join(map(plain, names[:-1])), plain(names[-1])) if part)


def _over(lengths: Sequence[int]) -> str:
    if len(lengths) == 1:
        return f"at {tokens(lengths[0])}"
    return f"from {tokens(lengths[0])} to {tokens(lengths[-1])}"
