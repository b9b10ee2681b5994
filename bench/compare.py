"""Compares results files case by case: what became slower or faster, bigger or smaller, right or wrong.

python -m bench.compare base.csv new.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bench import cli
from bench.analysis import criteria
from bench.errors import UserError
from bench.plan.quantities import share

if TYPE_CHECKING:
    from bench.analysis.comparison import Comparison
    from bench.analysis.criteria import Criteria
    from bench.analysis.tables import Cell, Table
    from bench.analysis.trend import File
    from bench.analysis.verdicts import Outcome

DESCRIPTION = "Compares results files case by case: ratios of time and peak memory, and changes of status."

EXAMPLES = """\
  python -m bench.compare base.csv new.csv
  python -m bench.compare torch-2.12.csv torch-2.13.csv --markdown -
  python -m bench.compare laptop.csv server.csv --relative-to sdpa
  python -m bench.compare base.csv new.csv --fail-on latency:5%,memory:1%,accuracy,status
  python -m bench.compare june.csv july.csv august.csv
  python -m bench.compare base.csv new.csv --pytest-benchmark new.json
  python -m bench.compare --paired gate.csv

exit status with --fail-on and --paired:
  0  all that was compared is the same or better
  1  something is worse
  2  nothing to compare, or a mistake in the arguments or files
  3  nothing is worse, but something is inconclusive or not comparable (0 with --allow-inconclusive)"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("compare", DESCRIPTION, EXAMPLES)
    p.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="results as bench.run writes them: base and new; of more, a trend, oldest first",
    )
    p.add_argument(
        "--relative-to",
        metavar="VARIANT",
        help="compare times as multiples of this variant's in the same file, as across machines one must",
    )
    p.add_argument(
        "--fail-on",
        type=cli.explained(criteria.parse),
        metavar="CRITERIA",
        help="exit with 1 where these got worse, e.g. latency:5%%,memory:1%%,accuracy,status. Latency: by 5 %% or "
        "more, and the 95 %% interval above 1x, by canary too. Memory: by over 1 %% and over 1 MiB. Accuracy: became "
        "wrong, or the error more than doubled and takes over half of its budget; where it has none, grew by over "
        "10 %%. Status: ok to anything else, down to a failure, or the case vanished. Of more than two files, the last "
        "is held to the first",
    )
    p.add_argument("--allow-inconclusive", action="store_true", help="exit with 0 instead of 3")
    p.add_argument("--paired", action="store_true", help="decide again on one FILE that bench.gate wrote")
    p.add_argument(
        "--threshold",
        type=cli.explained(share),
        metavar="SHARE",
        help="with --paired: the change that matters (default: what bench.gate was given)",
    )
    p.add_argument("--markdown", metavar="FILE", help="write the comparison to FILE as Markdown; - prints it")
    p.add_argument(
        "--pytest-benchmark",
        type=Path,
        metavar="FILE",
        help="write the newest file's cases to FILE as JSON of pytest-benchmark",
    )
    return p


def main(argv: list[str]) -> int:
    """Prints or writes the comparison; returns the exit status."""
    options = parser().parse_args(argv)
    from bench.analysis.verdicts import exit_status

    _check(options)
    if options.paired:
        from bench.gate import conclude

        return conclude(options.files[0], options.threshold, options.allow_inconclusive, options.markdown)
    files, many = _files(options.files, options.relative_to), len(options.files) > 2
    parts = _trend(files, options.relative_to) if many else []
    found: list[Outcome] = []
    if options.fail_on or not many:
        comparison = _compared(files[0], files[-1], options.relative_to, options.fail_on)
        parts += _changes(comparison) if many else _parts(comparison, files[0].path, files[-1].path)
        if options.fail_on:
            verdicts, found = _judged(comparison, files[0], files[-1], options.fail_on)
            parts += verdicts
    _tell([part for part in parts if part], options.markdown)
    if options.pytest_benchmark:
        _export(files[-1], options.pytest_benchmark, sys.stderr if options.markdown == "-" else sys.stdout)
    return exit_status(found, options.allow_inconclusive)


def _check(options: argparse.Namespace) -> None:
    """UserError where the options do not go together, or their files could not be written."""
    count = len(options.files)
    if options.paired and (count > 1 or options.relative_to or options.fail_on or options.pytest_benchmark):
        raise UserError("--paired takes one file, and with it --threshold, --markdown and --allow-inconclusive alone")
    if not options.paired and count < 2:
        raise UserError(f"{options.files[0]}: one file alone; accepted: base and new, or --paired with a gate's file")
    if not options.paired and options.threshold is not None:
        raise UserError("--threshold goes with --paired; accepted here: --fail-on latency:SHARE")
    if options.allow_inconclusive and not (options.fail_on or options.paired):
        raise UserError("--allow-inconclusive changes what --fail-on and --paired exit with; give one of them")
    cli.check_output("--markdown", options.markdown, options.files)
    cli.check_output("--pytest-benchmark", options.pytest_benchmark, [*options.files, options.markdown])


def _files(paths: Sequence[Path], reference: str | None) -> list[File]:
    """The files, of more than two the oldest first; UserError where one cannot be compared."""
    from bench.analysis.cases import cases
    from bench.analysis.comparison import check_once, check_reference
    from bench.analysis.frame import read
    from bench.analysis.trend import File
    from bench.results.paired import PAIRED_METHOD

    files = [File(path, visits := read([path]), cases(visits)) for path in paths]
    for file in files:
        if PAIRED_METHOD in set(file.visits["method"]):
            raise UserError(f"{file.path}: written by bench.gate, whose rows are pairs; accepted with --paired alone")
        check_once(str(file.path), file.cases)
    if reference is not None:
        check_reference(reference, *(file.cases for file in files))
    return sorted(files, key=lambda file: file.started) if len(files) > 2 else files


