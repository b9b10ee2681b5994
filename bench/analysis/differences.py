"""A comparison as lines and tables: what differs between the environments, what became of each case."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from bench.analysis.cases import BADNESS
from bench.analysis.comparison import Comparison
from bench.analysis.groups import PROBLEM, by, describe, groups, records
from bench.analysis.tables import Cell, Table
from bench.analysis.text import TO, length, percent, plain, significant, times
from bench.results.columns import FAILURES

HEADER = ("length", "variant", "base ms", "new ms", "time new/base", "by canary", "memory new/base")
_UNITS_DIFFER = 300  # a ratio of times beyond this is more likely a mistake of units than a change
CONVENTION = (
    "ratios are new / base: above 1x the new file is slower, or needs more memory; by canary: the ratio of times after "
    "each was divided by its own canary's, which takes out how fast one machine was just then"
)


def convention(reference: str | None) -> Cell:
    """How the ratios are to be read."""
    if reference is None:
        return Cell(CONVENTION)
    name = plain(reference)
    return Cell(
        f"times are compared as multiples of {name}'s in the same file, on the same problem: ratios are (new / its "
        f"{name}) / (base / its {name}), above 1x the new file has lost against {name}, whose own ratio is 1x and left "
        "out; by canary: after every time was divided by its own canary's; memory is new / base"
    )


def time_ratio_of(reference: str | None) -> str:
    """What the ratio of times is called."""
    return "time new/base" if reference is None else f"time/{plain(reference)} new/base"


_WORST_FIRST = [*(status for status in BADNESS if status != "ok"), "ok"]


def environments(differ: dict[str, tuple[str, ...]], reference: str | None = None) -> list[Cell]:
    """What differs, a line each, and what that forbids."""
    lines = [Cell(f"{name}: {' → '.join(value or 'none' for value in of_each)}") for name, of_each in differ.items()]
    if "device_name" in differ:
        lines.append(Cell("different machines: absolute times are not comparable", "bad"))
        if reference is None:
            lines.append(
                Cell("--relative-to VARIANT makes them comparable: times as multiples of a variant's in the same file")
            )
    if "method" in differ:
        lines.append(Cell("different ways of measuring: the numbers are not comparable", "bad"))
    return lines or [Cell("both were measured in the same environment")]


def summary(cases: pd.DataFrame, reference: str | None = None) -> list[Cell]:
    """How many cases were compared, and where their times went."""
    both = ((cases["status_base"] == "ok") & (cases["status_new"] == "ok")).sum()
    lines = [Cell(f"{len(cases)} cases in both files, {both} of them ok in both")]
    ok = records(cases[cases["time_ratio"].notna()], "time_ratio", "variant")
    if ok:
        mean = math.exp(math.fsum(math.log(case["time_ratio"]) for case in ok) / len(ok))
        span = f"{_extreme(ok[0])} to {_extreme(ok[-1])}, geometric mean {times(mean)}"
        lines.append(Cell(f"{time_ratio_of(reference)}: {span}"))
    far = sum(not 1 / _UNITS_DIFFER < case["time_ratio"] < _UNITS_DIFFER for case in ok)
    if far:
        lines.append(
            Cell(f"{far} of them differ over {_UNITS_DIFFER}x: is one file in seconds, not in milliseconds?", "bad")
        )
    return lines


def repeatability(cases: pd.DataFrame) -> list[Cell]:
    """How well the two files agree where neither was disturbed, and whether their intervals hold."""
    quiet = cases[(cases["quiet_base"] > 0) & (cases["quiet_new"] > 0) & cases["steady_ratio"].notna()]
    lines = []
    if len(quiet) >= 10:
        nine_in_ten = np.quantile(np.abs(np.log(quiet["steady_ratio"])), 0.9, method="inverted_cdf")
        lines.append(
            Cell(
                f"by canary: nine in ten of the {len(quiet)} cases that were quiet in both files agree within "
                f"{percent(math.expm1(nine_in_ten))}"
            )
        )
    told = cases[cases["low_ms_base"].notna() & cases["low_ms_new"].notna()]
    if len(told):
        overlap = (told["low_ms_base"] <= told["high_ms_new"]) & (told["low_ms_new"] <= told["high_ms_base"])
        held = sum(
            told[f"latency_ms_{one}"].between(told[f"low_ms_{other}"], told[f"high_ms_{other}"]).sum()
            for one, other in (("base", "new"), ("new", "base"))
        )
        lines.append(
            Cell(
                f"95 % intervals overlap in {overlap.sum()} of {len(told)} cases, and hold the other file's time "
                f"{held} times of {2 * len(told)}"
            )
        )
    return lines


def _extreme(case: dict[str, Any]) -> str:
    where = f"{plain(case['variant'])} at {length(case['seq_q'], case['seq_kv'])}, {plain(case['mask'])}"
    return f"{times(case['time_ratio'])} ({where})"


def status_changes(comparison: Comparison) -> list[Cell]:
    """A line a change of status, what got worse first: "naive: ok → wrong at 4096 (its reason), causal"."""
    lengths_of: dict[tuple[str, str, str, str, str], list[str]] = {}
    cases = comparison.cases
    for problem, part in groups(cases[cases["status_base"] != cases["status_new"]]):
        title = describe(problem, comparison.axes)
        for case in records(part, "variant", "seq_q", "seq_kv"):
            reason = case["reason_new"] or case["reason_base"]
            change = (case["status_base"], case["status_new"], plain(case["variant"]), plain(reason), title)
            lengths_of.setdefault(change, []).append(length(case["seq_q"], case["seq_kv"]))
    return [
        Cell(
            f"{variant}: {base} → {new} at {', '.join(at)}{f' ({reason})' if reason else ''}, {title}", _look(base, new)
        )
        for (base, new, variant, reason, title), at in sorted(lengths_of.items(), key=lambda item: _urgency(*item[0]))
    ]


def got_worse(base: str, new: str) -> bool:
    """Whether a change of status is one for the worse: from ok to anything else, or down to a failure.

    From skipped to out of memory is none: nobody had tried.
    """
    return _WORST_FIRST.index(new) < _WORST_FIRST.index(base) and _look(base, new) == "bad"


def _urgency(base: str, new: str, *_: str) -> tuple[bool, int, int]:
    """What got worse before what got better; among these, the worst new status first, and ok before what never ran."""
    before, after = _WORST_FIRST.index(base), _WORST_FIRST.index(new)
    return (False, after, -before) if after < before else (True, before, -after)


def _look(base: str, new: str) -> str:
    if new in FAILURES or base == "ok":
        return "bad"
    return "good" if new == "ok" else ""


def ratios(cases: pd.DataFrame, reference: str | None = None) -> list[Table]:
    """A table a problem, of the cases that are ok in both files; with a reference, of multiples of its time, and with
    their 95 % intervals."""
    header = HEADER if reference is None else _relative_header(reference)
    tables = []
    for problem, part in groups(cases[cases["time_ratio"].notna()]):
        at_length = groupby(records(part), key=lambda case: (case["seq_q"], case["seq_kv"]))
        sections = [[_row(case, header) for case in same] for _, same in at_length]
        tables.append(Table(describe(problem, PROBLEM), header, sections, []))
    return tables


def _relative_header(reference: str) -> tuple[str, ...]:
    multiples = (f"base /{plain(reference)}", f"new /{plain(reference)}", time_ratio_of(reference))
    return "length", "variant", *multiples, "95 % interval", "by canary", "memory new/base"


def _row(case: dict[str, Any], header: tuple[str, ...]) -> tuple[Cell, ...]:
    shown = significant if header is HEADER else times
    interval = () if header is HEADER else (between(case["time_low"], case["time_high"]),)
    texts = (
        length(case["seq_q"], case["seq_kv"]),
        plain(case["variant"]),
        shown(case["multiple_base"]),
        shown(case["multiple_new"]),
        times(case["time_ratio"]),
        *interval,
        times(case["steady_ratio"]),
        times(case["memory_ratio"]),
    )
    return tuple(map(Cell, texts))


def between(low: float, high: float) -> str:
    """An interval; empty for NaN."""
    return "" if math.isnan(low) else f"{significant(low)}{TO}{significant(high)}"


def only_in(name: str, cases: pd.DataFrame, axes: list[str]) -> list[Cell]:
    """A line for the cases that only one of the files has, problem by problem, named by these axes."""
    return [Cell(f"only in {name}: {what}") for what in listed(cases, axes)]


def unreferenced(comparison: Comparison) -> list[Cell]:
    """A line for the cases that cannot be compared because a file lacks the reference there."""
    return [
        Cell(f"not compared, for want of an ok {plain(str(comparison.reference))} on the same problem: {what}", "bad")
        for what in listed(comparison.unreferenced, comparison.axes)
    ]


def listed(cases: pd.DataFrame, axes: list[str]) -> list[str]:
    """The cases in few words, problem by problem: "naive, sdpa at 2048 (full; causal)"."""
    problems: dict[str, list[str]] = {}
    for problem, part in groups(cases):
        problems.setdefault(_variants_and_lengths(part), []).append(describe(problem, axes))
    return [f"{what} ({'; '.join(where)})" for what, where in problems.items()]


def _variants_and_lengths(cases: pd.DataFrame) -> str:
    variants_at: dict[str, list[str]] = {}
    for variant, part in by(cases, "variant"):
        at = ", ".join(length(case["seq_q"], case["seq_kv"]) for case in records(part))
        variants_at.setdefault(at, []).append(plain(variant))
    return "; ".join(f"{', '.join(variants)} at {at}" for at, variants in variants_at.items())
