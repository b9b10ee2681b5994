"""What a run is told of its machine, asked of a real process and of servers that fail."""

import platform
from typing import Any

import psutil
import pytest
import torch

from bench.errors import UserError
from bench.measure.environment import ask
from bench.measure.server import Died, Server
from variants.registry import Variant


def attention(q, k, v): ...


VARIANTS = [Variant("a", attention, requires=("pytest", "no_such_package"))]


class Deaf(Server):
    """Dies of whatever it is asked."""

    def __init__(self) -> None: ...

    def call(self, *arguments: Any, timeout_s: float) -> Any:
        raise Died("crashed", "killed by SIGSEGV")


def test_the_machine_is_this_one() -> None:
    with Server() as server:
        machine, environment = ask(server, "cpu", VARIANTS, 60)
        assert machine.device == "cpu"
        assert machine.memory_bytes == psutil.virtual_memory().total
        assert machine.packages["torch"].split("+")[0] == torch.__version__.split("+")[0]
        assert machine.packages["pytest"] == pytest.__version__
        assert "no_such_package" not in machine.packages
        assert (environment.torch, environment.python) == (torch.__version__, platform.python_version())
        assert environment.threads >= 1
        assert ask(server, "cpu", VARIANTS, 60, threads=1)[1].threads == 1
        assert environment.matmul_precision == torch.get_float32_matmul_precision()
        assert torch.backends.cpu.get_cpu_capability() in environment.device_name
        with pytest.raises(UserError, match=r"--threads: 100000 is more than .*; accepted: 1\.\.\d+"):
            ask(server, "cpu", VARIANTS, 60, threads=100000)
        assert machine.device_name == environment.device_name != ""
        with pytest.raises(UserError, match=r"--device: 'abacus' is not to be had here .*; accepted: auto, cpu"):
            ask(server, "abacus", VARIANTS, 60)


def test_a_device_that_kills_whoever_asks_is_the_users_to_know() -> None:
    with pytest.raises(UserError, match="--device: 'cuda' does not answer: killed by SIGSEGV"):
        ask(Deaf(), "cuda", VARIANTS, 60)
