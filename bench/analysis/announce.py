"""A gate's outcomes as a table, as JUnit XML, and as annotations on GitHub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

import pandas as pd

from bench.analysis.decision import FASTER, NOT_COMPARABLE, SLOWER, VERDICTS, Rules
from bench.analysis.groups import PROBLEM, describe, varying
from bench.analysis.paired import BETTER, OPEN, WORSE, Outcome, change
from bench.analysis.tables import Cell, Table
from bench.analysis.text import TO, length, percent, plain, significant, times

_HEADER = ("variant", "at", "base ms", "new ms", "new/base", "95 % interval", "memory new/base", "pairs", "verdict")
_STYLES = {SLOWER: "bad", FASTER: "good"}
_ORDER = (WORSE, OPEN, BETTER)


def table(outcomes: Sequence[Outcome], rules: Rules) -> Table:
    """What is worse first, with a note for each finding below."""
    names = _names(outcomes)
    ranked = sorted(zip(outcomes, names, strict=True), key=lambda pair: (_rank(pair[0]), pair[1]))
    rows = [_row(outcome, name) for outcome, name in ranked]
    notes = [
        Cell(f"{variant}, {at}: {finding.text}", "bad" if finding.amounts_to == WORSE else "")
        for outcome, (variant, at) in ranked
        for finding in outcome.findings
    ]
    return Table(f"new against base, threshold {percent(rules.threshold)}", _HEADER, [rows] if rows else [], notes)


def summary(outcomes: Sequence[Outcome]) -> Cell:
    """How many contests came to what."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    worse = sum(outcome.amounts_to(WORSE) for outcome in outcomes)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return Cell(f"{len(outcomes)} cases: {told or 'none'}; {worse or 'none'} worse", "bad" if worse else "best")


def junit(outcomes: Sequence[Outcome]) -> str:
    """A test a contest: failed where anything is worse, skipped where something is open or there was no comparison."""
    failed = [outcome.amounts_to(WORSE) for outcome in outcomes]
    skipped = [not worse and _undecided(outcome) for worse, outcome in zip(failed, outcomes, strict=True)]
    counts = {"tests": len(outcomes), "failures": sum(failed), "skipped": sum(skipped)}
    suite = ElementTree.Element("testsuite", {"name": "bench.gate", **{name: str(n) for name, n in counts.items()}})
    for outcome, (variant, at) in zip(outcomes, _names(outcomes), strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname=f"gate.{variant}", name=at)
        told = plain("; ".join(finding.text for finding in outcome.findings), longest=2000)  # XML has no controls
        if outcome.amounts_to(WORSE):
            ElementTree.SubElement(case, "failure", message=told)
        elif _undecided(outcome):
            ElementTree.SubElement(case, "skipped", message=f"{outcome.verdict}: {told}")
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"


def _undecided(outcome: Outcome) -> bool:
    return outcome.amounts_to(OPEN) or outcome.verdict == NOT_COMPARABLE


def github(outcomes: Sequence[Outcome]) -> str:
    """A workflow command a finding: an error where something is worse, a warning where it is open.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    lines = []
    for outcome, (variant, at) in zip(outcomes, _names(outcomes), strict=True):
        for finding in outcome.findings:
            level = {WORSE: "error", OPEN: "warning"}.get(finding.amounts_to)
            if level:
                lines.append(f"::{level} title={_property(f'{variant}, {at}')}::{_data(finding.text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _rank(outcome: Outcome) -> int:
    return next((at for at, what in enumerate(_ORDER) if outcome.amounts_to(what)), len(_ORDER))


def _names(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """(variant, problem) of each, in as few words as tell them apart."""
    if not outcomes:
        return []
    frame = pd.DataFrame([outcome.new for outcome in outcomes])
    axes = ["mask", "direction", *varying(frame, PROBLEM)]
    lengths = varying(frame, ("seq_q", "seq_kv"))
    return [_name(outcome, axes, bool(lengths)) for outcome in outcomes]


def _name(outcome: Outcome, axes: Sequence[str], with_length: bool) -> tuple[str, str]:
    base, new = outcome.base, outcome.new
    variant = plain(new["variant"])
    if base["variant"] != new["variant"]:
        variant = f"{variant} against {plain(base['variant'])}"
    at = describe(new, axes)
    return variant, f"{at} · {length(new['seq_q'], new['seq_kv'])}" if with_length else at


def _row(outcome: Outcome, name: tuple[str, str]) -> tuple[Cell, ...]:
    interval = f"{change(outcome.low)}{TO}{change(outcome.high)}" if outcome.low == outcome.low else ""
    texts = (
        *name,
        significant(outcome.base_ms),
        significant(outcome.new_ms),
        change(outcome.ratio),
        interval,
        times(outcome.memory_ratio),
        str(outcome.pairs or ""),
    )
    style = "bad" if outcome.amounts_to(WORSE) else _STYLES.get(outcome.verdict, "")
    return (*map(Cell, texts), Cell(outcome.verdict, style))
