"""What a run shows while it works, on a terminal and off it."""

import io
from dataclasses import replace

from rich.console import Console

from bench.measure.rounds import Visit
from bench.progress import Display, label
from bench.results.columns import Facts
from tests.results.rows import CASE, ROW

FAILED = replace(ROW, facts=Facts("crashed", "killed by [SIGSEGV]"))


def shown(terminal: bool, visits: int = 1) -> str:
    """What two cases leave on the screen, one that went well and one that crashed."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=160, color_system=None)
    with Display(2, console) as display:
        for number in range(1, visits + 1):
            for row in (ROW, FAILED)[: 3 - number]:
                display.visiting(Visit(row.case, number))
                display._bar.refresh()
                display.finished(replace(row, visit=number))
                display._bar.refresh()
    return out.getvalue()


def test_off_a_terminal_each_row_is_a_line() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines == [f"{label(CASE)}  1.25 ms", f"{label(CASE)}  crashed: killed by [SIGSEGV]"]


def test_on_a_terminal_the_bar_names_what_runs_and_only_failures_stay() -> None:
    screen = shown(terminal=True)
    assert f"round 1: {label(CASE)}" in screen
    assert "1/2" in screen
    assert "crashed: killed by [SIGSEGV]" in screen
    assert "1.25 ms" not in screen


def test_a_later_round_counts_what_it_will_visit() -> None:
    screen = shown(terminal=True, visits=2)
    assert f"round 2: {label(CASE)}" in screen
    assert "1/1" in screen


def test_a_case_in_a_few_words() -> None:
    assert label(CASE) == "sdpa causal+window:256 fwd n=1024 b=1 h=8/2 d=64 float32"
    assert "n=1x1024" in label(replace(CASE, seq_q=1))
