"""The child's side of a visit: a session of its own, captured output, and errors turned into data in one place."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from bench.measure import memory
from bench.measure.visit import Request, visit
from bench.results.columns import Facts
from variants.registry import Unsupported

_PR_SET_PDEATHSIG = 1
_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|std::bad_alloc", re.IGNORECASE)


def serve(
    function: Callable[..., Any], arguments: tuple[Any, ...], answer: Connection, output: Connection, phased: bool
) -> None:
    """Runs `function` apart from everything else, sends back (True, result) or (False, exception), and ends.

    Where `phased`, the function is given one more argument, whose call sends None: its set-up is over.
    """
    _separate(output)
    die_with_the_run(answer)
    if phased:
        arguments = (*arguments, lambda: answer.send(None))
    message: tuple[bool, Any]
    try:
        message = True, function(*arguments)
    except BaseException as error:
        message = False, error
    sys.stdout.flush()
    sys.stderr.flush()
    answer.send(message)
    os._exit(0)  # interpreter and device teardown would cost more than many a measurement


def visit_facts(request: Request, ready: Callable[[], None] = lambda: None) -> Facts:
    """What a visit found, whatever the variant did short of killing the process. Calls `ready` after the set-up."""
    try:
        if request.case.device == "cpu":
            limit_memory()
        return visit(request, ready)
    except BaseException as error:
        return Facts(status=status_of(error), reason=reason_of(error))


def status_of(error: BaseException) -> str:
    """The status that an exception amounts to."""
    if isinstance(error, Unsupported):
        return "unsupported"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return "oom"
    if isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)):
        return "oom"  # on CPU the allocator raises nothing more telling
    return "error"


def reason_of(error: BaseException) -> str:
    """One line on an exception: its text, under its type unless the variant itself gave the reason."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]
    if isinstance(error, Unsupported):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _separate(output: Connection) -> None:
    """Own session, so that all that a variant starts can be killed with it; own output."""
    os.setsid()
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()


def die_with_the_run(answer: Connection) -> None:
    """Gone when the run is gone, even where that was killed outright: left alive, it would disturb the next one."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # the server's death, which follows the run's
    else:
        threading.Thread(target=die_with_the_reader, args=(answer.fileno(),), daemon=True).start()


def die_with_the_reader(pipe: int) -> None:
    """Waits until nobody can read from this pipe any more, and kills this process with all that it started."""
    poll = select.poll()
    poll.register(pipe, 0)  # errors alone, which are always told
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def limit_memory() -> None:
    """An error in the child instead of the system's killer choosing a victim, where the system has such a limit."""
    held = memory.held_bytes("VmData")
    if held is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = held + memory.available_bytes()
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
