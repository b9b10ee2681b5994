"""Made-up rows of a gate: what is slower, bigger, wrong or open, and what the exit status says of it."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.analysis.decision import Rules
from bench.analysis.frame import from_rows
from bench.analysis.paired import (
    BETTER,
    NOTED,
    OPEN,
    WORSE,
    Outcome,
    environment_of,
    exit_status,
    outcomes,
    threshold_in,
)
from bench.errors import UserError
from bench.results.columns import Row
from tests.analysis import made_up

GATE = "2 gate"
KIB, MIB = 2**10, 2**20
NOISE = (1.001, 0.999)  # of one pair and the next
LOUD = (1.04, 1 / 1.04)  # with which 8 pairs decide nothing, and 16 do

Changes = dict[str, Any]

RULES = Rules(threshold=0.03, looks=(8, 16, 32), confirming=(8, 16), error=0.01)


def side(which: str, visit: int, variant: str, ms: float, changes: Changes) -> Row:
    """A row of four blocks of so many milliseconds, over a reference that is always 5 ms."""
    told = {"run": f"r-{which}", "visit": visit, "method": GATE, "canary_samples_ms": (5.0,) * 5, **changes}
    if told.get("status", "ok") != "ok":
        return made_up.failed(told.pop("status"), told.pop("reason", "a reason"), variant, **told)
    return made_up.row(variant, ms=(ms,) * 4, **told)


def pairs(
    *ratios: float,
    variant: str = "a",
    base_ms: Sequence[float] = (1.0,),
    base: Changes | None = None,
    new: Changes | None = None,
    **both: Any,
) -> list[Row]:
    """Two rows for each of these ratios of new / base."""
    rows = []
    for visit, ratio in enumerate(ratios, 1):
        ms = base_ms[(visit - 1) % len(base_ms)]
        rows.append(side("base", visit, variant, ms, {**both, **(base or {})}))
        rows.append(side("new", visit, variant, ms * ratio, {**both, **(new or {})}))
    return rows


def around(ratio: float, count: int, noise: Sequence[float] = NOISE) -> list[float]:
    """So many ratios, above and below this one in turn."""
    return [ratio * noise[at % 2] for at in range(count)]


def found(rows: Sequence[Row], rules: Rules = RULES) -> list[Outcome]:
    return outcomes(from_rows(rows), rules)


def only(rows: Sequence[Row], rules: Rules = RULES) -> Outcome:
    [outcome] = found(rows, rules)
    return outcome


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(finding.text, finding.amounts_to) for finding in outcome.findings]


SAME_AFTER_8 = pairs(*around(1.0, 8), variant="z")


def test_what_took_as_long_is_the_same() -> None:
    outcome = only(pairs(*around(1.0, 8), base_ms=(2.0,)))
    assert (outcome.verdict, outcome.pairs, told(outcome)) == ("SAME", 8, [])
    assert outcome.ratio == pytest.approx(1.0, abs=1e-6)
    assert 0.99 < outcome.low < 1.0 < outcome.high < 1.01
    assert outcome.base_ms == pytest.approx(2.0) and outcome.new_ms == pytest.approx(2.0)
    assert outcome.memory_ratio == 1.0
    assert exit_status([outcome]) == 0


def test_a_case_is_looked_at_again_until_it_is_decided() -> None:
    outcome = only(pairs(*around(1.0, 16, LOUD)))
    assert (outcome.verdict, outcome.pairs) == ("SAME", 16)


def test_what_took_longer_twice_is_slower() -> None:
    rows = pairs(*around(1.10, 8), *around(1.05, 8), base_ms=(*(1.0,) * 8, *(3.0,) * 8))
    outcome = only(rows)
    assert (outcome.verdict, outcome.pairs) == ("SLOWER", 8)
    assert outcome.ratio == pytest.approx(1.05, rel=1e-4), "of the fresh pairs alone"
    assert outcome.low < outcome.ratio < outcome.high
    assert outcome.base_ms == pytest.approx(3.0) and outcome.new_ms == pytest.approx(3.15, rel=1e-2)
    [(text, amounts_to)] = told(outcome)
    assert amounts_to == WORSE and text.startswith("time: +5.0 % (+4.9 % to +5.1 %)")
    assert exit_status([outcome]) == exit_status([outcome], allow_inconclusive=True) == 1


def test_what_took_less_twice_is_faster() -> None:
    outcome = only(pairs(*around(0.9, 16)))
    assert (outcome.verdict, outcome.pairs) == ("FASTER", 8)
    [(text, amounts_to)] = told(outcome)
    assert amounts_to == BETTER and text.startswith("time: -10.0 %")
    assert exit_status([outcome]) == 0


def test_what_stood_out_and_could_not_be_confirmed_is_open() -> None:
    outcome = only(pairs(*around(1.2, 8)))
    assert (outcome.verdict, outcome.pairs) == ("INCONCLUSIVE", 8)
    assert outcome.ratio == pytest.approx(1.2, rel=1e-4)
    [(text, amounts_to)] = told(outcome)
    assert amounts_to == OPEN and "+20.0 %" in text and "not confirmed" in text
    assert (exit_status([outcome]), exit_status([outcome], allow_inconclusive=True)) == (3, 0)


def test_what_stood_out_and_was_not_confirmed_does_not_say_that_less_would_have_stood_out() -> None:
    [(text, _)] = told(only(pairs(*around(1.2, 8))))
    assert "3.0 % would have stood out" not in text


def test_fresh_pairs_that_leave_it_open_are_followed_by_more() -> None:
    outcome = only(pairs(*around(1.2, 8), *around(1.05, 8, (1.1, 1 / 1.1)), *around(1.05, 8, (1.1, 1 / 1.1))))
    assert (outcome.verdict, outcome.pairs) == ("INCONCLUSIVE", 16)
    outcome = only(pairs(*around(1.2, 8), *around(1.05, 8, (1.05, 1 / 1.05)), *around(1.05, 8, (1.05, 1 / 1.05))))
    assert (outcome.verdict, outcome.pairs) == ("SLOWER", 16)
    assert outcome.ratio == pytest.approx(1.05, rel=1e-4)


def test_what_is_surely_not_slower_is_no_reason_to_stop_anybody() -> None:
    outcome = only(pairs(*around(0.95, 8, LOUD)))
    assert outcome.verdict == "INCONCLUSIVE" and outcome.high < 1.03
    [(text, amounts_to)] = told(outcome)
    assert amounts_to == NOTED and "same or faster" in text
    assert exit_status([outcome]) == 0


def test_what_stood_out_by_chance_is_what_fresh_pairs_say() -> None:
    outcome = only(pairs(*around(1.2, 8), *around(1.0, 8)))
    assert (outcome.verdict, outcome.pairs, told(outcome)) == ("SAME", 8, [])
    assert outcome.ratio == pytest.approx(1.0, abs=1e-6)


def test_what_was_slower_and_then_faster_is_open() -> None:
    outcome = only(pairs(*around(1.2, 8), *around(0.8, 8)))
    assert outcome.verdict == "INCONCLUSIVE" and outcome.amounts_to(OPEN) and not outcome.amounts_to(WORSE)


def test_what_is_too_noisy_is_open_and_says_what_would_have_been_seen() -> None:
    outcome = only(pairs(*around(1.0, 8, (1.1, 1 / 1.1))))
    assert outcome.verdict == "INCONCLUSIVE"
    [(text, amounts_to)] = told(outcome)
    # By hand: the deviation is ln(1.1) sqrt(8/7) = 0.1019, its error 0.1019 / sqrt(8), Student's t 2.998: exp(0.108).
    assert amounts_to == OPEN and text.endswith("not decided; a change of 11 % would have stood out")


def test_a_gate_that_was_stopped_before_the_first_look_decided_nothing() -> None:
    outcome = only(pairs(*around(1.2, 3)))
    assert (outcome.verdict, outcome.pairs) == ("INCONCLUSIVE", 0) and math.isnan(outcome.ratio)
    assert told(outcome) == [("time: nothing is known of it", OPEN)]
    assert exit_status([outcome]) == 3


def test_the_threshold_decides() -> None:
    rows = pairs(*around(1.05, 16))
    assert only(rows, RULES).verdict == "SLOWER"
    assert only(rows, replace(RULES, threshold=0.10)).verdict == "SAME"


KERNELS: Changes = {"base": {"kernel": "flash"}, "new": {"kernel": "math"}}


@pytest.mark.parametrize("ratio", [1.0, 0.8])
def test_another_kernel_is_not_to_be_compared(ratio: float) -> None:
    rows = pairs(*around(ratio, 16), **KERNELS)
    outcome = only(rows)
    assert outcome.verdict == "NOT COMPARABLE"
    assert ("another kernel: flash → math", OPEN) in told(outcome)
    assert not outcome.amounts_to(BETTER) and not outcome.amounts_to(WORSE)
    assert exit_status([outcome]) == exit_status([outcome], allow_inconclusive=True) == 2
    both = found([*rows, *SAME_AFTER_8])
    assert (exit_status(both), exit_status(both, allow_inconclusive=True)) == (3, 0)


def test_slower_by_another_kernel_is_slower() -> None:
    outcome = only(pairs(*around(1.5, 16), **KERNELS))
    assert outcome.verdict == "SLOWER" and outcome.amounts_to(WORSE)
    assert ("another kernel: flash → math", OPEN) in told(outcome)
    assert exit_status([outcome]) == 1


def failing(base: Changes | None = None, new: Changes | None = None, **both: Any) -> list[Row]:
    """What a gate writes where a side is not right: one row a side."""
    return pairs(1.0, base=base, new=new, **both)


WRONG = {"status": "wrong", "reason": "error 1.0 > 1e-06"}
GONE = {"status": "unsupported", "reason": "not registered"}


@pytest.mark.parametrize(
    ("base", "new", "amounts_to", "says"),
    [
        ({}, WRONG, WORSE, "status: ok → wrong (error 1.0 > 1e-06)"),
        (WRONG, {}, BETTER, "status: wrong (error 1.0 > 1e-06) → ok"),
        (WRONG, WRONG, NOTED, "wrong on both sides (error 1.0 > 1e-06)"),
        ({}, GONE, WORSE, "status: ok → unsupported (not registered)"),
        (GONE, {}, BETTER, "status: unsupported (not registered) → ok"),
        ({}, {"status": "timeout", "reason": "no result"}, WORSE, "status: ok → timeout (no result)"),
        ({}, {"status": "oom", "reason": "no memory"}, WORSE, "status: ok → oom (no memory)"),
        (GONE, WRONG, WORSE, "status: unsupported (not registered) → wrong (error 1.0 > 1e-06)"),
        (WRONG, GONE, NOTED, "status: wrong (error 1.0 > 1e-06) → unsupported (not registered)"),
    ],
)
def test_what_is_not_right_on_a_side_is_told_with_its_reason(
    base: Changes, new: Changes, amounts_to: str, says: str
) -> None:
    outcome = only(failing(base, new))
    assert told(outcome) == [(says, amounts_to)]
    assert (outcome.verdict, outcome.pairs) == ("NOT COMPARABLE", 0)
    assert math.isnan(outcome.ratio) and math.isnan(outcome.base_ms)
    alone, beside = (1, 1) if amounts_to == WORSE else (2, 0)
    assert exit_status([outcome]) == alone
    assert exit_status([outcome, *found(SAME_AFTER_8)]) == beside


@pytest.mark.parametrize("at", [0, 7, 15])
def test_a_side_that_was_lost_in_turns_is_not_compared_and_worse(at: int) -> None:
    rows = pairs(*around(1.0, 16, LOUD))
    lost = {"status": "crashed", "reason": "in turns: killed by SIGSEGV"}
    rows[2 * at + 1] = side("new", at + 1, "a", 1.0, lost)
    outcome = only(rows)
    assert outcome.verdict == "NOT COMPARABLE"
    assert told(outcome) == [("status: ok → crashed (in turns: killed by SIGSEGV)", WORSE)]
    assert exit_status([outcome]) == 1


@pytest.mark.parametrize(("at", "status"), [(0, "crashed"), (0, "oom"), (0, "timeout"), (1, "oom")])
def test_what_was_lost_in_turns_and_may_be_no_fault_of_new_is_open(at: int, status: str) -> None:
    rows = pairs(*around(1.0, 8))
    rows[4 + at] = side(("base", "new")[at], 3, "a", 1.0, {"status": status, "reason": "in turns: this or that"})
    outcome = only(rows)
    assert outcome.verdict == "NOT COMPARABLE" and outcome.amounts_to(OPEN) and not outcome.amounts_to(WORSE)
    assert "in turns: this or that" in told(outcome)[0][0]
    assert (exit_status([outcome]), exit_status([outcome, *found(SAME_AFTER_8)])) == (2, 3)


NO_TIME = "no time left in the budget"


@pytest.mark.parametrize(
    ("reason", "amounts_to", "status"), [(NO_TIME, NOTED, 0), (f"{NO_TIME}, though changed files affect it", OPEN, 3)]
)
def test_what_there_was_no_time_for_is_open_where_changed_files_affect_it(
    reason: str, amounts_to: str, status: int
) -> None:
    skipped = {"status": "skipped", "reason": reason}
    outcome = only(failing(skipped, skipped))
    assert told(outcome) == [(f"skipped on both sides ({reason})", amounts_to)]
    assert exit_status([outcome, *found(SAME_AFTER_8)]) == status


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (10 * MIB, 12 * MIB, [("peak memory: 10.0 MiB → 12.0 MiB (+20.0 %)", WORSE)]),
        (4 * MIB, 4 * MIB + 800 * KIB, [("peak memory: 4.00 MiB → 4.78 MiB (+19.5 %)", WORSE)]),
        (4 * MIB, 4 * MIB + 400 * KIB, []),
        (200 * KIB, 240 * KIB, []),
        (200 * KIB, 280 * KIB, [("peak memory: 200 KiB → 280 KiB (+40.0 %)", WORSE)]),
        (0, 64 * KIB, []),
        (400 * MIB, 402 * MIB, []),
        (100 * MIB, 101 * MIB, []),
        (100 * MIB, 102 * MIB, [("peak memory: 100 MiB → 102 MiB (+2.0 %)", WORSE)]),
        (0, 2 * MIB, [("peak memory: 0 B → 2.00 MiB", WORSE)]),
        (12 * MIB, 10 * MIB, [("peak memory: 12.0 MiB → 10.0 MiB (-16.7 %)", BETTER)]),
        (402 * MIB, 400 * MIB, []),
        (None, 12 * MIB, []),
    ],
)
def test_a_peak_is_worse_by_over_one_percent_and_one_mebibyte_or_a_tenth_and_64_kibibytes(
    before: int | None, after: int, expected: list[tuple[str, str]]
) -> None:
    outcome = only(pairs(*around(1.0, 8), base={"peak_bytes": before}, new={"peak_bytes": after}))
    assert told(outcome) == expected
    assert outcome.verdict == "SAME", "of the time"
    assert exit_status([outcome]) == any(amounts_to == WORSE for _, amounts_to in expected)
    if before:
        assert outcome.memory_ratio == after / before


@pytest.mark.parametrize(
    ("exact", "before", "after", "worse"),
    [
        (False, 1e-3, 1.2e-3, True),
        (False, 1e-3, 1.05e-3, False),
        (False, 1e-3, 5e-4, False),
        (True, 1e-7, 9e-7, False),
        (False, None, 1e-3, False),
    ],
)
def test_of_an_approximation_the_error_is_compared(
    exact: bool, before: float | None, after: float, worse: bool
) -> None:
    outcome = only(pairs(*around(1.0, 8), base={"error": before}, new={"error": after}, exact=exact))
    assert told(outcome) == ([("error: 1.0e-03 → 1.2e-03", WORSE)] if worse else [])
    assert exit_status([outcome]) == worse


def test_all_that_is_found_is_told() -> None:
    grown = {"peak_bytes": 90 * MIB, "error": 1.0}
    outcome = only(pairs(*around(1.5, 16), base={"error": 0.1}, new=grown, exact=False))
    assert [text.split(":")[0] for text, _ in told(outcome)] == ["peak memory", "error", "time"]
    assert {amounts_to for _, amounts_to in told(outcome)} == {WORSE}


def test_nothing_compared_is_no_success() -> None:
    assert exit_status([]) == exit_status([], allow_inconclusive=True) == 2


def test_the_worst_decides_the_exit_status() -> None:
    slower = pairs(*around(1.2, 16), variant="a")
    open_ = pairs(*around(1.0, 8, (1.1, 1 / 1.1)), variant="b")
    faster = pairs(*around(0.8, 16), variant="c")
    assert exit_status(found([*SAME_AFTER_8, *faster])) == 0
    assert exit_status(found([*SAME_AFTER_8, *open_, *faster])) == 3
    assert exit_status(found([*SAME_AFTER_8, *open_, *slower])) == 1
    assert exit_status(found([*SAME_AFTER_8, *open_]), allow_inconclusive=True) == 0
    assert exit_status(found([*slower, *open_]), allow_inconclusive=True) == 1


def test_contests_are_apart_in_variant_and_in_all_that_makes_a_problem() -> None:
    rows = [*SAME_AFTER_8]
    for changes in ({"variant": "b"}, {"n": 2048}, {"mask": "full"}, {"dtype": "bfloat16"}, {"direction": "fwdbwd"}):
        rows += contest_of(changes)
    found_ = found(rows)
    assert [outcome.verdict for outcome in found_] == ["SAME", *["SLOWER"] * 5]
    assert [outcome.pairs for outcome in found_] == [8] * 6


def contest_of(changes: Changes) -> list[Row]:
    length = changes.pop("n", 1024)
    return pairs(*around(1.1, 16), **{"variant": "z", "seq_q": length, "seq_kv": length, **changes})


def test_each_of_many_cases_has_the_pairs_that_it_got() -> None:
    rows = [
        *pairs(*around(1.0, 8), variant="quick"),
        *pairs(*around(1.0, 16, LOUD), variant="longer"),
        *pairs(*around(1.2, 16), variant="slower"),
        *pairs(*around(1.2, 8), *around(1.0, 8), variant="chance"),
        *failing({}, WRONG, variant="wrong"),
    ]
    assert {o.new["variant"]: (o.verdict, o.pairs) for o in found(rows)} == {
        "quick": ("SAME", 8),
        "longer": ("SAME", 16),
        "slower": ("SLOWER", 8),
        "chance": ("SAME", 8),
        "wrong": ("NOT COMPARABLE", 0),
    }


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [
        *pairs(*around(1.2, 8), *around(1.05, 8), variant="a"),
        *pairs(*around(1.0, 16, LOUD), variant="b"),
        *failing(WRONG, {}, variant="c"),
    ]
    expected = {o.new["variant"]: (o.verdict, o.pairs, o.ratio, o.base_ms, told(o)) for o in found(rows)}
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        again = {o.new["variant"]: (o.verdict, o.pairs, o.ratio, o.base_ms, told(o)) for o in found(rows)}
        assert str(again["c"]) == str(expected["c"]), "with NaN, which equals nothing"
        assert {name: again[name] for name in "ab"} == {name: expected[name] for name in "ab"}


def test_two_variants_are_matched_by_their_problem() -> None:
    rows = []
    for length, ratio in ((1024, 1.2), (2048, 1.0)):
        rows += [
            side("base" if at % 2 == 0 else "new", row.visit, ("sdpa", "mine")[at % 2], row.facts.samples_ms[0], sizes)
            for at, row in enumerate(pairs(*around(ratio, 16 if ratio > 1 else 8)))
            for sizes in ({"seq_q": length, "seq_kv": length},)
        ]
    found_ = found(rows)
    assert [(o.base["variant"], o.new["variant"], o.new["seq_q"]) for o in found_] == [
        ("sdpa", "mine", 1024),
        ("sdpa", "mine", 2048),
    ]
    assert [o.verdict for o in found_] == ["SLOWER", "SAME"]


def test_a_variant_that_another_one_replaced_is_not_matched_with_it() -> None:
    rows = [*failing({}, GONE, variant="old"), *failing(GONE, {}, variant="young")]
    assert [(o.base["variant"], o.new["variant"]) for o in found(rows)] == [("old", "old"), ("young", "young")]


def test_rows_of_no_gate_are_refused() -> None:
    with pytest.raises(UserError, match=r"not paired; accepted: a file that bench\.gate wrote"):
        found([made_up.row("a", run="r-base"), made_up.row("a", run="r-new")])
    with pytest.raises(UserError, match="not paired"):
        found([*SAME_AFTER_8, made_up.row("a", run="r-base")])


def test_a_gate_is_judged_by_the_threshold_that_it_was_given() -> None:
    for text, expected in (("0.03", 0.03), ("0.1", 0.1), ("1e-05", 1e-5), ("1", 1.0)):
        assert threshold_in(from_rows(pairs(1.0, base={"run": f"20260101-1200-ab-at-{text}-base"}))) == expected
    assert threshold_in(from_rows(SAME_AFTER_8)) is None


@pytest.mark.parametrize("other", ["q-base", "r-side", "r", ""])
def test_rows_of_several_gates_are_refused(other: str) -> None:
    with pytest.raises(UserError, match=r"one run of bench\.gate is expected") as refusal:
        found([*SAME_AFTER_8, *pairs(1.0, base={"run": other})])
    assert other in str(refusal.value) and "r-new" in str(refusal.value)


def test_a_run_may_have_dashes_in_its_name() -> None:
    runs = {"base": {"run": "20260101-120000-abcd-base"}, "new": {"run": "20260101-120000-abcd-new"}}
    assert only(pairs(*around(1.0, 8), **runs)).verdict == "SAME"  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", [0, 1, 5, 15])
def test_a_pair_that_lacks_a_row_is_refused(missing: int) -> None:
    rows = pairs(*around(1.0, 8), variant="mine")
    del rows[missing]
    with pytest.raises(UserError, match="mine, causal, fwd: a pair lacks one of its two rows"):
        found(rows)


@pytest.mark.parametrize("at", [0, 1])
def test_a_side_without_any_row_is_refused(at: int) -> None:
    with pytest.raises(UserError, match="a pair lacks one of its two rows"):
        found(pairs(*around(1.0, 8))[at::2])


def test_what_differs_between_the_environments_is_named() -> None:
    sides: Changes = {"base": {"torch": "2.12", "commit": "1234567"}, "new": {"torch": "2.13", "commit": "89abcde+"}}
    frame = from_rows(pairs(*around(1.0, 8), **sides))
    assert environment_of(frame) == {"torch": ("2.12", "2.13"), "commit": ("1234567", "89abcde+")}
    assert environment_of(from_rows(SAME_AFTER_8)) == {}
