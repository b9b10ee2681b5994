"""How the variants scale: a table a problem of how time and memory grow, and of where each overtakes the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd

from bench.analysis.crossings import Crossing, crossings
from bench.analysis.groups import Group, records
from bench.analysis.growth import Growth, fit
from bench.analysis.lengths import titles
from bench.analysis.scatter import Ratio, ratio
from bench.analysis.tables import Cell, Table
from bench.analysis.text import TO, plain, round_count, round_outward, times, tokens
from variants.masks import Mask

# Of an exponent: caches and page faults alone moved that of right and linear variants by up to 0.1 here.
SLACK = 0.15

# By which lengths it is faster at (1), slower (-1) or neither beyond doubt (0).
_ONE_SIDED = {
    frozenset({0}): "too close to call",
    frozenset({1}): "everywhere",
    frozenset({-1}): "nowhere",
    frozenset({0, 1}): "where it can be told",
    frozenset({0, -1}): "nowhere that can be told",
}

_WORDS = {"latency_ms": "time", "peak_bytes": "memory"}

Case = Mapping[str, Any]


def tables(series: Sequence[Group], growths: pd.DataFrame, baseline: str) -> list[Table]:
    """A table for each series that was measured at two lengths or more, a row a variant that has a number."""
    found = []
    for at, (title, (_, part)) in enumerate(zip(titles(series), series, strict=True)):
        ok = part[part["status"] == "ok"].drop_duplicates(["variant", "length"])
        if ok["length"].nunique() > 1:
            rows = records(growths[growths["series"] == at], "variant")
            grown = {(row["variant"], row["quantity"]): row for row in rows}
            found.append(_table(f"how it scales · {title}", ok, grown, baseline))
    return found


def _table(title: str, ok: pd.DataFrame, grown: Mapping[tuple[str, str], Mapping[str, Any]], baseline: str) -> Table:
    by_length: dict[str, dict[int, Case]] = {}
    for case in records(ok, "length"):
        by_length.setdefault(case["variant"], {})[case["length"]] = case
    reference = {n: case for n, case in by_length.get(baseline, {}).items() if case["exact"]}
    names = sorted(by_length, key=lambda name: (not _exact(by_length[name]), name))
    rows = [_row(name, by_length[name], grown, {} if name == baseline else reference) for name in names]
    header = (
        "variant",
        "time grows as",
        "95 % interval",
        "memory grows as",
        "its interval",
        f"faster than {plain(baseline)}",
        "at the longest",
    )
    shown = [at for at, _ in enumerate(header) if at == 0 or any(row[at].text for row in rows)]
    notes = [note for name in names for note in _remarks(name, by_length[name], grown)] + _refusals(grown)
    return Table(title, tuple(header[at] for at in shown), [[tuple(row[at] for at in shown) for row in rows]], notes)


def _row(
    name: str,
    own: Mapping[int, Case],
    grown: Mapping[tuple[str, str], Mapping[str, Any]],
    reference: Mapping[int, Case],
) -> tuple[Cell, ...]:
    time, memory = (grown.get((name, quantity), {}) for quantity in ("latency_ms", "peak_bytes"))
    return (
        Cell(("" if _exact(own) else "≈ ") + plain(name)),
        *_power(time),
        *_power(memory),
        Cell(_faster(own, reference)),
        Cell(_at_the_longest(own, reference)),
    )


def _exact(own: Mapping[int, Case]) -> bool:
    return bool(next(iter(own.values()))["exact"])


def _power(growth: Mapping[str, Any]) -> tuple[Cell, Cell]:
    """As in n^1.02 and 0.98-1.06."""
    if not growth or math.isnan(growth["exponent"]):
        return Cell(""), Cell("")
    return Cell(f"n^{growth['exponent']:.2f}"), Cell(f"{growth['low']:.2f}{TO}{growth['high']:.2f}")


def _faster(own: Mapping[int, Case], reference: Mapping[int, Case]) -> str:
    """Over which lengths it is faster than the baseline: "from 690 (600-810)", "everywhere", "nowhere"."""
    shared = sorted(set(own) & set(reference))
    level = 1 - 0.05 / max(1, len(shared))
    ratios = [ratio(reference[n], own[n], level) for n in shared]
    if not any(r.low > 0 for r in ratios):
        return "not told by these visits" if shared else ""
    signs = {1 if r.low > 1 else -1 if r.high < 1 else 0 for r in ratios}
    if words := _ONE_SIDED.get(frozenset(signs)):
        return words
    ours, theirs = {n: own[n] for n in shared}, {n: reference[n] for n in shared}
    sure = crossings(ours, theirs, level)
    told = (
        f"{'from' if change.one_is_faster else 'up to'} {_around(change)}"
        for change in crossings(ours, theirs)  # whose intervals are those of the answer
        if any(one.low <= change.low and change.high <= one.high for one in sure)
    )
    return ", ".join(told) or _between(dict(zip(shared, ratios, strict=True)))


def _between(ratios: Mapping[int, Ratio]) -> str:
    """Between which lengths it overtakes, where no more can be told."""
    faster = [n for n, r in ratios.items() if r.low > 1]
    slower = [n for n, r in ratios.items() if r.high < 1]
    if max(slower) < min(faster):
        return f"from between {tokens(max(slower))} and {tokens(min(faster))}"
    if max(faster) < min(slower):
        return f"up to between {tokens(max(faster))} and {tokens(min(slower))}"
    return "at some lengths"


def _around(change: Crossing) -> str:
    return f"{round_count(change.tokens)} ({round_outward(change.low, change.high)})"


def _at_the_longest(own: Mapping[int, Case], reference: Mapping[int, Case]) -> str:
    """The speed-up at the longest length that both have."""
    shared = set(own) & set(reference)
    if not shared:
        return ""
    lead = ratio(reference[max(shared)], own[max(shared)])
    return f"{times(lead.value)} at {tokens(max(shared))}"


def _remarks(name: str, own: Mapping[int, Case], grown: Mapping[tuple[str, str], Mapping[str, Any]]) -> Iterator[Cell]:
    """Growth beyond what the variant declares or its mask asks, and lengths that hardly counted."""
    declared = next(iter(own.values())).get("declared_exponent", math.nan)
    for quantity, word in _WORDS.items():
        growth = grown.get((name, quantity))
        if growth is None:
            continue
        if growth["low"] > declared + SLACK:
            yield Cell(f"{plain(name)} is registered as n^{declared:g}, but its {word} grows as {_told(growth)}", "bad")
        elif (
            quantity == "latency_ms"
            and _exact(own)
            and not growth["reason"]
            and growth["low"] > (asked := _asked(own)).high + SLACK
        ):
            work = f"the pairs that its mask shows as n^{asked.exponent:.2f}"
            yield Cell(f"{plain(name)}: its time grows as {_told(growth)}, {work}")
        if growth["strays"]:
            yield Cell(
                f"{plain(name)}: {growth['strays']} of {growth['lengths']} lengths are far off the law of its {word}, "
                "and hardly count"
            )


def _refusals(grown: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[Cell]:
    """What has no fit, a line a reason: "no fit of the time of flex, naive: 3 lengths, and ..."."""
    named: dict[tuple[str, str], list[str]] = {}
    for (name, quantity), growth in sorted(grown.items()):
        if growth["reason"] and growth["lengths"]:
            named.setdefault((_WORDS[quantity], growth["reason"]), []).append(plain(name))
    return [Cell(f"no fit of the {word} of {', '.join(names)}: {reason}") for (word, reason), names in named.items()]


def _told(growth: Mapping[str, Any]) -> str:
    if growth["reason"]:
        return f"n^{growth['low']:.2f} at least"
    return f"n^{growth['exponent']:.2f} ({growth['low']:.2f}{TO}{growth['high']:.2f})"


def _asked(own: Mapping[int, Case]) -> Growth:
    """How the visible pairs grow over the same lengths, by the same fit."""
    mask = next(iter(own.values()))["mask"]
    return _fit_of_pairs(mask, tuple((n, case["seq_q"], case["seq_kv"]) for n, case in own.items()))


@cache
def _fit_of_pairs(mask: str, sizes: tuple[tuple[int, int, int], ...]) -> Growth:
    """Of (length, queries, keys): the same for every variant."""
    return fit([n for n, _, _ in sizes], [Mask.parse(mask).pairs(n_q, n_kv) for _, n_q, n_kv in sizes])
