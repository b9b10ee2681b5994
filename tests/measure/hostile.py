"""Variants that do what a variant must not do, each in its own way."""

import os
import signal
import subprocess
import sys
import time

import torch
from torch import Tensor

from variants.registry import Unsupported, variant


def right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


@variant("good")
def good(q, k, v):
    return right(q, k, v)


@variant("zeros")
def zeros(q, k, v):
    return torch.zeros_like(q)


@variant("nan")
def nan(q, k, v):
    return right(q, k, v) * float("nan")


@variant("wrong_dtype")
def wrong_dtype(q, k, v):
    return right(q, k, v).double()


@variant("wrong_shape")
def wrong_shape(q, k, v):
    return right(q, k, v).transpose(1, 2)


@variant("writes_inputs")
def writes_inputs(q, k, v):
    out = right(q, k, v)
    k.zero_()
    return out


_first: list[Tensor] = []


@variant("memoised")
def memoised(q, k, v):
    if not _first:
        _first.append(right(q, k, v))
    return _first[0]


_seen: list[float] = []


@variant("first_seed_only")
def first_seed_only(q, k, v):
    _seen.append(q.flatten()[0].item())
    return right(q, k, v) if _seen[-1] == _seen[0] else torch.zeros_like(q)


@variant("returns_input")
def returns_input(q, k, v):
    return v[:]


@variant("view")
def view(q, k, v):
    return q.copy_(right(q, k, v))[:]


@variant("default_dtype")
def default_dtype(q, k, v):
    torch.set_default_dtype(torch.float64)
    return right(q, k, v)


@variant("threads")
def threads(q, k, v):
    out = right(q, k, v)
    torch.set_num_threads(1 + torch.get_num_threads())
    return out


@variant("grad_mode")
def grad_mode(q, k, v):
    torch.set_grad_enabled(False)
    return right(q, k, v)


@variant("seeds")
def seeds(q, k, v):
    torch.manual_seed(0)
    return right(q, k, v)


@variant("raises")
def raises(q, k, v):
    raise ValueError("a [bold] reason,\nwith more below")


@variant("unsupported")
def unsupported(q, k, v):
    raise Unsupported("only on Tuesdays")


@variant("exits")
def exits(q, k, v):
    print("all is well")
    sys.exit(0)


@variant("hard_exit")
def hard_exit(q, k, v):
    print("nothing to see", flush=True)
    os._exit(0)


@variant("floods")
def floods(q, k, v):
    print("x" * 2**20)
    print("y" * 2**20, file=sys.stderr)
    return right(q, k, v)


@variant("segfaults")
def segfaults(q, k, v):
    os.kill(os.getpid(), signal.SIGSEGV)


@variant("killed")
def killed(q, k, v):
    os.kill(os.getpid(), signal.SIGKILL)


@variant("last_words")
def last_words(q, k, v):
    for _ in range(64):
        print("x" * 2**20)
    print("I die,\n  as I lived\n\n", flush=True)
    os._exit(3)


@variant("hangs")
def hangs(q, k, v):
    while True:
        pass


@variant("hangs_stubbornly")
def hangs_stubbornly(q, k, v):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


@variant("hangs_unheard")
def hangs_unheard(q, k, v):
    os.closerange(3, 1024)  # the pipe to the run among them
    while True:
        time.sleep(1)


def endless_plan(problem):
    time.sleep(3600)


@variant("hangs_in_plan", plan=endless_plan)
def hangs_in_plan(q, k, v, *, plan):
    return right(q, k, v)


@variant("greedy")
def greedy(q, k, v):
    return torch.empty(2**46)


@variant("leaves_children")
def leaves_children(q, k, v):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)  # left by a hostile variant"])
    return right(q, k, v)


@variant("no_gradient")
def no_gradient(q, k, v):
    return right(q.detach(), k, v)


class FailsInBackward(torch.autograd.Function):
    """Right forward; raises when it is differentiated."""

    @staticmethod
    def forward(ctx, q, k, v):
        return right(q, k, v)

    @staticmethod
    def backward(ctx, upstream):
        raise ArithmeticError("no way back")


@variant("fails_in_backward")
def fails_in_backward(q, k, v):
    return FailsInBackward.apply(q, k, v)


def slow_plan(problem):
    time.sleep(0.5)
    return torch.empty(2**24, dtype=torch.uint8)


@variant("slow_plan", plan=slow_plan)
def slow_in_plan(q, k, v, *, plan):
    return right(q, k, v)
