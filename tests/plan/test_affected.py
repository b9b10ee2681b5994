"""What a file is made of: made-up files with every kind of import, and this project's own variants."""

from pathlib import Path

import pytest

from bench.plan import affected
from bench.plan.affected import CORE

ROOT = Path(__file__).parents[2]


def made_of(file: Path, root: Path) -> set[str]:
    """By names from the root."""
    return {path.relative_to(root).as_posix() for path in affected.made_of(file, [root])}


def files(root: Path, **texts: str) -> None:
    """Files by module name, with two underscores for a dot."""
    for name, text in texts.items():
        put(root, f"{name.replace('__', '/')}.py", text)


def put(root: Path, name: str, text: str = "") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "statement",
    [
        "import helper",
        "import helper as h",
        "import os, helper, sys",
        "from helper import something",
        "from helper import *",
        "def f():\n    import helper",
        "class C:\n    def f(self):\n        from helper import x",
        "if False:\n    import helper",
        "try:\n    import helper\nexcept ImportError:\n    pass",
        "from . import helper",
        "from .helper import x",
    ],
)
def test_a_file_is_made_of_itself_and_what_it_imports(tmp_path: Path, statement: str) -> None:
    files(tmp_path, mine=f'"""Words."""\n{statement}\n', helper="", other="")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "helper.py"}


@pytest.mark.parametrize(
    "statement", ["", "import os.path", "import nowhere", "from nowhere.at import all", "x = 'import helper'"]
)
def test_what_is_not_under_the_root_is_no_part_of_it(tmp_path: Path, statement: str) -> None:
    files(tmp_path, mine=statement, helper="")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py"}


def test_what_is_imported_imports_in_turn(tmp_path: Path) -> None:
    files(tmp_path, mine="import a", a="import b", b="from c import x", c="", d="import a")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "a.py", "b.py", "c.py"}


def test_files_that_import_each_other_are_all_of_it(tmp_path: Path) -> None:
    files(tmp_path, mine="import a, mine", a="import b", b="import a, mine")
    everything = {"mine.py", "a.py", "b.py"}
    assert made_of(tmp_path / "mine.py", tmp_path) == everything
    assert made_of(tmp_path / "a.py", tmp_path) == everything


@pytest.mark.parametrize(
    "statement",
    [
        "from outer.inner import deep",
        "from outer.inner.deep import x",
        "import outer.inner.deep",
        "import outer.inner.deep as d",
    ],
)
def test_modules_of_packages_are_found(tmp_path: Path, statement: str) -> None:
    files(tmp_path, mine=statement, outer__inner__deep="", outer__other="")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "outer/inner/deep.py"}


def test_a_package_is_what_its_first_file_is_made_of(tmp_path: Path) -> None:
    files(tmp_path, mine="import outer", outer__a="", outer__b="")
    put(tmp_path, "outer/__init__.py", "from outer.a import x")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "outer/__init__.py", "outer/a.py"}


def test_a_name_from_a_package_may_be_a_module_or_come_from_its_first_file(tmp_path: Path) -> None:
    files(tmp_path, mine="from outer import a, something", outer__a="", outer__b="")
    put(tmp_path, "outer/__init__.py", "from .b import something")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", *(f"outer/{n}.py" for n in ("__init__", "a", "b"))}


@pytest.mark.parametrize("statement", ["import outer.inner.deep", "from outer.inner.deep import x"])
def test_importing_a_module_runs_the_packages_that_it_is_in(tmp_path: Path, statement: str) -> None:
    files(tmp_path, mine=statement, outer__inner__deep="", outer__setting="")
    put(tmp_path, "outer/__init__.py", "import outer.setting")
    put(tmp_path, "outer/inner/__init__.py")
    found = made_of(tmp_path / "mine.py", tmp_path)
    assert found == {"mine.py", *(f"outer/{n}.py" for n in ("__init__", "setting", "inner/__init__", "inner/deep"))}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from . import near", "outer/inner/near.py"),
        ("from .near import x", "outer/inner/near.py"),
        ("from .. import far", "outer/far.py"),
        ("from ..far import x", "outer/far.py"),
        ("from ..side.there import x", "outer/side/there.py"),
        ("from ... import top", "top.py"),
    ],
)
def test_relative_imports_start_where_the_file_is(tmp_path: Path, statement: str, expected: str) -> None:
    names = {"outer__inner__near": "", "outer__far": "", "outer__side__there": "", "top": "", "near": "", "far": ""}
    files(tmp_path, outer__inner__mine=statement, **names)
    found = made_of(tmp_path / "outer" / "inner" / "mine.py", tmp_path)
    assert found == {"outer/inner/mine.py", expected}


