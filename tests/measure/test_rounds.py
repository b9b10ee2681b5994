"""A run from its first case to its last, with a made-up clock and executor: what is visited, what is not, and why."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bench.measure.rounds import Run, rounds
from bench.plan.sweep import Sweep
from bench.results.columns import Case, Ceiling, Conditions, Facts, Row
from tests.results.rows import ENVIRONMENT
from variants.machine import Machine
from variants.masks import Mask
from variants.registry import Variant


def dense(q, k, v, *, mask): ...
def banded(q, k, v, *, window): ...


MACHINE = Machine("cpu", "a made-up CPU", memory_bytes=2**34)
VARIANTS = {
    "dense": Variant("dense", dense),
    "banded": Variant("banded", banded),
    "absent": Variant("absent", dense, requires=("no_such_package",)),
}
RUN = Run("made-up", VARIANTS, MACHINE, ENVIRONMENT, visits=3, time_budget_s=1e9, max_call_s=5.0)
SWEEP = Sweep(
    variants=tuple(VARIANTS),
    masks=(Mask(), Mask(window=4)),
    directions=("fwd",),
    seq=(512, 1024, 2048),
    heads=(1,),
    head_dim=(64,),
    batch=(1,),
    dtypes=("float32",),
    device="cpu",
)
CASES = SWEEP.cases()


class World:
    """A clock that moves only when a visit is made, and an executor that gives what it is told."""

    def __init__(self, facts: Callable[[Case, int], Facts], visit_s: float = 1.0) -> None:
        self.facts, self.visit_s = facts, visit_s
        self.now = 0.0
        self.visited: list[tuple[Case, int]] = []

    def execute(self, case: Case, number: int) -> Facts:
        self.now += self.visit_s
        self.visited.append((case, number))
        return self.facts(case, number)

    def run(self, run: Run = RUN, cases: list[Case] = CASES, **options: object) -> list[Row]:
        return list(rounds(run, cases, self.execute, lambda: self.now, **options))


def measured(latency_ms: float, peak_bytes: int = 1000) -> Facts:
    return Facts("ok", samples_ms=(latency_ms,), peak_bytes=peak_bytes)


def quick(case: Case, number: int) -> Facts:
    return measured(1.0)


def status_of(rows: list[Row], variant: str, mask: str) -> list[tuple[int, str, str]]:
    return [
        (r.case.seq_kv, r.facts.status, r.facts.reason)
        for r in rows
        if (r.case.variant, r.case.mask) == (variant, mask)
    ]


def test_every_case_has_a_row_in_round_one_and_what_went_well_is_visited_again() -> None:
    world = World(quick)
    rows = world.run()
    assert [row.case for row in rows[: len(CASES)]] == CASES
    assert all(row.visit == 1 for row in rows[: len(CASES)])
    ok = [case for case in CASES if case.variant == "dense" or (case.variant == "banded" and case.mask == "window:4")]
    assert world.visited == [(case, number) for number in (1, 2, 3) for case in ok]
    assert len({row.key for row in rows}) == len(rows)


def test_a_mask_that_a_variant_does_not_take_and_a_missing_package_are_rows_with_reasons() -> None:
    rows = World(quick).run()
    assert status_of(rows, "banded", "full") == [(n, "unsupported", "needs a window") for n in SWEEP.seq]
    assert {s[1:] for s in status_of(rows, "absent", "full")} == {("unsupported", "needs the package no_such_package")}


def test_the_time_budget_ends_later_rounds_but_never_the_first() -> None:
    world = World(quick, visit_s=10.0)
    rows = world.run(replace(RUN, time_budget_s=115.0))
    assert [number for _, number in world.visited] == [1] * 9 + [2] * 2  # 9 visits last 90 s, two more fit in 115 s
    assert {row.case for row in rows} == set(CASES)
    assert len(World(quick, visit_s=1000.0).run(replace(RUN, time_budget_s=1.0))) == len(CASES)


def test_a_length_that_would_take_too_long_is_skipped_with_the_prediction() -> None:
    world = World(lambda case, number: measured(600.0 * (case.seq_kv / 512) ** 2))
    rows = world.run()
    assert status_of(rows, "dense", "full")[:3] == [
        (512, "ok", ""),
        (1024, "ok", ""),
        (2048, "skipped", "one call would take about 9.6 s"),
    ]
    assert status_of(rows, "dense", "full")[3:] == [(512, "ok", ""), (1024, "ok", "")] * 2


def test_a_length_that_would_not_fit_is_skipped_with_the_need() -> None:
    world = World(lambda case, number: measured(1.0, peak_bytes=2**30 * (case.seq_kv // 512) ** 2))
    rows = world.run(free_bytes=lambda: 5 * 2**30)
    assert status_of(rows, "dense", "full")[2] == (2048, "skipped", "needs about 16 GiB, 5 GiB free")


@pytest.mark.parametrize(("status", "text"), [("oom", "out of memory"), ("timeout", "timed out")])
def test_after_a_length_that_failed_for_size_longer_ones_are_not_tried(status: str, text: str) -> None:
    def facts(case: Case, number: int) -> Facts:
        return Facts(status, "made up") if case.seq_kv >= 1024 and case.mask == "full" else measured(1.0)

    rows = World(facts).run()
    assert [s for _, s, _ in status_of(rows, "dense", "full")[:3]] == ["ok", status, "skipped"]
    assert status_of(rows, "dense", "full")[2][2] == f"{text} at 1024 already"
    assert [s for _, s, _ in status_of(rows, "dense", "window:4")[:3]] == ["ok"] * 3


@pytest.mark.parametrize("status", ["wrong", "error", "crashed", "oom", "timeout", "unsupported"])
def test_what_failed_is_not_visited_again_and_stops_nothing_else(status: str) -> None:
    bad = CASES[0]
    world = World(lambda case, number: Facts(status, "made up") if case == bad else measured(1.0))
    rows = world.run()
    assert [(r.visit, r.facts.status) for r in rows if r.case == bad] == [(1, status)]
    others = [case for case in dict(world.visited) if case != bad and case.variant != bad.variant]
    assert all([number for c, number in world.visited if c == case] == [1, 2, 3] for case in others)


def test_a_case_that_fails_later_is_not_visited_a_third_time() -> None:
    bad = CASES[0]
    world = World(lambda case, number: Facts("crashed", "x") if (case, number) == (bad, 2) else measured(1.0))
    assert [(r.visit, r.facts.status) for r in world.run() if r.case == bad] == [(1, "ok"), (2, "crashed")]


@pytest.mark.parametrize("stop", range(0, 40, 3))
def test_a_run_resumed_anywhere_ends_with_the_rows_of_an_undisturbed_one(stop: int) -> None:
    def facts(case: Case, number: int) -> Facts:
        if case.seq_kv == 1024 and case.mask == "full":
            return Facts("oom", "made up")
        return measured(3000.0 * (case.seq_kv / 1024) ** 2)

    undisturbed = World(facts).run()
    before = undisturbed[:stop]
    world = World(facts)
    after = world.run(known=before)
    assert [(r.key, r.facts) for r in before + after] == [(r.key, r.facts) for r in undisturbed]
    assert not {(r.case, r.visit) for r in before} & set(world.visited)


def quiet_but(disturbed: set[tuple[Case, int]]) -> Callable[[Case, int], Facts]:
    """Visits whose canary takes 10 ms, or 12 where disturbed."""

    def facts(case: Case, number: int) -> Facts:
        canary_ms = 12.0 if (case, number) in disturbed else 10.0
        return replace(measured(1.0), conditions=Conditions((canary_ms, canary_ms, 99.0)))

    return facts


DENSE = [case for case in CASES if case.variant == "dense"]


@pytest.mark.parametrize(
    ("disturbed", "revisits"),
    [({2}, [4]), ({1, 3}, [4, 5]), ({2, 4}, [4, 5]), ({1, 2, 3, 4, 5}, [4, 5]), (set(), [])],
    ids=str,
)
def test_a_disturbed_case_is_visited_again_at_the_end_at_most_twice(disturbed: set[int], revisits: list[int]) -> None:
    bad = DENSE[1]
    world = World(quiet_but({(bad, number) for number in disturbed}))
    rows = world.run(cases=DENSE)
    in_rounds = 3 * len(DENSE)
    assert set(world.visited[:in_rounds]) == {(case, number) for case in DENSE for number in (1, 2, 3)}
    assert world.visited[in_rounds:] == [(bad, number) for number in revisits]
    assert len({row.key for row in rows}) == len(rows) == in_rounds + len(revisits)


def test_a_crowded_visit_is_disturbed_whatever_its_canary() -> None:
    def facts(case: Case, number: int) -> Facts:
        crowding = 0.5 if (case, number) == (DENSE[3], 1) else 0.05
        return replace(measured(1.0), conditions=Conditions((10.0,), crowding=crowding))

    world = World(facts)
    world.run(replace(RUN, visits=1), cases=DENSE)
    assert world.visited[len(DENSE) :] == [(DENSE[3], 2)]


def test_cases_without_a_quiet_visit_are_visited_first() -> None:
    world = World(quiet_but({(DENSE[2], 1), (DENSE[4], 1), (DENSE[4], 2)}))
    world.run(cases=DENSE)
    second, third = ([DENSE.index(case) for case, visit in world.visited if visit == number] for number in (2, 3))
    assert second == [2, 4, 0, 1, 3, 5]
    assert third == [4, 0, 1, 2, 3, 5]


def test_revisits_keep_to_the_time_budget() -> None:
    world = World(quiet_but({(case, 1) for case in DENSE[1:]}), visit_s=10.0)
    world.run(replace(RUN, visits=1, time_budget_s=85.0), cases=DENSE)
    assert world.visited[6:] == [(case, 2) for case in DENSE[1:3]]


def test_what_fits_into_the_rest_of_the_budget_is_still_visited() -> None:
    world = World(quick)
    takes = {512: 1.0, 1024: 1.0, 2048: 20.0}

    def execute(case: Case, number: int) -> Facts:
        world.now += takes[case.seq_kv]
        world.visited.append((case, number))
        return measured(1.0)

    full = [case for case in DENSE if case.mask == "full"]
    list(rounds(replace(RUN, time_budget_s=30.0), full, execute, lambda: world.now))
    assert [(case.seq_kv, number) for case, number in world.visited[3:]] == [(512, 2), (1024, 2), (512, 3), (1024, 3)]


def test_rows_taken_over_from_elsewhere_are_done_and_foretell_nothing() -> None:
    def slow(case: Case, number: int) -> Facts:
        return replace(measured(4000.0), conditions=Conditions((0.1,)))

    before = World(slow).run(replace(RUN, visits=1), cases=DENSE[:2])
    elsewhere = [replace(row, environment=replace(ENVIRONMENT, device_name="another")) for row in before]
    world = World(quiet_but(set()))
    rows = world.run(replace(RUN, visits=1), cases=DENSE, known=elsewhere)
    assert world.visited == [(case, 1) for case in DENSE[2:]]
    assert {row.facts.status for row in rows} == {"ok"}


def test_a_visit_says_how_long_it_took_and_what_its_dtype_reaches() -> None:
    ceiling = Ceiling(0.5, 20.0)
    made = replace(RUN, ceilings={"float32": ceiling})
    rows = World(quick, visit_s=2.5).run(made)
    assert {(row.visit_s, row.ceiling) for row in rows if row.facts.status == "ok"} == {(2.5, ceiling)}
    assert {row.visit_s for row in rows if row.facts.status == "unsupported"} == {None}
    assert {row.ceiling for row in World(quick).run()} == {Ceiling()}


def test_each_visit_is_announced_before_it_is_made() -> None:
    world = World(quick)
    announced: list[int] = []
    world.run(announce=lambda visit: announced.append(len(world.visited)))
    assert announced == list(range(len(world.visited)))


def test_an_approximation_is_marked_in_its_rows() -> None:
    variants = {"dense": Variant("dense", dense, exact=False)}
    rows = World(quick).run(replace(RUN, variants=variants), cases=[c for c in CASES if c.variant == "dense"])
    assert rows
    assert not any(row.exact for row in rows)
