"""Asks one check of one variant until it fails, and then looks for the smallest problem that shows the failure."""

from __future__ import annotations

import random
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hypothesis
import torch
from hypothesis import strategies as st
from hypothesis.errors import Flaky, NoSuchExample

from bench.checks.catalogue import CHECKS
from bench.checks.subject import Check, Subject, Trial
from bench.measure.conduct import Wrong
from bench.measure.worker import limit_memory, reason_of
from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported

_SEARCHING_S = 5.0
_SEEDS_APART = 10_000
_SIZES = ("batch", "seq_kv", "seq_q", "head_dim")
_LARGEST: dict[str, Any] = {"batch": 2, "heads": 8, "kv_heads": 4, "seq_q": 300, "seq_kv": 300, "head_dim": 128}
_EXAMPLES = {False: 10, True: 100}  # drawn beyond the fixed trials, quick and thorough
_MOST_TO_SHRINK = 50


@dataclass(frozen=True)
class Finding:
    """What a check came to.

    tried    problems that the variant was asked
    used     the largest part of what is allowed that any of them used
    reason   what is wrong, or None; on `trial`, the smallest found
    """

    check: str
    tried: int = 0
    used: float = 0.0
    reason: str | None = None
    trial: Trial | None = None
    seconds: float = 0.0


def examine(
    name: str,
    imports: Sequence[str],
    machine: Machine,
    check: str,
    thorough: bool = False,
    seed: int = 0,
    only: Trial | None = None,
) -> Finding:
    """The finding of a check on a registered variant: of many trials, whose inputs follow from the seed, or of one."""
    subject = Subject(registry.find(name, imports), machine)
    if only is not None:
        return examined(subject, CHECKS[check], [replace(only, direction=CHECKS[check].direction)])
    trials = CHECKS[check].trials(subject, thorough)
    examples = 0 if subject.variant.compiled else _EXAMPLES[thorough]
    return examined(subject, CHECKS[check], (replace(t, seed=t.seed + _SEEDS_APART * seed) for t in trials), examples)


def examine_apart(name: str, imports: Sequence[str], machine: Machine, *more: Any) -> Finding:
    """`examine` in a process of its own, whose memory is bounded so that the system need not end it."""
    if machine.device == "cpu":
        limit_memory()
    return examine(name, imports, machine, *more)


def examined(subject: Subject, check: Check, trials: Iterable[Trial], examples: int | None = None) -> Finding:
    """The same of a variant in hand. Beyond the trials, Hypothesis draws so many examples of shapes like theirs, and
    shrinks what fails; None for neither."""
    begun = time.monotonic()
    uses: list[float] = []
    largest: Trial | None = None

    def ask(trial: Trial) -> str | None:
        asked = _ask(subject, check, trial)
        if isinstance(asked, float):
            uses.append(asked)
        return asked if isinstance(asked, str) else None

    def finding(reason: str | None = None, trial: Trial | None = None) -> Finding:
        failed, used = int(reason is not None), 1.0 if reason else max(uses, default=0.0)
        return Finding(check.name, len(uses) + failed, used, reason, trial, time.monotonic() - begun)

    for trial in trials:
        if reason := ask(trial):
            told = finding(reason, trial)
            smaller = None if examples is None else _smallest(trial, _MOST_TO_SHRINK, ask)
            return replace(told, reason=smaller[1], trial=smaller[0]) if smaller else told
        largest = _larger(largest, trial)
    found = _smallest(largest, examples, ask) if examples and largest and uses else None
    return finding(found[1], found[0]) if found else finding()


def _larger(largest: Trial | None, trial: Trial) -> Trial:
    """A trial to draw smaller ones from: with the most features of any mask so far."""
    if largest is not None and len(largest.problem.mask.features()) >= len(trial.problem.mask.features()):
        return largest
    return replace(trial, problem=replace(trial.problem, **_LARGEST))


def _ask(subject: Subject, check: Check, trial: Trial) -> float | str | None:
    """How much of what is allowed was used; the reason where it was more; None where there is nothing to ask."""
    if not subject.takes(trial):
        return None
    try:
        with torch.random.fork_rng():
            torch.manual_seed(trial.seed)
            asked = check.ask(subject, trial)
        return None if asked is None else float(asked)
    except Unsupported:
        return None
    except Wrong as wrong:
        return str(wrong)
    except Exception as error:
        return reason_of(error)


def _smallest(largest: Trial, examples: int, ask: Callable[[Trial], str | None]) -> tuple[Trial, str] | None:
    """The smallest trial that fails, and why, as Hypothesis finds and shrinks it among those no larger."""
    reasons: dict[Trial, str] = {}
    end = time.monotonic() + _SEARCHING_S

    def fails(trial: Trial) -> bool:
        reason = reasons.get(trial) if time.monotonic() > end else ask(trial)
        if reason:
            reasons[trial] = reason
        return reason is not None

    quiet = hypothesis.settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    try:
        found = hypothesis.find(_no_larger(largest), fails, settings=quiet, random=random.Random(largest.seed))
    except NoSuchExample:
        return None
    except Flaky:  # the time was up in the middle of it
        found = min(reasons, key=lambda trial: trial.problem.pairs)
    return found, reasons[found]


@st.composite
def _no_larger(draw: st.DrawFn, trial: Trial) -> Trial:
    """Trials whose problem is at most as large as this one's in each size and feature; simple ones shrink out."""
    problem = trial.problem
    sizes: dict[str, Any] = {name: draw(st.integers(1, getattr(problem, name))) for name in _SIZES}
    if problem.seq_q == problem.seq_kv and draw(st.integers(0, 3)) < 3:
        sizes["seq_q"] = sizes["seq_kv"]
    kv_heads = draw(st.integers(1, problem.kv_heads))
    heads = kv_heads * draw(st.integers(1, problem.heads // problem.kv_heads))
    features: dict[str, Any] = {
        name: value if isinstance(value, bool) else draw(st.integers(1, value))
        for name, value in problem.mask.features().items()
        if draw(st.booleans())
    }
    made = replace(problem, **sizes, kv_heads=kv_heads, heads=heads, mask=Mask(**features))
    return replace(trial, problem=made)


def command(name: str, imports: Sequence[str], check: str, trial: Trial, strict: bool = False) -> str:
    """The command that repeats this one trial."""
    p: Problem = trial.problem
    words = [
        *("python", "-m", "bench.verify", name, *(word for module in imports for word in ("--import", module))),
        *("--check", check, "--mask", str(p.mask), "--seed", str(trial.seed)),
        *("--batch", str(p.batch), "--heads", str(p.heads), "--kv-heads", str(p.kv_heads)),
        *("--seq-q", str(p.seq_q), "--seq", str(p.seq_kv), "--head-dim", str(p.head_dim), "--dtype", p.dtype),
        *("--device", p.device, *(["--strict"] if strict else [])),
    ]
    return shlex.join(words)
