"""Problems that meet every pair of circumstances, without meeting every combination."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

from variants.masks import Mask
from variants.problem import DTYPES, Problem

MASKS = tuple(
    Mask.parse(text)
    for text in (
        "full",
        "causal",
        "window:1",
        "window:64",
        "causal+window:100",
        "causal+window:2000",
        "global:5",
        "causal+global:2000",
        "window:16+global:3",
        "causal+window:130+global:200",
    )
)
LENGTHS = ((1, 1), (127, 127), (129, 129), (1000, 1000), (1, 300), (100, 300), (300, 100))
HEADS = ((2, 2), (4, 2), (3, 1))
AXES = (LENGTHS, HEADS, (1, 2), (8, 40, 64), DTYPES, ("fwd", "fwdbwd"))

Case = tuple[Problem, str]


def case(
    mask: Mask, lengths: tuple[int, int], heads: tuple[int, int], batch: int, head_dim: int, dtype: str, direction: str
) -> Case:
    """A problem, and a direction to run it in."""
    return Problem(batch, *heads, *lengths, head_dim, dtype, mask=mask), direction


def pairwise(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which any two values of different axes meet: far fewer than the product of the axes."""
    draw = random.Random(0)
    sides = list(itertools.combinations(range(len(axes)), 2))
    left = {(a, i, b, j) for a, b in sides for i in range(len(axes[a])) for j in range(len(axes[b]))}
    chosen = []
    while left:
        a, i, b, j = min(left)
        candidates = []
        for _ in range(30):
            indices = [draw.randrange(len(axis)) for axis in axes]
            indices[a], indices[b] = i, j
            candidates.append((indices, {(a, indices[a], b, indices[b]) for a, b in sides}))
        indices, met = max(candidates, key=lambda candidate: len(candidate[1] & left))
        left -= met
        chosen.append(tuple(axis[i] for axis, i in zip(axes, indices, strict=True)))
    return chosen


def label(problem: Problem, direction: str) -> str:
    """What pytest prints for a case."""
    p = problem
    return f"{p.mask}-{p.batch}x{p.heads}x{p.seq_q}-{p.kv_heads}x{p.seq_kv}-d{p.head_dim}-{p.dtype}-{direction}"
