"""Processes that work beside this one, each with its own interpreter and its own modules.

They start afresh, not from the server that visits are forked from: that is for torch, and must stay as it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import active_children, get_context, parent_process

from bench.cores import allowed
from bench.interrupts import ignored

MOST = 4  # each takes a second to load what it needs, and some 200 MB


@contextmanager
def processes(modules: Iterable[str], most: int = MOST) -> Iterator[Executor]:
    """Runs what is submitted in as many processes as there are cores, up to `most`.

    They load these modules at once, for that takes a while; with none to load, each starts when it is needed. Where the
    block raises they are killed, and so they are where this process is.
    """
    wanted, before = list(modules), active_children()
    count = min(len(allowed()) or os.cpu_count() or 1, most)
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(count, spawn, initializer=_begin, initargs=(wanted,))
    try:
        with ignored():
            for _ in wanted and range(count):  # a process starts when it gets something to do
                pool.submit(int)
        yield pool
    except BaseException:
        for process in active_children():
            if process not in before:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(modules: Iterable[str]) -> None:
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    for module in modules:
        with suppress(ImportError):  # whoever needs it says so better
            import_module(module)


def _end_with_the_parent() -> None:
    """Waits for the end of the process that started this one, and ends this one."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
