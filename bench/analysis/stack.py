"""What all attention layers of a model come to, from the rows of its kinds of layers: time, memory, what is missing.

Layers of one kind are one measurement, taken as often as there are layers; kinds are added up. So are the ends of their
95 % intervals, which keeps their level however normal errors of the kinds hang together: measured in one run on one
machine, they share its state, and the root of summed squares, which is narrower, would take them for independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analysis.cases import ENVIRONMENT
from bench.analysis.groups import AXES, describe, records, varying
from bench.analysis.tables import Cell, Table, outcomes
from bench.analysis.text import TO, plain, significant, size
from bench.models import ALONE, Attention, Model
from bench.results.columns import problem_of
from variants.problem import Problem

MIX = "fastest mix"

_SHAPE = ("mask", "heads", "kv_heads", "head_dim")  # of a kind of layer; all other axes are the same in a table
_SHARED = tuple(axis for axis in AXES if axis not in _SHAPE)
_TITLE = tuple(axis for axis in _SHARED if axis not in ENVIRONMENT)
_HEADER = ("length", "variant", "all layers ms", "95 % interval", "most tokens/s", "peak memory", "saved memory")
_MAY_BE_BLANK = ("95 % interval", "most tokens/s", "saved memory")

_APPROXIMATE = f"≈ approximates softmax attention, so it is ranked apart, and in no {MIX}"
_MIXED = f"the {MIX} takes each kind's fastest by these same times, which flatters it a little"
_INTERVAL = "95 % interval: the ends of the kinds' own intervals, added up"
_PEAK = "peak memory: above its inputs, of the layer that needs most, for they run one after another"
_TOKENS = "most tokens/s: as if nothing but attention took time"
_SAVED = "saved memory: what the forward passes of all layers keep for the backward, their outputs aside"


class _Whole(NamedTuple):
    """All layers of a model at one length, each kind by a variant. A number that is not known is NaN.

    `disturbed`: whether a kind's time is of disturbed visits alone.
    """

    by: tuple[str, ...]
    exact: bool
    disturbed: bool
    ms: float
    low_ms: float
    high_ms: float
    peak_bytes: float
    saved_bytes: float

    @property
    def mixed(self) -> bool:
        """Whether its kinds are not all by the same variant."""
        return len(set(self.by)) > 1


class _Asked(NamedTuple):
    """A phase of a model in one environment: its kinds of layers, and the cases of each problem by variant."""

    model: Model
    phase: str
    shared: dict[str, Any]
    kinds: tuple[Attention, ...]
    cases: Mapping[Problem, Mapping[str, dict[str, Any]]]

    def problem(self, kind: Attention, length: int) -> Problem:
        """What a layer of this kind was asked at a length of the text."""
        return kind.problem(self.phase, length, self.shared["batch"], self.shared["dtype"], self.shared["device"])

    def at(self, length: int) -> list[Mapping[str, dict[str, Any]]]:
        """The cases at a length by variant, kind by kind."""
        return [self.cases.get(self.problem(kind, length), {}) for kind in self.kinds]


def tables(cases: pd.DataFrame, models: Iterable[Model]) -> list[Table]:
    """A table for each model, phase, direction, dtype, batch and environment that these cases hold any layer of.

    A variant has a time where it is ok in every kind of layer. Below stand what has none, and why, what the models have
    beside what is timed, and the bytes of their keys and values, by arithmetic.
    """
    differs = varying(cases, ENVIRONMENT)
    return [table for model in models for table in _of_model(cases, model, differs)]


def _of_model(cases: pd.DataFrame, model: Model, differs: Sequence[str]) -> list[Table]:
    made = []
    for phase in model.phases:
        for key, part in cases.groupby(list(_SHARED), dropna=False):
            shared = dict(zip(_SHARED, key, strict=True))
            asked = _Asked(model, phase, shared, model.kinds(phase), _by_problem(part))
            if lengths := _lengths(asked):
                made.append(_table(asked, lengths, describe(shared, (*_TITLE, *differs))))
    return made or [Table(f"{model.title}: none of its layers is in these results", (), [], [])]


def _by_problem(cases: pd.DataFrame) -> dict[Problem, dict[str, dict[str, Any]]]:
    """Problem -> variant -> case."""
    found: dict[Problem, dict[str, dict[str, Any]]] = {}
    for case in records(cases):
        found.setdefault(problem_of(case), {})[case["variant"]] = case
    return found


def _lengths(asked: _Asked) -> list[int]:
    """The lengths of the text at which a layer that depends on it was asked; the context where none depends on it."""
    growing = [kind for kind in asked.kinds if kind.grows(asked.phase)]
    if not growing:
        return [asked.model.context] if any(asked.at(asked.model.context)) else []
    candidates = {length for problem in asked.cases for length in (problem.seq_q, problem.seq_kv)}
    if asked.phase == "prefill":
        candidates.discard(1)  # one token more is decoding
    return [n for n in sorted(candidates) if any(asked.problem(kind, n) in asked.cases for kind in growing)]


def _table(asked: _Asked, lengths: Sequence[int], conditions: str) -> Table:
    wholes = {length: _wholes(asked, length) for length in lengths}
    rows = [[_row(asked, length, whole, at == 0) for at, whole in enumerate(wholes[length])] for length in lengths]
    blank = {name for name in _MAY_BE_BLANK if not any(row[name].text for section in rows for row in section)}
    header = tuple(name for name in _HEADER if name not in blank)
    sections = [[tuple(row[name] for name in header) for row in section] for section in rows if section]
    layers = sum(kind.layers for kind in asked.kinds)
    title = f"{asked.model.title}, {asked.phase}, all {layers} attention layers · {conditions}"
    notes = [*_notes(asked, wholes, header), *_missing(asked, lengths)]
    return Table(title, header if sections else (), sections, notes)


def _wholes(asked: _Asked, length: int) -> list[_Whole]:
    """Every way to run all layers at a length: exact ones first, then by time."""
    ok = [{name: case for name, case in kind.items() if case["status"] == "ok"} for kind in asked.at(length)]
    everywhere = set.intersection(*(set(kind) for kind in ok))
    found = [_whole(asked.kinds, [kind[name] for kind in ok]) for name in everywhere]
    exact = [[case for case in kind.values() if case["exact"]] for kind in ok]
    if all(exact):
        fastest = _whole(asked.kinds, [min(kind, key=lambda case: case["latency_ms"]) for kind in exact])
        found += [fastest] if fastest.mixed else []
    return sorted(found, key=lambda whole: (not whole.exact, whole.ms, whole.by))


def _whole(kinds: Sequence[Attention], cases: Sequence[Mapping[str, Any]]) -> _Whole:
    def total(column: str) -> float:
        return math.fsum(kind.layers * case[column] for kind, case in zip(kinds, cases, strict=True))

    return _Whole(
        by=tuple(case["variant"] for case in cases),
        exact=all(case["exact"] for case in cases),
        disturbed=any(case["quiet"] == 0 for case in cases),
        ms=total("latency_ms"),
        low_ms=total("low_ms"),
        high_ms=total("high_ms"),
        peak_bytes=float(np.max([case["peak_bytes"] for case in cases])),  # NaN if one is not known
        saved_bytes=total("saved_bytes"),
    )


def _row(asked: _Asked, length: int, whole: _Whole, first: bool) -> dict[str, Cell]:
    """Column -> cell."""
    low, high = significant(whole.low_ms), significant(whole.high_ms)
    texts = {
        "length": str(length) if any(kind.grows(asked.phase) for kind in asked.kinds) else "its own",
        "variant": MIX if whole.mixed else ("" if whole.exact else "≈ ") + plain(whole.by[0]),
        "all layers ms": significant(whole.ms),
        "95 % interval": f"{low}{TO}{high}" if low else "",
        "most tokens/s": significant(_tokens_per_s(asked, length, whole.ms)),
        "peak memory": size(whole.peak_bytes),
        "saved memory": size(whole.saved_bytes),
    }
    best = first and whole.exact
    return {
        name: Cell(text, "best" if best and name in ("variant", "all layers ms") else "")
        for name, text in texts.items()
    }


def _tokens_per_s(asked: _Asked, length: int, ms: float) -> float:
    """Of text, if nothing but attention took time; NaN where not all layers see text alone, or none decodes."""
    of_text = all(kind.decodes and kind.grows("prefill") for kind in asked.model.attentions)
    if asked.shared["direction"] != "fwd" or not of_text:
        return math.nan
    tokens: int = asked.shared["batch"] * (length if asked.phase == "prefill" else 1)
    return 1e3 * tokens / ms


def _notes(asked: _Asked, wholes: Mapping[int, Sequence[_Whole]], header: Sequence[str]) -> Iterator[Cell]:
    """How to read the table, what is in a mix, and what the model has beside it."""
    every = [whole for at_length in wholes.values() for whole in at_length]
    disturbed = sum(whole.disturbed for whole in every)
    mixes: dict[str, list[str]] = {}
    for length, at_length in wholes.items():
        for whole in at_length:
            if whole.mixed:
                parts = (f"{kind.name} by {plain(by)}" for kind, by in zip(asked.kinds, whole.by, strict=True))
                mixes.setdefault(", ".join(parts), []).append(str(length))
    told = {
        **{f"{MIX} at {', '.join(lengths)}: {parts}": True for parts, lengths in mixes.items()},
        _MIXED: bool(mixes),
        f"{disturbed} of {len(every)} times rest on visits that were all disturbed": disturbed > 0,
        _APPROXIMATE: not all(whole.exact for whole in every),
        _INTERVAL: "95 % interval" in header and len(asked.kinds) > 1,
        _TOKENS: "most tokens/s" in header,
        _PEAK: bool(every),
        _SAVED: "saved memory" in header,
        _cache(asked, list(wholes)): asked.shared["direction"] == "fwd" and "decode" in asked.model.phases,
        **dict.fromkeys(asked.model.remarks(asked.phase, list(wholes)), True),
        ALONE: True,
    }
    yield from (Cell(note) for note, called_for in told.items() if called_for)


def _cache(asked: _Asked, lengths: Sequence[int]) -> str:
    batch, dtype = asked.shared["batch"], asked.shared["dtype"]
    sizes = (f"{size(asked.model.cache_bytes(n, batch, dtype))} at {n}" for n in lengths)
    windows = ", a window holding what it sees" if any(kind.mask.window for kind in asked.kinds) else ""
    return f"cache of keys and values, all layers{windows}: {', '.join(sizes)}"


def _missing(asked: _Asked, lengths: Sequence[int]) -> Iterator[Cell]:
    """What has no number at these lengths, because it failed or was never measured, and in which kinds of layers."""
    kinds_of: dict[Cell, list[str]] = {}
    for kind in asked.kinds:
        for note in _missing_of(asked, kind, lengths):
            kinds_of.setdefault(note, []).append(kind.name)
    for note, kinds in kinds_of.items():
        yield note if len(kinds) == len(asked.kinds) else note._replace(text=f"{', '.join(kinds)}: {note.text}")


def _missing_of(asked: _Asked, kind: Attention, lengths: Sequence[int]) -> Iterator[Cell]:
    at = {asked.problem(kind, length): length for length in reversed(lengths)}  # its own is there once
    there = [case for problem in at for case in asked.cases.get(problem, {}).values()]
    if there:
        yield from outcomes(pd.DataFrame(there))
    variants = {name for length in lengths for cases in asked.at(length) for name in cases}
    for problem, length in reversed(at.items()):
        if absent := variants - set(asked.cases.get(problem, {})):
            where = f" at {length}" if kind.grows(asked.phase) else ""
            yield Cell(f"{', '.join(sorted(map(plain, absent)))}: not measured{where}")
