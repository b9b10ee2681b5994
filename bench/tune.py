"""Races the block sizes that a variant can be planned with, so that a good one can be written into its file.

python -m bench.tune sliding_window
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.plan.arguments import add_sources
from bench.plan.quantities import count, seconds, sizes
from bench.preparation import chosen, named, server_for
from bench.results.columns import Case
from variants.masks import Mask
from variants.problem import DIRECTIONS, DTYPES, Problem

if TYPE_CHECKING:
    from bench.analysis.tables import Table
    from bench.measure.race import Entrant, Race
    from bench.measure.server import Server
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = """Races the choices that a variant's plan leaves open, such as block sizes: each is checked, and then
they take turns in one process, and in several processes one after another. Nothing is written: what is best goes into
the variant's own file, as a constant."""

EXAMPLES = """\
  python -m bench.tune sliding_window
  python -m bench.tune chunked --mask causal --dtype float32,bfloat16 --direction fwd,fwdbwd
  python -m bench.tune flex --seq 1k..64k --device cuda"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("tune", DESCRIPTION, EXAMPLES)
    p.add_argument("variant", metavar="VARIANT", help="a variant that has something to choose")
    add_sources(p)
    size_list, number = cli.explained(sizes), cli.explained(count)
    p.add_argument("--seq", type=size_list, default=(4096, 16384), metavar="SIZES", help="default: 4096,16384")
    p.add_argument("--mask", type=cli.comma_separated(Mask.parse), metavar="LIST", help="default: one that it takes")
    p.add_argument("--dtype", type=cli.comma_separated(cli.one_of(*DTYPES)), default=("float32",), metavar="LIST")
    p.add_argument("--direction", type=cli.comma_separated(cli.one_of(*DIRECTIONS)), default=("fwd",), metavar="LIST")
    p.add_argument("--heads", type=number, default=4, metavar="N", help="default: 4")
    p.add_argument("--kv-heads", type=number, metavar="N", help="default: as many as heads")
    p.add_argument("--head-dim", type=number, default=64, metavar="N", help="default: 64")
    p.add_argument("--threads", type=number, metavar="N", help="CPU threads (default: torch's own)")
    p.add_argument("--races", type=number, default=3, metavar="N", help="processes that race the choices (default: 3)")
    duration = cli.explained(seconds)
    p.add_argument(
        "--race-time", type=duration, default=4.0, metavar="TIME", help="a race lasts at least this long (4s)"
    )
    p.add_argument("--timeout", type=duration, default=300.0, metavar="TIME", help="of one race (5m)")
    return p


def main(argv: list[str]) -> int:
    """Prints a table a problem; returns 1 where a choice is wrong, or cannot be run."""
    options = parser().parse_args(argv)
    from bench.analysis.render import console, print_table
    from bench.measure.environment import ask

    variant = named([options.variant], options.imports, "VARIANT")[options.variant]
    if not variant.tunable:
        able = [name for name, v in chosen("all", options.imports).items() if v.tunable]
        raise UserError(f"VARIANT: {variant.name!r} leaves nothing to choose; accepted: {', '.join(able)}")
    wrong = False
    with server_for([variant]) as server:
        machine, _ = ask(server, options.device, [variant], options.timeout, options.threads)
        for case in _cases(options, variant, machine):
            table, found_wrong = _tuned(server, options, variant, case)
            print_table(table, console())
            wrong |= found_wrong
    return 1 if wrong else 0


def _cases(options: argparse.Namespace, variant: Variant, machine: Machine) -> Iterator[Case]:
    """What to race on; UserError for a problem that the variant does not take."""
    masks = options.mask or (_usual(variant),)
    for mask, dtype, direction, n in itertools.product(masks, options.dtype, options.direction, options.seq):
        try:
            problem = Problem(
                batch=1,
                heads=options.heads,
                kv_heads=options.kv_heads or options.heads,
                seq_q=n,
                seq_kv=n,
                head_dim=options.head_dim,
                dtype=dtype,
                device=machine.device,
                mask=mask,
            )
        except ValueError as error:
            raise UserError(str(error)) from None
        if reason := variant.refusal(problem, machine, direction):
            raise UserError(f"{variant.name}, {mask}, {direction}, {dtype}: {reason}")
        yield Case.of(variant.name, direction, problem)


def _usual(variant: Variant) -> Mask:
    """The plainest mask that it takes, with a window of a usual length."""
    mask = variant.some_mask()
    return Mask(mask.causal, 256 if mask.window else None, mask.global_tokens)


def _tuned(server: Server, options: argparse.Namespace, variant: Variant, case: Case) -> tuple[Table, bool]:
    """The table of a problem, and whether a choice is wrong."""
    from bench.measure.race import Entrant

    combinations = itertools.product(*variant.tunable.values())
    choices = [dict(zip(variant.tunable, values, strict=True)) for values in combinations]
    entrants = [Entrant(case), *(Entrant(case, choice) for choice in choices)]
    reasons = [_reason(server, options, entrant) for entrant in entrants]
    if reasons[0] is not None:
        raise UserError(f"{variant.name} itself, as its file has it: {reasons[0]}")
    able = [entrant for entrant, reason in zip(entrants, reasons, strict=True) if reason is None]
    races = [_race(server, options, able, number) for number in range(options.races)]
    wrong = [(entrant, reason) for entrant, reason in zip(entrants, reasons, strict=True) if reason is not None]
    return _table(case, able, races, wrong), bool(wrong)


def _reason(server: Server, options: argparse.Namespace, entrant: Entrant) -> str | None:
    """Why this choice is not raced, or None."""
    from bench.measure.race import check
    from bench.measure.server import Died
    from bench.measure.worker import reason_of

    try:
        reason: str | None = server.call(check, _told(options, [entrant], 0), timeout_s=options.timeout)
    except Died as death:
        return f"{death.status}: {death}"
    except (Exception, SystemExit) as error:  # whatever the variant raises
        return reason_of(error)
    return reason


def _race(server: Server, options: argparse.Namespace, entrants: Sequence[Entrant], number: int) -> list[float]:
    """The median of each, in ms. UserError where the race does not end."""
    from bench.measure.race import race
    from bench.measure.server import Died
    from bench.measure.worker import reason_of

    try:
        lanes = server.call(race, _told(options, entrants, number), timeout_s=options.timeout)
    except Died as death:
        raise UserError(f"a race of {len(entrants)} choices: {death}; a longer --timeout may help") from None
    except Exception as error:  # such as memory that does not suffice for all of them at once
        raise UserError(f"a race of {len(entrants)} choices: {reason_of(error)}") from None
    return [statistics.median(lane.samples_ms) for lane in lanes]


def _told(options: argparse.Namespace, entrants: Sequence[Entrant], number: int) -> Race:
    from bench.measure.race import Effort, Race

    return Race(tuple(entrants), tuple(options.imports), Effort(options.race_time), number, options.threads)


def _table(
    case: Case, entrants: Sequence[Entrant], races: Sequence[Sequence[float]], wrong: Sequence[tuple[Entrant, str]]
) -> Table:
    """The fastest first, each beside the default."""
    from bench.analysis.statistics import log_t_interval
    from bench.analysis.tables import Cell, Table
    from bench.analysis.text import TO, significant, times
    from bench.progress import label

    rows = []
    for at, entrant in enumerate(entrants):
        ratios = [race[0] / race[at] for race in races]
        low, high = log_t_interval(ratios)
        interval = f"{significant(low)}{TO}{significant(high)}" if len(races) > 1 and at else ""
        latency = statistics.median(race[at] for race in races)
        texts = _words(entrant), significant(latency), times(statistics.median(ratios)), interval
        rows.append((latency, tuple(map(Cell, texts))))
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    notes = [Cell(f"{_words(entrant)}: {reason}", "bad") for entrant, reason in wrong]
    header = ("variant", "latency ms", "faster than default", "95 % interval")
    return Table(label(case), header, [ordered], notes)


def _words(entrant: Entrant) -> str:
    return ", ".join(f"{name} {value}" for name, value in entrant.choice.items()) or "default"


if __name__ == "__main__":
    cli.run(main)
