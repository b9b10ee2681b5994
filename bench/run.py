"""The main job: sweeps attention variants over lengths and shows which is right, fastest and smallest.

python -m bench.run --seq 512..16384
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.models import ALONE
from bench.plan import arguments, presets
from bench.plan.sweep import Sweep, cases_of, model_problems, usual_lengths
from bench.preparation import chosen, commit, run_name, same_environment, server_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.measure.rounds import Run
    from bench.measure.server import Server
    from bench.results.columns import Case, Ceiling, Row
    from bench.results.store import Store
    from variants.registry import Variant


def main(argv: list[str]) -> int:
    """Runs the sweep; returns the exit status: 1 where a variant was wrong, raised or crashed."""
    options = arguments.parser().parse_args(argv)
    _check(options)
    variants = chosen(options.variants, options.imports)
    if options.baseline not in variants and options.baseline != arguments.BASELINE:
        raise UserError(f"--baseline: {options.baseline!r} does not run; accepted: {', '.join(variants)}")
    with server_for(variants.values()) as server:
        run = _describe(server, options, variants)
        cases = _cases(options, run)
        if options.dry_run:
            return _print_plan(options, run, cases)
        return _measure(server, options, run, cases)


def _check(options: argparse.Namespace) -> None:
    """UserError for options that contradict each other, or that lack another."""
    if options.resume and not options.out:
        raise UserError("--resume: which file? add --out FILE")
    if options.append_anyway and not options.resume:
        raise UserError("--append-anyway: to which file? add --resume --out FILE")
    arguments.check_models(options)


def _describe(server: Server, options: argparse.Namespace, variants: Mapping[str, Variant]) -> Run:
    """What stays the same over the run. A process of its own asks the device, so that this one never touches it."""
    from bench.measure.environment import ask
    from bench.measure.rounds import Run

    machine, environment = ask(server, options.device, variants.values(), options.timeout, options.threads)
    return Run(
        name=run_name(),
        variants=variants,
        machine=machine,
        environment=replace(environment, commit=commit()),
        visits=options.visits,
        time_budget_s=options.time_budget,
        max_call_s=options.max_call,
    )


def _cases(options: argparse.Namespace, run: Run) -> list[Case]:
    """What is asked for, in the order in which a round visits it."""
    device = run.machine.device
    preset = presets.of(device)
    caches = options.cache or preset.caches
    if device == "cpu" and caches != ("hot",):
        raise UserError(f"--cache: {','.join(caches)!r} is not to be had on a CPU; accepted: hot")
    dtypes = options.dtype or preset.dtypes
    if options.model:
        problems = model_problems(
            options.model,
            arguments.phases(options),
            options.direction,
            _lengths(options, device),
            options.batch,
            dtypes,
            device,
        )
        return cases_of(tuple(run.variants), problems, caches)
    return Sweep(
        variants=tuple(run.variants),
        masks=options.mask or presets.MASKS,
        directions=options.direction,
        seq=options.seq or preset.seq,
        heads=options.heads or preset.heads,
        head_dim=options.head_dim or preset.head_dim,
        batch=options.batch,
        dtypes=dtypes,
        device=device,
        seq_q=options.seq_q,
        kv_heads=options.kv_heads,
        caches=caches,
    ).cases()


def _lengths(options: argparse.Namespace, device: str) -> dict[str, tuple[int, ...]]:
    """The lengths of each model, by its name."""
    return {model.name: options.seq or usual_lengths(model, presets.of(device).seq) for model in options.model}


def _print_plan(options: argparse.Namespace, run: Run, cases: Sequence[Case]) -> int:
    """Prints what would run, and why the rest would not."""
    from bench.measure.rounds import refusal
    from bench.progress import label

    reasons = {case: refusal(run, case) for case in cases}
    for case, reason in reasons.items():
        print(f"{label(case)}  {f'unsupported: {reason}' if reason else 'runs'}")
    for model, phase in product(options.model, arguments.phases(options)):
        for remark in model.remarks(phase, _lengths(options, run.machine.device)[model.name]):
            print(f"{model.title}, {phase}: {remark}")
    if options.model:
        print(ALONE)
    runs = sum(reason is None for reason in reasons.values())
    print(f"{len(cases)} cases: {runs} run on {run.machine.device_name}, {len(cases) - runs} are left out")
    return 0


def _measure(server: Server, options: argparse.Namespace, run: Run, cases: Sequence[Case]) -> int:
    """Runs the cases into the results file, shows what came out, and says how it went."""
    from bench import report
    from bench.results.columns import FAILURES
    from bench.results.store import Store

    path = options.out or Path("results", "local", f"{run.name}-{run.machine.device}.csv")
    with Store(path, options.resume) as store:
        if store.rows:
            there = store.rows[-1].environment
            if not options.append_anyway:
                same_environment(there, run.environment, path, "name another --out, or add --append-anyway")
            run = replace(run, name=store.rows[-1].run)
        interrupted = not _run_rounds(server, options, run, cases, store)
        rows = list(store.rows)
    if rows:
        written = report.show([path], baseline=options.baseline, models=options.model)
        print("\nwritten: " + " ".join(map(str, (path, *written))))
        models = f" --model {','.join(model.name for model in options.model)}" if options.model else ""
        print(f"look again: python -m bench.report {path}{models}")
    if interrupted:
        print(f"interrupted; continue with the same command and: --out {path} --resume", file=sys.stderr)
        return cli.INTERRUPTED
    return 1 if any(row.facts.status in FAILURES for row in rows) else 0


def _ceilings(
    server: Server, options: argparse.Namespace, run: Run, cases: Sequence[Case], rows: Sequence[Row]
) -> dict[str, Ceiling]:
    """What the device reaches at most in each dtype. Measured once a run, and so taken from its rows if it has any."""
    from bench.measure.ceilings import ceilings
    from bench.measure.server import Died

    known = {
        row.case.dtype: row.ceiling
        for row in rows
        if row.environment == run.environment and row.ceiling.ceiling_tflops is not None
    }
    missing = sorted({case.dtype for case in cases} - set(known))
    if not missing:
        return known
    device, threads = run.machine.device, run.environment.threads
    try:
        found: dict[str, Ceiling] = server.call(ceilings, device, missing, threads, timeout_s=options.timeout)
    except Exception as error:  # whatever the device does: rows without a share are better than none
        status = error.status if isinstance(error, Died) else type(error).__name__
        print(f"the machine's ceilings were not measured ({status}: {error}), so no share of them is", file=sys.stderr)
        return known
    return known | found


def _free_bytes(run: Run, force: bool) -> Callable[[], int | None]:
    """Memory that a case may take: what is free now on the host, all of it on a device; None to forget about it."""
    from bench.measure import memory

    if force:
        return lambda: None
    if run.machine.device != "cpu":
        return lambda: run.machine.memory_bytes
    return memory.available_bytes


def _run_rounds(server: Server, options: argparse.Namespace, run: Run, cases: Sequence[Case], store: Store) -> bool:
    """Appends each row to the store as it comes; False when the user stopped it."""
    from bench.measure.apart import visit_apart
    from bench.measure.rounds import rounds
    from bench.measure.visit import Request
    from bench.progress import Display
    from bench.results.columns import Facts

    def execute(case: Case, number: int) -> Facts:
        request = Request(case, tuple(options.imports), seed=1000 * number, threads=options.threads)
        return visit_apart(server, request, options.timeout, options.setup_timeout)

    known = [row for row in store.rows if row.run == run.name]
    try:
        run = replace(run, ceilings=_ceilings(server, options, run, cases, store.rows))
        with Display(len(cases) - sum(row.visit == 1 for row in known)) as display:
            for row in rounds(
                run,
                cases,
                execute,
                time.monotonic,
                announce=display.visiting,
                free_bytes=_free_bytes(run, options.force),
                known=known,
            ):
                store.append(row)
                display.finished(row)
    except KeyboardInterrupt:
        return False
    return True


if __name__ == "__main__":
    cli.run(main)
