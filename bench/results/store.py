"""The CSV of a run: rows are appended one by one, each on disk before the next begins, and never rewritten."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from bench.errors import UserError
from bench.interrupts import held_back
from bench.results.columns import COLUMNS, Row


class Store:
    """An open results file, locked against a second run. Use as a context manager.

    A new file is never made over an existing one. With `resume`, an existing file is continued: its rows are in
    `rows`, and a last line that was torn by a crash is dropped.
    """

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path = path
        self.rows: list[Row] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | (0 if resume else os.O_CREAT | os.O_EXCL), 0o644)
        except FileExistsError:
            raise UserError(f"--out: {path} exists; add --resume to continue it, or name another file") from None
        except FileNotFoundError:
            raise UserError(f"--resume: {path} does not exist; leave --resume out to start it") from None
        except OSError as error:
            raise UserError(f"--out: {path} cannot be written: {error.strerror}") from None
        try:
            self._lock()
            if resume:
                self.rows = self._recover()
            if os.fstat(self._file).st_size == 0:
                self._write(_line(COLUMNS))
        except BaseException:
            os.close(self._file)
            raise

    def append(self, row: Row) -> None:
        """Writes one row, whole, and waits until it is on disk. An interrupt waits until that is done."""
        with held_back():
            self._write(_line(row.cells().values()))
            self.rows.append(row)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"--out: another run is writing {self.path}") from None

    def _recover(self) -> list[Row]:
        with os.fdopen(os.dup(self._file), "rb") as file:
            file.seek(0)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        if not whole and _line(COLUMNS).startswith(content):
            os.ftruncate(self._file, 0)
            return []
        lines = csv.DictReader(io.StringIO(whole.decode(errors="replace"), newline=""))
        if tuple(lines.fieldnames or ()) != tuple(COLUMNS):
            raise UserError(f"--resume: {self.path} is not a results file of this version; its header differs")
        try:
            rows = [Row.of_cells(cells) for cells in lines]
        except ValueError as error:
            raise UserError(f"--resume: {self.path}, line {lines.line_num}: {error}") from None
        os.ftruncate(self._file, len(whole))
        return rows

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise UserError(f"--out: {self.path} cannot be written: {error.strerror}") from None


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()
