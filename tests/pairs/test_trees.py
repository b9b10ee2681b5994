"""Real repositories: what a revision stands for, which files differ, and which tree either side runs in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.pairs import trees
from bench.pairs.process import Side

IDENTITY = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false")


def git(repo: Path, *words: str) -> str:
    command = ["git", "-C", str(repo), *IDENTITY, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(repo: Path) -> str:
    """Commits all that is there; the full name."""
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "a change")
    return git(repo, "rev-parse", "HEAD")


def contents(folder: Path) -> dict[str, str]:
    """Name -> text of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Git as it is out of the box, with no repository above the temporary folder."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.resolve().parent))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, and in it."""
    folder = (tmp_path / "repo").resolve()
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    put(folder, "mine.py", "first\n")
    put(folder, "below/other.py", "other\n")
    commit(folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.fixture(autouse=True)
def small_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite of a few files in place of this one."""
    suite = tmp_path / "suite"
    for name in ("bench/__init__.py", "variants/registry.py", "variants/oracle.py", "variants/a.py"):
        put(suite, name, f"the suite's {Path(name).stem}\n")
    put(suite, "bench/__pycache__/left.pyc", "compiled")
    put(suite, "variants/__pycache__/left.pyc", "compiled")
    monkeypatch.setattr(trees, "_SUITE", suite)
    return suite


SUITE = {name: f"the suite's {Path(name).stem}\n" for name in ("bench/__init__.py", "variants/oracle.py")}
VARIANTS = {name: f"the suite's {Path(name).stem}\n" for name in ("variants/registry.py", "variants/a.py")}


def test_a_revision_is_a_branch_a_tag_or_a_commit(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "light")
    git(repo, "tag", "--annotate", "--message", "words", "heavy")
    git(repo, "branch", "topic/one")
    put(repo, "mine.py", "second\n")
    second = commit(repo)
    assert first != second
    for revision in ("light", "heavy", "topic/one", first, first[:9], "HEAD~1", "main^"):
        assert trees.commit_of(repo, revision) == first, revision
    assert trees.commit_of(repo, "main") == trees.commit_of(repo, "HEAD") == second


@pytest.mark.parametrize(
    "revision", ["nowhere", "-x", "--help", "--all", "--since=yesterday", "--output=stolen", "HEAD:mine.py", "a b", ""]
)
def test_what_is_no_revision_is_refused_with_what_was_typed(repo: Path, revision: str) -> None:
    with pytest.raises(UserError, match="accepted: a branch, tag or commit") as refusal:
        trees.commit_of(repo, revision)
    assert repr(revision) in str(refusal.value)
    assert not (repo / "stolen").exists()


def test_a_tag_of_a_file_is_no_revision(repo: Path) -> None:
    git(repo, "tag", "a-file", "HEAD:mine.py")
    with pytest.raises(UserError, match="'a-file' is no revision"):
        trees.commit_of(repo, "a-file")


def test_nothing_has_changed_in_a_clean_tree(repo: Path) -> None:
    assert trees.changed(repo, trees.commit_of(repo, "HEAD")) == set()


def test_changed_files_are_modified_deleted_and_untracked_but_not_ignored_ones(repo: Path) -> None:
    for name in ("modified.py", "staged.py", "deleted.py", "gone.py", "moved.py", "with blank.py", "größe.py"):
        put(repo, name, f"{name}, with enough words for git to see that it was moved\n")
    put(repo, ".gitignore", "*.log\nignored/\n")
    first = commit(repo)
    for name in ("modified.py", "staged.py", "with blank.py", "größe.py", "new.py", "below/new, too.py", 'quo"te.py'):
        put(repo, name, "changed\n")
    git(repo, "add", "staged.py")
    (repo / "deleted.py").unlink()
    git(repo, "rm", "--quiet", "gone.py")
    git(repo, "mv", "moved.py", "here.py")
    put(repo, "a.log", "ignored\n")
    put(repo, "ignored/x.py", "ignored\n")
    assert trees.changed(repo, first) == {
        *("modified.py", "staged.py", "deleted.py", "gone.py", "moved.py", "here.py"),
        *("with blank.py", "größe.py", "new.py", "below/new, too.py", 'quo"te.py'),
    }


def test_changes_since_are_committed_ones_too(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    put(repo, "below/other.py", "changed\n")
    second = commit(repo)
    assert trees.changed(repo, first) == {"below/other.py"}
    assert trees.changed(repo, second) == set()


def test_changes_are_named_from_the_top_wherever_one_is(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo / "below")
    put(repo, "mine.py", "changed\n")
    put(repo, "below/new.py", "new\n")
    found = trees.repository()
    assert found == repo
    assert trees.changed(found, trees.commit_of(repo, "HEAD")) == {"mine.py", "below/new.py"}


def test_outside_of_a_repository_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert trees.repository() is None


def test_the_base_has_the_files_of_its_revision(repo: Path, into: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    put(repo, "mine.py", "second\n")
    put(repo, "later.py", "later\n")
    commit(repo)
    put(repo, "mine.py", "not committed\n")
    put(repo, "untracked.py", "untracked\n")
    base = trees.side("base", "a/python", into, repo, first)
    assert contents(base.tree) == {"mine.py": "first\n", "below/other.py": "other\n"}
    assert (base.name, base.python, base.folder) == ("base", "a/python", base.tree)


def test_the_new_side_has_the_files_of_the_working_tree(repo: Path, into: Path) -> None:
    put(repo, ".gitignore", "*.log\n")
    put(repo, "deleted.py", "deleted\n")
    commit(repo)
    put(repo, "mine.py", "not committed\n")
    put(repo, "with blank/größe.py", "untracked\n")
    put(repo, "a.log", "ignored\n")
    (repo / "deleted.py").unlink()
    new = trees.side("new", sys.executable, into, repo, None)
    assert contents(new.tree) == {
        ".gitignore": "*.log\n",
        "mine.py": "not committed\n",
        "below/other.py": "other\n",
        "with blank/größe.py": "untracked\n",
    }
    put(repo, "mine.py", "while the gate runs\n")
    assert (new.tree / "mine.py").read_text() == "not committed\n"


def test_both_sides_lie_apart_and_have_the_suite_that_runs(repo: Path, into: Path) -> None:
    base = trees.side("base", "python", into, repo, trees.commit_of(repo, "HEAD"))
    new = trees.side("new", "python", into, repo, None)
    folders = [base.tree, base.packages, new.tree, new.packages]
    assert not any(a == b or a.is_relative_to(b) for a in folders for b in folders if a is not b)
    assert contents(base.packages) == contents(new.packages) == {**SUITE, **VARIANTS}


def test_what_may_be_run_may_be_run_in_both_trees(repo: Path, into: Path) -> None:
    (repo / "mine.py").chmod(0o755)
    first = commit(repo)
    for name, revision in (("base", first), ("new", None)):
        tree = trees.side(name, "python", into, repo, revision).tree
        assert os.access(tree / "mine.py", os.X_OK) and not os.access(tree / "below" / "other.py", os.X_OK)


@pytest.mark.parametrize("revision", ["HEAD", None])
def test_links_stay_links(repo: Path, into: Path, revision: str | None) -> None:
    (repo / "link.py").symlink_to("mine.py")
    (repo / "folder").symlink_to("below")
    (repo / "dangling").symlink_to("nowhere")
    commit(repo)
    tree = trees.side("it", "python", into, repo, revision and trees.commit_of(repo, revision)).tree
    assert {name: str((tree / name).readlink()) for name in ("link.py", "folder", "dangling")} == {
        "link.py": "mine.py",
        "folder": "below",
        "dangling": "nowhere",
    }
    assert (tree / "link.py").read_text() == "first\n"
    assert (tree / "folder" / "other.py").read_text() == "other\n"


def test_a_folder_that_became_a_link_is_copied_as_that(repo: Path, into: Path) -> None:
    (repo / "below").rename(repo / "moved")
    (repo / "below").symlink_to("moved")
    tree = trees.side("new", "python", into, repo, None).tree
    assert (tree / "below" / "other.py").read_text() == "other\n"


def test_the_base_has_what_is_left_out_of_archives_for_users(repo: Path, into: Path) -> None:
    put(repo, ".gitattributes", "below export-ignore\n")
    first = commit(repo)
    base, new = (trees.side(name, "python", into, repo, at) for name, at in (("base", first), ("new", None)))
    assert contents(base.tree) == contents(new.tree)


def test_a_module_of_the_tree_that_is_a_repository_of_its_own_is_left_out(repo: Path, into: Path) -> None:
    inner = repo / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    put(inner, "theirs.py", "theirs\n")
    commit(inner)
    first = commit(repo)  # as a link to a commit
    for name, revision in (("base", first), ("new", None)):
        assert set(contents(trees.side(name, "python", into, repo, revision).tree)) == {"mine.py", "below/other.py"}


def test_from_a_folder_below_each_side_runs_in_its_own(repo: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo / "below")
    for name, revision in (("base", trees.commit_of(repo, "HEAD")), ("new", None)):
        side = trees.side(name, "python", into, repo, revision)
        assert side.folder == side.tree / "below"
        assert (side.folder / "other.py").read_text() == "other\n"
        assert (side.tree / "mine.py").read_text() == "first\n"


def test_a_folder_that_the_revision_lacks_is_made(repo: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = git(repo, "rev-parse", "HEAD")
    put(repo, "later/x.py", "later\n")
    monkeypatch.chdir(repo / "later")
    base = trees.side("base", "python", into, repo, first)
    assert base.folder == base.tree / "later" and base.folder.is_dir()
    assert not contents(base.folder)


def test_through_a_link_to_the_repository_each_side_still_runs_in_its_own(
    repo: Path, into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").symlink_to(repo)
    monkeypatch.chdir(tmp_path / "elsewhere" / "below")
    found = trees.repository()
    assert found is not None
    side = trees.side("new", "python", into, found, None)
    assert side.folder == side.tree / "below"


def test_without_a_repository_a_side_runs_in_the_current_folder(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    side = trees.side("base", "a/python", into, None, None)
    assert side == Side("base", "a/python", tmp_path, side.packages, tmp_path)
    assert contents(side.packages) == {**SUITE, **VARIANTS}


def test_of_the_folders_that_python_looks_in_those_of_the_repository_are_the_side_s_own(
    repo: Path, into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(repo / "below"), "", str(tmp_path), "below"]))
    side = trees.side("new", "python", into, repo, None)
    assert side.further == (side.tree / "below", tmp_path.resolve(), side.tree / "below")
    alone = trees.side("base", "python", into, None, None)
    assert alone.further == (repo / "below", tmp_path.resolve(), repo / "below")


@pytest.fixture
def checkout(repo: Path, small_suite: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A checkout of the suite that runs, with changes of all kinds since a commit."""
    shutil.copytree(small_suite, repo, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    put(repo, "variants/gone.py", "gone\n")
    put(repo, ".gitignore", "scratch.py\n")
    first = commit(repo)
    for name in ("bench/__init__.py", "variants/oracle.py", "variants/a.py", "variants/new.py", "variants/scratch.py"):
        put(repo, name, f"changed {Path(name).stem}\n")
    (repo / "variants" / "gone.py").unlink()
    monkeypatch.setattr(trees, "_SUITE", repo)
    return repo, first


CHANGED = {name: f"changed {Path(name).stem}\n" for name in ("bench/__init__.py", "variants/oracle.py")}


def test_in_a_checkout_the_base_has_its_variants_and_the_timing_and_oracle_of_now(
    checkout: tuple[Path, str], into: Path
) -> None:
    repo, first = checkout
    assert trees.is_suite(repo)
    base = trees.side("base", "python", into, repo, first)
    assert contents(base.packages) == {**CHANGED, **VARIANTS, "variants/gone.py": "gone\n"}


def test_in_a_checkout_the_new_side_has_the_variants_of_the_working_tree(
    checkout: tuple[Path, str], into: Path
) -> None:
    repo, _ = checkout
    new = trees.side("new", "python", into, repo, None)
    mine = {"variants/a.py": "changed a\n", "variants/new.py": "changed new\n"}
    assert contents(new.packages) == {**CHANGED, **VARIANTS, **mine}


def test_a_repository_that_only_has_variants_of_its_own_is_no_checkout(repo: Path, into: Path) -> None:
    put(repo, "variants/registry.py", "somebody else's\n")
    commit(repo)
    assert not trees.is_suite(repo)
    assert contents(trees.side("new", "python", into, repo, None).packages) == {**SUITE, **VARIANTS}


def test_a_revision_without_variants_is_refused(checkout: tuple[Path, str], into: Path) -> None:
    repo, first = checkout
    before = git(repo, "rev-parse", f"{first}~1")
    with pytest.raises(UserError, match="--against: at this revision there are no variants yet"):
        trees.side("base", "python", into, repo, before)


def test_a_module_of_the_repository_is_told_by_its_path_from_here_for_each_side_to_take_its_own(
    repo: Path, into: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "outside.py", "outside\n")
    monkeypatch.chdir(repo / "below")
    for typed in ("../mine.py", str(repo / "mine.py"), "./../below/../mine.py"):
        assert trees.module(typed, repo) == "../mine.py"
    assert trees.module("other.py", repo) == "other.py"
    side = trees.side("new", "python", into, repo, None)
    assert (side.folder / trees.module("../mine.py", repo)).resolve() == (side.tree / "mine.py").resolve()
    assert trees.module("../../outside.py", repo) == str((tmp_path / "outside.py").resolve())
    assert trees.module("other.py", None) == str(repo / "below" / "other.py")
    assert trees.module("package.module", repo) == trees.module("package.module", None) == "package.module"


def test_a_commit_is_described_by_its_first_letters(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    assert trees.describe(repo, first) == first[:7]


def test_the_working_tree_is_described_with_a_plus_where_it_was_changed(repo: Path) -> None:
    git(repo, "tag", "v1.0")
    short = git(repo, "rev-parse", "--short", "HEAD")
    assert trees.describe(repo, None) == short
    put(repo, "untracked.py", "untracked\n")
    assert trees.describe(repo, None) == short
    put(repo, "mine.py", "changed\n")
    assert trees.describe(repo, None) == f"{short}+"


def test_a_repository_without_a_commit_can_be_described(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init", "--quiet")
    assert trees.describe(folder, None) == ""
