"""Rows with chosen contents, made through the declared row so that a change of schema is followed."""

import csv
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analysis.cases import cases
from bench.analysis.frame import from_rows
from bench.analysis.groups import Group
from bench.analysis.lengths import series
from bench.analysis.relative import compared
from bench.results.columns import COLUMNS, FAILURES, Row
from tests.results.rows import ROW

CAUSAL = "causal"


def row(variant: str = "sdpa", n: int = 1024, ms: float | tuple[float, ...] = 1.0, **changes: Any) -> Row:
    """An ok visit to a causal problem of length n with these samples; `changes` are to any column."""
    samples = ms if isinstance(ms, tuple) else (ms,)
    values = {"variant": variant, "mask": CAUSAL, "seq_q": n, "seq_kv": n, "samples_ms": samples, **changes}

    def changed(part: Any) -> Any:
        return replace(part, **{f.name: values.pop(f.name) for f in fields(part) if f.name in values})

    values["conditions"] = changed(ROW.facts.conditions)
    made = {name: changed(getattr(ROW, name)) for name in ("case", "facts", "environment", "ceiling")}
    return replace(ROW, **made, **values)


def failed(status: str, reason: str = "a reason", variant: str = "sdpa", n: int = 1024, **changes: Any) -> Row:
    """A visit that is not ok. A wrong one still knows its peak, as does anything that ran."""
    ran = {} if status in FAILURES else {"peak_bytes": None, "error": None, "error_budget": None}
    return row(variant, n, ms=(), status=status, reason=reason, **{**ran, **changes})


def grouped(*rows: Row) -> pd.DataFrame:
    """The cases of these rows."""
    return cases(from_rows(rows))


def series_of(*rows: Row) -> list[Group]:
    """The cases of these rows, series by series."""
    return series(grouped(*rows))


def compared_cases(*rows: Row, baseline: str = "sdpa") -> pd.DataFrame:
    """The cases of these rows as tables, figures and page have them."""
    return compared(series_of(*rows), baseline)


def write(path: Path, rows: Iterable[Row], extra: dict[str, str] | None = None) -> Path:
    """A results CSV of these rows, with further columns if any."""
    extra = extra or {}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*extra, *COLUMNS])
        writer.writeheader()
        writer.writerows(extra | r.cells() for r in rows)
    return path
