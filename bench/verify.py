"""Checks that a variant is right: what people get wrong in attention, asked one by one, at many shapes.

python -m bench.verify my_variant --import my_module
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from bench import cli
from bench.errors import UserError
from bench.plan.arguments import add_sources
from bench.plan.quantities import count, seconds
from variants.masks import Mask
from variants.problem import DTYPES, Problem

if TYPE_CHECKING:
    from bench.checks.examine import Finding
    from bench.checks.subject import Trial
    from bench.measure.server import Server
    from variants.machine import Machine
    from variants.registry import Variant

DESCRIPTION = """Checks that variants are right: against exact attention in float64 under their own mask, at many
shapes, and by what must hold of any right attention. A failure is named, shrunk, and comes with a command that
repeats it."""

EXAMPLES = """\
  python -m bench.verify                                 every variant that runs here
  python -m bench.verify mine --import mine.py --strict
  python -m bench.verify sdpa --thorough --junit verify.xml
  python -m bench.verify sdpa --check weights --mask causal+window:4 --seq 16 --dtype bfloat16"""

_SIZES = ("batch", "heads", "kv_heads", "seq_q", "seq", "head_dim")
_ONE = ("mask", "dtype", *_SIZES)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("verify", DESCRIPTION, EXAMPLES)
    p.add_argument("variants", nargs="*", metavar="VARIANT", help="names, as bench.show lists them (default: all)")
    add_sources(p)
    effort = p.add_argument_group("effort").add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="under 20 s a variant, compilation apart (the default)")
    effort.add_argument("--thorough", action="store_true", help="three times the shapes, in all dtypes")
    p.add_argument("--strict", action="store_true", help="properties, such as leaking a masked NaN, fail as well")
    p.add_argument("--seed", type=cli.explained(_natural), default=0, metavar="N", help="of the inputs (default: 0)")
    p.add_argument("--check", metavar="NAME", help="this check alone")
    p.add_argument("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML")
    p.add_argument(
        "--timeout",
        type=cli.explained(seconds),
        default=300.0,
        metavar="TIME",
        help="give a check up after this long (default: 5m)",
    )
    one = p.add_argument_group("one problem alone (any of these; the rest has defaults)")
    one.add_argument("--mask", type=cli.explained(Mask.parse))
    one.add_argument("--dtype", type=cli.explained(cli.one_of(*DTYPES)), help="default: float32")
    for name in _SIZES:
        one.add_argument(f"--{name.replace('_', '-')}", type=cli.explained(count), metavar="N")
    return p


def main(argv: list[str]) -> int:
    """Checks what was asked for; returns 1 where anything is wrong."""
    options = parser().parse_args(argv)
    from bench.checks.catalogue import CHECKS
    from bench.measure.environment import ask
    from bench.measure.server import Server
    from bench.preparation import chosen

    if options.check is not None and options.check not in CHECKS:
        raise UserError(f"--check: {options.check!r} is not a check; accepted: {', '.join(CHECKS)}")
    variants = chosen(",".join(options.variants) or "all", options.imports, "VARIANT")
    cli.check_output("--junit", options.junit, [])
    with Server() as server:
        machine, _ = ask(server, options.device, variants.values(), options.timeout)
        outcomes = [
            outcome for variant in variants.values() for outcome in _outcomes(server, options, variant, machine)
        ]
    if options.junit:
        cli.write("--junit", options.junit, junit(outcomes))
    if options.check is None and not any(getattr(options, name) for name in _ONE):
        _print_costs()
    return _conclude(outcomes)


class Outcome(NamedTuple):
    """What a check of a variant came to; whether properties count, and whether errors are told and not judged."""

    variant: str
    finding: Finding
    strict: bool = False
    approximates: bool = False

    @property
    def failed(self) -> bool:
        """Whether this is wrong."""
        from bench.checks.catalogue import CHECKS

        return self.finding.reason is not None and (self.strict or not CHECKS[self.finding.check].property)


def _outcomes(server: Server, options: argparse.Namespace, variant: Variant, machine: Machine) -> Iterator[Outcome]:
    """Asks each check in a process of its own, and prints what it came to."""
    from bench.checks.catalogue import CHECKS
    from bench.show import here

    told = here(variant, machine)
    only = _one_problem(options, variant, machine)
    refused = variant.refusal(only.problem, machine) if only else None
    if told.startswith("no: ") or refused:
        print(f"{variant.name}: not checked here ({refused or told.removeprefix('no: ')})", flush=True)
        return
    print(variant.name, flush=True)
    for check in CHECKS.values():
        if options.check in (None, check.name) and (variant.exact or not check.exact):
            finding = _finding(server, options, variant.name, machine, check.name, only)
            outcome = Outcome(variant.name, finding, options.strict, not variant.exact)
            for line in _lines(outcome, options.imports):
                print(f"  {line}", flush=True)
            yield outcome


def _finding(
    server: Server, options: argparse.Namespace, name: str, machine: Machine, check: str, only: Trial | None
) -> Finding:
    from bench.checks.examine import Finding, examine_apart
    from bench.measure.server import Died

    try:
        finding: Finding = server.call(
            examine_apart,
            *(name, tuple(options.imports), machine, check, options.thorough, options.seed, only),
            timeout_s=options.timeout,
        )
    except Died as death:
        return Finding(check, tried=1, reason=f"{death.status}: {death}")
    except Exception as error:  # such as a variant's own `limits` raises
        return Finding(check, tried=1, reason=f"{type(error).__name__}: {error}")
    return finding


def _one_problem(options: argparse.Namespace, variant: Variant, machine: Machine) -> Trial | None:
    """The one problem that the options describe, if they do. UserError where there is no such problem."""
    from bench.checks.subject import Trial

    if not any(getattr(options, name) for name in _ONE):
        return None
    seq, heads = options.seq or 129, options.heads or 4
    try:
        problem = Problem(
            batch=options.batch or 1,
            heads=heads,
            kv_heads=options.kv_heads or heads,
            seq_q=options.seq_q or seq,
            seq_kv=seq,
            head_dim=options.head_dim or 64,
            dtype=options.dtype or DTYPES[0],
            device=machine.device,
            mask=options.mask or variant.some_mask(),
        )
    except ValueError as error:
        raise UserError(str(error)) from None
    return Trial(problem, seed=options.seed)


def _lines(outcome: Outcome, imports: Sequence[str]) -> Iterator[str]:
    from bench.checks.examine import command
    from bench.progress import label
    from bench.results.columns import Case

    finding = outcome.finding
    if finding.reason is None:
        told = outcome.approximates and finding.check in ("agreement", "gradients")
        used = f"error up to {finding.used:.2g}" if told else f"{finding.used:.0%} of what is allowed"
        what = f"{finding.tried} problems, {used}" if finding.tried else "not asked"
        yield f"{'ok' if finding.tried else '-':6}{finding.check:12}{what}, {finding.seconds:.1f} s"
        return
    yield f"{'WRONG' if outcome.failed else 'note':6}{finding.check:12}{finding.reason}"
    if finding.trial is not None:
        case = Case.of(outcome.variant, finding.trial.direction, finding.trial.problem)
        yield f"{'':18}on {label(case)}, the smallest found; repeat it with"
        yield f"{'':18}{command(outcome.variant, imports, finding.check, finding.trial, outcome.strict)}"


def _print_costs() -> None:
    """What the masks themselves cost, which is no variant's fault."""
    from bench.checks.reference import cost_of
    from bench.checks.shapes import MASKS

    costs = [f"{mask} {cost_of(mask):.2f}" for mask in MASKS if not mask.hides_nothing(512, 512)]
    print(f"distance of masked from unmasked exact attention (n = 512, peaked): {', '.join(costs)}")


