"""Decides whether a change made anything slower, bigger or wrong: for CI, with error rates that are known.

python -m bench.gate --against main
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import cli, cores
from bench.errors import UserError
from bench.plan.arguments import add_sources
from bench.plan.quantities import count, seconds, share, sizes
from variants.masks import Mask
from variants.problem import DIRECTIONS, DTYPES

if TYPE_CHECKING:
    from bench.analysis.decision import Rules
    from bench.pairs.match import Match
    from bench.pairs.process import Side
    from bench.plan.sweep import Sweep
    from bench.results.paired import Contest

DESCRIPTION = """Decides whether a change made any variant slower, bigger or wrong. Base and new run in interpreters and
trees of their own, and take turns of milliseconds on the same cores; several pairs of processes, and Student's t over
them, decide; what stands out is measured again by fresh pairs. Exit status: 0 all is the same or better, 1 something is
worse, 2 nothing was compared, 3 something is not decided."""

EXAMPLES = """\
  python -m bench.gate --against main                         the working tree against a branch, tag or commit
  python -m bench.gate --against HEAD~1 --variants chunked --threshold 2% --budget 10m
  python -m bench.gate --against main --import mine.py        your own variant in your own repository
  python -m bench.gate --base-python old/bin/python           the same variants, on another torch
  python -m bench.gate --base-variant sdpa --variant mine --import mine.py
  python -m bench.gate --against main --markdown gate.md --junit gate.xml --github      in CI"""

_FIRST_LOOK = 0.6  # of the budget; the rest is for cases that need another look


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("gate", DESCRIPTION, EXAMPLES)
    against = p.add_argument_group("what is compared (at least one of these)")
    against.add_argument("--against", metavar="REV", help="revision of the repository here: the base's tree")
    against.add_argument("--base-python", metavar="PATH", help="interpreter of the base (default: this one)")
    against.add_argument("--base-variant", metavar="NAME", help="the base is this variant, and new is --variant")
    against.add_argument("--variant", metavar="NAME", help="... this one")
    _add_problems(p)
    _add_effort(p)
    output = p.add_argument_group("output")
    output.add_argument("--out", type=Path, metavar="FILE", help="results file (default: results/local/DATE-gate.csv)")
    output.add_argument("--markdown", metavar="FILE", help="write the table to FILE as Markdown; - prints it")
    output.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML")
    output.add_argument("--github", action="store_true", help="print annotations for GitHub's pull requests")
    output.add_argument("--allow-inconclusive", action="store_true", help="0 instead of 3 where something is undecided")
    return p


def _add_problems(p: argparse.ArgumentParser) -> None:
    size_list = cli.explained(sizes)
    what = p.add_argument_group("variants and problems (every axis takes a list)")
    what.add_argument("--variants", default="all", metavar="LIST", help="names (default: all of either side)")
    add_sources(what)
    what.add_argument("--seq", type=size_list, metavar="SIZES", help="lengths (default: 576 on CPU, else 4096)")
    what.add_argument("--heads", type=size_list, metavar="SIZES", help="query heads (default: 2 on CPU, else 16)")
    what.add_argument("--kv-heads", type=size_list, default=(), metavar="SIZES", help="default: as many as query heads")
    what.add_argument("--batch", type=size_list, default=(1,), metavar="SIZES", help="default: 1")
    what.add_argument("--head-dim", type=size_list, metavar="SIZES", help="default: 64 on CPU, else 128")
    what.add_argument(
        "--dtype",
        type=cli.comma_separated(cli.one_of(*DTYPES)),
        metavar="LIST",
        help="default: float32 on CPU, else bfloat16",
    )
    what.add_argument(
        "--mask",
        type=cli.comma_separated(Mask.parse),
        default=(),
        metavar="LIST",
        help="default: one that each variant takes, and of variants that changed files affect each of seven",
    )
    what.add_argument(
        "--direction",
        type=cli.comma_separated(cli.one_of(*DIRECTIONS)),
        default=("fwd", "fwdbwd"),
        metavar="LIST",
        help="default: fwd,fwdbwd",
    )


def _add_effort(p: argparse.ArgumentParser) -> None:
    effort = p.add_argument_group("effort")
    effort.add_argument(
        "--threshold",
        type=cli.explained(share),
        default=0.03,
        metavar="SHARE",
        help="change that matters (default: 3%%)",
    )
    effort.add_argument(
        "--budget",
        type=cli.explained(seconds),
        default=300.0,
        metavar="TIME",
        help="run what fits into it, what changed files affect first, and look no further at undecided cases when it "
        "is over (default: 5m)",
    )
    effort.add_argument("--threads", type=cli.explained(count), metavar="N", help="default: one fewer than cores")
    effort.add_argument(
        "--timeout", type=cli.explained(seconds), default=120.0, metavar="TIME", help="of one step (default: 2m)"
    )


def main(argv: list[str]) -> int:
    """Measures, decides, and tells; returns the exit status."""
    options = parser().parse_args(argv)
    _check(options)
    from bench.analysis.decision import Rules
    from bench.pairs.process import Lost

    begun = time.monotonic()
    rules = Rules(options.threshold)
    path = options.out or Path("results", "local", f"{datetime.now(UTC):%Y%m%d-%H%M%S}-gate.csv")
    with tempfile.TemporaryDirectory(prefix="bench-gate-", ignore_cleanup_errors=True) as folder:
        try:
            _measure(options, Path(folder), path, rules, begun + options.budget)
        except (Lost, OSError, subprocess.CalledProcessError) as error:  # exit status 1 would mean: worse
            raise UserError(f"not compared: {error}") from None
    return conclude(path, rules.threshold, options.allow_inconclusive, options.markdown, options.junit, options.github)


def _check(options: argparse.Namespace) -> None:
    """What can be said of the options before anything is started. UserError."""
    if bool(options.base_variant) != bool(options.variant):
        raise UserError("--base-variant and --variant: one names the base, the other the new side; give both")
    if not (options.against or options.base_python or options.base_variant):
        raise UserError("nothing to compare with; accepted: --against REV, --base-python PATH, or --base-variant NAME")
    if options.base_variant and options.variants != "all":
        raise UserError("--variants: --base-variant and --variant name the variants already; leave one of the two out")
    if options.out and options.out.exists():
        raise UserError(
            f"--out: {options.out} exists; name another file, or read it: bench.compare --paired {options.out}"
        )
    cli.check_output("--junit", options.junit, [options.out])
    cli.check_output("--markdown", options.markdown, [options.out, options.junit])


def _measure(options: argparse.Namespace, folder: Path, path: Path, rules: Rules, deadline: float) -> None:
    """Holds the contests, with a row on disk for each side of each pair."""
    from bench.analysis.decision import decide
    from bench.pairs import trees
    from bench.pairs.match import Match, Told
    from bench.pairs.series import Series
    from bench.pairs.turns import Effort
    from bench.preparation import run_name
    from bench.results.store import Store

    repo = trees.repository()
    sides, commits, changed = _sides(options, repo, folder)
    told = Told(
        options.device,
        tuple(trees.module(name, repo) for name in options.imports),
        options.threads or _spare_threads(),
        options.timeout,
        repo if options.against else None,
    )
    with Match(sides, commits, told) as match:
        contests = _contests(options, match, changed)
        with Store(path) as store:
            _say(f"samples go to {path}")
            series = Series(match, store, run_name(), rules.threshold, Effort(), deadline)
            series.examine(contests, _FIRST_LOOK * options.budget, rules.looks[0])
            _say(f"{len(contests)} cases examined, {len(series.timed)} to be timed")
            decide(series.draw, len(series.timed), rules)


def _sides(
    options: argparse.Namespace, repo: Path | None, folder: Path
) -> tuple[tuple[Side, Side], tuple[str, str], set[str]]:
    """Base and new, the commits that they are of, and the files in which these differ."""
    from bench import preparation
    from bench.pairs import trees

    if repo is None and options.against:
        raise UserError(f"--against: git finds no repository in {Path.cwd()}, so there is no other revision")
    revision = trees.commit_of(repo, options.against) if repo and options.against else None
    base_python = str(_interpreter(options.base_python)) if options.base_python else sys.executable
    base = trees.side("base", base_python, folder, repo, revision)
    new = trees.side("new", sys.executable, folder, repo, None)
    if repo is None:
        return (base, new), (preparation.commit(), preparation.commit()), set()
    commits = trees.describe(repo, revision), trees.describe(repo, None)
    return (base, new), commits, trees.changed(repo, revision) if revision else set()


def _interpreter(path: str) -> Path:
    if not (os.access(path, os.X_OK) and Path(path).is_file()):
        raise UserError(f"--base-python: {path!r} is no program; accepted: the python of an environment with the suite")
    return Path(path).absolute()  # not resolved: a link is what makes it the python of its environment


def _spare_threads() -> int:
    """One fewer than the cores that this process may use, so that the rest of the system has one."""
    return max(1, (len(cores.allowed()) or os.cpu_count() or 1) - 1)


def _contests(options: argparse.Namespace, match: Match, changed: set[str]) -> list[Contest]:
    """What is to be compared, in the order of its importance. UserError where that is nothing."""
    from bench.pairs.choice import names_of, versus
    from bench.plan.contests import choose

    if options.base_variant:
        names = versus(match, options.base_variant, options.variant)
    else:
        names = names_of(match, options.variants, changed, only_own=bool(options.against and not options.base_python))
    contests = choose(names, _sweep(options, match.about[1].machine.device), match.refusals)
    if not contests:
        raise UserError("nothing to compare: none of these problems is taken (python -m bench.show says why)")
    if names.affected:
        _say(f"changed files affect {', '.join(sorted(names.affected))}")
    if spared := sorted(set(names.spared) - set(names.affected)):
        _say(f"left out, since each process would compile them anew: {', '.join(spared)} (--variants compares them)")
    return contests


def _sweep(options: argparse.Namespace, device: str) -> Sweep:
    from bench.plan import presets
    from bench.plan.sweep import Sweep

    preset = presets.gated(device)
    return Sweep(
        variants=(),
        masks=options.mask,
        directions=options.direction,
        seq=options.seq or preset.seq,
        heads=options.heads or preset.heads,
        head_dim=options.head_dim or preset.head_dim,
        batch=options.batch,
        dtypes=options.dtype or preset.dtypes,
        device=device,
        kv_heads=options.kv_heads,
    )


def conclude(
    path: Path,
    threshold: float | None,
    allow_inconclusive: bool = False,
    markdown_to: str | None = None,
    junit_to: Path | None = None,
    github: bool = False,
) -> int:
    """Reads a gate's rows, decides by a threshold, or by the one that it was given, and tells; the exit status."""
    from bench.analysis import announce
    from bench.analysis.decision import Rules
    from bench.analysis.differences import environments
    from bench.analysis.frame import read
    from bench.analysis.paired import environment_of, exit_status, outcomes, threshold_in
    from bench.analysis.render import console, markdown, markdown_notes, print_notes, print_table

    frame = read([path])
    rules = Rules(threshold or threshold_in(frame) or Rules().threshold)
    found = outcomes(frame, rules)
    table = announce.table(found, rules)
    notes = [announce.summary(found), *environments(environment_of(frame))]
    text = markdown(table) + markdown_notes(notes)
    if markdown_to == "-":
        sys.stdout.write(text)
    else:
        terminal = console()
        print_table(table, terminal)
        print_notes(notes, terminal)
    if github:
        sys.stdout.write(announce.github(found))
    if junit_to:
        cli.write("--junit", junit_to, announce.junit(found))
    if markdown_to not in (None, "-"):
        cli.write("--markdown", Path(markdown_to), text)
    return exit_status(found, allow_inconclusive)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    cli.run(main)
