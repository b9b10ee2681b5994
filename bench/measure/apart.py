"""A visit in a process of its own, whatever becomes of that process."""

from __future__ import annotations

from bench.measure.server import Died, Server
from bench.measure.visit import Request
from bench.measure.worker import visit_facts
from bench.results.columns import Facts


def visit_apart(server: Server, request: Request, timeout_s: float, setup_timeout_s: float | None = None) -> Facts:
    """What the visit found; a process that crashed or hung is a status too."""
    try:
        facts: Facts = server.call(visit_facts, request, timeout_s=timeout_s, setup_timeout_s=setup_timeout_s)
    except Died as death:
        return Facts(death.status, str(death))
    return facts