def _conclude(outcomes: Sequence[Outcome]) -> int:
    """The last line, and the exit status. Having checked nothing is no success."""
    if not any(outcome.finding.tried for outcome in outcomes):
        raise UserError("VARIANT: nothing was checked; none of them runs here, or takes this problem")
    failed = [outcome for outcome in outcomes if outcome.failed]
    noted = sum(outcome.finding.reason is not None for outcome in outcomes) - len(failed)
    tried = sum(outcome.finding.tried for outcome in outcomes)
    names = dict.fromkeys(outcome.variant for outcome in failed)
    verdict = f"wrong: {', '.join(names)}" if failed else "all right"
    print(f"{len({o.variant for o in outcomes})} variants, {tried} problems: {verdict}; {noted} properties noted")
    return 1 if failed else 0


def junit(outcomes: Iterable[Outcome]) -> str:
    """The outcomes as JUnit XML: a suite a variant, a case a check."""
    root = ElementTree.Element("testsuites")
    suites: dict[str, ElementTree.Element] = {}
    for outcome in outcomes:
        if outcome.variant not in suites:
            suites[outcome.variant] = ElementTree.SubElement(root, "testsuite", name=outcome.variant)
        finding = outcome.finding
        case = ElementTree.SubElement(
            suites[outcome.variant],
            "testcase",
            classname=outcome.variant,
            name=finding.check,
            time=f"{finding.seconds:.3f}",
        )
        if outcome.failed:
            ElementTree.SubElement(case, "failure", message=printable(finding.reason or ""))
        elif finding.reason is not None:
            ElementTree.SubElement(case, "system-out").text = printable(finding.reason)
        elif not finding.tried:
            ElementTree.SubElement(case, "skipped")
    for suite in suites.values():
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def printable(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def hold(name: str, check: str, imports: Sequence[str] = (), strict: bool = False, thorough: bool = False) -> None:
    """One check of one variant, in this process, as a pytest function for those who write variants:

        @pytest.mark.parametrize("check", bench.verify.checks())
        def test_mine(check):
            bench.verify.hold("mine", check, imports=["mine.py"])

    AssertionError says what is wrong, on which problem, and how to repeat it.
    """
    from bench.checks.catalogue import CHECKS
    from bench.checks.examine import examine
    from bench.measure.environment import probe
    from variants import registry

    pytest: Any = import_module("pytest")
    variants = registry.load(imports)
    for what, given, known in (("variant", name, variants), ("check", check, CHECKS)):
        if given not in known:
            raise ValueError(f"{what}: {given!r} is not known; accepted: {', '.join(known)}")
    variant = variants[name]
    if CHECKS[check].exact and not variant.exact:
        pytest.skip(f"{check} is asked of exact variants alone")
    finding = examine(name, imports, probe("auto", variant.requires)[0], check, thorough)
    outcome = Outcome(name, finding, strict)
    if not finding.tried:
        pytest.skip(f"{name} takes no problem of {check} here")
    if outcome.failed:
        raise AssertionError("\n".join(_lines(outcome, imports)))


def checks() -> tuple[str, ...]:
    """The names of all checks."""
    from bench.checks.catalogue import CHECKS

    return tuple(CHECKS)


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


if __name__ == "__main__":
    cli.run(main)
