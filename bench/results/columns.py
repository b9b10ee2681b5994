"""The row of a results CSV: one a visit, each column declared once with its type, unit and meaning.

The declaration writes the header, reads the file back and prints the documentation
(`python -m bench.results.columns`). Units are in the names. The key is run, case and visit, so that
concatenated files stay meaningful. How values become text is in `bench.results.cells`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from bench.results.cells import Column, from_text, to_text, type_of
from variants.masks import Mask
from variants.problem import Problem

METHOD = "2"  # raise it when what is measured, or how, changes: numbers of two methods are not comparable

STATUSES = ("ok", "unsupported", "skipped", "oom", "timeout", "wrong", "error", "crashed")
FAILURES = ("wrong", "error", "crashed")  # a sweep that has one exits with 1
# A visit is disturbed if its canary took longer than STRAY times the least of any visit of its run, which on a quiet
# machine most do not; or if it was more CROWDED, for where that lasts all run long the least is disturbed as well.
# What is not known does not count against it.
STRAY = 1.10
CROWDED = 0.10

_MOST_SHARED = 2**16  # parts of rows that are kept at most, for rows that share them


def disturbed(canary_ms: Any, best_ms: Any, crowding: Any) -> Any:
    """Whether a visit was disturbed; of numbers, and of columns of them. NaN, which is not known, disturbs nothing."""
    return (canary_ms > STRAY * best_ms) | (crowding > CROWDED)


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
    cache: str = column("cold: the device's L2 cache is flushed before each call; hot: it is not", default="hot")

    @classmethod
    def of(cls, variant: str, direction: str, problem: Problem, cache: str = "hot") -> Case:
        """The case of a variant on a problem."""
        sizes = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return cls(variant=variant, direction=direction, cache=cache, **{**sizes, "mask": str(problem.mask)})

    def problem(self) -> Problem:
        """The problem that the case asks about."""
        return problem_of(vars(self))


@dataclass(frozen=True)
class Conditions:
    """How quiet the machine was while a visit sampled; empty where the system does not tell."""

    canary_samples_ms: tuple[float, ...] = column(
        "time of a fixed float32 matrix product before, among and after the samples, in order", default=()
    )
    crowding: float | None = column(
        "CPU time that other processes took while sampling, beyond what our threads left free, over theirs",
        default=None,
    )
    load: float | None = column(
        "the system's load over one minute when sampling ended, this run included", default=None
    )
    steal: float | None = column("share of CPU time that the hypervisor gave to others while sampling", default=None)
    involuntary_switches: int | None = column("times that the process was set aside while sampling", default=None)
    gpu_clock_mhz: float | None = column("NVIDIA: clock of the multiprocessors when sampling ended", default=None)
    gpu_power_w: float | None = column("NVIDIA: power drawn then", default=None)
    gpu_temperature_c: float | None = column("NVIDIA: temperature then", default=None)
    gpu_throttle: str = column("NVIDIA: what held the clock back then", default="")


@dataclass(frozen=True)
class Facts:
    """What one visit found. A status other than ok has a reason and no samples."""

    status: str = column("ok, or why there is no number: " + ", ".join(STATUSES[1:]))
    reason: str = column("why the status is not ok", default="")
    samples_ms: tuple[float, ...] = column("time of one call, sample by sample, in order", default=())
    calls_per_sample: int | None = column("calls that each sample is the mean of", default=None)
    plan_ms: float | None = column("time of the variant's plan, before the clock starts", default=None)
    first_call_ms: float | None = column("time of the first call, compilation included", default=None)
    check_ms: float | None = column("time that the check against the oracle took", default=None)
    plan_bytes: int | None = column("bytes that the plan keeps", default=None)
    result_bytes: int | None = column(
        "bytes of the result: the output, or for bwd and fwdbwd the gradients", default=None
    )
    saved_bytes: int | None = column("bytes that the forward pass keeps for the backward, output aside", default=None)
    peak_bytes: int | None = column("peak bytes above the inputs, plan included, in a pass of its own", default=None)
    reserved_bytes: int | None = column(
        "most that the device's allocator reserved in that pass, above what it held before", default=None
    )
    peak_rss_bytes: int | None = column(
        "resident peak of the whole process in plan and first call, above what it held before", default=None
    )
    memory_source: str = column("what the memory columns were read from, and what could not be", default="")
    error: float | None = column(
        "worst error against float64 exact attention, relative to what is compared", default=None
    )
    error_budget: float | None = column("what the error may be at most, by the numerics rule", default=None)
    kernel: str = column("fused kernels that ran; math where none did", default="")
    conditions: Conditions = field(default_factory=Conditions)

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
    spread: float | None = column("interquartile range of samples_ms over their median")
    canary_ms: float | None = column("median of canary_samples_ms")
    tflops: float | None = column(
        "TFLOP/s: the visible pairs' floating-point operations over the latency; exact variants only"
    )
    ceiling_share: float | None = column("tflops over ceiling_tflops; above 1, one of the two is wrong")
    workspace_bytes: int | None = column("peak_bytes less plan_bytes and result_bytes")


@dataclass(frozen=True)
class Ceiling:
    """What the device reaches at most in a dtype, measured once a run."""

    ceiling_tflops: float | None = column(
        "TFLOP/s of the fastest matrix product in this dtype or float32", default=None
    )
    copy_gb_s: float | None = column("GB/s, read and written, of copying a large tensor", default=None)


@dataclass(frozen=True)
class Environment:
    """Where a run took place; the same in every row of a run."""

    device_name: str = column("the device, as its maker calls it")
    threads: int = column("CPU threads that torch uses")
    matmul_precision: str = column("torch's precision of float32 matrix products: highest, high or medium")
    tf32: bool = column("whether float32 matrix products may run in TF32 on CUDA")
    reduced_precision: str = column("dtypes whose CUDA matrix products may accumulate in less than float32")
    allocator: str = column("C library, huge pages, and the environment's settings of the allocators")
    python: str = column("Python version")
    torch: str = column("torch version")
    cuda: str = column("CUDA or ROCm version that torch was built with")
    driver: str = column("device driver version")
    xformers: str = column("xformers version")
    triton: str = column("triton version")
    commit: str = column("commit of this suite, with + where its tree was changed")
    method: str = column("version of the way of measuring, and of these columns")


@dataclass(frozen=True)
class Row:
    """One row: a visit of a run to a case, what came out, and where."""

    case: Case
    facts: Facts
    environment: Environment
    run: str = column("which run")
    visit: int = column("which visit of this run to the case, from 1")
    started: str = column("UTC time at which the visit began")
    visit_s: float | None = column("time of the whole visit, from starting its process to its end")
    exact: bool = column("False for a variant that approximates softmax attention")
    declared_exponent: float | None = column(
        "power of the length that the variant is registered to grow as, in time and memory", default=None
    )
    ceiling: Ceiling = field(default_factory=Ceiling)

    @property
    def derived(self) -> Derived:
        """What the facts amount to."""
        return derive(self.case, self.facts, self.ceiling, self.exact)

    @property
    def key(self) -> tuple[str, int, Case]:
        """What no two rows share."""
        return self.run, self.visit, self.case

    def flat(self) -> dict[str, Any]:
        """Column name -> value, in the order of the header."""
        parts = (self, self.case, self.facts, self.facts.conditions, self.derived, self.ceiling, self.environment)
        return {name: getattr(part, name) for part in parts for name in _COLUMNS_OF[type(part)]}

    def cells(self) -> dict[str, str]:
        """Column name -> text in the CSV."""
        return {name: to_text(value) for name, value in self.flat().items()}

    @classmethod
    def of_cells(cls, cells: Mapping[str, str]) -> Row:
        """The row that the texts of a CSV line stand for. ValueError names the column that is missing or malformed."""
        own, case = _values(cls, cells), _shared(Case, cells)
        facts, conditions = _values(Facts, cells), _values(Conditions, cells)
        _values(Derived, cells)  # computed again from the facts, but what is malformed is refused
        ceiling, environment = _shared(Ceiling, cells), _shared(Environment, cells)
        facts["conditions"] = Conditions(**conditions)
        return cls(case=case, facts=Facts(**facts), environment=environment, ceiling=ceiling, **own)


def problem_of(case: Mapping[Any, Any]) -> Problem:
    """The problem in the columns of a case, by name."""
    return Problem(**{**{f.name: case[f.name] for f in fields(Problem)}, "mask": Mask.parse(case["mask"])})


def derive(case: Case, facts: Facts, ceiling: Ceiling = Ceiling(), exact: bool = True) -> Derived:
    """Medians, the rate from the mask's visible pairs and its share of the ceiling, and what memory is neither plan
    nor result. The one place where any of them is computed. An approximation has no rate: it need not do that work."""
    canary = facts.conditions.canary_samples_ms
    canary_ms = statistics.median(canary) if canary else None
    if facts.status != "ok":
        return Derived(None, None, canary_ms, None, None, None)
    latency_ms = statistics.median(facts.samples_ms)
    tflops = _flops(case) / latency_ms / 1e9 if exact else None
    share = tflops / ceiling.ceiling_tflops if tflops and ceiling.ceiling_tflops else None
    return Derived(latency_ms, _spread(facts.samples_ms), canary_ms, tflops, share, _workspace(facts))


@lru_cache(_MOST_SHARED)
def _flops(case: Case) -> float:
    return case.problem().flops(case.direction)


def _spread(samples_ms: tuple[float, ...]) -> float | None:
    if len(samples_ms) < 2:
        return None
    lower, median, upper = statistics.quantiles(samples_ms, n=4, method="inclusive")
    return (upper - lower) / median


def _workspace(facts: Facts) -> int | None:
    if facts.peak_bytes is None or facts.plan_bytes is None or facts.result_bytes is None:
        return None
    return facts.peak_bytes - facts.plan_bytes - facts.result_bytes


def _values(kind: type, cells: Mapping[str, str]) -> dict[str, Any]:
    """The values of the columns that a part of the row declares. ValueError as `from_text` raises it."""
    return {name: from_text(name, declared, cells.get(name)) for name, declared in _COLUMNS_OF[kind].items()}


def _shared(kind: type, cells: Mapping[str, str]) -> Any:
    """A part that many rows have in common, and that is therefore made once for all that have the same texts."""
    return _made(kind, tuple(map(cells.get, _COLUMNS_OF[kind])))


@lru_cache(_MOST_SHARED)
def _made(kind: type, texts: tuple[str | None, ...]) -> Any:
    cells = {name: text for name, text in zip(_COLUMNS_OF[kind], texts, strict=True) if text is not None}
    return kind(**_values(kind, cells))


_COLUMNS_OF: dict[type, dict[str, Column]] = {
    part: {
        f.name: Column(*type_of(str(f.type)), f.metadata["meaning"]) for f in fields(part) if "meaning" in f.metadata
    }
    for part in (Row, Case, Facts, Conditions, Derived, Ceiling, Environment)
}
COLUMNS = {name: declared for columns in _COLUMNS_OF.values() for name, declared in columns.items()}


if __name__ == "__main__":
    for name, declared in COLUMNS.items():
        print(f"{name:21} {declared.type:7} {declared.meaning}")
