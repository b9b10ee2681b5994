"""Which cases belong in one table or panel (one problem at all its lengths), and what that is called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT
from bench.analysis.text import CROSS, plain
from variants.problem import DIRECTIONS

_WITHIN = ("variant", "seq_q", "seq_kv")
_FIRST = ("mask", "direction", "dtype")  # in titles
PROBLEM = (*_FIRST, *(name for name in CASE if name not in (*_WITHIN, *_FIRST)))
AXES = (*PROBLEM, *ENVIRONMENT)

_LABELS = {
    **dict.fromkeys(("mask", "direction", "dtype", "device", "device_name"), "{}"),
    "heads": "{} heads",
    "kv_heads": "{} kv heads",
    "threads": "{} threads",
    "cache": "{} cache",
}


class Group(NamedTuple):
    """A problem (axis -> value) and its cases: all variants at all lengths."""

    problem: dict[str, Any]
    cases: pd.DataFrame


def groups(cases: pd.DataFrame) -> list[Group]:
    """The cases of each problem, in an order that does not depend on theirs: masks vary fastest, simple ones first."""
    axes = [axis for axis in AXES if axis in cases]
    parts = [
        Group(dict(zip(axes, key, strict=True)), part)
        for key, part in cases.groupby(axes, dropna=False)  # a list of axes: the key is a tuple
    ]
    return sorted(parts, key=lambda group: _order(group.problem))


def by(cases: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """(value, the cases that have it) for each value of a column of words, in order."""
    for value, part in cases.groupby(column):
        yield str(value), part


def records(cases: pd.DataFrame, *order: str) -> list[dict[str, Any]]:
    """The cases as column -> value, sorted by these columns or else by length and variant."""
    ordered = cases.sort_values(list(order or ("seq_q", "seq_kv", "variant")))
    columns = {str(name): values.to_list() for name, values in ordered.items()}  # a third of to_dict("records")'s time
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def varying(cases: pd.DataFrame, among: Iterable[str] = AXES) -> list[str]:
    """The axes that have more than one value here."""
    return [axis for axis in among if axis in cases and cases[axis].nunique(dropna=False) > 1]


def describe(problem: Mapping[str, Any], axes: Collection[str]) -> str:
    """The values of these axes, as in "causal · fwd · float32 · batch 1 · 32 heads (8 kv) x 128 · cpu"."""
    named = {axis: problem[axis] for axis in AXES if axis in axes and axis in problem}
    labels = {axis: _LABELS.get(axis, f"{axis} {{}}").format(value or "none") for axis, value in named.items()}
    if "heads" in named:
        if "kv_heads" in named:
            grouped = named["kv_heads"] != named["heads"]
            labels["heads"] += f" ({named['kv_heads']} kv)" if grouped else ""
            del labels["kv_heads"]
        if "head_dim" in named:
            labels["heads"] += f" {CROSS} {named['head_dim']}"
            del labels["head_dim"]
    return " · ".join(re.sub(r"^1 (kv head|head|thread)s", r"1 \1", plain(label)) for label in labels.values())


def machine(cases: pd.DataFrame) -> str:
    """Where the cases were measured, as far as it is the same for all: device, threads, torch, and so on."""
    shown = ("device_name", "threads", "torch", "cuda", "driver", "commit")
    same = {name: cases[name].iloc[0] for name in shown if name not in varying(cases, ENVIRONMENT)}
    return describe(same, [name for name, value in same.items() if value])


def _order(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    mask = problem["mask"]
    terms = 0 if mask == "full" else mask.count("+") + 1
    rest = (
        DIRECTIONS.index(value) if axis == "direction" else value for axis, value in problem.items() if axis != "mask"
    )
    return *rest, terms, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", mask)]
