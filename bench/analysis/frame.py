"""Results CSVs as one DataFrame: a row a visit, each column typed as `bench.results.columns` declares it."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pandas as pd

from bench.errors import UserError
from bench.results.columns import COLUMNS, METHOD, Case, Row
from variants.problem import DIRECTIONS

_LONGEST_CELL = 2**31 - 1  # the csv module's own limit is 128 KiB, which 7,000 samples exceed


def read(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Every visit in these files. A column without a value holds NaN, samples_ms a tuple; unknown columns are left out.

    UserError, in one line that names the file, for what cannot be read, is no results CSV, holds no row or a
    malformed cell, and for a visit (run, case and visit number) that stands there twice.
    """
    return from_rows(_visits(paths))


def from_rows(rows: Iterable[Row]) -> pd.DataFrame:
    """The same of rows, which are taken one by one and not kept."""
    try:
        lines = [tuple(row.flat().values()) for row in rows]
        columns = {name: [line[at] for line in lines] for at, name in enumerate(COLUMNS)}
        return pd.DataFrame({name: pd.Series(values, dtype=_dtype(name)) for name, values in columns.items()})
    except OverflowError:
        raise UserError("a number in these results is too large for 64 bits") from None


def _visits(paths: Iterable[str | Path]) -> Iterator[Row]:
    """The rows of all files, of which each has some, no two the same key, and no name stands for two variants."""
    seen: dict[tuple[object, ...], str] = {}
    exact: dict[str, bool] = {}
    for path in map(Path, paths):
        before = len(seen)
        for where, row in _rows(path):
            if row.key in seen:
                raise UserError(f"{where}: the same run, case and visit as {seen[row.key]}; each may stand once only")
            if exact.setdefault(row.case.variant, row.exact) != row.exact:
                raise UserError(
                    f"{where}: {row.case.variant!r} is exact in some of these rows and approximates in others; "
                    "read what is called the same and is not apart"
                )
            seen[row.key] = where
            yield row
        if len(seen) == before:
            raise UserError(f"{path}: a header, but no rows")


def _dtype(name: str) -> str:
    """The pandas type of a column; one that may be empty holds NaN there, which an integer column cannot."""
    declared = COLUMNS[name]
    if declared.type == "floats":
        return "object"
    if declared.type in ("int", "float"):
        return "int64" if declared.type == "int" and not declared.optional else "float64"
    return declared.type


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """(where it stands, row) of a file."""
    records = _records(path)
    _, header = next(records, (0, []))
    if not header:
        raise UserError(f"{path}: the file is empty; a results CSV, as bench.run writes it, is expected")
    _check_header(path, header, records)
    for line, cells in records:
        where = f"{path}, line {line}"
        if len(cells) != len(header):
            raise UserError(
                f"{where}: {len(cells)} cells under a header of {len(header)}; if a crash tore the line, "
                "bench.run --resume drops it"
            )
        try:
            row = Row.of_cells(dict(zip(header, cells, strict=True)))
            _check(row)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None
        yield where, row


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of each record; a quoted cell may run over several lines."""
    csv.field_size_limit(_LONGEST_CELL)
    line = 1
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; a results CSV, as bench.run writes it, is expected") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}, line {line}: not a CSV file: {error}") from None


def _check_header(path: Path, header: list[str], records: Iterator[tuple[int, list[str]]]) -> None:
    """Every declared column once; others may stand beside them, and those that may be empty may be missing."""
    missing = [name for name, declared in COLUMNS.items() if name not in header and not declared.optional]
    if missing:
        named = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
        _, first = next(records, (0, []))
        method = dict(zip(header, first, strict=False)).get("method", METHOD)
        if method != METHOD:
            raise UserError(f"{path}: written by method {method}, and method {METHOD} reads it not: it lacks {named}")
        raise UserError(f"{path}: no results CSV of this suite, for it lacks the columns {named}")
    twice = [name for name, times in Counter(header).items() if times > 1 and name in COLUMNS]
    if twice:
        raise UserError(f"{path}: the column {twice[0]} stands twice in the header")


def _check(row: Row) -> None:
    """ValueError where the types fit but the values cannot be meant."""
    _check_case(row.case)
    for name, samples in (
        ("samples_ms", row.facts.samples_ms),
        ("canary_samples_ms", row.facts.conditions.canary_samples_ms),
    ):
        for sample in samples:
            if not 0 < sample < math.inf:
                raise ValueError(f"column {name!r}: {sample} is not a time")
    error, peak_bytes = row.facts.error, row.facts.peak_bytes
    if row.facts.status == "ok" and error is not None and not 0 <= error < math.inf:
        raise ValueError(f"column 'error': {error} is not that of a right answer")
    budget = row.facts.error_budget
    if row.facts.status == "ok" and error is not None and budget is not None and error > budget:
        raise ValueError(f"column 'error': {error} is over its budget of {budget}, and so not that of a right answer")
    if peak_bytes is not None and peak_bytes < 0:
        raise ValueError(f"column 'peak_bytes': {peak_bytes} is below zero")


@cache  # a case has many visits
def _check_case(case: Case) -> None:
    if case.direction not in DIRECTIONS:
        raise ValueError(f"column 'direction': {case.direction!r} is not one of {', '.join(DIRECTIONS)}")
    case.problem()
