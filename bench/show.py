"""Lists the variants: what each is, the masks that it takes, and why any cannot run on this machine.

python -m bench.show
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bench import cli
from bench.plan.arguments import add_variants
from variants.masks import TERMS
from variants.problem import DTYPES, Problem

if TYPE_CHECKING:
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = "Lists the variants: what each is, the masks that it takes, and why any cannot run on this machine."

EXAMPLES = """\
  python -m bench.show
  python -m bench.show --variants sdpa_flash,flex
  python -m bench.show --import my_module --device cpu"""

TIMEOUT_S = 60.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("show", DESCRIPTION, EXAMPLES)
    add_variants(p)
    return p


def main(argv: list[str]) -> int:
    """Prints the table; returns the exit status."""
    options = parser().parse_args(argv)
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from bench.measure.environment import ask
    from bench.measure.server import Server
    from bench.run import chosen

    variants = chosen(options.variants, options.imports)
    with Server() as server:
        machine, environment = ask(server, options.device, variants.values(), TIMEOUT_S)
    table = Table(
        "variant",
        Column("what it is", overflow="fold"),
        "masks",
        f"on {machine.device}",
        title=f"{machine.device_name}, torch {environment.torch}",
    )
    for name, variant in variants.items():
        cells = (name, "\n".join([variant.summary, *variant.sources]), masks(variant), here(variant, machine))
        table.add_row(*map(escape, cells))
    Console().print(table)
    return 0


def masks(variant: Variant) -> str:
    """The mask features that a variant takes, and those that it needs."""
    if "mask" in variant.parameters:
        return "all"
    features = {TERMS[name]: required for name, required in variant.parameters.items() if name in TERMS}
    return ", ".join(f"{term} (needed)" if required else term for term, required in features.items()) or "full"


def here(variant: Variant, machine: Machine) -> str:
    """What the variant does on this machine: the dtypes and directions that run, or why it cannot run."""
    refusals = {dtype: _refusal(variant, machine, dtype, "fwd") for dtype in DTYPES}
    runs = [dtype for dtype, reason in refusals.items() if reason is None]
    if not runs:
        return f"no: {refusals[DTYPES[0]]}"
    refused = dict.fromkeys(reason for reason in refusals.values() if reason)
    backward = _refusal(variant, machine, runs[0], "bwd")
    return "; ".join([", ".join(runs), *refused, *([f"forward only: {backward}"] if backward else [])])


def _refusal(variant: Variant, machine: Machine, dtype: str, direction: str) -> str | None:
    """Asked of a small problem with a mask that the variant takes."""
    mask = variant.some_mask()
    problem = Problem(1, 8, 8, 1024, 1024, 64, dtype, machine.device, mask)
    return variant.refusal(problem, machine, direction)


if __name__ == "__main__":
    cli.run(main)
