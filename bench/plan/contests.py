"""Which contests a gate holds, and in which order: those first that a change can affect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench.plan.sweep import Sweep
from bench.results.columns import Case
from bench.results.paired import Contest
from variants.masks import Mask

# Of these a variant gets the first that it takes, and one that is affected every one that it takes.
MASKS = tuple(
    map(
        Mask.parse,
        (
            "causal",
            "full",
            "causal+window:64",
            "window:64",
            "causal+window:64+global:8",
            "window:64+global:8",
            "global:8",
        ),
    )
)

Refusals = Callable[[Sequence[Contest]], Sequence[tuple[str | None, str | None]]]
"""For each contest, why base and why new cannot run it; None where they can."""


@dataclass(frozen=True)
class Names:
    """Which variants are compared: (of base, of new), those that a change affects, and those to leave out unless it
    does; `thorough` is whether a change affects all of them a little."""

    pairs: tuple[tuple[str, str], ...]
    affected: Collection[str] = ()
    spared: Collection[str] = ()
    thorough: bool = False


def choose(names: Names, sweep: Sweep, refusals: Refusals) -> list[Contest]:
    """The contests that can be held, the most important first; the sweep's variants do not count.

    A variant against itself needs one side that takes the problem, for the other may have lost it; two variants need
    both. Where the sweep has no mask, each variant gets one of MASKS; an affected one, before all others, gets every
    one that it takes, and so do all, after that, where a change is `thorough`.
    """
    masked = replace(sweep, masks=sweep.masks or MASKS)
    problems = [Case.of("", direction, problem) for direction, problem in masked.problems()]
    pairs = [pair for pair in names.pairs if _affected(names, pair) or not set(pair) & set(names.spared)]
    everything = [
        Contest(replace(problem, variant=pair[0]), replace(problem, variant=pair[1]), _affected(names, pair))
        for problem, pair in product(problems, pairs)
    ]
    takes = {
        contest: (base is None, new is None)
        for contest, (base, new) in zip(everything, refusals(everything), strict=True)
    }
    able = [contest for contest in everything if _can_be_held(contest, takes[contest])]
    first = set(able if sweep.masks else _first_masks(able, takes))
    wanted = [contest for contest in able if contest in first or contest.pressing or names.thorough]
    ranked = sorted(wanted, key=lambda contest: (not contest.pressing, contest not in first))
    return [contest if contest in first else replace(contest, pressing=False) for contest in ranked]


def _can_be_held(contest: Contest, takes: tuple[bool, bool]) -> bool:
    return any(takes) if contest.base.variant == contest.new.variant else all(takes)


def _affected(names: Names, pair: tuple[str, str]) -> bool:
    return not set(pair).isdisjoint(names.affected)


def _first_masks(contests: Sequence[Contest], takes: Mapping[Contest, tuple[bool, bool]]) -> Iterator[Contest]:
    """Of contests that differ in their masks alone, the first, and the first that both sides take."""
    alike: dict[tuple[Case, Case], list[Contest]] = {}
    for contest in contests:
        key = replace(contest.base, mask=""), replace(contest.new, mask="")
        alike.setdefault(key, []).append(contest)
    for same in alike.values():
        yield same[0]
        yield from [contest for contest in same if all(takes[contest])][:1]