def test_relative_imports_of_a_package_start_in_it(tmp_path: Path) -> None:
    files(tmp_path, outer__a="", a="")
    put(tmp_path, "outer/__init__.py", "from . import a")
    assert made_of(tmp_path / "outer" / "__init__.py", tmp_path) == {"outer/__init__.py", "outer/a.py"}


@pytest.mark.parametrize("top", ["", "below", "src"])
def test_modules_are_looked_for_in_every_folder(tmp_path: Path, top: str) -> None:
    roots = [tmp_path / "below", tmp_path, tmp_path / "src"]
    files(tmp_path / top, mine="from package.kernel import fast\nimport helper")
    files(tmp_path / "src", package__kernel="", package__other="")
    files(tmp_path / "below", helper="")
    found = {path.relative_to(tmp_path).as_posix() for path in affected.made_of(tmp_path / top / "mine.py", roots)}
    mine = f"{top}/mine.py" if top else "mine.py"
    assert found == {mine, "src/package/kernel.py", "below/helper.py"}


def test_what_is_under_none_of_the_folders_is_not_followed(tmp_path: Path) -> None:
    files(tmp_path / "in", mine="import helper", helper="")
    files(tmp_path, helper="", elsewhere="")
    found = affected.made_of(tmp_path / "in" / "mine.py", [tmp_path / "in"])
    assert found == {tmp_path / "in" / "mine.py", tmp_path / "in" / "helper.py"}


def test_words_in_other_alphabets_are_read(tmp_path: Path) -> None:
    files(tmp_path, mine="# größer\nimport helper\n", helper="")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "helper.py"}


@pytest.mark.parametrize(
    "text", [b"\xef\xbb\xbfimport helper\n", b"# -*- coding: latin-1 -*-\n# gr\xf6\xdfer\nimport helper\n"]
)
def test_any_file_that_python_reads_is_read(tmp_path: Path, text: bytes) -> None:
    files(tmp_path, helper="")
    (tmp_path / "mine.py").write_bytes(text)
    compile(text, "mine.py", "exec")
    assert made_of(tmp_path / "mine.py", tmp_path) == {"mine.py", "helper.py"}


def test_a_file_that_is_imported_in_vain_affects_nothing_else(tmp_path: Path) -> None:
    files(
        tmp_path,
        mine="try:\n    import old\nexcept SyntaxError:\n    import helper",
        old="print 'of Python 2'",
        helper="",
    )
    assert {"mine.py", "old.py", "helper.py"} == made_of(tmp_path / "mine.py", tmp_path)


# By `grep "^from variants\|^    from variants" variants/*.py`, from file to file, without the core.
CHUNKED = {"chunked", "blocks", "products", "shapes"}
LONGFORMER = {"longformer", "band", "band_products", "global_rows", "products", "stretches", "shapes"}


@pytest.mark.parametrize(("name", "expected"), [("chunked", CHUNKED), ("longformer", LONGFORMER)])
def test_variants_of_this_project(name: str, expected: set[str]) -> None:
    found = made_of(ROOT / "variants" / f"{name}.py", ROOT)
    assert found - CORE == {f"variants/{each}.py" for each in expected}
    assert found & CORE == CORE - {"variants/oracle.py"}, "which no variant imports"


@pytest.mark.parametrize("path", sorted((ROOT / "variants").glob("*.py")), ids=lambda path: path.stem)
def test_every_file_of_this_project_is_read(path: Path) -> None:
    found = made_of(path, ROOT)
    assert all(name.startswith("variants/") and (ROOT / name).is_file() for name in found)
