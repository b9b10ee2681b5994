"""Drawing in processes of their own, as many as there are cores, for matplotlib takes half a second for a figure.

They are forked from a server that loads matplotlib while the report is still being computed, and draw while it is
printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, get_context

from bench.cores import allowed


def prepare() -> None:
    """Begins to load matplotlib; returns at once."""
    get_context("forkserver").set_forkserver_preload(["bench.figures.drawings"])
    forkserver.ensure_running()


@contextmanager
def running(jobs: Iterable[Callable[[], object]]) -> Iterator[None]:
    """Runs these, which can be pickled, beside the block, at whose end all are done. Raises what the first that failed
    raised."""
    with ProcessPoolExecutor(len(allowed()) or None, mp_context=get_context("forkserver")) as pool:
        begun = [pool.submit(job) for job in jobs]
        try:
            yield
            for job in begun:
                job.result()
        finally:
            pool.shutdown(cancel_futures=True)
