"""The tables of a run, as data: one a problem, the fastest right variant first in each length, what failed below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.cases import BADNESS
from bench.analysis.groups import PROBLEM, describe, groups, machine, records, varying
from bench.analysis.text import TO, length, percent, plain, significant, size, times
from bench.results.columns import CROWDED, FAILURES, STRAY

# Columns of words; all others hold numbers.
WORDS = ("variant", "kernel", "dtype", "bound by", "than", "at", "wanted", "outcome", "verdict")
_BOLD_IF_BEST = ("variant", "latency ms")
_APPROXIMATE = "≈ approximates softmax attention, so it is ranked apart"
_DISTURBED = (
    f"visits: how many were quiet, where not all were; in the others the canary took over {percent(STRAY - 1)} longer "
    f"than its best, or other processes took over {percent(CROWDED)} of the threads' time. Times are those of quiet "
    "visits, where there are any"
)
_ABOVE = "above 100 % of the machine's ceiling: the ceiling or the operations are counted wrongly, so trust neither"


class Cell(NamedTuple):
    """A text, and how it stands out: best, good, bad, or not at all."""

    text: str
    style: str = ""


class Table(NamedTuple):
    """What a table says. A section is the rows that belong together; the notes stand below."""

    title: str
    header: tuple[str, ...]
    sections: list[list[tuple[Cell, ...]]]
    notes: list[Cell]


def tables(cases: pd.DataFrame, baseline: str) -> list[Table]:
    """A table for each mask and combination of the other axes, of cases that know their speed-up over `baseline`."""
    axes = (*PROBLEM, *varying(cases))
    return [_table(describe(problem, axes), part, baseline) for problem, part in groups(cases)]


def heading(cases: pd.DataFrame, baseline: str) -> list[Cell]:
    """What stands above all tables: where the cases were measured, and whether there is a baseline at all."""
    ok = cases[cases["status"] == "ok"]
    lines = [Cell(machine(cases))]
    if len(ok):
        quiet, visits = ok["quiet"].sum(), ok["visits"].sum()
        lines.append(Cell(f"{quiet} of {visits} visits were quiet", "bad" if 2 * quiet < visits else ""))
    exact = set(ok["variant"][ok["exact"]])
    if baseline not in exact:
        known = {name: bool(own["exact"].all()) for name, own in cases.groupby("variant")}
        why = {None: "is not in these results", True: "has no latency", False: "only approximates"}[known.get(baseline)]
        others = (
            f"--baseline takes {', '.join(sorted(map(plain, exact)))}" if exact else "no exact variant here has one"
        )
        lines.append(Cell(f"no speed-ups: {plain(baseline)} {why}; {others}"))
    return [line for line in lines if line.text]


def outcomes(cases: pd.DataFrame) -> list[Cell]:
    """What has no latency and why, the worst first: "naive: skipped at 16384 (one call would take about 9 s)"."""
    lengths = cases[["seq_q", "seq_kv"]].drop_duplicates().shape[0]
    failed = records(cases[cases["status"] != "ok"], "variant", "status", "seq_q", "seq_kv")
    variants_of: dict[tuple[str, str], list[str]] = {}
    for (variant, status), own in groupby(failed, key=itemgetter("variant", "status")):
        variants_of.setdefault((status, _where_and_why(own, lengths)), []).append(plain(variant))
    return [
        Cell(f"{', '.join(variants)}: {status}{why}", "bad" if status in FAILURES else "")
        for (status, why), variants in sorted(variants_of.items(), key=lambda item: BADNESS.index(item[0][0]))
    ]


def _where_and_why(cases: Iterable[dict[str, Any]], lengths: int) -> str:
    """E.g. " at 4096, 8192 (its reason)", reason by reason; no lengths for one reason at all of them."""
    lengths_of: dict[str, list[str]] = {}
    for case in cases:
        lengths_of.setdefault(plain(case["reason"]), []).append(length(case["seq_q"], case["seq_kv"]))
    everywhere = [len(at) == lengths for at in lengths_of.values()] == [True]
    return ",".join(
        ("" if everywhere else f" at {', '.join(at)}") + (f" ({reason})" if reason else "")
        for reason, at in lengths_of.items()
    )


def _table(title: str, cases: pd.DataFrame, baseline: str) -> Table:
    ok = cases[cases["status"] == "ok"]
    sections = [_section(at_length, baseline) for at_length in _by_length(ok)]
    blank = {
        name
        for name in ("95 % interval", _versus(baseline), "spread", "of ceiling", "kernel")
        if not any(row[name].text for rows in sections for row in rows)
    }
    header = tuple(name for name in _header(baseline) if name not in blank)
    notes = [Cell(note, style) for note, style, told in _remarks(ok) if told]
    lines = [[tuple(row[name] for name in header) for row in rows] for rows in sections]
    return Table(title, header, lines, notes + outcomes(cases))


def _remarks(ok: pd.DataFrame) -> Iterator[tuple[str, str, bool]]:
    """(remark, style, whether the cases call for it)."""
    yield _APPROXIMATE, "", not ok["exact"].all()
    yield _DISTURBED, "", bool((ok["quiet"] < ok["visits"]).any())
    yield _ABOVE, "bad", bool((ok["ceiling_share"] > 1).any())


def _versus(baseline: str) -> str:
    return f"vs {plain(baseline)}"


def _header(baseline: str) -> tuple[str, ...]:
    times_ = ("latency ms", "95 % interval", _versus(baseline), "spread", "of ceiling")
    return "length", "variant", *times_, "peak memory", "error", "kernel", "visits"


def _by_length(ok: pd.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """The cases of each length, exact ones first, then by latency."""
    ranked = records(ok.assign(apart=~ok["exact"]), "seq_q", "seq_kv", "apart", "latency_ms", "variant")
    for _, cases in groupby(ranked, key=itemgetter("seq_q", "seq_kv")):
        yield list(cases)


def _section(cases: list[dict[str, Any]], baseline: str) -> list[dict[str, Cell]]:
    """The rows of one length, as column -> cell."""
    return [_row(case, baseline, best=at == 0 and case["exact"]) for at, case in enumerate(cases)]


def _row(case: dict[str, Any], baseline: str, best: bool) -> dict[str, Cell]:
    low, high = significant(case["low_ms"]), significant(case["high_ms"])
    texts = (
        length(case["seq_q"], case["seq_kv"]),
        ("" if case["exact"] else "≈ ") + plain(case["variant"]),
        significant(case["latency_ms"]),
        f"{low}{TO}{high}" if low else "",
        times(case["speedup"]),
        percent(case["spread"]),
        "> 100 %" if case["ceiling_share"] > 1 else percent(case["ceiling_share"]),
        size(case["peak_bytes"]),
        "" if math.isnan(case["error"]) else f"{case['error']:.1e}",
        plain(case["kernel"]),
        str(case["visits"]) if case["quiet"] == case["visits"] else f"{case['quiet']} of {case['visits']}",
    )
    looks = dict.fromkeys(_BOLD_IF_BEST, "best") if best else {}
    if case["ceiling_share"] > 1:
        looks["of ceiling"] = "bad"
    if not case["quiet"]:
        looks["visits"] = "bad"
    return {name: Cell(text, looks.get(name, "")) for name, text in zip(_header(baseline), texts, strict=True)}
