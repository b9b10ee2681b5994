"""Compares two results files case by case: what became slower or faster, bigger or smaller, right or wrong.

python -m bench.compare base.csv new.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.errors import UserError

if TYPE_CHECKING:
    from bench.analysis.comparison import Comparison

DESCRIPTION = "Compares two results files case by case: ratios of time and peak memory, and changes of status."

EXAMPLES = """\
  python -m bench.compare base.csv new.csv
  python -m bench.compare torch-2.12.csv torch-2.13.csv"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("compare", DESCRIPTION, EXAMPLES)
    p.add_argument("base", type=Path, help="results to compare with, as bench.run writes them")
    p.add_argument("new", type=Path, help="results to compare")
    return p


def main(argv: list[str]) -> int:
    """Prints the comparison; returns the exit status."""
    options = parser().parse_args(argv)
    _print(_compared(options.base, options.new), options.base, options.new)
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


def _print(comparison: Comparison, base: Path, new: Path) -> None:
    """What differs between the environments first, then what changed, then the numbers."""
    from bench.analysis import differences
    from bench.analysis.render import console, print_notes, print_table
    from bench.analysis.tables import Cell

    terminal = console()
    print_notes([Cell(f"{base} → {new}", "best"), *differences.environments(comparison.environment)], terminal)
    print_notes([*differences.summary(comparison.cases), Cell(differences.CONVENTION)], terminal)
    if changes := differences.status_changes(comparison):
        print_notes(changes, terminal)
    for table in differences.ratios(comparison.cases):
        print_table(table, terminal)
    for name, cases in ((base, comparison.only_base), (new, comparison.only_new)):
        print_notes(differences.only_in(str(name), cases, comparison.axes), terminal)


if __name__ == "__main__":
    cli.run(main)
