"""What a run shows while it works: a bar with what runs now and the time left; lines where there is no terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bench.measure.rounds import Visit
from bench.results.columns import Case, Row

_STYLES = {"ok": "green", "unsupported": "dim", "skipped": "dim", "oom": "yellow", "timeout": "yellow"}


class Display:
    """Shows a run on stderr. Use as a context manager around it."""

    def __init__(self, cases: int, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._to_visit: int | None = cases
        self._round = 0
        self._ok = 0
        self._task: TaskID | None = None

    def visiting(self, visit: Visit) -> None:
        """A visit begins."""
        if visit.number != self._round:
            self._next_round(visit.number)
        if self._task is not None:
            self._bar.update(self._task, description=f"round {visit.number}: {escape(label(visit.case))}")

    def finished(self, row: Row) -> None:
        """A row is known."""
        if self._task is None:
            self._next_round(row.visit)
        assert self._task is not None
        self._bar.advance(self._task)
        facts, latency_ms = row.facts, row.derived.latency_ms
        self._ok += facts.status == "ok"
        outcome = f"{latency_ms:.4g} ms" if latency_ms is not None else f"{facts.status}: {facts.reason}"
        if not self.console.is_terminal or facts.status not in ("ok", "unsupported", "skipped"):
            style = _STYLES.get(facts.status, "bold red")
            self.console.print(
                f"{escape(label(row.case))}  [{style}]{escape(outcome)}[/]", soft_wrap=True, highlight=False
            )

    def _next_round(self, number: int) -> None:
        """A later round visits what went well in the one before; how many that is, a resumed run does not know yet."""
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._to_visit = self._ok or None
        self._round, self._ok = number, 0
        self._task = self._bar.add_task(f"round {number}", total=self._to_visit)

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()


def label(case: Case) -> str:
    """A case in a few words."""
    length = str(case.seq_kv) if case.seq_q == case.seq_kv else f"{case.seq_q}x{case.seq_kv}"
    heads = str(case.heads) if case.heads == case.kv_heads else f"{case.heads}/{case.kv_heads}"
    sizes = f"n={length} b={case.batch} h={heads} d={case.head_dim}"
    return f"{case.variant} {case.mask} {case.direction} {sizes} {case.dtype}"
