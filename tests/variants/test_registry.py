"""What the registry accepts, what it refuses and in which words, and variants that come from elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import REGISTRY, Variant, variant

MACHINE = Machine("cpu", "a machine", 1 << 34)


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def banded(q: Tensor, k: Tensor, v: Tensor, *, window: int, causal: bool = False) -> Tensor:
    return q * window if causal else q


def test_the_function_comes_back_unchanged_and_is_found_under_its_name() -> None:
    assert variant("banded")(banded) is banded
    assert REGISTRY["banded"].function is banded


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ("full", "needs a window"),
        ("causal", "needs a window"),
        ("window:4", None),
        ("causal+window:4", None),
        ("window:4+global:2", "takes no global tokens"),
    ],
)
def test_the_signature_is_the_capability(mask: str, reason: str | None) -> None:
    assert Variant("banded", banded).refuses(Mask.parse(mask)) == reason


def test_naming_the_mask_takes_every_mask() -> None:
    def anything(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask) -> Tensor:
        return q

    assert Variant("anything", anything).refuses(Mask(True, 3, 2)) is None
    assert Variant("anything", anything).some_mask() == Mask()
    assert Variant("banded", banded).refuses(Variant("banded", banded).some_mask()) is None


def test_only_what_is_named_is_passed() -> None:
    def everything(q: Tensor, k: Tensor, v: Tensor, *, mask: Mask, plan: str, window: int | None = None) -> Tensor:
        return torch.tensor([len(str(mask)), len(plan), window or 0])

    new = Variant("everything", everything, plan=lambda problem: "p" * problem.seq_q)
    problem = Problem(1, 1, 1, 5, 5, 8, mask=Mask(causal=True, window=3))
    x = torch.empty(0)
    assert new.bind(problem, new.prepare(problem))(x, x, x).tolist() == [len("causal+window:3"), 5, 3]
    assert Variant("banded", banded).bind(problem, None)(torch.ones(1), x, x).tolist() == [3.0]


def test_refusals_come_in_order_and_backward_ones_only_where_gradients_are_asked_for() -> None:
    problem = Problem(1, 1, 1, 5, 5, 8)

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q

    able = Variant("plain", plain, backward_limits=lambda problem, machine: "forward only")
    assert able.refusal(problem, MACHINE) is None
    assert able.refusal(problem, MACHINE, "bwd") == able.refusal(problem, MACHINE, "fwdbwd") == "forward only"
    missing = Variant("plain", plain, requires=("there_is_none", "torch"), limits=lambda problem, machine: "limited")
    assert missing.refusal(problem, MACHINE) == "needs the package there_is_none, torch"
    assert missing.refusal(problem, Machine("cpu", "", 1, packages={"there_is_none": "1", "torch": "2"})) == "limited"


def named(q, k, v, *, width): ...
def positional(q, k, v, window): ...
def open_ended(q, k, v, **features): ...
def variadic(q, k, v, *features): ...
@pytest.mark.parametrize(("function", "culprit"), [(named, "width"), (positional, "window"), (open_ended, "features")])
def test_a_parameter_that_is_not_understood_is_refused(function, culprit: str) -> None:
    with pytest.raises(TypeError, match=f"'new': parameter '{culprit}'.*causal, window, global_tokens, mask, plan"):
        variant("new")(function)
    assert "new" not in REGISTRY


def test_too_few_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match=r"not \(q, k\)"):
        variant("new")(lambda q, k: q)


def test_taking_a_plan_without_one_is_refused() -> None:
    def planned(q: Tensor, k: Tensor, v: Tensor, *, plan: object) -> Tensor:
        return q

    with pytest.raises(TypeError, match="takes a plan"):
        variant("new")(planned)


def test_a_name_is_taken_once() -> None:
    variant("banded")(banded)
    variant("banded")(banded)  # a module that is imported again registers the same again
    with pytest.raises(ValueError, match=r"'banded' is already registered by .*banded"):
        variant("banded")(lambda q, k, v: q)


def test_the_package_has_the_variants_that_it_promises() -> None:
    promised = (
        "naive chunked sliding_window longformer global_tokens sdpa sdpa_math sdpa_flash sdpa_efficient sdpa_cudnn"
    )
    assert {*promised.split(), "xformers", "flex"} <= set(registry.load())


PLUG_IN = '''"""Attention by one matrix product."""
import torch
from variants.registry import variant

@variant("plugged_in")
def plugged_in(q, k, v):
    return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, -1) @ v
'''


def test_a_file_from_anywhere_registers_its_variants(tmp_path: Path) -> None:
    path = tmp_path / "my_attention.py"
    path.write_text(PLUG_IN)
    assert registry.load([str(path)])["plugged_in"].summary == "Attention by one matrix product."
    registry.load([str(path)])


def test_a_module_registers_its_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_other_attention.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(tmp_path)
    assert "plugged_in" in registry.load(["my_other_attention"])


@pytest.mark.parametrize("name", ["no_such_module", "no_such_file.py"])
def test_what_cannot_be_imported_is_named(name: str) -> None:
    with pytest.raises(registry.ImportFailed, match=f"'{name}' cannot be imported"):
        registry.load([name])


def test_what_breaks_while_it_is_imported_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken_attention.py"
    path.write_text("1 / 0")
    with pytest.raises(registry.ImportFailed, match=r"broken_attention\.py.*ZeroDivisionError: division by zero"):
        registry.load([str(path)])
