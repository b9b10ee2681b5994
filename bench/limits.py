"""Finds, by measuring, the longest sequence that each variant can take within a limit of memory and of time.

python -m bench.limits --memory 24GiB

Each try is a visit as bench.run makes them: a fresh process, in which the answer is held to exact attention at that
very length. What counts against --memory is all that the call has on the device at its peak: q, k and v, for a backward
pass the upstream gradient, and `peak_bytes` above them. The process has more than that: to check the answer it makes
a second set of inputs. So a length is not tried where its need and that second set are predicted to exceed what is
free, nor where one call is predicted to take over three times --max-call; such an end is called predicted. All else is
measured, and forecasts only say where to try next (`bench.plan.bisection`).

What is wrong, raises or crashes ends the search of its variant. What does not fit, is out of memory or out of time
only bounds it, and so does "unsupported" once a shorter length fitted, for kernels take some lengths and others not.

The search is a function of the tries before it, and each try is a row of a results CSV. So a search that was stopped
goes on where it was, and the tables are made of the rows alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.plan import presets
from bench.plan.arguments import add_models, add_shapes, add_variants, check_models, phases
from bench.plan.bisection import FIRST
from bench.plan.quantities import MEMORIES, count, memory, seconds, share, sizes
from bench.plan.sweep import Sweep, cases_of
from bench.preparation import chosen, commit, run_name, same_environment, server_for
from bench.results.columns import FAILURES, Case, Facts, Row
from bench.results.limits import Limits, needed_bytes
from variants.masks import Mask

if TYPE_CHECKING:
    from bench.measure.searching import Searching
    from bench.measure.server import Server
    from bench.results.store import Store
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = """Finds, by measuring, the longest sequence that each variant can take within a limit of memory and of
time for one call. Every try is checked as bench.run checks it. What counts as memory is all that a call has on the
device at its peak: q, k and v, for a backward pass the upstream gradient, and what it allocates."""

EXAMPLES = """\
  python -m bench.limits --memory 24GiB
  python -m bench.limits --variants naive,sdpa --memory 2GiB --mask full,causal
  python -m bench.limits --model llama-3-8b --phase prefill,decode --memory 16GiB
  python -m bench.limits --max-call 1s --direction fwdbwd --dtype bfloat16
  python -m bench.limits --seq-q 1 --heads 32 --kv-heads 8 --memory 8GiB      one query against a cache
  python -m bench.limits --memory 24GiB --out reach.csv --resume              go on with a search"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("limits", DESCRIPTION, EXAMPLES)
    duration = cli.explained(seconds)
    limits = p.add_argument_group("limits")
    limits.add_argument(
        "--memory",
        type=cli.explained(memory),
        metavar="SIZE",
        help=f"such as {MEMORIES} (default: the device's memory; on CPU, what is free now)",
    )
    limits.add_argument(
        "--max-call", type=duration, default=10.0, metavar="TIME", help="of one call, at most (default: 10s)"
    )
    limits.add_argument(
        "--longest", type=cli.explained(_length), default=2**20, metavar="N", help="search no further (default: 1m)"
    )
    limits.add_argument(
        "--within",
        type=cli.explained(share),
        default=0.01,
        metavar="SHARE",
        help="until the longest that fits and the shortest that does not are this close (default: 1%%)",
    )
    problem = p.add_argument_group("problems (every axis but --seq-q takes a list)")
    problem.add_argument("--seq-q", type=cli.explained(_length), metavar="N", help="fixed number of queries; 1 decodes")
    add_shapes(problem, "causal")
    add_models(
        p, "each kind of layer of these models, which sets mask, heads and head size; see python -m bench.models"
    )
    add_variants(p)
    p.add_argument("--threads", type=cli.explained(count), metavar="N", help="CPU threads (default: torch's own)")
    p.add_argument(
        "--out", type=Path, metavar="FILE", help="results file (default: results/local/DATE-limits-DEVICE.csv)"
    )
    p.add_argument("--resume", action="store_true", help="go on with the file that --out names")
    p.add_argument("--from", dest="given", type=Path, metavar="FILE", help="measure nothing, and read this file")
    p.add_argument("--markdown", metavar="FILE", help="write the tables to FILE as Markdown; - prints them")
    return p


