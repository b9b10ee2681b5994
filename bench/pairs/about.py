"""What a process tells of its side before anything is compared."""

from __future__ import annotations

from dataclasses import dataclass

from bench.results.columns import Environment
from variants.machine import Machine


@dataclass(frozen=True)
class Known:
    """A variant of a side: whether it is exact, whether it is compiled, and the file that its function is in."""

    exact: bool
    compiled: bool
    file: str


@dataclass(frozen=True)
class About:
    """Where a side runs: the folders of its two packages, the machine and the environment as it finds them, its
    variants, and why modules that were to register more of them could not be imported."""

    suite: str
    variants: str
    machine: Machine
    environment: Environment
    known: dict[str, Known]
    failed: dict[str, str]
