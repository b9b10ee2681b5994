"""A value of a column as the text of a CSV cell, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column's type (str, int, float, bool or floats), whether it may be empty, and its meaning."""

    type: str
    optional: bool
    meaning: str


def type_of(annotation: str) -> tuple[str, bool]:
    """The type of a column, and whether it may be empty, from the annotation of its field."""
    if annotation.startswith("tuple"):
        return "floats", True
    return annotation.removesuffix(" | None"), annotation.endswith(" | None")


def to_text(value: Any) -> str:
    """The text of a cell: nothing for None, samples set apart by spaces."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value)


def from_text(name: str, column: Column, text: str | None) -> Any:
    """The value that the text of a cell stands for, None for the absence of the column. ValueError names the column
    where it is malformed, or missing and may not be empty."""
    if text is None:
        if not column.optional:
            raise ValueError(f"column {name!r} is missing")
        text = ""
    if text == "" and column.type not in ("str", "floats"):
        if column.optional:
            return None
        raise ValueError(f"column {name!r} is empty")
    try:
        return _READERS[column.type](text)
    except (ValueError, KeyError):
        raise ValueError(f"column {name!r}: {text!r} is not of type {column.type}") from None


_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": {"True": True, "False": False}.__getitem__,
    "floats": lambda text: tuple(map(float, text.split())),
}