def _length(text: str) -> int:
    found = sizes(text)
    if len(found) > 1:
        raise ValueError(f"{text!r} is more than one length; accepted: one, such as 4096, 64k or 1m")
    return found[0]


def main(argv: list[str]) -> int:
    """Measures and prints; returns the exit status: 1 where a variant was wrong, raised or crashed."""
    options = parser().parse_args(argv)
    if options.resume and not options.out:
        raise UserError("--resume: which file? add --out FILE")
    cli.check_output("--markdown", options.markdown, [options.out, options.given])
    if options.given:
        if options.out:
            raise UserError("--out: nothing is measured with --from; leave one of the two out")
        cli.check_readable(options.given)
        if options.memory is None:
            raise UserError(f"--memory: the file does not say what limit it was searched with; accepted: {MEMORIES}")
        return _show(options, options.given, _limits(options, options.memory))
    if _first(options) > options.longest:
        raise UserError(
            f"--longest: {options.longest} is below where a search begins; accepted: {_first(options)} or more"
        )
    check_models(options)
    variants = chosen(options.variants, options.imports)
    with server_for(variants.values()) as server:
        return _measure(server, options, variants)


def _limits(options: argparse.Namespace, memory_bytes: int) -> Limits:
    return Limits(memory_bytes, options.max_call * 1e3, options.longest, options.within)


