"""Shows results: the tables of a run again, and its figures of latency and peak memory against sequence length.

python -m bench.report results.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError
from bench.plan.arguments import BASELINE

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION = "Shows results: a table a mask, the fastest right variant first, and figures of latency and peak memory."

EXAMPLES = """\
  python -m bench.report results.csv
  python -m bench.report results.csv --baseline naive --figures plots
  python -m bench.report monday.csv tuesday.csv --no-figures
  python -m bench.report results.csv --markdown report.md"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("report", DESCRIPTION, EXAMPLES)
    p.add_argument("csvs", nargs="+", metavar="CSV", help="results, as bench.run writes them; several are read as one")
    p.add_argument(
        "--baseline", default=BASELINE, metavar="NAME", help=f"variant that speed-ups are over (default: {BASELINE})"
    )
    p.add_argument("--markdown", metavar="FILE", help="write the tables to FILE as Markdown; - prints them")
    p.add_argument("--figures", type=Path, metavar="DIR", help="folder for the figures (default: beside the first CSV)")
    p.add_argument("--no-figures", action="store_true", help="tables only")
    return p


def show(csvs: Sequence[str | Path], baseline: str = BASELINE, figures: bool = True) -> list[Path]:
    """Prints the tables of these results, read as one, and writes the figures beside the first; the files written.

    Where the baseline did not run there are no speed-ups, and a line says so. UserError for a file that is no results
    CSV, and where the figures cannot be written (the tables are printed by then).
    """
    cases = _cases(csvs)
    _print(cases, baseline)
    return _draw(cases, csvs) if figures else []


def main(argv: list[str]) -> int:
    """Prints and writes what was asked for; returns the exit status."""
    options = parser().parse_args(argv)
    cases = _cases(options.csvs)
    variants = sorted(cases["variant"].unique())
    if options.baseline not in (*variants, BASELINE):
        raise UserError(f"--baseline: {options.baseline!r} is not in these results; accepted: {', '.join(variants)}")
    written = []
    if options.markdown == "-":
        sys.stdout.write(_markdown(cases, options.baseline))
    else:
        _print(cases, options.baseline)
    if options.markdown not in (None, "-"):
        written.append(cli.write("--markdown", Path(options.markdown), _markdown(cases, options.baseline)))
    if not options.no_figures:
        written += _draw(cases, options.csvs, options.figures)
    if written:
        print(f"written: {' '.join(map(str, written))}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    return 0


def _cases(csvs: Sequence[str | Path]) -> pd.DataFrame:
    from bench.analysis.cases import cases
    from bench.analysis.frame import read

    return cases(read(csvs))


def _print(cases: pd.DataFrame, baseline: str) -> None:
    """The tables, on the terminal."""
    from bench.analysis.render import console, print_notes, print_table
    from bench.analysis.tables import heading, tables

    terminal = console()
    print_notes(heading(cases, baseline), terminal)
    for table in tables(cases, baseline):
        print_table(table, terminal)


def _markdown(cases: pd.DataFrame, baseline: str) -> str:
    """The same as Markdown."""
    from bench.analysis.render import markdown, markdown_notes
    from bench.analysis.tables import heading, tables

    return markdown_notes(heading(cases, baseline)) + "".join(map(markdown, tables(cases, baseline)))


def _draw(cases: pd.DataFrame, csvs: Sequence[str | Path], folder: Path | None = None) -> list[Path]:
    """The figures written, named after the CSVs."""
    from bench.analysis import figures

    folder = Path(csvs[0]).parent if folder is None else folder
    try:
        return figures.write(cases, folder, "+".join(Path(csv).stem for csv in csvs)[:100])
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror}"
        raise UserError(f"no figures: {reason}; --figures takes a folder that can be written to") from None


if __name__ == "__main__":
    cli.run(main)
