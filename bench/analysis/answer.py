"""The answer first: a paragraph a problem, in words, of what to use at which length and how far it goes.

Only exact variants that were right are ranked, and only among those that solve the same problem. A variant is called
the fastest at a length where the interval of its ratio to every other is clear of 1. The level of the intervals is
raised with the number of the others, so that one false claim in twenty lengths is the most to expect. Where several
are left, it is too close to call between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.crossings import Crossing, crossings
from bench.analysis.groups import PROBLEM, by, describe, groups, records, varying
from bench.analysis.lengths import with_lengths
from bench.analysis.scatter import Ratio, ratio, with_scatter
from bench.analysis.tables import Cell
from bench.analysis.text import TO, percent, plain, round_count, significant, size, times, tokens
from bench.results.columns import FAILURES
from variants.masks import Mask

SAME_MEMORY = 1.02  # peaks that differ by less are alike
_FALSE_CLAIMS = 0.05

Case = dict[str, Any]


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


def answer(cases: pd.DataFrame, baseline: str) -> list[Paragraph]:
    """A paragraph for each problem: the fastest, where that changes, the leanest, how far each went, what was wrong."""
    axes = (*PROBLEM, *varying(cases))
    fastest_of: dict[tuple[str, ...], dict[int, float]] = {}
    paragraphs = []
    for problem, group in groups(cases):
        for fixed, part in by(with_scatter(with_lengths(group)), "fixed"):
            field = _field(part)
            key = tuple(str(value) for axis, value in {**problem, "fixed": fixed}.items() if axis != "mask")
            fastest_of[problem["mask"], *key] = {n: field.at(n)[0]["latency_ms"] for n in field.lengths}
            title = " · ".join(filter(None, (describe(problem, axes), fixed)))
            wider = (
                fastest_of.get((widened, *key), {})
                if (widened := str(_widened(problem["mask"]))) != problem["mask"]
                else {}
            )
            paragraphs.append(Paragraph(title, list(_lines(field, part, baseline, wider))))
    return paragraphs


def leaders(cases: Sequence[Case]) -> list[str]:
    """Of cases of one problem and length, those that may be the fastest: the one measured so, and whichever is not
    clear of it."""
    best, *others = sorted(cases, key=lambda case: (case["latency_ms"], case["variant"]))
    level = 1 - _FALSE_CLAIMS / max(1, len(others))
    close = [case["variant"] for case in others if not ratio(case, best, level).decided]
    return [best["variant"], *close]


def _field(part: pd.DataFrame) -> _Field:
    ok = part[(part["status"] == "ok") & part["exact"]].drop_duplicates(["variant", "length"])
    found: dict[str, dict[int, Case]] = {}
    for case in records(ok, "variant", "length"):
        found.setdefault(case["variant"], {})[case["length"]] = case
    return _Field(found, sorted(ok["length"].unique().tolist()))


def _lines(field: _Field, part: pd.DataFrame, baseline: str, wider: Mapping[int, float]) -> Iterator[Cell]:
    if not field.lengths:
        yield Cell("No exact variant gave a right answer in time.", "bad")
    else:
        if part["variance"].isna().all() and len(field.cases) > 1:
            yield Cell("Each case was visited once, so nothing tells how far to trust the times: nothing is ranked.")
        else:
            yield from map(Cell, _fastest(field, baseline))
        yield from map(Cell, _approximations(field, part))
        yield from map(Cell, _leanest(field, baseline))
        yield from map(Cell, _saving(field, wider))
    yield from map(Cell, _reach(part))
    yield from _failures(part)


def _fastest(field: _Field, baseline: str) -> Iterator[str]:
    """Who is fastest over which lengths; then each change of the sole fastest, or its lead where there is none."""
    at = {n: leaders(field.at(n)) for n in field.lengths}
    stretches = _stretches({n: tuple(sorted(names)) for n, names in at.items()})
    yield f"Fastest: {'; '.join(f'{_either(names)} {_over(found)}' for names, found in stretches)}."
    chosen = _fewest(at, baseline)
    for before, after in pairwise(chosen):
        yield from _change(field, before, after)
    if len(chosen) == 1:
        yield from _lead(field, field.lengths[-1], baseline)


def _fewest(at: Mapping[int, Sequence[str]], baseline: str) -> list[str]:
    """The fewest variants that, one after the other, may be the fastest throughout; the baseline where it will do."""
    chosen: list[str] = []
    able: list[str] = []
    for names in at.values():
        still = [name for name in able if name in names]
        if not still:
            chosen.append("")
        able = still or list(names)
        chosen[-1] = baseline if baseline in able else able[0]
    return chosen


def _change(field: _Field, before: str, after: str) -> Iterator[str]:
    """From which length on the one is to be used instead of the other."""
    found = [c for c in crossings(field.cases[after], field.cases[before]) if c.one_is_faster]
    if found:
        last = max(set(field.cases[after]) & set(field.cases[before]))
        lead = ratio(field.cases[before][last], field.cases[after][last])
        words = _as_fast(lead) if lead.low > 1 else "too close to call"
        yield f"From {about(found[-1])} on use {plain(after)} instead of {plain(before)}: {words} at {tokens(last)}."


def _lead(field: _Field, n: int, baseline: str) -> Iterator[str]:
    """How far ahead the fastest is of the baseline, or else of the next, at a length where it is the fastest alone."""
    best, *others = field.at(n)
    if others and leaders(field.at(n)) == [best["variant"]]:
        rival = next((case for case in others if case["variant"] == baseline), others[0])
        lead = _as_fast(ratio(rival, best))
        yield f"At {tokens(n)} {plain(best['variant'])} is {lead} as {plain(rival['variant'])}."


def about(crossing: Crossing) -> str:
    """A crossing in words: 2,900 tokens (2,600-3,300)."""
    low, high = round_count(crossing.low), round_count(crossing.high)
    return f"{round_count(crossing.tokens)} tokens ({low}{TO}{high})"


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
    at = {n: _smallest(field.at(n)) for n in field.lengths}
    known = {n: names for n, names in at.items() if names}
    if known and len(field.cases) > 1:
        last = max(known)
        peaks = {case["variant"]: case["peak_bytes"] for case in field.at(last)}
        least = peaks[known[last][0]]
        words = "; ".join(f"{_either(names, 'and')} {_over(found)}" for names, found in _stretches(known))
        less = peaks.get(baseline, math.nan) / least
        versus = f", {times(less)} less than {plain(baseline)}" if less > SAME_MEMORY else ""
        yield f"Leanest: {words} ({size(least)} above the inputs at {tokens(last)}{versus})."


def _smallest(cases: Sequence[Case]) -> tuple[str, ...]:
    known = [case for case in cases if case["peak_bytes"] > 0]
    least = min((case["peak_bytes"] for case in known), default=0)
    return tuple(sorted(case["variant"] for case in known if case["peak_bytes"] <= SAME_MEMORY * least))


def _saving(field: _Field, wider: Mapping[int, float]) -> Iterator[str]:
    """What the mask leaves of the work and of the time, beside the same mask without its window and global tokens."""
    shared = [n for n in field.lengths if n in wider]
    if shared:
        best = field.at(shared[-1])[0]
        mask = Mask.parse(best["mask"])
        sizes = best["seq_q"], best["seq_kv"]
        pairs = mask.pairs(*sizes) / _widened(best["mask"]).pairs(*sizes)
        spent = best["latency_ms"] / wider[shared[-1]]
        yield (
            f"The mask leaves {percent(pairs)} of {_widened(best['mask'])}'s pairs at {tokens(shared[-1])}, and its "
            f"fastest variant takes {percent(spent)} of the time of the fastest there."
        )


def _widened(mask: str) -> Mask:
    """The mask without its window and global tokens; of a mask that has neither, none that was seen before it."""
    parsed = Mask.parse(mask)
    return replace(parsed, window=None, global_tokens=None)


def _reach(part: pd.DataFrame) -> Iterator[str]:
    """How far each variant went, and what stopped it before the longest length."""
    longest = int(part["length"].max())
    reached: dict[str, list[str]] = {}
    for variant, own in by(part.sort_values("length"), "variant"):
        ok = own[own["status"] == "ok"]
        if len(ok):
            last = int(ok["length"].max())
            after = own[own["length"] > last]
            stopped = f", then {after['status'].iloc[0]} ({plain(after['reason'].iloc[0])})" if len(after) else ""
            reached.setdefault(f"{tokens(last)}{stopped}", []).append(plain(variant))
    full = reached.pop(tokens(longest), [])
    words = [f"{', '.join(names)} to {where}" for where, names in reached.items()]
    if words:
        words.insert(0, f"{', '.join(full)} to {tokens(longest)}, the longest asked for" if full else "none to the end")
        yield f"Reach: {'; '.join(words)}."


def _failures(part: pd.DataFrame) -> Iterator[Cell]:
    """What is not ranked because it failed."""
    for variant, own in by(part[part["status"].isin(FAILURES)], "variant"):
        at = ", ".join(tokens(n) for n in sorted(own["length"].unique()))
        first = own.iloc[0]
        yield Cell(f"Not counted: {plain(variant)}, {first['status']} at {at} ({plain(first['reason'])}).", "bad")


def _stretches(at: Mapping[int, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[int]]]:
    """Neighbouring lengths that have the same names."""
    return [(names, [n for n, _ in same]) for names, same in groupby(at.items(), key=lambda item: item[1])]


def _either(names: Sequence[str], word: str = "or") -> str:
    if len(names) == 1:
        return plain(names[0])
    joined = f" {word} ".join((", ".join(map(plain, names[:-1])), plain(names[-1])))
    return f"{joined} (too close to call)" if word == "or" else joined


def _over(lengths: Sequence[int]) -> str:
    if len(lengths) == 1:
        return f"at {tokens(lengths[0])}"
    return f"from {tokens(lengths[0])} to {tokens(lengths[-1])}"
