"""What is tried: masks, lengths, heads, head sizes and dtypes at which implementations go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from bench.checks.subject import Subject, Trial
from variants.masks import Mask
from variants.problem import DTYPES, Problem

MASKS = tuple(
    map(
        Mask.parse,
        (
            *("full", "causal", "window:16", "causal+window:16", "window:16+global:4", "causal+window:16+global:4"),
            *("global:4", "causal+global:4", "window:1", "causal+window:1", "window:5000", "causal+window:33"),
            *("window:64+global:128", "global:5000", "causal+window:128+global:1"),
        ),
    )
)
LENGTHS = ((129, 129), (1, 1), (2, 2), (127, 127), (128, 128), (1, 129), (40, 129), (129, 40), (300, 300))
LONG = ((1000, 1000), (1025, 1025))
SHORT = ((129, 129), (40, 129), (129, 40), (65, 65))
HEADS = ((4, 2), (2, 2), (3, 1), (1, 1), (4, 4))
HEAD_DIMS = (64, 32, 128, 40, 80, 96, 256)
_LONGEST_IN_16_BITS = 130  # many CPUs take long over products in 16 bits
_OF_COMPILED = {False: 3, True: 12}  # quick and thorough: each takes seconds to compile


def masks(subject: Subject) -> list[Mask]:
    """Those of the masks that the variant takes."""
    return [mask for mask in MASKS if subject.variant.refuses(mask) is None] or [subject.variant.some_mask()]


def all_shapes(subject: Subject, thorough: bool) -> Iterator[Problem]:
    """Every mask at every short length, and the long ones in turn; heads, sizes and batch taking turns. Thorough, every
    mask at every length with three of these, in every dtype."""
    device = subject.machine.device
    for i, mask in enumerate(masks(subject)):
        for j, (n_q, n_kv) in enumerate(LENGTHS + (LONG if thorough else LONG[i % 3 : i % 3 + 1])):
            for turn in range(3 if thorough else 1):
                at = i + j + turn * 5
                heads, kv_heads = HEADS[at % len(HEADS)]
                head_dim = HEAD_DIMS[(at + j) % len(HEAD_DIMS)]
                dtypes = DTYPES if n_kv <= _LONGEST_IN_16_BITS or device != "cpu" else DTYPES[:1]
                for dtype in dtypes if thorough else dict.fromkeys((dtypes[0], dtypes[at % len(dtypes)])):
                    yield Problem(1 + at % 2, heads, kv_heads, n_q, n_kv, head_dim, dtype, device, mask)


def short_shapes(subject: Subject, thorough: bool) -> Iterator[Problem]:
    """Every mask at two short lengths, or at four; two batch elements and heads, grouped if may be, to be mixed up."""
    device = subject.machine.device
    plain = Problem(1, 1, 1, 64, 64, 64, device=device, mask=subject.variant.some_mask())
    dtypes = [dtype for dtype in DTYPES if subject.takes(Trial(replace(plain, dtype=dtype)))] or DTYPES
    for i, mask in enumerate(masks(subject)):
        for j, (n_q, n_kv) in enumerate(SHORT if thorough else (SHORT[0], SHORT[1 + i % 3])):
            dtype = dtypes[(i + j) % len(dtypes)] if j else dtypes[0]
            grouped = Problem(2, 4, 2, n_q, n_kv, (64, 40)[i % 2], dtype, device, mask)
            yield grouped if subject.takes(Trial(grouped)) else replace(grouped, kv_heads=4)


def trials(subject: Subject, problems: Iterable[Problem], thorough: bool, direction: str) -> Iterator[Trial]:
    """A trial of each problem that the variant takes in this direction; few where each has to be compiled."""
    found = (Trial(problem, direction, seed) for seed, problem in enumerate(problems))
    taken = (trial for trial in found if subject.takes(trial))
    return islice(taken, _OF_COMPILED[thorough]) if subject.variant.compiled else taken
