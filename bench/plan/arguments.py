"""The command line of `bench.run`: what may be swept, and the words for it."""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from bench import cli
from bench.errors import UserError
from bench.models import PHASES, named
from bench.plan import presets
from bench.plan.quantities import count, seconds, sizes
from variants.masks import Mask
from variants.problem import DIRECTIONS, DTYPES

BASELINE = "sdpa"  # what a user has today

DESCRIPTION = """Sweeps attention variants over sequence lengths: which is right, which is fastest, which is smallest.
Every variant is held to exact attention under its own mask, at the very length that is timed."""

EXAMPLES = """\
  python -m bench.run                                    what suits this machine, in under three minutes
  python -m bench.run --seq 512..16384 --mask full,causal
  python -m bench.run --seq 1k..64k --seq-q 1 --heads 32 --kv-heads 8      one query against a cache
  python -m bench.run --model llama-3-8b --phase prefill,decode            a model's layers, and their sum
  python -m bench.run --variants sdpa,mine --import mine.py                your own variant beside PyTorch's
  python -m bench.run --direction fwdbwd --dtype bfloat16,float32
  python -m bench.run @nightly.txt --out nightly.csv --resume              arguments kept in a file"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("run", DESCRIPTION, EXAMPLES)
    _add_problems(p)
    add_models(
        p,
        "the attention of these models, as python -m bench.models lists them, and what all their layers come to; "
        "sets mask, heads and head size, and lengths up to the model's context",
    )
    add_variants(p)
    _add_conditions(p)
    _add_effort(p)
    _add_output(p)
    return p


def _add_problems(p: argparse.ArgumentParser) -> None:
    size_list = cli.explained(sizes)
    problem = p.add_argument_group("problems (every axis takes a list)")
    problem.add_argument(
        "--seq",
        type=size_list,
        metavar="SIZES",
        help=f"sequence lengths: 512..16384 doubles, 512..4096:+512 steps, 1k..64k, 17,100,1000 {_by_device('seq')}",
    )
    problem.add_argument(
        "--seq-q",
        type=size_list,
        default=(),
        metavar="SIZES",
        help="number of queries, where it is not that of the keys; 1 is decoding",
    )
    add_shapes(problem, ",".join(map(str, presets.MASKS)))


def add_shapes(problem: argparse._ActionsContainer, masks: str) -> None:
    """The options of a problem besides its lengths; `masks` is what help calls the default of --mask, which is None."""
    size_list = cli.explained(sizes)
    problem.add_argument("--heads", type=size_list, metavar="SIZES", help=f"query heads {_by_device('heads')}")
    problem.add_argument(
        "--kv-heads",
        type=size_list,
        default=(),
        metavar="SIZES",
        help="key and value heads (default: as many as query heads)",
    )
    problem.add_argument("--batch", type=size_list, default=(1,), metavar="SIZES", help="batch sizes (default: 1)")
    problem.add_argument("--head-dim", type=size_list, metavar="SIZES", help=f"size of a head {_by_device('head_dim')}")
    problem.add_argument(
        "--dtype",
        type=cli.comma_separated(cli.one_of(*DTYPES)),
        metavar="LIST",
        help=f"{', '.join(DTYPES)} {_by_device('dtypes')}",
    )
    problem.add_argument(
        "--mask",
        type=cli.comma_separated(Mask.parse),
        metavar="LIST",
        help=f"full, causal, window:N, global:N, joined by + (default: {masks})",
    )
    problem.add_argument(
        "--direction",
        type=cli.comma_separated(cli.one_of(*DIRECTIONS)),
        default=("fwd",),
        metavar="LIST",
        help="fwd, bwd, fwdbwd (default: fwd)",
    )


def add_models(p: argparse.ArgumentParser, meaning: str) -> None:
    """The options that take the problems from models."""
    models = p.add_argument_group("models")
    models.add_argument("--model", type=cli.comma_separated(named), default=(), metavar="LIST", help=meaning)
    models.add_argument(
        "--phase",
        type=cli.comma_separated(cli.one_of(*PHASES)),
        default=(),
        metavar="LIST",
        help="prefill, all tokens at once; decode, one query against the cache (default: prefill)",
    )


def phases(options: argparse.Namespace) -> tuple[str, ...]:
    """The phases that are asked for."""
    return options.phase or PHASES[:1]


def check_models(options: argparse.Namespace) -> None:
    """UserError for what a model sets, for what it does not have, and for a phase of no model."""
    if options.phase and not options.model:
        raise UserError(f"--phase: {','.join(options.phase)!r} of which model? add --model NAME")
    for axis in ("mask", "heads", "kv_heads", "head_dim", "seq_q") if options.model else ():
        if value := getattr(options, axis):
            words = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            raise UserError(f"--{axis.replace('_', '-')}: {words!r} is for --model to set; leave out one of the two")
    for model, phase in product(options.model, phases(options)):
        model.kinds(phase)
    if "decode" in options.phase and options.direction != ("fwd",):
        raise UserError(f"--direction: {','.join(options.direction)!r} is not to be had of decoding; accepted: fwd")


def add_variants(p: argparse.ArgumentParser) -> None:
    """The options that say which variants, from where, on which device."""
    what = p.add_argument_group("variants and device")
    what.add_argument(
        "--variants", default="all", metavar="LIST", help="names, as python -m bench.show lists them (default: all)"
    )
    add_sources(what)


def add_sources(to: argparse._ActionsContainer) -> None:
    """The options that say where variants come from, and on which device they run."""
    to.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="module or .py file that registers further variants; may be repeated",
    )
    to.add_argument("--device", default="auto", help="auto, cpu, cuda, or any torch.accelerator type (default: auto)")


def _add_conditions(p: argparse.ArgumentParser) -> None:
    conditions = p.add_argument_group("conditions")
    conditions.add_argument(
        "--threads",
        type=cli.explained(count),
        metavar="N",
        help="CPU threads (default: as many as torch uses in your own program)",
    )
    conditions.add_argument(
        "--cache",
        type=cli.comma_separated(cli.one_of("cold", "hot")),
        metavar="LIST",
        help="cold: flush a device's L2 cache before each call; hot: do not (default: cold; a CPU knows only hot)",
    )
    conditions.add_argument(
        "--force", action="store_true", help="try cases, too, that are predicted to need more memory than is free"
    )


def _add_effort(p: argparse.ArgumentParser) -> None:
    duration = cli.explained(seconds)
    effort = p.add_argument_group("effort")
    effort.add_argument(
        "--visits",
        type=cli.explained(count),
        default=4,
        metavar="N",
        help="processes that measure each case (default: 4, as the time budget allows)",
    )
    effort.add_argument(
        "--time-budget",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="after the first round, start no visit that would end later than this (default: 2m)",
    )
    effort.add_argument(
        "--max-call",
        type=duration,
        default=5.0,
        metavar="TIME",
        help="skip a case in which one call would take longer (default: 5s)",
    )
    effort.add_argument(
        "--setup-timeout",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="give a visit up whose plan and first call, compilation included, take longer (default: 2m)",
    )
    effort.add_argument(
        "--timeout",
        type=duration,
        default=120.0,
        metavar="TIME",
        help="give a visit up whose sampling and checks take longer (default: 2m)",
    )


def _add_output(p: argparse.ArgumentParser) -> None:
    output = p.add_argument_group("output")
    output.add_argument(
        "--out", type=Path, metavar="FILE", help="results file (default: results/local/DATE-DEVICE.csv)"
    )
    output.add_argument(
        "--resume", action="store_true", help="continue the file that --out names: only what is missing is run"
    )
    output.add_argument(
        "--append-anyway",
        action="store_true",
        help="with --resume: add to a file measured on another machine, torch or commit",
    )
    output.add_argument(
        "--baseline", default=BASELINE, metavar="NAME", help=f"variant that speed-ups are over (default: {BASELINE})"
    )
    output.add_argument("--dry-run", action="store_true", help="print the cases, and why others are left out, and stop")


def _by_device(axis: str) -> str:
    """The defaults of an axis, as --help shows them."""
    cpu, accelerator = (getattr(preset, axis) for preset in (presets.CPU, presets.ACCELERATOR))
    return f"(default: {_range(cpu)} on CPU, {_range(accelerator)} on an accelerator)"


def _range(values: tuple[object, ...]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]}..{values[-1]}"
