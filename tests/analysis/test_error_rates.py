"""How often the gate is wrong, in thousands of simulated runs whose truth is known, and that the README says so."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.analysis.decision import SLOWER, Rules, decide, judge
from bench.results.paired import pair_number
from tests.analysis.rates import (
    CASES,
    OTHERS,
    RUNS,
    elsewhere,
    gate,
    mann_whitney,
    mean_above,
    of_gate,
    significant,
    table,
    upper_bound,
)
from tests.analysis.simulated import (
    BLOCKS,
    TOO_MUCH,
    USUAL,
    Floats,
    Noise,
    Simulated,
    drift,
    independent,
    lasting,
    middle_half,
    recorded_pairs,
    sometimes,
    step,
    student,
)

README = Path(__file__).parents[2] / "README.md"
in_each_noise = pytest.mark.parametrize("noise", USUAL, ids=lambda noise: noise.name)
in_any_noise = pytest.mark.parametrize("noise", (*USUAL, TOO_MUCH), ids=lambda noise: noise.name)


@in_any_noise
def test_false_alarms_in_at_most_one_run_of_fifty(noise: Noise) -> None:
    assert upper_bound(of_gate(noise).alarms, RUNS) <= 0.02


@pytest.mark.parametrize("deviation", [0.04, 0.1, 0.3])
def test_nor_in_more_however_far_pairs_are_apart(deviation: float) -> None:
    runs, part = 5000, 1000
    chance = np.random.default_rng(round(1000 * deviation))

    def draw(at: NDArray[np.intp], pairs: int, confirming: bool) -> Floats:
        return deviation * chance.standard_normal((len(at), pairs))

    verdicts = np.concatenate([decide(draw, part * CASES, Rules()).verdict for _ in range(runs // part)])
    alarms = int((verdicts.reshape(runs, CASES) == SLOWER).any(1).sum())
    assert alarms > 0
    assert upper_bound(alarms, runs) <= 0.02


@in_each_noise
def test_what_is_slower_is_found(noise: Noise) -> None:
    # Lower bounds: of the share that is not found, the upper ones.
    cases, rates = RUNS * CASES, of_gate(noise)
    assert 1 - upper_bound(round((1 - rates.small) * cases), cases) >= 0.90
    assert 1 - upper_bound(round((1 - rates.large) * cases), cases) >= 0.99


@in_each_noise
def test_what_is_slower_does_not_pass_as_the_same(noise: Noise) -> None:
    # Of 48,000 cases the bound leaves room for one: eight pairs of processes may all meet in the same of two modes.
    assert upper_bound(of_gate(noise).missed, RUNS * CASES) <= 1 / 10_000


def test_much_noise_leaves_cases_open_and_hides_little() -> None:
    rates = of_gate(TOO_MUCH)
    assert rates.undecided > 0.3
    assert upper_bound(rates.missed, RUNS * CASES) <= 1 / 1000


@in_each_noise
@pytest.mark.parametrize("stage", ["first look", "confirmation"])
def test_one_pair_of_eight_that_is_off_by_five_per_cent_fails_no_build(noise: Noise, stage: str) -> None:
    chance = np.random.default_rng(8)
    simulated = Simulated(noise, 0.0, chance)
    met = set()

    def draw(at: NDArray[np.intp], pairs: int, confirming: bool) -> Floats:
        numbers = simulated.draw(at, pairs, confirming)
        now = "confirmation" if confirming else "first look"
        if now == stage and now not in met:
            numbers[np.arange(len(at)), chance.integers(0, pairs, len(at))] += math.log(1.05)
        met.add(now)
        return numbers

    verdicts = decide(draw, 300 * CASES, Rules()).verdict
    assert not (verdicts == SLOWER).any()


@in_each_noise
def test_the_first_interval_covers_the_truth(noise: Noise) -> None:
    cases = 10_000  # the standard error of a share of 95 % is 0.2 %
    for effect in (0.0, 0.05):
        drawn = Simulated(noise, effect, np.random.default_rng(95)).draw(np.arange(cases), Rules().looks[0], False)
        found = judge(drawn, Rules().threshold)
        covered = float(((found.low <= 1 + effect) & (1 + effect <= found.high)).mean())
        assert covered >= 0.90
        if noise.name == "independent":
            assert 0.94 <= covered <= 0.96


@in_each_noise
def test_what_is_done_elsewhere_is_wrong_more_often(noise: Noise) -> None:
    for slower, samples in OTHERS.values():
        called = elsewhere(slower, samples, noise, 0.0, runs=100)
        assert called.any(1).mean() > 0.02 + of_gate(noise).runs


def test_the_readme_has_these_rates() -> None:
    """Word for word; numbers may be off by a third of a per cent, since another processor rounds differently."""
    here = re.search(r"<!-- error rates -->\n+(.*?)\n+<!-- end of error rates -->", README.read_text(), flags=re.DOTALL)
    assert here is not None, "README.md: put the table between <!-- error rates --> and <!-- end of error rates -->"
    told, now = here[1], table(OTHERS)
    number = r"\d+\.\d"
    assert re.sub(number, "x", told) == re.sub(number, "x", now), "python -m tests.analysis.rates prints another table"
    assert [float(x) for x in re.findall(number, told)] == pytest.approx(
        [float(x) for x in re.findall(number, now)], abs=0.3
    )


def test_simulated_numbers_are_made_as_measured_ones_are() -> None:
    chance = np.random.default_rng(1)
    for blocks in (1, 2, 3, 10, BLOCKS):
        base, new = np.exp(0.3 * chance.standard_normal((2, 20, blocks)))
        expected = [pair_number(list(b), list(n), [1.0] * (blocks + 1)) for b, n in zip(base, new, strict=True)]
        assert middle_half(np.log(new / base)) == pytest.approx(expected, rel=1e-12)


def test_also_where_blocks_are_set_aside() -> None:
    chance = np.random.default_rng(2)
    base, new = np.exp(0.3 * chance.standard_normal((2, 50, 12)))
    reference = np.where(chance.random((50, 13)) < 0.3, 4.0, 1.0)
    reference[0] = [1.0, 4.0] * 6 + [1.0]  # moved in every block
    counts = reference[:, 1:] == reference[:, :-1]
    expected = [pair_number(list(b), list(n), list(r)) for b, n, r in zip(base, new, reference, strict=True)]
    assert middle_half(np.log(new / base), counts) == pytest.approx(expected, rel=1e-12)


def test_the_recording_is_of_pairs_that_differ_by_chance_alone() -> None:
    known = recorded_pairs()
    assert len(known.first) == 13
    assert known.of_case.min() == 8
    assert known.of_case.sum() == len(known.number) == 112
    # Twelve cases of eight pairs and one of sixteen; more than four standard errors would be an effect.
    assert abs(known.number.mean()) < 4 * known.number.std() / math.sqrt(112)
    assert 0.01 < known.number.std() < 0.04


def test_sequences_are_what_they_are_called() -> None:
    chance = np.random.default_rng(3)
    turns, places = 80, 20_000
    plain = independent(0.06)(chance, turns, places)
    assert plain.std() == pytest.approx(0.06, rel=0.01)
    assert np.mean(plain[1:] * plain[:-1]) == pytest.approx(0, abs=2e-5)
    kept = lasting(0.16, 0.9)(chance, turns, places)
    assert kept.std() == pytest.approx(0.16, rel=0.01)
    assert np.mean(kept[5:] * kept[:-5]) / kept.var() == pytest.approx(0.9**5, abs=0.01)
    # Quartiles of t with 2 degrees of freedom: 0.8165; 0.975: 4.3027.
    heavy = student(0.03)(chance, turns, places)
    assert np.quantile(heavy, [0.25, 0.75, 0.975]) == pytest.approx([-0.024495, 0.024495, 0.129081], rel=0.01)
    doubled = sometimes(0.05, 2.0, independent(0.0))(chance, turns, places)
    assert set(np.unique(doubled)) == {np.float32(0), np.float32(math.log(2))}
    assert (doubled > 0).mean() == pytest.approx(0.05, abs=0.001)
    steps = step(0.3, independent(0.0))(chance, turns, places)
    assert (np.count_nonzero(np.diff(steps, axis=0), axis=0) == 1).all()
    assert steps.mean() == pytest.approx(math.log(1.3) / 2, rel=0.02)
    drifting = drift(0.1, independent(0.0))(chance, turns, places)
    assert np.abs(drifting[-1] - drifting[0]) == pytest.approx(math.log(1.1) * 79 / 80, rel=1e-5)


@in_each_noise
def test_noise_favours_neither_side_and_is_as_large_as_was_recorded(noise: Noise) -> None:
    chance = np.random.default_rng(4)
    numbers = noise.numbers(chance, np.arange(6500), 8, again=False)
    assert abs(numbers.mean()) < 4 * numbers.std() / math.sqrt(numbers.size)
    assert 0.012 < numbers.std() < 0.03
    base, new = noise.one_after_the_other(chance, 6500, 40)
    assert base.shape == new.shape == (6500, 40)
    difference = np.median(new, axis=1) - np.median(base, axis=1)
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(6500)


def test_an_effect_is_added_and_the_same_runs_come_again() -> None:
    noise = USUAL[0]
    without, with_effect = (
        Simulated(noise, effect, np.random.default_rng(5)).draw(np.arange(4), 8, False) for effect in (0.0, 0.1)
    )
    assert with_effect - without == pytest.approx(np.full((4, 8), math.log(1.1)))
    assert (gate(noise, 0.05, runs=1) == gate(noise, 0.05, runs=1)).all()


def test_the_u_test_by_hand() -> None:
    # Of new 1, 4, 6 and base 2, 3, 5: new is larger in 0 + 2 + 3 of nine, half a one above 4.5, less the correction.
    assert mann_whitney(np.array([[2.0, 3, 5]]), np.array([[1.0, 4, 6]])) == pytest.approx([0.0])
    # All of twenty above all others: U = 400, its mean 200, its variance 20 * 20 * 41 / 12.
    low, high = np.arange(20.0)[None], np.arange(20.0, 40)[None]
    assert mann_whitney(low, high) == pytest.approx([199.5 / math.sqrt(400 * 41 / 12)])
    assert mann_whitney(high, low) == pytest.approx([-199.5 / math.sqrt(400 * 41 / 12)])
    assert mann_whitney(low, low) == pytest.approx([0.0])
    # Where samples are independent, it is wrong as often as it says: on the side of slower in half of 1 %.
    base, new = np.random.default_rng(6).standard_normal((2, 20_000, 20))
    assert significant(0.01, base, new).mean() == pytest.approx(0.005, abs=0.0015)


def test_means_are_of_times_not_of_logarithms() -> None:
    base, new = np.log([[1.0, 1.0]]), np.log([[0.1, 2.01]])  # means 1 and 1.055, geometric means 1 and 0.45
    assert mean_above(0.05, base, new).all()
    assert not mean_above(0.06, base, new).any()


def test_the_upper_bound_by_closed_forms() -> None:
    # Of none, the bound p has (1 - p)^n = 5 %; of all but one in n, 1 - p^n - n p^(n - 1) (1 - p) does not concern it.
    assert upper_bound(0, 1000) == pytest.approx(1 - 0.05 ** (1 / 1000))
    assert upper_bound(7, 7) == 1
    assert upper_bound(1, 2) == pytest.approx(math.sqrt(0.95))  # 1 - p^2 = 5 %
    # Poisson's limit: 4.7439 where one was seen (Garwood's tables).
    assert upper_bound(1, 1_000_000) * 1e6 == pytest.approx(4.7439, rel=1e-4)
