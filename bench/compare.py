"""Compares two results files case by case: what became slower or faster, bigger or smaller, right or wrong.

python -m bench.compare base.csv new.csv
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError

if TYPE_CHECKING:
    from bench.analysis.comparison import Comparison
    from bench.analysis.tables import Cell, Table

DESCRIPTION = "Compares two results files case by case: ratios of time and peak memory, and changes of status."

EXAMPLES = """\
  python -m bench.compare base.csv new.csv
  python -m bench.compare torch-2.12.csv torch-2.13.csv --markdown -"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("compare", DESCRIPTION, EXAMPLES)
    p.add_argument("base", type=Path, help="results to compare with, as bench.run writes them")
    p.add_argument("new", type=Path, help="results to compare")
    p.add_argument("--markdown", metavar="FILE", help="write the comparison to FILE as Markdown; - prints it")
    return p


def main(argv: list[str]) -> int:
    """Prints or writes the comparison; returns the exit status."""
    options = parser().parse_args(argv)
    parts = _parts(_compared(options.base, options.new), options.base, options.new)
    if options.markdown != "-":
        _print(parts)
    if options.markdown is not None:
        from bench.analysis.render import markdown, markdown_notes

        text = "".join(markdown(part) if isinstance(part, tuple) else markdown_notes(part) for part in parts)
        if options.markdown == "-":
            sys.stdout.write(text)
        else:
            print(f"written: {cli.write('--markdown', Path(options.markdown), text)}")
    return 0


def _compared(base: Path, new: Path) -> Comparison:
    """The comparison of two files that can be compared; UserError says why they cannot."""
    from bench.analysis.cases import cases
    from bench.analysis.comparison import check_once, compare, unlike
    from bench.analysis.frame import read

    before, after = cases(read([base])), cases(read([new]))
    check_once(str(base), before)
    check_once(str(new), after)
    comparison = compare(before, after)
    if comparison.cases.empty:
        reason = "; ".join(unlike(before, after)) or "each has others"
        raise UserError(f"{base} and {new} have no case in common: {reason}")
    return comparison


def _parts(comparison: Comparison, base: Path, new: Path) -> list[Table | list[Cell]]:
    """What differs between the environments first, then what changed, then the numbers; tables, and notes around."""
    from bench.analysis import differences
    from bench.analysis.tables import Cell

    only = [
        differences.only_in(str(name), cases, comparison.axes)
        for name, cases in ((base, comparison.only_base), (new, comparison.only_new))
    ]
    # How well two runs agree says something only where nothing but the suite itself may differ.
    repeated = differences.repeatability(comparison.cases) if set(comparison.environment) <= {"commit"} else []
    parts: list[Table | list[Cell]] = [
        [Cell(f"{base} → {new}", "best"), *differences.environments(comparison.environment)],
        [*differences.summary(comparison.cases), *repeated, Cell(differences.CONVENTION)],
        differences.status_changes(comparison),
        *differences.ratios(comparison.cases),
        *only,
    ]
    return [part for part in parts if part]


def _print(parts: list[Table | list[Cell]]) -> None:
    from bench.analysis.render import console, print_notes, print_table

    terminal = console()
    for part in parts:
        if isinstance(part, tuple):
            print_table(part, terminal)
        else:
            print_notes(part, terminal)


if __name__ == "__main__":
    cli.run(main)
