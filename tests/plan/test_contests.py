"""Which contests are held, and in which order, for made-up variants that refuse what they are told to refuse."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bench.plan.contests import MASKS, Names, choose
from bench.plan.sweep import Sweep
from bench.results.paired import Contest
from variants.masks import Mask

SWEEP = Sweep(
    variants=("not", "these"),
    masks=(),
    directions=("fwd",),
    seq=(64,),
    heads=(2,),
    head_dim=(16,),
    batch=(1,),
    dtypes=("float32",),
    device="cpu",
)
ALL = ["causal", "full", "causal+window:64", "window:64", "causal+window:64+global:8", "window:64+global:8", "global:8"]

Refused = Callable[[str, str], bool]


def nobody(variant: str, mask: str) -> bool:
    return False


def takes(**masks: Sequence[str]) -> Refused:
    """Variants that take these masks and no others; a variant that is not named takes all."""
    return lambda variant, mask: mask not in masks.get(variant, ALL)


def chosen(
    names: Names, sweep: Sweep = SWEEP, base: Refused = nobody, new: Refused | None = None
) -> list[tuple[str, str]]:
    """(variant of the new side, mask) of each contest, in order."""
    return [(contest.new.variant, contest.new.mask) for contest in contests(names, sweep, base, new)]


def contests(names: Names, sweep: Sweep = SWEEP, base: Refused = nobody, new: Refused | None = None) -> list[Contest]:
    """Where only base refuses anything, new refuses the same."""

    def refusals(asked: Sequence[Contest]) -> list[tuple[str | None, str | None]]:
        return [
            (
                "base has a reason" if base(contest.base.variant, contest.base.mask) else None,
                "new has one" if (new or base)(contest.new.variant, contest.new.mask) else None,
            )
            for contest in asked
        ]

    return choose(names, sweep, refusals)


def same(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


def test_a_variant_is_compared_on_the_first_mask_that_it_takes() -> None:
    found = chosen(Names(same("a", "b", "c")), base=takes(b=["window:64", "global:8"], c=["causal+window:64", "full"]))
    assert found == [("a", "causal"), ("c", "full"), ("b", "window:64")], "mask by mask"


def test_one_that_takes_no_mask_is_left_out() -> None:
    assert chosen(Names(same("a", "b")), base=takes(a=[])) == [("b", "causal")]
    assert chosen(Names(same("a")), base=takes(a=[])) == []
    assert chosen(Names(())) == []


def test_one_that_is_affected_is_compared_on_every_mask_that_it_takes_and_comes_first() -> None:
    found = chosen(Names(same("a", "b", "c"), affected={"b"}), base=takes(b=["window:64", "full", "global:8"]))
    assert found[0] == ("b", "full"), "its first mask before its others"
    assert found == [("b", "full"), ("b", "window:64"), ("b", "global:8"), ("a", "causal"), ("c", "causal")]


def test_first_masks_of_all_that_are_affected_come_before_their_others() -> None:
    found = chosen(Names(same("a", "b"), affected=["a", "b"]))
    assert found == [("a", "causal"), ("b", "causal"), *((v, m) for m in ALL[1:] for v in "ab")]


def test_the_masks_are_seven_kinds() -> None:
    assert [str(mask) for mask in MASKS] == ALL
    kinds = {(mask.causal, mask.window is None, mask.global_tokens is None) for mask in MASKS}
    assert len(kinds) == 7


def test_masks_that_were_asked_for_are_all_compared() -> None:
    sweep = replace(SWEEP, masks=(Mask(window=4), Mask(causal=True)))
    found = chosen(Names(same("a", "b"), affected=["b"]), sweep)
    assert found == [("b", "window:4"), ("b", "causal"), ("a", "window:4"), ("a", "causal")]


def test_what_both_sides_refuse_is_left_out_and_what_one_refuses_stays() -> None:
    sweep = replace(SWEEP, masks=tuple(map(Mask.parse, ALL[:4])))
    base, new = takes(a=["causal", "full"]), takes(a=["full", "causal+window:64"])
    assert chosen(Names(same("a")), sweep, base, new) == [("a", "causal"), ("a", "full"), ("a", "causal+window:64")]


def test_a_variant_that_only_one_side_has_stays() -> None:
    for base, new in ((takes(a=[]), nobody), (nobody, takes(a=[]))):
        assert chosen(Names(same("a")), base=base, new=new) == [("a", "causal")]


def test_spared_ones_are_left_out_unless_affected() -> None:
    names = same("a", "b", "c")
    assert chosen(Names(names, spared=["b"])) == [("a", "causal"), ("c", "causal")]
    found = chosen(Names(names, affected=["c"], spared=["b", "c"]))
    assert found == [*(("c", mask) for mask in ALL), ("a", "causal")]


def test_of_spared_ones_nobody_is_asked() -> None:
    asked: list[str] = []

    def refusals(asked_of: Sequence[Contest]) -> list[tuple[str | None, str | None]]:
        asked.extend(contest.new.variant for contest in asked_of)
        return [(None, None)] * len(asked_of)

    choose(Names(same("a", "b"), spared=["b"]), SWEEP, refusals)
    assert set(asked) == {"a"}


def test_each_direction_length_and_size_has_a_mask_of_its_own() -> None:
    sweep = replace(SWEEP, directions=("fwd", "fwdbwd"), seq=(64, 32), heads=(2, 4), dtypes=("float32", "bfloat16"))
    found = contests(Names(same("a", "b")), sweep)
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 2 * 2
    assert {contest.new.mask for contest in found} == {"causal"}


def test_a_mask_that_is_refused_in_one_direction_is_replaced_there() -> None:
    def refusals(asked: Sequence[Contest]) -> list[tuple[str | None, str | None]]:
        without = [c.new.direction == "fwdbwd" and c.new.mask == "causal" for c in asked]
        return [("no gradient",) * 2 if refused else (None, None) for refused in without]

    found = choose(Names(same("a")), replace(SWEEP, directions=("fwd", "fwdbwd")), refusals)
    assert [(c.new.direction, c.new.mask) for c in found] == [("fwd", "causal"), ("fwdbwd", "full")]


def test_both_sides_have_the_same_problem_and_the_sweep_s_variants_do_not_count() -> None:
    for contest in contests(Names(same("a", "b"), affected=["a"]), replace(SWEEP, seq=(32, 64))):
        assert contest.base == contest.new and contest.new.variant in ("a", "b")
        assert (contest.new.heads, contest.new.head_dim, contest.new.dtype) == (2, 16, "float32")


@pytest.mark.parametrize(
    ("base", "new", "expected"),
    [
        (ALL, ALL, "causal"),
        (["causal", "full"], ["full", "causal"], "causal"),
        (["window:64", "global:8"], ["causal", "global:8"], "global:8"),
        (ALL, ["causal+window:64", "window:64"], "causal+window:64"),
    ],
)
def test_two_variants_meet_on_the_first_mask_that_both_take(base: list[str], new: list[str], expected: str) -> None:
    [contest] = contests(Names((("a", "b"),)), base=takes(a=base, b=new))
    assert (contest.base.variant, contest.new.variant) == ("a", "b")
    assert replace(contest.base, variant="") == replace(contest.new, variant="")
    assert contest.new.mask == expected


def test_two_variants_meet_on_each_mask_that_was_asked_for_and_that_both_take() -> None:
    sweep = replace(SWEEP, masks=(Mask(), Mask(causal=True), Mask(window=4)))
    names = Names((("a", "b"),))
    sides = takes(a=["full", "causal"], b=["causal", "window:4"])
    assert [contest.new.mask for contest in contests(names, sweep, sides)] == ["causal"]


def test_two_variants_that_share_no_mask_do_not_meet() -> None:
    assert contests(Names((("a", "b"),)), base=takes(a=["full"], b=["causal"])) == []


def test_the_order_is_that_of_the_names_and_no_set_decides_it() -> None:
    names = [f"v{at}" for at in range(12)]
    random.Random(1).shuffle(names)
    affected = names[3:7]
    orders = {tuple(chosen(Names(same(*names), affected=kind(affected)))) for kind in (list, set, tuple, frozenset)}
    assert len(orders) == 1
    found = [variant for variant, mask in orders.pop() if mask == "causal"]
    assert found == affected + [name for name in names if name not in affected]


@pytest.mark.parametrize("first", ["causal", "full"])
def test_an_affected_variant_is_compared_even_where_its_first_mask_is_new(first: str) -> None:
    found = chosen(Names(same("a"), affected=["a"]), base=takes(a=["window:64"]), new=takes(a=[first, "window:64"]))
    assert found == [("a", first), ("a", "window:64")]


def test_a_variant_whose_first_mask_one_side_refuses_is_compared_on_one_that_both_take_as_well() -> None:
    found = chosen(Names(same("a")), base=takes(a=["window:64", "global:8"]), new=takes(a=["causal", "global:8"]))
    assert found == [("a", "causal"), ("a", "global:8")]


def test_a_change_that_affects_all_a_little_has_all_compared_on_every_mask_after_their_first() -> None:
    found = chosen(Names(same("a", "b"), thorough=True), base=takes(b=["full", "window:64"]))
    firsts, rest = found[:2], found[2:]
    assert sorted(firsts) == [("a", "causal"), ("b", "full")]
    assert sorted(rest) == sorted([*(("a", mask) for mask in ALL[1:]), ("b", "window:64")])


def test_what_is_affected_presses_on_its_first_mask_alone() -> None:
    found = contests(Names(same("a", "b"), affected=["b"], thorough=True))
    assert [(c.new.variant, c.new.mask) for c in found if c.pressing] == [("b", "causal")]
    assert found[0].pressing
