"""Which contests a gate holds, and in which order: those first that a change can affect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench.pairs.turns import Contest
from bench.plan.sweep import Sweep
from bench.results.columns import Case
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
    does."""

    pairs: tuple[tuple[str, str], ...]
    affected: Collection[str] = ()
    spared: Collection[str] = ()


def choose(names: Names, sweep: Sweep, refusals: Refusals) -> list[Contest]:
    """The contests that can be held, over the sweep's problems; its variants do not count. A variant against itself
    needs one side that takes the problem, for the other may have lost it; two variants need both.

    Where the sweep has no mask, each variant gets one of MASKS, and an affected one all that it takes.
    """
    problems = [
        Case.of("", direction, problem) for direction, problem in replace(sweep, masks=sweep.masks or MASKS).problems()
    ]
    pairs = [pair for pair in names.pairs if _affected(names, pair) or not set(pair) & set(names.spared)]
    everything = [
        Contest(replace(problem, variant=base), replace(problem, variant=new))
        for (base, new), problem in product(pairs, problems)
    ]
    able = [
        contest
        for contest, refused in zip(everything, refusals(everything), strict=True)
        if _can_be_held(contest, refused)
    ]
    first = set(able if sweep.masks else _first_mask(able))
    affected = {contest for contest in able if _affected(names, (contest.base.variant, contest.new.variant))}
    wanted = [contest for contest in able if contest in first | affected]
    return sorted(wanted, key=lambda contest: (contest not in affected, contest not in first))


def _can_be_held(contest: Contest, refused: tuple[str | None, str | None]) -> bool:
    takes = [reason is None for reason in refused]
    return any(takes) if contest.base.variant == contest.new.variant else all(takes)


def _affected(names: Names, pair: tuple[str, str]) -> bool:
    return not set(pair).isdisjoint(names.affected)


def _first_mask(contests: Sequence[Contest]) -> list[Contest]:
    """Of contests that differ in their masks alone, the first."""
    firsts: dict[tuple[Case, Case], Contest] = {}
    for contest in contests:
        firsts.setdefault((replace(contest.base, mask=""), replace(contest.new, mask="")), contest)
    return list(firsts.values())
