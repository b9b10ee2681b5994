"""Lists the variants: what each is, the masks that it takes, and why any cannot run on this machine. Draws masks.

python -m bench.show
python -m bench.show --mask "causal+window:4+global:2" --seq 16 --variant sdpa
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.plan.arguments import add_variants
from bench.plan.quantities import count
from variants.masks import TERMS, Mask
from variants.problem import DTYPES, Problem

if TYPE_CHECKING:
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = """Lists the variants: what each is, the masks that it takes, and why any cannot run on this machine.
With --mask it draws a mask, and with --variant beside it the weights that the variant really gives."""

EXAMPLES = """\
  python -m bench.show
  python -m bench.show --variants sdpa_flash,flex
  python -m bench.show --import my_module --device cpu
  python -m bench.show --mask causal+window:4+global:2 --seq 16
  python -m bench.show --mask causal --seq 32 --variant sdpa --figure causal.png"""

TIMEOUT_S = 60.0
_LONGEST = 256


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("show", DESCRIPTION, EXAMPLES)
    add_variants(p)
    drawing = p.add_argument_group("drawing")
    drawing.add_argument("--mask", type=cli.explained(Mask.parse), help="draw this mask")
    drawing.add_argument("--seq", type=cli.explained(count), default=16, metavar="N", help="keys (default: 16)")
    drawing.add_argument("--seq-q", type=cli.explained(count), metavar="N", help="queries (default: as many as keys)")
    drawing.add_argument("--variant", metavar="NAME", help="draw the weights that it gives, read from the black box")
    drawing.add_argument("--figure", type=Path, metavar="FILE", help="draw into a picture instead")
    return p


def main(argv: list[str]) -> int:
    """Prints the table, or a drawing; returns the exit status."""
    options = parser().parse_args(argv)
    if options.mask is None:
        if options.variant or options.figure:
            raise UserError("--mask: which mask is to be drawn? for example --mask causal+window:4")
        return _list(options)
    return _draw(options)


def _draw(options: argparse.Namespace) -> int:
    """Draws a mask, and the weights of a variant beside it."""
    from bench.analysis import heat

    for option, length in (("--seq", options.seq), ("--seq-q", options.seq_q or 1)):
        if length > _LONGEST:
            raise UserError(f"{option}: {length} is too long to draw; accepted: 1..{_LONGEST}")
    problem = Problem(1, 1, 1, options.seq_q or options.seq, options.seq, 64, mask=options.mask)
    visible = options.mask.dense(problem.seq_q, problem.seq_kv).tolist()
    weights = _weights(options, problem) if options.variant else None
    title = f"{options.mask}, {problem.seq_q} queries, {problem.seq_kv} keys"
    title += f", weights of {options.variant}" if options.variant else ""
    if options.figure:
        try:
            print(f"written: {heat.write(options.figure, title, visible, weights)}")
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"--figure: {options.figure} cannot be written: {reason}") from None
        return 0
    print(title, *heat.lines(visible, weights), sep="\n")
    return 0


def _weights(options: argparse.Namespace, problem: Problem) -> list[list[float]]:
    """What the variant gives, asked of a process of its own."""
    from bench.checks.weights import effective
    from bench.measure.environment import ask
    from bench.measure.server import Died, Server
    from bench.preparation import chosen

    variants = chosen(options.variant, options.imports, "--variant")
    with Server() as server:
        machine, _ = ask(server, options.device, variants.values(), TIMEOUT_S)
        variant, *more = variants.values()
        if more:
            raise UserError(
                f"--variant: {options.variant!r} is more than one; accepted: a name from python -m bench.show"
            )
        problem = replace(problem, device=machine.device)
        if reason := variant.refusal(problem, machine):
            raise UserError(f"--variant: {variant.name} does not take this: {reason}")
        try:
            found: list[list[float]] = server.call(
                effective, variant.name, tuple(options.imports), machine, problem, timeout_s=TIMEOUT_S
            )
        except Died as death:
            raise UserError(f"--variant: {variant.name}: {death.status}: {death}") from None
        except Exception as error:
            raise UserError(f"--variant: {variant.name} raised {type(error).__name__}: {error}") from None
    return found


def _list(options: argparse.Namespace) -> int:
    """Prints the table of the variants."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Column, Table

    from bench.measure.environment import ask
    from bench.measure.server import Server
    from bench.preparation import chosen

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
