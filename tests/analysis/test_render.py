"""Names and reasons are data: shown as typed on the terminal and in Markdown, whatever they look like."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bench.analysis.render import markdown, markdown_notes, print_notes, print_table
from bench.analysis.tables import Cell, Table, tables
from tests.analysis.made_up import compared_cases, failed, row

NASTY = [
    "[red]x[/red]",
    "[/]",
    "[/bold]",
    "[link=x]",
    ":smile:",
    "a|b",
    "`code`",
    "<script>",
    "$x$",
    "*y*",
    "_z_",
    "\\",
]


def terminal(width: int = 200, colour: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=colour, color_system="truecolor" if colour else None)


def printed(*made: Table, width: int = 200, colour: bool = False) -> str:
    to = terminal(width, colour)
    for table in made:
        print_table(table, to)
    return to.file.getvalue()


@pytest.mark.parametrize("text", NASTY)
def test_what_looks_like_markup_is_shown_as_typed(text: str) -> None:
    rows = [row(text, kernel=text), failed("error", text, text, n=2048), row(n=2048)]
    out = printed(*tables(compared_cases(*rows, baseline=text), text))
    assert out.count(text) >= 4
    assert f"{text}: error at 2048 ({text})" in out


@given(st.text(max_size=20), st.text(min_size=1, max_size=20).filter(str.strip))
@settings(max_examples=15, deadline=None)
def test_no_text_breaks_a_table(name: str, reason: str) -> None:
    (made,) = tables(compared_cases(row(name), failed("error", reason, name, n=2048), row(n=2048), baseline=name), name)
    printed(made)
    lines = markdown(made).splitlines()
    cells = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines if line.startswith("|")]
    assert len(set(cells)) == 1


def test_failures_stand_out_in_the_terminal() -> None:
    out = printed(
        *tables(compared_cases(row(), failed("wrong", "far off", "flex"), failed("oom", "big", "naive")), "sdpa"),
        colour=True,
    )
    assert "\x1b[1;31mflex: wrong (far off)\x1b[0m" in out
    assert "\x1b[1;31mnaive" not in out
    assert "\x1b[1msdpa" in out


def test_a_narrow_terminal_gets_fewer_columns_and_is_told_which() -> None:
    (made,) = tables(
        compared_cases(
            *(row(v, ms=t, visit=n) for v in ("sdpa", "a_rather_long_name") for n, t in ((1, 1.0), (2, 1.1)))
        ),
        "sdpa",
    )
    wide, narrow = printed(made, width=120), printed(made, width=64)
    assert "left out" not in wide
    assert "left out, for the terminal is narrow: visits, kernel" in narrow
    assert max(map(len, narrow.splitlines())) <= 64
    assert "a_rather_long_name" in narrow
    assert "1.05" in narrow


def test_markdown_is_a_table_with_its_notes() -> None:
    (made,) = tables(compared_cases(row("naive", ms=4.0), row(ms=2.0), failed("wrong", "far off", "flex")), "sdpa")
    lines = markdown(made).splitlines()
    assert lines[0].startswith("### causal · fwd")
    assert lines[2].startswith("| length | variant | latency ms | vs sdpa |")
    assert lines[3] == "| --: | :-- | --: | --: | --: | --: | --: | :-- | --: |"
    assert lines[4].startswith("| 1024 | **sdpa** | **2.00** | 1.00x | 0.5 % | 16.0 MiB | 1.0e-07 | flash |")
    assert lines[5].startswith("| 1024 | naive | 4.00 | 0.500x |")
    assert lines[7] == "- **flex: wrong (far off)**"


def test_markdown_keeps_what_is_special_from_acting() -> None:
    text = markdown_notes([Cell("a|b <script> *x* [y] `z` # ~ snake_case _u_ \\")])
    assert text == "- a\\|b \\<script\\> \\*x\\* \\[y\\] \\`z\\` \\# \\~ snake_case \\_u\\_ \\\\\n\n"


def test_no_notes_print_nothing() -> None:
    to = terminal()
    print_notes([], to)
    assert to.file.getvalue() == ""
