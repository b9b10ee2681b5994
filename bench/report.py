"""Shows results: what to use at which length, in words; the tables behind it; figures; a page to explore.

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
from bench.models import Model, named
from bench.plan.arguments import BASELINE

if TYPE_CHECKING:
    from bench.analysis.contents import Contents

DESCRIPTION = """Shows results. First the answer: what is fastest and leanest at which length, where that changes, and
how far each variant goes. Then the tables, the fastest right variant first, how each scales, figures, and a page."""

EXAMPLES = """\
  python -m bench.report results.csv
  python -m bench.report results.csv --html report.html
  python -m bench.report results.csv --baseline naive --figures plots
  python -m bench.report monday.csv tuesday.csv --no-figures
  python -m bench.report results.csv --model llama-3-8b --markdown report.md"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("report", DESCRIPTION, EXAMPLES)
    p.add_argument("csvs", nargs="+", metavar="CSV", help="results, as bench.run writes them; several are read as one")
    p.add_argument(
        "--baseline", default=BASELINE, metavar="NAME", help=f"variant that speed-ups are over (default: {BASELINE})"
    )
    p.add_argument(
        "--model",
        type=cli.comma_separated(named),
        default=(),
        metavar="LIST",
        help="also what all layers of these models come to; python -m bench.models lists them",
    )
    p.add_argument("--html", type=Path, metavar="FILE", help="write a page that opens from disk, to explore or to send")
    p.add_argument("--markdown", metavar="FILE", help="write answer and tables to FILE as Markdown; - prints them")
    p.add_argument("--figures", type=Path, metavar="DIR", help="folder for the figures (default: beside the first CSV)")
    p.add_argument("--no-figures", action="store_true", help="draw none")
    return p


def show(csvs: Sequence[str | Path], baseline: str = BASELINE, models: Sequence[Model] = ()) -> list[Path]:
    """Prints what there is to say of these results, read as one, and writes the figures beside the first.

    Returns the files written. Where the baseline did not run there are no speed-ups, and a line says so. UserError for
    a file that is no results CSV, and where the figures cannot be written (the rest is printed by then).
    """
    contents = _read(csvs, baseline, models)
    _print(contents)
    return _draw(contents, csvs, baseline)


def main(argv: list[str]) -> int:
    """Prints and writes what was asked for; returns the exit status."""
    options = parser().parse_args(argv)
    contents = _read(options.csvs, options.baseline, options.model)
    variants = sorted(contents.cases["variant"].unique())
    if options.baseline not in (*variants, BASELINE):
        raise UserError(f"--baseline: {options.baseline!r} is not in these results; accepted: {', '.join(variants)}")
    written = []
    if options.markdown == "-":
        sys.stdout.write(_markdown(contents))
    else:
        _print(contents)
    if options.markdown not in (None, "-"):
        written.append(cli.write("--markdown", Path(options.markdown), _markdown(contents)))
    if options.html:
        written.append(cli.write("--html", options.html, _page(contents, options.csvs, options.baseline)))
    if not options.no_figures:
        written += _draw(contents, options.csvs, options.baseline, options.figures)
    if written:
        print(f"written: {' '.join(map(str, written))}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    return 0


def _read(csvs: Sequence[str | Path], baseline: str, models: Sequence[Model]) -> Contents:
    from bench.analysis.contents import contents
    from bench.analysis.frame import read

    return contents(read(csvs), baseline, models)


def _print(contents: Contents) -> None:
    """Answer and tables, on the terminal."""
    from bench.analysis.render import console, print_notes, print_paragraph, print_table

    terminal = console()
    print_notes(contents.heading, terminal)
    for paragraph in contents.answer:
        print_paragraph(paragraph, terminal)
    for table in (*contents.measured, *contents.derived):
        print_table(table, terminal)


def _markdown(contents: Contents) -> str:
    """The same as Markdown."""
    from bench.analysis.render import markdown, markdown_notes, markdown_paragraph

    return (
        markdown_notes(contents.heading)
        + "".join(map(markdown_paragraph, contents.answer))
        + "".join(map(markdown, (*contents.measured, *contents.derived)))
    )


def _page(contents: Contents, csvs: Sequence[str | Path], baseline: str) -> str:
    """The same as a page, in which the measured cases are a table of its own."""
    from bench.page.document import render

    c = contents
    return render(c.visits, c.cases, c.answer, c.derived, baseline, title=_stem(csvs))


def _draw(contents: Contents, csvs: Sequence[str | Path], baseline: str, folder: Path | None = None) -> list[Path]:
    """The figures written, named after the CSVs."""
    from bench.figures import drawings

    folder = Path(csvs[0]).parent if folder is None else folder
    try:
        return drawings.write(contents.cases, contents.growths, folder, _stem(csvs), baseline)
    except OSError as error:
        reason = f"{error.filename or folder}: {error.strerror}"
        raise UserError(f"no figures: {reason}; --figures takes a folder that can be written to") from None


def _stem(csvs: Sequence[str | Path]) -> str:
    return "+".join(Path(csv).stem for csv in csvs)[:100]


if __name__ == "__main__":
    cli.run(main)
