"""The parent's side: a warm server that forks a process for each call, and an account of how each one ended.

A fresh interpreter that imports torch costs seconds; a fork of one that has it costs hundredths. The server runs no
operator and no device call, and never imports a user's module: one multi-threaded operator in it would hang every
child for ever. So what is preloaded is this project's own code, and nothing else.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.interrupts import held_back

_PRELOAD = "bench.measure.preload"
_GRACE_S = 5.0


class Died(Exception):
    """A process that ended without an answer: `status` is timeout, crashed or error, the text is the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Server:
    """Starts processes that have torch loaded already. Use as a context manager; leaving it ends what still runs."""

    def __init__(self, preload: Iterable[str] = ()) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([*preload, _PRELOAD])
        # Compiling in worker processes of its own costs a child more than it saves.
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
        self._folder = Path(tempfile.mkdtemp(prefix="attention-bench-"))
        self._process: ForkServerProcess | None = None

    def call(self, function: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
        """The result of `function(*arguments)` in a process of its own. Raises what it raised, or Died."""
        log = self._folder / "output"
        answer, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_serve, args=(function, arguments, theirs, log))
        try:
            with held_back():
                process.start()
                self._process = process
            theirs.close()
            succeeded, value = _await(process, answer, timeout_s, log)
        finally:
            self._end()
            answer.close()
        if succeeded:
            return value
        raise value

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self) -> None:
        """Kills the process with all that it started. One left alive would keep the interpreter from ending."""
        with held_back():
            process, self._process = self._process, None
            if process is None or process.pid is None:
                return
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.join()
            process.close()


def _serve(*arguments: Any) -> None:
    """Keeps torch out of this process: the worker is imported in the child, where it is loaded already."""
    from bench.measure.worker import serve

    serve(*arguments)


def _await(process: ForkServerProcess, answer: Connection, timeout_s: float, log: Path) -> tuple[bool, Any]:
    deadline = time.monotonic() + timeout_s
    # Never on the pipe's end alone: a grandchild can hold it open.
    if not wait([answer, process.sentinel], timeout_s):
        raise Died("timeout", f"no result within {timeout_s:g} s")
    if answer.poll(0):
        try:
            succeeded, value = answer.recv()
        except (EOFError, OSError):
            pass
        else:
            process.join(_GRACE_S)
            return succeeded, value
    process.join(max(0.0, deadline - time.monotonic()) + _GRACE_S)
    raise _account(process.exitcode, _last_line(log))


def _account(exitcode: int | None, last: str) -> Died:
    said = f"; it last said: {last}" if last else ""
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        guess = " (the system may have been out of memory)" if name == "SIGKILL" else ""
        return Died("crashed", f"killed by {name}{guess}{said}")
    return Died("error", f"ended without a result, exit status {exitcode}{said}")


def _last_line(log: Path) -> str:
    """The last thing that the process printed, cut to a line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((" ".join(line.split())[:200] for line in reversed(lines) if line.strip()), "")
