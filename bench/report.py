"""Shows results: what to use at which length, in words; the tables behind it; figures; a page to explore.

python -m bench.report results.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli
from bench.beside import MOST, processes
from bench.errors import UserError
from bench.models import Model, named
from bench.page import vega
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

    Returns the files written. All of it is done in this process, so that any script may call it. Where the baseline did
    not run there are no speed-ups, and a line says so. UserError for a file that is no results CSV, and where the
    figures cannot be written (the rest is printed by then).
    """
    from bench.figures.drawings import drawings
    from bench.figures.files import save

    contents = _read(csvs, baseline, models)
    _print(contents)
    folder, stem = _folder(csvs), _stem(csvs)
    saved = _saved(save(drawing, folder, stem) for drawing in drawings(contents))
    return [path for paths in saved for path in paths]


def main(argv: list[str]) -> int:
    """Prints and writes what was asked for; returns the exit status."""
    options = parser().parse_args(argv)
    _check(options)
    written: list[Path] = []
    try:
        with processes(_modules(options), 1 if options.no_figures else MOST) as beside:
            for paths in _report(options, beside):
                written += paths
    except BrokenExecutor:
        raise UserError(
            "a process beside this one was killed, perhaps for want of memory; --no-figures without --html needs none"
        ) from None
    finally:
        if written:
            print(f"written: {' '.join(map(str, written))}", file=sys.stderr if options.markdown == "-" else sys.stdout)
    return 0


def _modules(options: argparse.Namespace) -> Iterator[str]:
    """What the processes beside this one have to load for what is asked for."""
    if options.html:
        yield "vl_convert"
    if not options.no_figures:
        yield "bench.figures.curves"


def _report(options: argparse.Namespace, beside: Executor) -> Iterator[list[Path]]:
    """The files, as they are written. The page's script is made while the rows are read, figures are drawn while the
    rest is."""
    from bench.figures.drawings import drawings
    from bench.figures.files import save
    from bench.page.document import render

    script = beside.submit(vega.script) if options.html else None
    contents = _read(options.csvs, options.baseline, options.model)
    _check_baseline(options.baseline, contents)
    folder, stem = options.figures or _folder(options.csvs), _stem(options.csvs)
    wanted = [] if options.no_figures else drawings(contents)
    figures = [beside.submit(save, drawing, folder, stem) for drawing in wanted]
    if options.markdown == "-":
        sys.stdout.write(_markdown(contents))
    else:
        _print(contents)
    if options.markdown not in (None, "-"):
        yield [cli.write("--markdown", Path(options.markdown), _markdown(contents))]
    if script:
        yield [cli.write("--html", options.html, render(contents, stem, script.result()))]
    yield from _saved(figure.result() for figure in figures)


def _check(options: argparse.Namespace) -> None:
    """UserError, before any work, for what could not be read or written in it."""
    for csv in options.csvs:
        cli.check_readable(Path(csv))
    cli.check_output("--markdown", options.markdown, options.csvs)
    if str(options.html) == "-":
        raise UserError("--html: - is no file, and a page is not for a terminal; accepted: a file, such as report.html")
    cli.check_output("--html", options.html, [*options.csvs, options.markdown])
    if options.figures and not options.no_figures:
        cli.check_folder("--figures", options.figures)
    if options.html:
        vega.check()


def _check_baseline(baseline: str, contents: Contents) -> None:
    """UserError for one that was named and is not there; the usual one may be missing, and then a line says so."""
    variants = sorted(contents.visits["variant"].unique())
    if baseline not in (*variants, BASELINE):
        raise UserError(f"--baseline: {baseline!r} is not in these results; accepted: {', '.join(variants)}")


def _read(csvs: Sequence[str | Path], baseline: str, models: Sequence[Model]) -> Contents:
    from bench.analysis.contents import Contents
    from bench.analysis.frame import read

    return Contents(read(csvs), baseline, models)


def _print(contents: Contents) -> None:
    """Answer and tables, on the terminal."""
    from bench.analysis.render import console, print_notes, print_paragraph, print_table

    terminal = console()
    print_notes(contents.heading, terminal)
    for paragraph in contents.answer:
        print_paragraph(paragraph, terminal)
    for table in contents.tables:
        print_table(table, terminal)


def _markdown(contents: Contents) -> str:
    """The same as Markdown."""
    from bench.analysis.render import markdown, markdown_notes, markdown_paragraph

    return (
        markdown_notes(contents.heading)
        + "".join(map(markdown_paragraph, contents.answer))
        + "".join(map(markdown, contents.tables))
    )


def _saved(figures: Iterable[list[Path]]) -> Iterator[list[Path]]:
    """The files of each figure; UserError where one cannot be saved."""
    from bench.figures.files import NotWritten

    try:
        yield from figures
    except NotWritten as error:
        raise UserError(f"no figures: {error}; --figures takes a folder that can be written to") from None


def _folder(csvs: Sequence[str | Path]) -> Path:
    """Where figures go if nothing else is said: beside the first CSV; here, if that is a pipe."""
    first = Path(csvs[0])
    return Path() if first.is_fifo() else first.parent


def _stem(csvs: Sequence[str | Path]) -> str:
    """What the files written are called: cut, for a name may have 255 bytes."""
    return "+".join(Path(csv).stem for csv in csvs).encode(errors="replace")[:150].decode(errors="ignore")


if __name__ == "__main__":
    cli.run(main)