def _measure(server: Server, options: argparse.Namespace, variants: dict[str, Variant]) -> int:
    """Searches, a row a try into the results file, shows what came out, and says how it went."""
    from bench.measure.environment import ask
    from bench.measure.memory import available_bytes
    from bench.measure.searching import Searching
    from bench.results.store import Store

    machine, environment = ask(server, options.device, variants.values(), _timeout_s(options), options.threads)
    environment = replace(environment, commit=commit())
    free_bytes: Callable[[], int] = available_bytes if machine.device == "cpu" else lambda: machine.memory_bytes
    limits = _limits(options, options.memory or free_bytes())
    starts = _starts(options, machine, variants)
    name = run_name()
    path = options.out or Path("results", "local", f"{name}-limits-{machine.device}.csv")
    with Store(path, options.resume) as store:
        if store.rows:
            same_environment(store.rows[-1].environment, environment, path)
            name = store.rows[-1].run
        known = {row.case: row for row in store.rows}
        execute = partial(_visit, server, options)
        searching = Searching(name, variants, machine, environment, limits, execute, free_bytes, known)
        interrupted = not _try_all(searching, starts, store)
        measured = bool(store.rows)
    status = _show(options, path, limits) if measured else 0
    print(f"written: {path}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    if interrupted:
        limit = "" if options.memory else f" --memory {limits.memory_bytes}B"
        print(f"interrupted; continue with the same command and:{limit} --out {path} --resume", file=sys.stderr)
        return cli.INTERRUPTED
    return status


def _try_all(searching: Searching, starts: Iterable[Case], store: Store) -> bool:
    """Appends each row to the store as it comes, and tells it; False when the user stopped it."""
    try:
        for row in searching.rows(starts):
            store.append(row)
            _tell("" if row.visit_s is not None else f"{_label(row.case)}  ", _told(row), "\n")
    except KeyboardInterrupt:
        _tell("\n")
        return False
    return True


def _show(options: argparse.Namespace, path: Path, limits: Limits) -> int:
    """Prints or writes what the rows of this file say; the exit status."""
    from bench.analysis.cases import cases
    from bench.analysis.frame import read
    from bench.analysis.groups import machine
    from bench.analysis.limits import limit_tables, settled, statement
    from bench.analysis.render import console, markdown, markdown_notes, print_notes, print_table
    from bench.analysis.tables import Cell

    found = cases(settled(read([path])))
    heading, tables = [Cell(machine(found)), statement(limits)], limit_tables(found, limits)
    text = markdown_notes(heading) + "".join(map(markdown, tables))
    if options.markdown == "-":
        sys.stdout.write(text)
    else:
        terminal = console()
        print_notes(heading, terminal)
        for table in tables:
            print_table(table, terminal)
        if options.markdown is not None:
            print(f"written: {cli.write('--markdown', Path(options.markdown), text)}")
    return 1 if found["status"].isin(FAILURES).any() else 0


def _first(options: argparse.Namespace) -> int:
    """The length of the first try: longer than a fixed number of queries, for many variants take no more than keys."""
    return max(FIRST, 2 * (options.seq_q or 1))


def _starts(options: argparse.Namespace, machine: Machine, variants: Iterable[str]) -> list[Case]:
    """Each variant on each problem, at the length where its search begins."""
    preset = presets.of(machine.device)
    if options.model:
        return _of_models(options, machine.device, tuple(variants))
    return Sweep(
        variants=tuple(variants),
        masks=options.mask or (Mask(causal=True),),
        directions=options.direction,
        seq=(_first(options),),
        heads=options.heads or preset.heads,
        head_dim=options.head_dim or preset.head_dim,
        batch=options.batch,
        dtypes=options.dtype or preset.dtypes,
        device=machine.device,
        seq_q=(options.seq_q,) if options.seq_q else (),
        kv_heads=options.kv_heads,
        caches=preset.caches,
    ).cases()


def _of_models(options: argparse.Namespace, device: str, variants: tuple[str, ...]) -> list[Case]:
    """The layers whose number of keys is the text's; there is nothing to search for in the others."""
    preset = presets.of(device)
    problems = [
        (direction, kind.problem(phase, FIRST, batch, dtype, device))
        for direction in options.direction
        for dtype in options.dtype or preset.dtypes
        for batch in options.batch
        for model in options.model
        for phase in phases(options)
        for kind in model.kinds(phase)
        if kind.seq_kv is None
    ]
    if not problems:
        raise UserError(f"--model: {options.model[0].name!r} sets all its lengths itself; there is none to search for")
    return cases_of(variants, problems, preset.caches)


def _timeout_s(options: argparse.Namespace) -> float:
    """Time to compile or check, and for the ten calls or so of a visit, were they all as long as is ever tried."""
    from bench.measure.searching import HOPELESS

    return float(120.0 + 10 * HOPELESS * options.max_call)


def _visit(server: Server, options: argparse.Namespace, case: Case) -> Facts:
    """What a visit finds, in a process of its own. Three samples, or one where a call takes a second, tell enough."""
    from bench.measure.apart import visit_apart
    from bench.measure.sampling import Policy
    from bench.measure.visit import Request

    _tell(_label(case), "  ")  # the line ends with what comes out
    policy = Policy(budget_ms=0.0, longest_ms=1000.0)
    request = Request(case, tuple(options.imports), policy, threads=options.threads)
    return visit_apart(server, request, _timeout_s(options), _timeout_s(options))


def _tell(*words: str) -> None:
    print(*words, sep="", end="", file=sys.stderr, flush=True)


def _label(case: Case) -> str:
    from bench.progress import label

    return label(case)


def _told(row: Row) -> str:
    """What came out of a try, in a few words."""
    from bench.analysis.limits import duration
    from bench.analysis.text import plain, size

    if row.facts.status != "ok":
        return f"{row.facts.status}: {plain(row.facts.reason)}"
    return f"{size(needed_bytes(row.flat()))}, {duration(row.derived.latency_ms or 0.0)}"


if __name__ == "__main__":
    cli.run(main)
