"""Ctrl-C held back or ignored for a moment, where stopping half-way would tear a row or lose sight of a process."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Raises the KeyboardInterrupt of this block at its end. Main thread only.

    Blocking the signal would not do: another thread of the process could take it.
    """
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            raise KeyboardInterrupt


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """A Ctrl-C in this block is lost, and so is every one in a process that starts there: it is left to its parent.

    Main thread only.
    """
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
