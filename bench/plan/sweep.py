"""A sweep: lists of values for each axis, or the layers of models, and the cases that they make together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from bench.errors import UserError
from bench.models import Model
from bench.results.columns import Case
from variants.masks import Mask
from variants.problem import Problem


@dataclass(frozen=True)
class Sweep:
    """What to measure. `seq_q` and `kv_heads` may be empty: then they equal seq and heads."""

    variants: tuple[str, ...]
    masks: tuple[Mask, ...]
    directions: tuple[str, ...]
    seq: tuple[int, ...]
    heads: tuple[int, ...]
    head_dim: tuple[int, ...]
    batch: tuple[int, ...]
    dtypes: tuple[str, ...]
    device: str
    seq_q: tuple[int, ...] = ()
    kv_heads: tuple[int, ...] = ()
    caches: tuple[str, ...] = ("hot",)

    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Each (direction, problem); lengths ascend inside everything else, so that short ones foretell long ones."""
        axes = product(
            self.directions, self.masks, self.dtypes, self.batch, self._heads(), self.head_dim, self._lengths()
        )
        for direction, mask, dtype, batch, (heads, kv_heads), head_dim, (seq_q, seq_kv) in axes:
            yield direction, Problem(batch, heads, kv_heads, seq_q, seq_kv, head_dim, dtype, self.device, mask)

    def cases(self) -> list[Case]:
        """Every case of the sweep, in the order in which a round visits them."""
        return cases_of(self.variants, self.problems(), self.caches)

    def _heads(self) -> list[tuple[int, int]]:
        pairs = [(h, kv) for h in self.heads for kv in self.kv_heads or (h,)]
        for h, kv in pairs:
            if h % kv:
                raise UserError(f"--kv-heads: {kv} does not divide {h} heads; accepted: divisors of every --heads")
        return pairs

    def _lengths(self) -> list[tuple[int, int]]:
        return sorted(
            ((q, n) for n in self.seq for q in self.seq_q or (n,)), key=lambda pair: (pair[0] * pair[1], pair)
        )


def model_problems(
    models: Sequence[Model],
    phases: Sequence[str],
    directions: Sequence[str],
    lengths: Mapping[str, Sequence[int]],
    batch: Sequence[int],
    dtypes: Sequence[str],
    device: str,
) -> Iterator[tuple[str, Problem]]:
    """Each (direction, problem) of these models' layers, at the `lengths` of each model by its name, which ascend.

    UserError for a phase that a model does not have.
    """
    for direction, dtype, size, model, phase in product(directions, dtypes, batch, models, phases):
        for kind, length in product(model.kinds(phase), lengths[model.name]):
            yield direction, kind.problem(phase, length, size, dtype, device)


def usual_lengths(model: Model, seq: Sequence[int]) -> tuple[int, ...]:
    """As many lengths as `seq` has, doubling up to its longest, or to the model's context where that is shorter."""
    longest = min(model.context, seq[-1])
    return tuple(longest >> halvings for halvings in reversed(range(len(seq))))


def cases_of(variants: Sequence[str], problems: Iterable[tuple[str, Problem]], caches: Sequence[str]) -> list[Case]:
    """Every variant on every (direction, problem) with every cache, each once, in the order in which a round visits
    them."""
    once = dict.fromkeys(problems)
    return [
        Case.of(name, direction, problem, cache) for cache in caches for direction, problem in once for name in variants
    ]
