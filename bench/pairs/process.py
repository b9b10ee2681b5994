"""The gate's handle on a process of one side: tells it what to do, hears the answer, and knows how it died."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.interrupts import held_back
from bench.measure.server import TAIL_BYTES, account

_LOOK_S = 1.0  # how often a process that does not answer is looked at


class Lost(Exception):
    """A side that gave no answer, or raised: which one, the status that this amounts to, and the reason as text."""

    def __init__(self, side: str, status: str, reason: str) -> None:
        super().__init__(f"{side}: {reason}")
        self.side, self.status, self.reason = side, status, reason


@dataclass(frozen=True)
class Side:
    """Where processes of a side are started: by which interpreter, in which folder, with the suite's packages in
    another, and the tree of the repository, in which its own modules are.

    own_variants  whether the suite's variants are of that tree, too
    further       folders in which modules are looked for last
    """

    name: str
    python: str
    folder: Path
    packages: Path
    tree: Path
    own_variants: bool = False
    further: tuple[Path, ...] = ()

    @property
    def path(self) -> tuple[Path, ...]:
        """Where modules are looked for, before any that are installed."""
        return self.packages, *self._of_tree, *self.further

    @property
    def own(self) -> tuple[Path, ...]:
        """Where what is compared may be."""
        return (self.packages, *self._of_tree) if self.own_variants else self._of_tree

    @property
    def _of_tree(self) -> tuple[Path, ...]:
        return self.folder, self.tree, self.tree / "src"


class Process:
    """A process of a side. Use as a context manager; leaving it kills the process with all that it started."""

    def __init__(self, side: Side) -> None:
        self.side = side
        ours, theirs = socket.socketpair()
        self._messages = Connection(ours.detach())
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process is left
        with theirs:
            try:
                with held_back():
                    self._process = subprocess.Popen(
                        [side.python, "-P", "-c", f"from bench.pairs import worker; worker.serve({theirs.fileno()})"],
                        cwd=side.folder,
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, side.path))},
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=self._output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
            except KeyboardInterrupt:  # held back until it had started
                self._end()
                raise

    def tell(self, command: str, *arguments: Any) -> None:
        """Tells the process what to do; what it answers is still to be heard."""
        with contextlib.suppress(OSError):  # it is gone, which `hear` accounts for
            self._messages.send((command, arguments))

    def hear(self, timeout_s: float) -> Any:
        """The answer to what it was told. Lost where the process raised, or ends without one, or is not in time."""
        deadline = time.monotonic() + timeout_s
        try:
            while not self._messages.poll(min(_LOOK_S, max(0.0, deadline - time.monotonic()))):
                # What it started may hold the socket open when it has ended itself.
                if self._process.poll() is not None and not self._messages.poll(0):
                    raise EOFError
                if time.monotonic() >= deadline:
                    raise Lost(self.side.name, "timeout", f"no result within {timeout_s:g} s")
            succeeded, value = self._messages.recv()
        except (EOFError, OSError):
            raise self._account() from None
        if not succeeded:
            raise Lost(self.side.name, *value)
        return value

    def ask(self, command: str, *arguments: Any, timeout_s: float) -> Any:
        """Tells, and hears."""
        self.tell(command, *arguments)
        return self.hear(timeout_s)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        with held_back():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._messages.close()
            self._output.close()

    def _account(self) -> Lost:
        """How it ended, if it does: one that closed its socket and goes on is of no use either."""
        try:
            death = account(self._process.wait(_LOOK_S), self._printed())
        except subprocess.TimeoutExpired:
            return Lost(self.side.name, "error", "it hung up and goes on")
        return Lost(self.side.name, death.status, str(death))

    def _printed(self) -> bytes:
        """The last of what the process printed."""
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - TAIL_BYTES))
        return self._output.read()
