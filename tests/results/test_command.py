"""The command of a case, read back by the command line itself, gives that case and no other."""

import shlex
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.plan.arguments import parser
from bench.plan.sweep import Sweep
from bench.results.columns import Case
from bench.results.command import command
from tests.results.rows import CASE
from variants.masks import Mask
from variants.problem import DIRECTIONS, DTYPES

PARSER = parser()
SIZES = st.integers(1, 2**40)
MASKS = st.builds(Mask, st.booleans(), st.none() | st.integers(1, 9999), st.none() | st.integers(1, 9999)).map(str)
NAMES = st.text(min_size=1).filter(lambda name: "," not in name and name == name.strip() and name != "all")


@st.composite
def any_case(draw: st.DrawFn) -> Case:
    """A case with any sizes, mask and name that a command line can say."""
    kv_heads, groups = draw(st.integers(1, 64)), draw(st.integers(1, 8))
    sizes = {name: draw(SIZES) for name in ("batch", "seq_q", "seq_kv", "head_dim")}
    words = {"dtype": DTYPES, "direction": DIRECTIONS, "device": ("cpu", "cuda"), "cache": ("hot", "cold")}
    chosen = {name: draw(st.sampled_from(values)) for name, values in words.items()}
    return Case(variant=draw(NAMES), mask=draw(MASKS), heads=kv_heads * groups, kv_heads=kv_heads, **sizes, **chosen)


def asked_for(line: str) -> list[Case]:
    """The cases that a shell's user would get from this line."""
    python, flag, module, *words = shlex.split(line)
    assert (python, flag, module) == ("python", "-m", "bench.run")
    options = PARSER.parse_args(words)
    return Sweep(
        variants=tuple(name.strip() for name in options.variants.split(",")),
        masks=options.mask,
        directions=options.direction,
        seq=options.seq,
        heads=options.heads,
        head_dim=options.head_dim,
        batch=options.batch,
        dtypes=options.dtype,
        device=options.device,
        seq_q=options.seq_q,
        kv_heads=options.kv_heads,
        caches=options.cache,
    ).cases()


@settings(max_examples=50)
@given(any_case())
def test_it_parses_back_to_exactly_that_case(case: Case) -> None:
    line = command(case)
    assert line is not None
    assert asked_for(line) == [case]


@pytest.mark.parametrize("name", ["$(reboot)", "a b", "--help", "@file", "'", "-x", "<b>"])
def test_a_name_that_a_shell_or_argparse_would_read_otherwise(name: str) -> None:
    case = replace(CASE, variant=name)
    assert asked_for(command(case) or "") == [case]


@pytest.mark.parametrize("name", ["all", "a,b", " a"])
def test_a_name_that_cannot_be_asked_for_has_no_command(name: str) -> None:
    assert command(replace(CASE, variant=name)) is None


def test_threads_are_said_where_they_are_known() -> None:
    options = PARSER.parse_args(shlex.split(command(CASE, threads=3) or "")[3:])
    assert options.threads == 3
    assert "--threads" not in (command(CASE) or "")
