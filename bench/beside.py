"""Processes that work beside this one, each with its own interpreter and its own modules.

They start afresh, not from the server that visits are forked from: that is for torch, and must stay as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context

from bench.cores import allowed
from bench.interrupts import ignored

_MOST = 4  # each takes a second to load what it needs, and some 200 MB


@contextmanager
def processes(modules: Iterable[str]) -> Iterator[Executor]:
    """Runs what is submitted in one process a core, which load these modules at once, for that takes a while. None is
    started for none. What nobody waits for is dropped where the block raises.
    """
    wanted = list(modules)
    count = min(len(allowed()) or 1, _MOST)
    spawn = get_context("spawn")
    pool = ProcessPoolExecutor(count, spawn, initializer=_load, initargs=(wanted,))
    try:
        with ignored():
            for _ in wanted and range(count):  # a process starts when it gets something to do
                pool.submit(int)
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _load(modules: Iterable[str]) -> None:
    for module in modules:
        import_module(module)
