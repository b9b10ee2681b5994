"""What a process tells of its side before anything is compared."""

from __future__ import annotations

from dataclasses import dataclass

from bench.results.columns import Environment
from variants.machine import Machine


@dataclass(frozen=True)
class Known:
    """A variant of a side: whether it is exact, whether it is compiled, and the file that its function is in, or
    nothing where that is not known."""

    exact: bool
    compiled: bool
    file: str


@dataclass(frozen=True)
class About:
    """Where a side runs.

    suite, variants  folders of its two packages
    machine, environment
    known            its variants by name
    failed           modules that were to register more, and why they could not be imported
    loaded           files of all modules that are loaded by then
    """

    suite: str
    variants: str
    machine: Machine
    environment: Environment
    known: dict[str, Known]
    failed: dict[str, str]
    loaded: tuple[str, ...] = ()
