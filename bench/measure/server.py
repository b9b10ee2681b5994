"""The parent's side: a warm server that forks a process for each call, and an account of how each one ended.

A fresh interpreter that imports torch costs seconds; a fork of one that has it costs hundredths. The server runs no
operator and no device call, and never imports a user's module: one multi-threaded operator in it would hang every
child for ever. So what is preloaded is this project's own code, and nothing else.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from types import TracebackType
from typing import Any

from bench.interrupts import held_back

_PRELOAD = "bench.measure.preload"
TAIL_BYTES = 4096


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
        self._process: ForkServerProcess | None = None

    def call(
        self, function: Callable[..., Any], *arguments: Any, timeout_s: float, setup_timeout_s: float | None = None
    ) -> Any:
        """The result of `function(*arguments)` in a process of its own. Raises what it raised, or Died.

        With `setup_timeout_s` the function is given one more argument, to be called when its set-up is over: up to
        there that limit holds, and `timeout_s` from there on.
        """
        answer, their_answer = self._context.Pipe(duplex=False)
        output, their_output = self._context.Pipe(duplex=False)
        phased = setup_timeout_s is not None
        target_arguments = (function, arguments, their_answer, their_output, phased)
        process = self._context.Process(target=_serve, args=target_arguments)
        try:
            with held_back():
                process.start()
                self._process = process
            their_answer.close()
            their_output.close()
            ear = _Ear(process, answer, output)
            message = None
            if setup_timeout_s is not None:
                message = ear.hear(setup_timeout_s, "set-up did not end")
            succeeded, value = message or ear.hear(timeout_s, "no result")
        finally:
            self._end()
            answer.close()
            output.close()
        if succeeded:
            return value
        raise value

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

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


class _Ear:
    """Hears what a process answers, and keeps the last of what it prints: a flood fills no disk."""

    def __init__(self, process: ForkServerProcess, answer: Connection, output: Connection) -> None:
        self._process, self._answer, self._output = process, answer, output
        # The sentinel beside the pipes: a grandchild can hold a pipe open.
        self._sources: list[Any] = [process.sentinel, answer, output]
        self._tail = b""
        os.set_blocking(output.fileno(), False)

    def hear(self, timeout_s: float, what: str) -> Any:
        """The next message. Died where the process ends without one, or `what` has not come within the time."""
        deadline = time.monotonic() + timeout_s
        while ready := wait(self._sources, max(0.0, deadline - time.monotonic())):
            if self._output in ready:
                self._read()
            if self._answer in ready:
                try:
                    return self._answer.recv()
                except (EOFError, OSError):
                    self._sources.remove(self._answer)
            elif self._process.sentinel in ready:
                while self._output in self._sources and self._read():
                    pass
                self._process.join()
                raise account(self._process.exitcode, self._tail)
        raise Died("timeout", f"{what} within {timeout_s:g} s")

    def _read(self) -> bool:
        """Takes in what is there to be read; False where that is nothing."""
        try:
            chunk = os.read(self._output.fileno(), 2**16)
        except BlockingIOError:
            return False
        if not chunk:
            self._sources.remove(self._output)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        return bool(chunk)


def _serve(*arguments: Any) -> None:
    """Keeps torch out of this process: the worker is imported in the child, where it is loaded already."""
    from bench.measure.worker import serve

    serve(*arguments)


def account(exitcode: int | None, output: bytes) -> Died:
    """How a process ended that gave no answer, with the last line of what it printed."""
    lines = output[-TAIL_BYTES:].decode(errors="replace").split("\n")
    last = next((" ".join(line.split())[:200] for line in reversed(lines) if line.strip()), "")
    said = f"; it last said: {last}" if last else ""
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        guess = " (the system may have been out of memory)" if name == "SIGKILL" else ""
        return Died("crashed", f"killed by {name}{guess}{said}")
    return Died("error", f"ended without a result, exit status {exitcode}{said}")
