"""Whether a variant is right on one problem, by one rule for every exact variant, dtype and mask.

An error is set beside the one that the textbook computation makes in the same dtype on the same rows, because
rounding alone decides what is achievable. The judge comes after timing and with another seed, so that a memoised
answer is caught; what the oracle sees is made anew, so that a variant which overwrites its inputs is caught.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from bench.measure.conduct import Answer, Wrong, ask
from bench.measure.inputs import MODES, Attention, Telling
from variants import oracle
from variants.problem import Problem

# How many roundings the rule allows. On 17,700 random problems (n 1 to 2000) right variants needed at most 1.2 in
# float32, and in 16 bits 2.4, where 2 would have accused five; 3 finds the same planted mistakes as 2.
FLOOR = 3.0

_SMALL = 1 << 22  # numbers in k
_ROWS_A_MODE = 4


@dataclass(frozen=True)
class Verdict:
    """The error that stands worst against its budget, both relative to what is compared, and why it is wrong, if so.

    What is wrong beyond any tolerance (its shape, a NaN) has no measured error: infinity, over a budget of zero.
    """

    error: float
    budget: float
    reason: str | None = None


@dataclass
class Comparison:
    """The worst error among numbers of one kind, where it is, and what their budget is made of."""

    error: float = 0.0
    where: str = ""
    textbook: float = 0.0
    largest_score: float = 0.0

    def add(self, error: Tensor, textbook: Tensor, largest_score: Tensor, where: Callable[[int], str]) -> None:
        """Takes in errors (count,), the textbook's on the same numbers, and a name for the place of each."""
        worst = int(error.argmax())
        if not self.where or float(error[worst]) > self.error:
            self.error, self.where = float(error[worst]), where(worst)
        self.textbook = max(self.textbook, float(textbook.max()))
        self.largest_score = max(self.largest_score, float(largest_score.max()))

    def budget(self, dtype: torch.dtype) -> float:
        """Twice the textbook's error, and a few roundings: of the dtype, and of a float32 score in its exponential."""
        return 2 * self.textbook + FLOOR * rounding(dtype, self.largest_score)


def rounding(dtype: torch.dtype, score: float) -> float:
    """One rounding of the dtype and one of a float32 score, as an error relative to what is compared."""
    return torch.finfo(dtype).eps + torch.finfo(torch.float32).eps * score


def judge(attention: Attention, problem: Problem, direction: str, seed: int, exact: bool = True) -> Verdict:
    """Judges `attention`, (q, k, v) -> out, by one call, and by its gradients unless `direction` is fwd.

    `exact=False` measures the error and leaves it unjudged; everything else counts. What `attention` raises is the
    caller's.
    """
    triples = oracle.sample_triples(problem)
    visible = oracle.visible_keys(problem, triples)
    verdicts = []
    for turn in range(0, _rows_wanted(problem), len(triples)):  # where rows are few, as in decoding, several calls
        telling = Telling(problem, seed, triples, visible, turn)
        try:
            comparisons = compare(ask(attention, telling, direction, exact), telling)
        except Wrong as wrong:
            return Verdict(float("inf"), 0.0, str(wrong))
        verdicts += [_verdict(what, c, telling.dtype, exact) for what, c in comparisons.items()]
    return max(verdicts, key=lambda v: v.error / v.budget, default=Verdict(0.0, FLOOR * rounding(telling.dtype, 0.0)))


def _rows_wanted(problem: Problem) -> int:
    """A row for each mode; a few for each where a call is cheap."""
    small = problem.batch * problem.kv_heads * problem.seq_kv * problem.head_dim <= _SMALL
    return (_ROWS_A_MODE if small else 1) * len(MODES)


def _verdict(what: str, comparison: Comparison, dtype: torch.dtype, exact: bool) -> Verdict:
    error, budget = comparison.error, comparison.budget(dtype)
    if not exact or error <= budget:
        return Verdict(error, budget)
    head = "" if what in MODES else f"{what[:2]} is wrong: "
    return Verdict(error, budget, f"{head}error {error:.1e} is over its budget {budget:.1e} ({comparison.where})")


