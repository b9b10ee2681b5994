"""The checker is checked: every mutant is caught by the check that names its mistake, and nothing right is accused."""

from collections.abc import Callable

import pytest

from bench.checks.catalogue import CHECKS
from bench.checks.examine import Finding, examined
from bench.checks.subject import Subject
from tests.checks.mutants import MUTANTS
from variants.machine import Machine

pytestmark = pytest.mark.usefixtures("one_thread")

MACHINE = Machine("cpu", "a made-up CPU", memory_bytes=2**34)


def first_finding(subject: Subject, names: tuple[str, ...] = tuple(CHECKS)) -> Finding | None:
    """What the checks, asked in order, find first."""
    for name in names:
        finding = examined(subject, CHECKS[name], CHECKS[name].trials(subject, False))
        if finding.reason is not None:
            return finding
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught_by_the_check_that_names_its_mistake(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    subject = Subject(MUTANTS[name].variant(name), MACHINE)
    found = first_finding(subject, MUTANTS[name].checks)
    assert found is not None, f"{name} is not caught"
    record_property("mutant", f"{name:36} {found.check:10} {found.reason}")


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_no_other_check_names_it_before(name: str) -> None:
    found = first_finding(Subject(MUTANTS[name].variant(name), MACHINE))
    assert found is not None
    assert found.check in MUTANTS[name].checks, found
