"""Shows results: what to use at which length, in words; the tables behind it; figures; a page to explore.

python -m bench.report results.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    with _figures(contents, csvs, baseline) as files:
        _print(contents)
    return files


def main(argv: list[str]) -> int:
    """Prints and writes what was asked for; returns the exit status."""
    options = parser().parse_args(argv)
    _check(options)
    contents = _read(options.csvs, options.baseline, options.model)
    variants = sorted(contents.cases["variant"].unique())
    if options.baseline not in (*variants, BASELINE):
        raise UserError(f"--baseline: {options.baseline!r} is not in these results; accepted: {', '.join(variants)}")
    written = []
    with _figures(contents, options.csvs, options.baseline, options.figures, not options.no_figures) as files:
        if options.markdown == "-":
            sys.stdout.write(_markdown(contents))
        else:
            _print(contents)
        if options.markdown not in (None, "-"):
            written.append(cli.write("--markdown", Path(options.markdown), _markdown(contents)))
        if options.html:
            written.append(cli.write("--html", options.html, _page(contents, options.csvs, options.baseline)))
    written += files
    if written:
        print(f"written: {' '.join(map(str, written))}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    return 0


def _check(options: argparse.Namespace) -> None:
    """UserError, before any work, for what could not be written after it."""
    markdown = [options.markdown] if options.markdown not in (None, "-") else []
    for option, paths, others in (("--markdown", markdown, []), ("--html", [options.html], markdown)):
        for path in filter(None, paths):
            cli.check_apart(option, Path(path), [*options.csvs, *others])
            cli.check_writable(option, Path(path))
    if options.html:
        from bench.page.document import vega

        vega()


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
    for table in (*contents.wholes, *contents.measured, *contents.derived):
        print_table(table, terminal)


def _markdown(contents: Contents) -> str:
    """The same as Markdown."""
    from bench.analysis.render import markdown, markdown_notes, markdown_paragraph

    return (
        markdown_notes(contents.heading)
        + "".join(map(markdown_paragraph, contents.answer))
        + "".join(map(markdown, (*contents.wholes, *contents.measured, *contents.derived)))
    )


def _page(contents: Contents, csvs: Sequence[str | Path], baseline: str) -> str:
    """The same as a page, in which the measured cases are a table of its own."""
    from bench.page.document import render

    c = contents
    return render(c.visits, c.cases, c.answer, [*c.wholes, *c.derived], baseline, title=_stem(csvs))


@contextmanager
def _figures(
    contents: Contents,
    csvs: Sequence[str | Path],
    baseline: str,
    folder: Path | None = None,
    wanted: bool = True,
) -> Iterator[list[Path]]:
    """The figures, if wanted, named after the CSVs; they are written by the end of the block."""
    if not wanted:
        yield []
        return
    from bench.figures import drawings

    folder = Path(csvs[0]).parent if folder is None else folder
    try:
        with drawings.writing(contents.cases, contents.growths, folder, _stem(csvs), baseline) as files:
            yield files
    except drawings.NotWritten as error:
        raise UserError(f"no figures: {error}; --figures takes a folder that can be written to") from None


def _stem(csvs: Sequence[str | Path]) -> str:
    """What the files written are called: cut, for a name may have 255 bytes."""
    return "+".join(Path(csv).stem for csv in csvs).encode(errors="replace")[:150].decode(errors="ignore")


if __name__ == "__main__":
    cli.run(main)
