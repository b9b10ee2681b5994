"""What a finding says: the smallest problem that shows a failure, and a command that repeats it."""

import shlex

import pytest

from bench.checks.catalogue import CHECKS
from bench.checks.examine import command, examined
from bench.checks.subject import Check, Subject, Trial
from bench.measure.conduct import Wrong
from bench.verify import parser
from tests.checks.mutants import RIGHT
from tests.checks.test_mutants import MACHINE
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Unsupported, Variant

LARGE = Trial(Problem(2, 8, 4, 300, 300, 64, mask=Mask(causal=True, window=40)), seed=7)


def subject() -> Subject:
    return Subject(RIGHT["naive"].variant("right"), MACHINE)


def check(ask) -> Check:
    return Check("made_up", "", ask, lambda subject, thorough: [LARGE])


def test_a_failure_is_shrunk_to_the_smallest_problem_that_shows_it() -> None:
    def ask(subject: Subject, trial: Trial) -> float:
        p = trial.problem
        if p.seq_kv >= 33 and p.heads >= 2 and (p.mask.window or 0) >= 5:
            raise Wrong(f"wrong at {p.seq_kv}")
        return 0.5

    found = examined(subject(), check(ask), [LARGE], examples=0)
    assert (found.tried, found.used, found.reason) == (1, 1.0, "wrong at 33")
    assert found.trial is not None
    p = found.trial.problem
    assert (p.seq_kv, p.seq_q, p.heads, p.batch, p.head_dim, p.mask.window) == (33, 33, 2, 1, 1, 5)
    assert found.trial.seed == 7


def test_a_failure_that_nothing_smaller_shows_is_told_as_it_is() -> None:
    def ask(subject: Subject, trial: Trial) -> float:
        if trial == LARGE:
            raise Wrong("only here")
        return 0.0

    found = examined(subject(), check(ask), [LARGE], examples=0)
    assert (found.reason, found.trial) == ("only here", LARGE)


def test_shapes_are_drawn_beyond_the_fixed_ones() -> None:
    def ask(subject: Subject, trial: Trial) -> float:
        if trial.problem.seq_q != trial.problem.seq_kv:
            raise Wrong("unequal lengths")
        return 0.1

    assert examined(subject(), check(ask), [LARGE]).reason is None
    found = examined(subject(), check(ask), [LARGE], examples=40)
    assert found.reason == "unequal lengths"
    assert found.trial is not None
    p = found.trial.problem
    assert sorted((p.seq_q, p.seq_kv)) == [1, 2]
    assert (p.batch, p.heads, p.head_dim, str(p.mask)) == (1, 1, 1, "full")


def test_the_worst_use_of_what_is_allowed_is_told() -> None:
    uses = iter([0.25, 0.75, 0.5])
    found = examined(subject(), check(lambda subject, trial: next(uses)), [LARGE] * 3)
    assert (found.tried, found.used, found.reason) == (3, 0.75, None)


def test_what_a_variant_raises_is_a_failure_and_what_it_does_not_take_is_none() -> None:
    def raises(subject: Subject, trial: Trial) -> float:
        raise IndexError("out of range\nand more")

    def refuses(subject: Subject, trial: Trial) -> float:
        raise Unsupported("only on Tuesdays")

    assert examined(subject(), check(raises), [LARGE]).reason == "IndexError: out of range"
    found = examined(subject(), check(refuses), [LARGE])
    assert (found.tried, found.reason) == (0, None)
    fixed = Subject(Variant("fixed", lambda q, k, v: q), MACHINE)
    assert examined(fixed, check(raises), [LARGE]).tried == 0


def test_the_command_repeats_the_trial() -> None:
    words = shlex.split(command("mine", ["mine.py"], "weights", LARGE))
    options = parser().parse_args(words[3:])
    assert (options.variants, options.imports, options.check) == (["mine"], ["mine.py"], "weights")
    assert (options.mask, options.seq, options.seq_q) == (LARGE.problem.mask, 300, 300)
    assert (options.batch, options.heads, options.kv_heads, options.head_dim) == (2, 8, 4, 64)
    assert (options.dtype, options.seed, options.strict) == ("float32", 7, False)
    assert command("mine", [], "weights", LARGE, strict=True).endswith("--strict")


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_asks_something_of_a_variant_that_takes_every_mask(name: str) -> None:
    trials = list(CHECKS[name].trials(subject(), False))
    assert trials
    assert len({(t.problem, t.direction) for t in trials}) == len(trials)
    assert len(list(CHECKS[name].trials(subject(), True))) >= len(trials)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("variant", RIGHT)
@pytest.mark.parametrize("name", [n for n in CHECKS if n not in ("gradients", "masked_nan")])
def test_right_attention_passes(variant: str, name: str) -> None:
    made = Subject(RIGHT[variant].variant(variant), MACHINE)
    trials = list(CHECKS[name].trials(made, False))[::4]
    found = examined(made, CHECKS[name], trials)
    assert found.reason is None, found
    assert 0 < found.tried <= len(trials)  # where nothing is hidden there is nothing to ask
    assert 0 <= found.used <= 1
