"""The row of a results CSV: one a visit, each column declared once with its type, unit and meaning.

The declaration writes the header, reads the file back and prints the documentation
(`python -m bench.results.columns`). Units are in the names. The key is run, case and visit, so that
concatenated files stay meaningful.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from variants.masks import Mask
from variants.problem import Problem

METHOD = "1"  # raise it when what is measured, or how, changes: numbers of two methods are not comparable

STATUSES = ("ok", "unsupported", "skipped", "oom", "timeout", "wrong", "error", "crashed")
FAILURES = ("wrong", "error", "crashed")  # a sweep that has one exits with 1


def column(meaning: str, **default: Any) -> Any:
    """A dataclass field that is a column of the CSV."""
    return field(metadata={"meaning": meaning}, **default)


@dataclass(frozen=True)
class Case:
    """What is measured: one variant on one problem in one direction."""

    variant: str = column("name in the registry")
    direction: str = column("fwd, bwd or fwdbwd")
    mask: str = column("which keys a query sees, in the mask's text form")
    batch: int = column("batch size")
    heads: int = column("query heads")
    kv_heads: int = column("key and value heads; fewer than heads is grouped-query attention")
    seq_q: int = column("number of queries")
    seq_kv: int = column("number of keys")
    head_dim: int = column("size of a head, of q, k and v alike")
    dtype: str = column("float32, bfloat16 or float16")
    device: str = column("torch device type")

    @classmethod
    def of(cls, variant: str, direction: str, problem: Problem) -> Case:
        """The case of a variant on a problem."""
        sizes = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return cls(variant=variant, direction=direction, **{**sizes, "mask": str(problem.mask)})

    def problem(self) -> Problem:
        """The problem that the case asks about."""
        sizes = {f.name: getattr(self, f.name) for f in fields(Problem)}
        return Problem(**{**sizes, "mask": Mask.parse(self.mask)})


@dataclass(frozen=True)
class Facts:
    """What one visit found. A status other than ok has a reason and no samples."""

    status: str = column("ok, or why there is no number: " + ", ".join(STATUSES[1:]))
    reason: str = column("why the status is not ok", default="")
    samples_ms: tuple[float, ...] = column("time of one call, sample by sample, in order", default=())
    calls_per_sample: int | None = column("calls that each sample is the mean of", default=None)
    plan_ms: float | None = column("time of the variant's plan, before the clock starts", default=None)
    first_call_ms: float | None = column("time of the first call, compilation included", default=None)
    plan_bytes: int | None = column("bytes that the plan keeps", default=None)
    peak_bytes: int | None = column("peak bytes above the inputs, plan included, in a pass of its own", default=None)
    error: float | None = column(
        "worst error against float64 exact attention, relative to what is compared", default=None
    )
    error_budget: float | None = column("what the error may be at most, by the numerics rule", default=None)
    kernel: str = column("fused kernels that ran; math where none did", default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", " ".join(self.reason.split()))
        ok = self.status == "ok"
        if self.status not in STATUSES:
            raise ValueError(f"{self.status!r} is not a status; accepted: {', '.join(STATUSES)}")
        if ok != bool(self.samples_ms):
            raise ValueError(
                f"status {self.status!r} with {len(self.samples_ms)} samples: only ok has any, and it must"
            )
        if ok == bool(self.reason):
            raise ValueError(f"status {self.status!r} with reason {self.reason!r}: all but ok have one")


@dataclass(frozen=True)
class Derived:
    """What follows from the facts, by one function."""

    latency_ms: float | None = column("median of samples_ms")
    tflops: float | None = column("TFLOP/s: the visible pairs' floating-point operations over the latency")


@dataclass(frozen=True)
class Environment:
    """Where a run took place; the same in every row of a run."""

    device_name: str = column("the device, as its maker calls it")
    threads: int = column("CPU threads that torch uses")
    python: str = column("Python version")
    torch: str = column("torch version")
    cuda: str = column("CUDA or ROCm version that torch was built with")
    driver: str = column("device driver version")
    xformers: str = column("xformers version")
    triton: str = column("triton version")
    commit: str = column("commit of this suite, with + where its tree was changed")
    method: str = column("version of the way of measuring")


@dataclass(frozen=True)
class Row:
    """One row: a visit of a run to a case, what came out, and where."""

    case: Case
    facts: Facts
    environment: Environment
    run: str = column("which run")
    visit: int = column("which visit of this run to the case, from 1")
    started: str = column("UTC time at which the visit began")
    exact: bool = column("False for a variant that approximates softmax attention")

    @property
    def derived(self) -> Derived:
        """The latency and the rate that the facts amount to; empty unless the status is ok."""
        return derive(self.case, self.facts)

    @property
    def key(self) -> tuple[str, int, Case]:
        """What no two rows share."""
        return self.run, self.visit, self.case

    def flat(self) -> dict[str, Any]:
        """Column name -> value, in the order of the header."""
        parts = (self.case, self.facts, self.derived, self.environment)
        columns = {f.name: getattr(part, f.name) for part in parts for f in fields(part)}
        return {name: getattr(self, name) for name in _HEAD} | columns

    def cells(self) -> dict[str, str]:
        """Column name -> text in the CSV."""
        return {name: _to_text(value) for name, value in self.flat().items()}

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> Row:
        """The row that the texts of a CSV line stand for. ValueError names the column that is missing or malformed."""
        values = {name: _from_text(name, cells.get(name)) for name in COLUMNS}

        def part(kind: type) -> Any:
            return kind(**{f.name: values[f.name] for f in fields(kind)})

        return cls(
            **{name: values[name] for name in _HEAD}, case=part(Case), facts=part(Facts), environment=part(Environment)
        )


def derive(case: Case, facts: Facts) -> Derived:
    """Median latency, and TFLOP/s from the mask's visible pairs. The one place where either is computed."""
    if facts.status != "ok":
        return Derived(None, None)
    latency_ms = statistics.median(facts.samples_ms)
    return Derived(latency_ms, case.problem().flops(case.direction) / latency_ms / 1e9)


@dataclass(frozen=True)
class Column:
    """A column's type (str, int, float, bool or floats), whether it may be empty, and its meaning."""

    type: str
    optional: bool
    meaning: str


def _declared() -> dict[str, Column]:
    groups = (Row, Case, Facts, Derived, Environment)
    return {
        f.name: Column(*_type_of(str(f.type)), f.metadata["meaning"])
        for group in groups
        for f in fields(group)
        if "meaning" in f.metadata
    }


def _type_of(annotation: str) -> tuple[str, bool]:
    if annotation.startswith("tuple"):
        return "floats", True
    return annotation.removesuffix(" | None"), annotation.endswith(" | None")


_HEAD = tuple(f.name for f in fields(Row) if "meaning" in f.metadata)
COLUMNS = _declared()

_READERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": {"True": True, "False": False}.__getitem__,
    "floats": lambda text: tuple(float(part) for part in text.split()),
}


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value)


def _from_text(name: str, text: str | None) -> Any:
    column_ = COLUMNS[name]
    if text is None:
        raise ValueError(f"column {name!r} is missing")
    if text == "" and column_.type not in ("str", "floats"):
        if column_.optional:
            return None
        raise ValueError(f"column {name!r} is empty")
    try:
        return _READERS[column_.type](text)
    except (ValueError, KeyError):
        raise ValueError(f"column {name!r}: {text!r} is not of type {column_.type}") from None


if __name__ == "__main__":
    for name, declared in COLUMNS.items():
        print(f"{name:18} {declared.type:7} {declared.meaning}")
