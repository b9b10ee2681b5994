"""Drawing many figures in processes of their own, while what is read first is still being printed.

They are started afresh: the server that visits are forked from is for torch, and these want matplotlib, which takes a
second to load. So few figures are not worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from bench.cores import allowed

_FEW = 6


@contextmanager
def running(jobs: Iterable[Callable[[], object]]) -> Iterator[None]:
    """Runs these, which can be pickled, beside the block, or after it if they are few. Raises what one of them does."""
    todo = list(jobs)
    if len(todo) <= _FEW:
        yield
        for job in todo:
            job()
        return
    with ProcessPoolExecutor(len(allowed()) or None, mp_context=get_context("spawn")) as pool:
        begun = [pool.submit(job) for job in todo]
        try:
            yield
            for one in begun:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)