def compare(answer: Answer, telling: Telling) -> dict[str, Comparison]:
    """Each kind of number that is judged apart: rows of the result and of dQ by mode, dK and dV by head."""
    comparisons: dict[str, Comparison] = defaultdict(Comparison)
    for b, kv_head, index in telling.triples.by_kv_head(telling.problem):
        seeing = index[telling.sees[index]]
        if len(seeing):
            head = _Head(telling, b, kv_head, seeing)
            head.compare_rows(comparisons, answer.rows[seeing])
            if answer.gradients is not None:
                g = answer.gradients
                head.compare_gradients(
                    comparisons, oracle.Gradients(g.dq[seeing], g.dk[b, kv_head].cpu(), g.dv[b, kv_head].cpu())
                )
    return comparisons


class _Head:
    """The sampled rows that read one key-value head, with the head made anew."""

    def __init__(self, telling: Telling, b: int, kv_head: int, index: Tensor):
        self.telling, self.b, self.kv_head, self.index = telling, b, kv_head, index
        k, v = telling.keys_and_values(b, kv_head)
        visible = telling.visible[index]
        self.seen = visible.any(0)  # under a window a small part of the keys, and the rest is nothing to the oracle
        self.problem = (
            telling.queries[index],
            k[self.seen],
            v[self.seen],
            visible[:, self.seen],
            telling.problem.scale,
        )
        self.truth = oracle.exact(*self.problem)
        # A gradient has dP beside the scores, a product of two normal rows: at one key only its roundings are left.
        self.largest_product = self.truth.largest_score + math.sqrt(k.shape[1])

    def compare_rows(self, comparisons: dict[str, Comparison], rows: Tensor) -> None:
        """Errors of the result's rows, relative to the size of the exact row."""
        truth = self.truth
        # Both orders are the textbook's, and one alone can be lucky where there are few rows.
        books = [oracle.textbook(*self.problem, scale_last=last) for last in (False, True)]
        textbook = torch.stack([_distance(book, truth.out) for book in books]).amax(0)
        error = _distance(rows, truth.out)
        self._add_by_mode(comparisons, "", error / truth.size, textbook / truth.size, truth.largest_score)

    def compare_gradients(self, comparisons: dict[str, Comparison], got: oracle.Gradients) -> None:
        """Errors of dQ by row and of dK and dV by head, relative to the sizes of the terms that they are sums of."""
        upstream = self.telling.upstream[self.index]
        truth, size = oracle.exact_gradients(*self.problem, upstream)
        book = oracle.textbook_gradients(*self.problem, upstream)
        error, textbook = (_distance(dq, truth.dq) / size.dq.norm(dim=1) for dq in (got.dq, book.dq))
        self._add_by_mode(comparisons, "dQ ", error, textbook, self.largest_product)
        place = f"batch {self.b}, kv head {self.kv_head}"
        for name, x, y, z, s in (
            ("dK", got.dk, book.dk, truth.dk, size.dk),
            ("dV", got.dv, book.dv, truth.dv, size.dv),
        ):
            difference = x.double()
            difference[self.seen] -= z
            error, textbook = (e.norm()[None] / s.norm() for e in (difference, y.double() - z))
            comparisons[name].add(error, textbook, self.largest_product, lambda _: place)

    def _add_by_mode(
        self, comparisons: dict[str, Comparison], prefix: str, error: Tensor, textbook: Tensor, largest: Tensor
    ) -> None:
        mode = self.telling.mode[self.index]
        for m in sorted(set(mode.tolist())):
            at = (mode == m).nonzero()[:, 0]
            place = partial(self._place, m, self.index[at])
            comparisons[prefix + MODES[m]].add(error[at], textbook[at], largest[at], place)

    def _place(self, m: int, index: Tensor, i: int) -> str:
        return f"{MODES[m]} rows; {self.telling.place(int(index[i]))}"


def _distance(x: Tensor, exact: Tensor) -> Tensor:
    distance: Tensor = torch.linalg.vector_norm(x.double() - exact, dim=1)
    return distance
