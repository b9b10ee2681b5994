"""No right variant is accused, whatever the seed: every variant of this package that runs on a CPU, by every check."""

import pytest

from bench.checks.catalogue import CHECKS
from bench.checks.examine import examine
from tests.variants.test_contract import MACHINE, NOT_ON_CPU, VARIANTS

EAGER = sorted(name for name, v in VARIANTS.items() if name not in NOT_ON_CPU and not v.compiled)


def accused(name: str, check: str, seed: int) -> str | None:
    if CHECKS[check].property or (CHECKS[check].exact and not VARIANTS[name].exact):
        return None
    return examine(name, (), MACHINE, check, seed=seed).reason


@pytest.mark.parametrize("check", [name for name in CHECKS if name not in ("weights", "agreement", "gradients")])
@pytest.mark.parametrize("name", EAGER)
def test_a_right_variant_is_not_accused(name: str, check: str) -> None:
    assert accused(name, check, seed=1) is None


@pytest.mark.parametrize("check", ["weights", "agreement", "gradients"])
@pytest.mark.parametrize("name", ["chunked", "sliding_window", "longformer", "global_tokens", "linear", "probsparse"])
def test_a_right_variant_of_ours_is_not_accused_at_any_shape(name: str, check: str) -> None:
    assert accused(name, check, seed=2) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", EAGER)
def test_a_right_variant_is_not_accused_on_any_of_twenty_seeds(name: str, seed: int) -> None:
    for check in CHECKS:
        assert accused(name, check, seed) is None, check
