"""Tables on the terminal (rich) and as Markdown. Names and reasons are data: shown as typed, never as markup."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from bench.analysis.answer import Paragraph
from bench.analysis.tables import WORDS, Cell, Table

_STYLES = {"best": "bold", "good": "green", "bad": "bold red"}
_WIDEST = 30  # of a column; longer words are folded
# What a narrow terminal does without, in this order.
_DISPENSABLE = ("visits", "kernel", "error", "its interval", "95 % interval")
_PIPED_WIDTH = 140  # a file or a pipe has no width of its own, and rich would cut tables down to 80


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves it to `bench.cli.run`, for which a reader that has seen enough is no failure."""
        raise  # noqa: PLE0704


def console() -> Console:
    """The terminal, or whatever stdout goes to."""
    return _Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def print_table(table: Table, to: Console) -> None:
    """One table with its title above and its notes below."""
    table = _fitting(table, to.width)
    to.print(Text(table.title, "bold"))
    if table.sections:
        to.print(_rich(table, joined=_width(table) <= to.width), "")
    print_notes(table.notes, to)


def print_paragraph(paragraph: Paragraph, to: Console) -> None:
    """Its title, and a line a sentence, hung where it is longer than the terminal is wide."""
    to.print(Text(paragraph.title, "bold"))
    for line in paragraph.lines:
        to.print(Padding(Text(line.text, _STYLES.get(line.style, "")), (0, 0, 0, 2), expand=False))
    to.print()


def print_notes(notes: Iterable[Cell], to: Console) -> None:
    """A line a note, and an empty one after them."""
    lines = [Text(note.text, _STYLES.get(note.style, "")) for note in notes]
    if lines:
        to.print(*lines, "", sep="\n")


def _rich(table: Table, joined: bool) -> RichTable:
    result = RichTable(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for name in table.header:
        words = name in WORDS
        result.add_column(_heading(name), justify="left" if words else "right", max_width=_WIDEST, overflow="fold")
    for section in table.sections:
        for row in _rows(section, joined):
            result.add_row(*row)
        result.add_section()
    return result


def _rows(section: list[tuple[Cell, ...]], joined: bool) -> list[list[Text]]:
    """The section's rows, or one row of as many lines: rich lays it out in half the time, but cannot fold it."""
    rows = [[Text(cell.text, _STYLES.get(cell.style, "")) for cell in row] for row in section]
    if not joined or any(text.cell_len > _WIDEST for row in rows for text in row):
        return rows
    return [[Text("\n").join(column) for column in zip(*rows, strict=True)]]


def _heading(name: str) -> Text:
    """On two lines where it has two words: numbers are narrower than what they are called."""
    return Text("\n".join(name.rsplit(" ", 1)))


def _fitting(table: Table, width: int) -> Table:
    """The table without the columns that a narrow terminal has no room for, and a note that names them."""
    left_out: list[str] = []
    for name in _DISPENSABLE:
        if _width(table) <= width:
            break
        if name in table.header:
            table = _without(table, name)
            left_out.append(name)
    note = [Cell(f"left out, for the terminal is narrow: {', '.join(left_out)}")] if left_out else []
    return table._replace(notes=[*table.notes, *note])


def _without(table: Table, name: str) -> Table:
    at = table.header.index(name)
    sections = [[row[:at] + row[at + 1 :] for row in section] for section in table.sections]
    return table._replace(header=table.header[:at] + table.header[at + 1 :], sections=sections)


def _width(table: Table) -> int:
    """Of the table as printed, at most: a column is as wide as its longest cell, and two blanks."""
    heads = [max(map(cell_len, _heading(name).plain.splitlines())) for name in table.header]
    rows = [[cell_len(cell.text) for cell in row] for section in table.sections for row in section]
    return sum(min(max(column), _WIDEST) + 2 for column in zip(heads, *rows, strict=True))


def markdown(table: Table) -> str:
    """The same as Markdown, ending in a blank line."""
    lines = [f"### {_escaped(table.title)}", ""]
    if table.sections:
        lines += [_line(map(_escaped, table.header)), _line(":--" if n in WORDS else "--:" for n in table.header)]
        lines += [_line(map(_marked, row)) for section in table.sections for row in section]
        lines += [""]
    return "\n".join(lines) + "\n" * bool(table.sections) + markdown_notes(table.notes)


def markdown_paragraph(paragraph: Paragraph) -> str:
    """A heading, and a list of its sentences."""
    return f"### {_escaped(paragraph.title)}\n\n{markdown_notes(paragraph.lines)}"


def markdown_notes(notes: Iterable[Cell]) -> str:
    """A list of notes, ending in a blank line."""
    return "".join(f"- {_marked(note)}\n" for note in notes) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _marked(cell: Cell) -> str:
    text = _escaped(cell.text)
    return f"**{text}**" if text and cell.style in ("best", "bad") else text


def _escaped(text: str) -> str:
    """What Markdown would take for its own, with a backslash; an underscore inside a word needs none."""
    return re.sub(r"[\\|`*<>\[\]#~&]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)