def _compared(base: File, new: File, reference: str | None, wanted: Criteria | None) -> Comparison:
    """The comparison of two files that can be compared, with intervals where they are shown; UserError says why they
    cannot."""
    from bench.analysis.comparison import compare, unlike
    from bench.analysis.unpaired import intervals

    comparison = compare(base.cases, new.cases, reference)
    if comparison.cases.empty:
        reason = "; ".join(unlike(base.cases, new.cases)) or "each has others"
        raise UserError(f"{base.path} and {new.path} have no case in common: {reason}")
    if wanted and wanted.latency is not None and reference is None:
        _check_comparable(comparison, base, new)
    if not wanted and reference is None:
        return comparison
    return comparison._replace(cases=intervals(comparison.cases, base.visits, new.visits, reference))


def _check_comparable(comparison: Comparison, base: File, new: File) -> None:
    """UserError where absolute times of two files say nothing about each other."""
    kinds = {"device_name": "on different machines", "method": "by different methods"}
    for column, how in kinds.items():
        if column in comparison.environment:
            values = " and ".join(comparison.environment[column])
            variants = ", ".join(sorted({*base.cases["variant"]} & {*new.cases["variant"]}))
            raise UserError(
                f"--fail-on latency: {base.path} and {new.path} were measured {how} ({values}), so their times are not "
                f"comparable; --relative-to compares multiples of a variant's, and takes {variants}"
            )


def _parts(comparison: Comparison, base: Path, new: Path) -> list[Table | list[Cell]]:
    """What differs between the environments first, then what changed, then the numbers; tables, and notes around."""
    from bench.analysis import differences
    from bench.analysis.tables import Cell

    reference = comparison.reference
    only = [
        differences.only_in(str(name), cases, comparison.axes)
        for name, cases in ((base, comparison.only_base), (new, comparison.only_new))
    ]
    # How well two runs agree says something only where nothing but the suite itself may differ.
    alike = set(comparison.environment) <= {"commit"} and reference is None
    repeated = differences.repeatability(comparison.cases) if alike else []
    return [
        [Cell(f"{base} → {new}", "best"), *differences.environments(comparison.environment, reference)],
        [*differences.summary(comparison.cases, reference), *repeated, differences.convention(reference)],
        differences.status_changes(comparison),
        *differences.ratios(comparison.cases, reference),
        differences.unreferenced(comparison),
        *only,
    ]


def _changes(comparison: Comparison) -> list[Table | list[Cell]]:
    """What the table of a trend does not tell of its last and first file."""
    from bench.analysis import differences

    return [differences.status_changes(comparison), differences.unreferenced(comparison)]


def _trend(files: Sequence[File], reference: str | None) -> list[Table | list[Cell]]:
    """What differs between the environments first, then the numbers."""
    from bench.analysis import differences, trend
    from bench.analysis.comparison import environments

    differ = environments(*(file.cases for file in files))
    return [
        trend.heading(files, reference),
        differences.environments(differ, reference),
        *trend.tables(files, reference),
    ]


def _judged(
    comparison: Comparison, base: File, new: File, wanted: Criteria
) -> tuple[list[Table | list[Cell]], list[Outcome]]:
    """The verdicts as tables and notes, and what they amount to by each criterion."""
    from bench.analysis import verdicts
    from bench.analysis.comparison import shared
    from bench.analysis.tables import Cell

    judged = verdicts.with_verdicts(comparison, wanted.latency or 0.0)
    found = verdicts.outcomes(comparison, judged, wanted)
    title = [Cell(f"verdicts: {new.path} held to {base.path}", "best")]
    if same := shared(base.visits, new.visits):
        title.append(Cell(f"{same} visits stand in both files: one measurement, not two, and 1x by definition", "bad"))
    tables = verdicts.tables(judged, comparison.reference) if wanted.latency is not None else []
    return [title, *tables, *(outcome.notes for outcome in found)], found


def _tell(parts: Iterable[Table | list[Cell]], markdown_to: str | None) -> None:
    """Prints the parts, or writes them as Markdown, or both."""
    from bench.analysis.render import console, markdown, markdown_notes, print_notes, print_table

    text = "".join(markdown(part) if isinstance(part, tuple) else markdown_notes(part) for part in parts)
    if markdown_to == "-":
        sys.stdout.write(text)
        return
    terminal = console()
    for part in parts:
        if isinstance(part, tuple):
            print_table(part, terminal)
        else:
            print_notes(part, terminal)
    if markdown_to is not None:
        print(f"written: {cli.write('--markdown', Path(markdown_to), text)}")


def _export(file: File, path: Path, told: TextIO) -> None:
    """Writes the file's cases as JSON of pytest-benchmark."""
    from bench.analysis import export

    document = export.pytest_benchmark(file.visits)
    count, rest = len(document["benchmarks"]), len(file.cases) - len(document["benchmarks"])
    if not count:
        raise UserError(f"--pytest-benchmark: none of the {rest} cases of {file.path} is ok")
    left_out = f", without {rest} that are not ok" if rest else ""
    cli.write("--pytest-benchmark", path, export.text(document))
    print(f"written: {path}, {count} cases of {file.path}{left_out}", file=told)


if __name__ == "__main__":
    cli.run(main)
