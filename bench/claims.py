"""Measures what a file claims of variants, and says of each claim whether it is reached.

python -m bench.claims results/claims.toml
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.plan.arguments import add_sources
from bench.plan.quantities import count, seconds
from bench.preparation import commit, named, run_name, server_for
from bench.results.claims import KINDS, Claim, read
from bench.results.columns import METHOD, Case, Conditions, Environment, Facts, Row

if TYPE_CHECKING:
    import pandas as pd

    from bench.measure.server import Server
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = """Measures what a file claims of variants, such as "5 times as fast as full attention at 4096", and says
of each claim whether it is reached. Each case is checked first, as bench.run checks it; those of a claim then race each
other: they take turns of hundredths of a second in one process, and in several processes one after another."""

EXAMPLES = """\
  python -m bench.claims results/claims.toml
  python -m bench.claims mine.toml --import mine.py --out mine.csv --markdown mine.md
  python -m bench.claims results/claims.toml --about peers            only these
  python -m bench.claims results/claims.toml --from mine.csv          the table again, measured before"""

_METHOD = f"{METHOD} race"  # its times are not to be pooled with those of visits


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("claims", DESCRIPTION, EXAMPLES)
    p.add_argument("claims", type=Path, metavar="CLAIMS", help="TOML file; bench/results/claims.py says how it reads")
    add_sources(p)
    p.add_argument("--about", metavar="TEXT", help="only claims whose subject has TEXT in it")
    p.add_argument("--threads", type=cli.explained(count), metavar="N", help="CPU threads (default: torch's own)")
    p.add_argument(
        "--races", type=cli.explained(count), default=4, metavar="N", help="processes that race a claim (default: 4)"
    )
    p.add_argument(
        "--race-time",
        type=cli.explained(seconds),
        default=4.0,
        metavar="TIME",
        help="a race lasts at least this long, and three rounds (default: 4s)",
    )
    p.add_argument(
        "--timeout",
        type=cli.explained(seconds),
        default=300.0,
        metavar="TIME",
        help="give a visit or a race up after this long (default: 5m)",
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="results file (default: results/local/DATE-claims.csv)")
    p.add_argument("--from", dest="given", type=Path, metavar="FILE", help="measure nothing, and read this file")
    p.add_argument("--markdown", metavar="FILE", help="write the tables to FILE as Markdown; - prints them")
    return p


def main(argv: list[str]) -> int:
    """Measures and prints; returns 1 where a claim is not reached, or a variant in it is wrong, raised or crashed."""
    options = parser().parse_args(argv)
    if options.given and options.out:
        raise UserError("--out: nothing is measured with --from; leave one of the two out")
    cli.check_output("--markdown", options.markdown, [options.claims, options.given, options.out])
    if options.given:
        rows = _raced(options.given)
        return _show(_claims(options, str(rows["device"].iloc[0])), rows, options.markdown)
    if options.races < 2:
        raise UserError(f"--races: {options.races} gives no interval; accepted: 2 or more")
    if options.out and options.out.exists():
        raise UserError(f"--out: {options.out} exists; name another file, or read it: --from {options.out}")
    path = options.out or Path("results", "local", f"{datetime.now(UTC):%Y%m%d-%H%M%S}-claims.csv")
    claims = _measure(options, path)
    status = _show(claims, _raced(path), options.markdown)
    print(f"written: {path}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    return status


def _claims(options: argparse.Namespace, device: str) -> list[Claim]:
    """The claims that were asked for."""
    claims = read(options.claims, device)
    subjects = dict.fromkeys(claim.about for claim in claims)
    claims = [claim for claim in claims if options.about is None or options.about in claim.about]
    if not claims:
        raise UserError(f"--about: {options.about!r} is in no subject; accepted: {', '.join(subjects)}")
    return claims


def _raced(path: Path) -> pd.DataFrame:
    """The rows of a file that bench.claims wrote, in one environment; UserError for any other."""
    from bench.analysis.cases import ENVIRONMENT
    from bench.analysis.frame import read as read_rows

    rows = read_rows([path])
    if set(rows["method"]) != {_METHOD} or len(rows[list(ENVIRONMENT)].drop_duplicates()) > 1:
        raise UserError(f"{path}: not measured by bench.claims, or in several environments at once")
    return rows


def _show(claims: Sequence[Claim], rows: pd.DataFrame, markdown_to: str | None) -> int:
    """Prints or writes what these rows say of the claims; the exit status."""
    from bench.analysis import claims as analysis
    from bench.analysis.cases import cases
    from bench.analysis.groups import machine
    from bench.analysis.render import console, markdown, markdown_notes, print_notes, print_table
    from bench.analysis.tables import Cell

    measured = analysis.Measured(rows)
    found = analysis.judge_all(claims, measured)
    notes = [Cell(machine(cases(rows))), Cell(analysis.summary(found))]
    tables = analysis.tables(found, measured)
    text = markdown_notes(notes) + "".join(map(markdown, tables))
    if markdown_to == "-":
        sys.stdout.write(text)
    else:
        terminal = console()
        for table in tables:
            print_table(table, terminal)
        print_notes(notes, terminal)
        if markdown_to is not None:
            print(f"written: {cli.write('--markdown', Path(markdown_to), text)}")
    missed = any(result.outcome == analysis.MISSED for _, result in found)
    return 1 if missed or any(measured.failed(case) for claim in claims for case in claim.cases) else 0


def _measure(options: argparse.Namespace, path: Path) -> list[Claim]:
    """Visits each case, races those of a claim, and writes a row for each in each race; the claims."""
    from bench.measure.environment import ask
    from bench.results.store import Store

    names = sorted({case.variant for claim in _claims(options, "cpu") for case in claim.cases})
    variants = named(names, options.imports, "CLAIMS")
    with server_for(variants.values()) as server:
        machine, environment = ask(server, options.device, variants.values(), options.timeout, options.threads)
        environment = replace(environment, commit=commit(), method=_METHOD)
        claims = _claims(options, machine.device)
        measuring = Measuring(server, options, variants, machine, environment)
        with Store(path) as store:
            for row in measuring.rows(claims):
                store.append(row)
    return claims


@dataclass(frozen=True)
class Measuring:
    """What stays the same while claims are measured."""

    server: Server
    options: argparse.Namespace
    variants: dict[str, Variant]
    machine: Machine
    environment: Environment

    def rows(self, claims: Sequence[Claim]) -> Iterator[Row]:
        """A row for each case that cannot race, or need not, and then for each case in each race.

        What was found on a case by itself, right or wrong and how much memory, stands in each row of a race that ended.
        """
        run = run_name()
        alone = {case: self._alone(case) for case in dict.fromkeys(case for claim in claims for case in claim.cases)}
        races = [[case for case in race if alone[case].status == "ok"] for race in _races(claims)]
        for case, facts in alone.items():
            if not any(case in race for race in races):
                yield self._row(case, facts, f"{run}-alone", 1)
        for number in range(1, self.options.races + 1):
            for at, race in enumerate(filter(None, races), 1):
                for case, facts in self._race(race, alone, number):
                    yield self._row(case, facts, f"{run}-race-{at}", number)

    def _row(self, case: Case, facts: Facts, run: str, number: int) -> Row:
        started = datetime.now(UTC).isoformat(timespec="seconds")
        exact = self.variants[case.variant].exact
        return Row(case, facts, self.environment, run, number, started, None, exact)

    def _alone(self, case: Case) -> Facts:
        """What a visit finds: whether the case is right, and its memory."""
        from bench.measure.apart import visit_apart
        from bench.measure.sampling import Policy
        from bench.measure.visit import Request
        from bench.progress import label

        if reason := self.variants[case.variant].refusal(case.problem(), self.machine, case.direction):
            return Facts("unsupported", reason)
        print(f"alone: {label(case)}", file=sys.stderr, flush=True)
        request = Request(case, tuple(self.options.imports), Policy(budget_ms=0.0), threads=self.options.threads)
        return visit_apart(self.server, request, self.options.timeout)

    def _race(self, cases: Sequence[Case], alone: dict[Case, Facts], number: int) -> Iterator[tuple[Case, Facts]]:
        from bench.measure.race import Effort, Entrant, Race, race
        from bench.measure.server import Died
        from bench.measure.worker import reason_of, status_of

        print(f"race {number} of {self.options.races}: {len(cases)} cases", file=sys.stderr, flush=True)
        told = Race(
            entrants=tuple(map(Entrant, cases)),
            imports=tuple(self.options.imports),
            effort=Effort(self.options.race_time),
            seed=number,
            threads=self.options.threads,
        )
        lost: Facts | None = None
        try:
            lanes = self.server.call(race, told, timeout_s=self.options.timeout)
        except Died as death:
            lost = Facts(death.status, f"in a race: {death}")
        except Exception as error:  # whatever a variant raises
            lost = Facts(status_of(error), f"in a race: {reason_of(error)}")
        if lost is not None:
            yield from ((case, lost) for case in cases)
            return
        for case, lane in zip(cases, lanes, strict=True):
            samples = {"samples_ms": lane.samples_ms, "calls_per_sample": lane.calls_per_sample}
            yield case, replace(alone[case], **samples, conditions=Conditions())


def _races(claims: Iterable[Claim]) -> list[list[Case]]:
    """Who races whom: all cases of the claims that are about time, at the same lengths and in the same dtype."""
    races: dict[tuple[frozenset[object], ...], dict[Case, None]] = {}
    for claim in claims:
        if KINDS[claim.kind].quantity == "time":
            key = frozenset(case.seq_kv for case in claim.cases), frozenset(case.dtype for case in claim.cases)
            races.setdefault(key, {}).update(dict.fromkeys(claim.cases))
    return [list(race) for race in races.values()]


if __name__ == "__main__":
    cli.run(main)
