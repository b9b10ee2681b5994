"""Which variants are compared: of a list or all, made where, affected by which files; and what cannot be meant."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import UserError
from bench.pairs.about import Known
from bench.pairs.choice import names_of, versus
from bench.pairs.process import Side


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, Side]:
    """Two sides of somebody's own repository: mine.py, which imports helper.py, and the suite's a.py in both."""
    for name in ("base", "new"):
        written(tmp_path / name / "tree" / "mine.py", "import helper")
        written(tmp_path / name / "tree" / "helper.py")
        written(tmp_path / name / "suite" / "variants" / "a.py", "from variants import shared")
        written(tmp_path / name / "suite" / "variants" / "shared.py")
    base, new = (
        Side(name, "python", tmp_path / name / "tree", tmp_path / name / "suite", tmp_path / name / "tree")
        for name in ("base", "new")
    )
    return base, new


def match(sides: tuple[Side, Side], *known: dict[str, str], failed: tuple[dict[str, str], ...] = ({}, {})) -> Any:
    """As far as the choice asks: variants of either side by their files, relative to the side's folder."""
    about = [
        SimpleNamespace(
            known={name: Known(True, name == "flex", str(side.tree.parent / file)) for name, file in files.items()},
            failed=without,
        )
        for side, files, without in zip(sides, known, failed, strict=True)
    ]
    return SimpleNamespace(sides=sides, about=about)


BOTH = {"mine": "tree/mine.py", "a": "suite/variants/a.py"}


def test_elsewhere_only_what_is_made_in_the_repository_is_compared(
    sides: tuple[Side, Side], capsys: pytest.CaptureFixture[str]
) -> None:
    found = names_of(match(sides, BOTH, BOTH), "all", (), only_own=True)
    assert found.pairs == (("mine", "mine"),)
    assert capsys.readouterr().err == ""
    names_of(match(sides, BOTH, BOTH), "mine, a", (), only_own=True)
    assert capsys.readouterr().err.startswith("left out: a, which both sides have from outside")
    with pytest.raises(UserError, match="of a both sides would run the same code"):
        names_of(match(sides, BOTH, BOTH), "a", (), only_own=True)


def test_in_two_environments_everything_is(sides: tuple[Side, Side]) -> None:
    assert names_of(match(sides, BOTH, BOTH), "all", (), only_own=False).pairs == (("a", "a"), ("mine", "mine"))


def test_in_the_suite_its_variants_are_own_as_well(sides: tuple[Side, Side]) -> None:
    own = tuple(Side(s.name, s.python, s.folder, s.packages, s.tree, own_variants=True) for s in sides)
    found = names_of(match(own, BOTH, BOTH), "all", {"variants/shared.py"}, only_own=True)  # type: ignore[arg-type]
    assert found.pairs == (("a", "a"), ("mine", "mine"))
    assert list(found.affected) == ["a"]


@pytest.mark.parametrize(
    ("changed", "affected", "thorough"),
    [
        ({"helper.py"}, ["mine"], False),
        ({"mine.py", "README.md"}, ["mine"], False),
        ({"README.md"}, [], False),
        ({"variants/masks.py"}, [], True),
    ],
)
def test_changed_files_affect_what_is_made_of_them(
    sides: tuple[Side, Side], changed: set[str], affected: list[str], thorough: bool
) -> None:
    found = names_of(match(sides, BOTH, BOTH), "all", changed, only_own=True)
    assert (list(found.affected), found.thorough) == (affected, thorough)


def test_a_variant_of_one_side_alone_is_compared_for_it_came_or_went(sides: tuple[Side, Side]) -> None:
    came, went = {"mine": "tree/mine.py"}, {"other": "tree/helper.py"}
    assert names_of(match(sides, went, came), "all", (), only_own=True).pairs == (("mine", "mine"), ("other", "other"))


def test_compiled_variants_are_spared_unless_they_are_named(sides: tuple[Side, Side]) -> None:
    files = {"flex": "tree/mine.py"}
    assert list(names_of(match(sides, files, files), "all", (), only_own=True).spared) == ["flex"]
    assert not names_of(match(sides, files, files), "flex", (), only_own=True).spared


def test_names_that_nobody_registers(sides: tuple[Side, Side]) -> None:
    with pytest.raises(UserError, match="--variants: 'nobody' is registered on neither side; accepted: a, mine"):
        names_of(match(sides, BOTH, BOTH), "mine,nobody", (), only_own=True)
    with pytest.raises(UserError, match="--base-variant: 'nobody' is not registered; accepted: a, mine"):
        versus(match(sides, BOTH, BOTH), "nobody", "mine")
    with pytest.raises(UserError, match="--variant: 'nobody' is not registered; accepted: a, mine"):
        versus(match(sides, BOTH, BOTH), "mine", "nobody")
    assert versus(match(sides, BOTH, BOTH), "a", "mine").pairs == (("a", "mine"),)


def test_a_module_that_fails_on_both_sides_is_a_mistake_and_on_one_is_told(
    sides: tuple[Side, Side], capsys: pytest.CaptureFixture[str]
) -> None:
    reason = {"gone.py": "'gone.py' cannot be imported: there is no such file"}
    with pytest.raises(UserError, match=r"--import: 'gone.py' cannot be imported"):
        names_of(match(sides, BOTH, BOTH, failed=(reason, reason)), "all", (), only_own=True)
    names_of(match(sides, BOTH, BOTH, failed=({}, reason)), "all", (), only_own=True)
    assert capsys.readouterr().err == "new: 'gone.py' cannot be imported: there is no such file\n"


def test_a_function_whose_file_is_not_known_is_nobodys_own(sides: tuple[Side, Side]) -> None:
    there = match(sides, BOTH, BOTH)
    for about in there.about:
        about.known["a"] = Known(True, False, "")
    assert names_of(there, "all", (), only_own=True).pairs == (("mine", "mine"),)
