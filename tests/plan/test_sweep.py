"""A sweep's cases: every combination, once, lengths ascending."""

from dataclasses import replace
from math import prod

import pytest

from bench.errors import UserError
from bench.models import named
from bench.plan.sweep import Sweep, cases_of, model_problems, usual_lengths
from variants.masks import Mask

SWEEP = Sweep(
    variants=("a", "b"),
    masks=(Mask(causal=True), Mask(window=4)),
    directions=("fwd", "fwdbwd"),
    seq=(16, 32, 64),
    heads=(4, 8),
    head_dim=(32,),
    batch=(1, 2),
    dtypes=("float32", "bfloat16"),
    device="cpu",
)


def test_every_combination_is_a_case_once() -> None:
    cases = SWEEP.cases()
    axes = (SWEEP.variants, SWEEP.masks, SWEEP.directions, SWEEP.seq, SWEEP.heads, SWEEP.batch, SWEEP.dtypes)
    assert len(cases) == len(set(cases)) == prod(map(len, axes))


def test_self_attention_with_one_kv_head_a_query_head_unless_said() -> None:
    assert all(case.seq_q == case.seq_kv and case.kv_heads == case.heads for case in SWEEP.cases())


def test_lengths_ascend_inside_everything_else() -> None:
    by_series: dict[object, list[int]] = {}
    for case in SWEEP.cases():
        by_series.setdefault(replace(case, seq_q=0, seq_kv=0), []).append(case.seq_kv)
    assert all(lengths == [16, 32, 64] for lengths in by_series.values())


def test_queries_and_kv_heads_are_axes_of_their_own() -> None:
    cases = replace(SWEEP, seq_q=(1, 16), kv_heads=(1, 2)).cases()
    assert {(c.seq_q, c.seq_kv) for c in cases} == {(q, n) for q in (1, 16) for n in (16, 32, 64)}
    assert {(c.heads, c.kv_heads) for c in cases} == {(4, 1), (4, 2), (8, 1), (8, 2)}


def test_kv_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match="--kv-heads: 8 does not divide 4 heads"):
        replace(SWEEP, kv_heads=(2, 8)).cases()


def test_a_models_layers_are_asked_kind_by_kind_with_lengths_ascending() -> None:
    lengths = {"gemma-3-4b": (64, 128), "bert-base": (32,)}
    models = [named(name) for name in lengths]
    asked = list(model_problems(models, ("prefill",), ("fwd", "bwd"), lengths, (1,), ("float32",), "cpu"))
    expected = [(8, "causal+window:1024", 64), (8, "causal+window:1024", 128), (8, "causal", 64), (8, "causal", 128)]
    expected.append((12, "full", 32))
    assert [direction for direction, _ in asked] == ["fwd"] * 5 + ["bwd"] * 5
    assert [(p.heads, str(p.mask), p.seq_kv) for _, p in asked] == expected * 2


def test_phases_dtypes_and_batches_of_a_model_multiply() -> None:
    model = named("llama-3-8b")
    both, dtypes = ("prefill", "decode"), ("float32", "bfloat16")
    asked = [p for _, p in model_problems([model], both, ("fwd",), {model.name: (64,)}, (1, 2), dtypes, "cpu")]
    assert len(set(asked)) == len(asked) == 2 * 2 * 2
    assert {(p.batch, p.seq_q, p.seq_kv, p.dtype) for p in asked} == {
        (batch, seq_q, 64, dtype) for batch in (1, 2) for seq_q in (1, 64) for dtype in dtypes
    }


def test_a_problem_that_two_models_ask_is_a_case_once() -> None:
    models = [named("llama-3-8b"), named("qwen3-8b")]  # the same heads, and another number of layers
    lengths = {model.name: (64, 128) for model in models}
    problems = model_problems(models, ("prefill",), ("fwd",), lengths, (1,), ("float32",), "cpu")
    cases = cases_of(("a", "b"), problems, ("hot",))
    assert [(case.variant, case.seq_kv) for case in cases] == [("a", 64), ("b", 64), ("a", 128), ("b", 128)]


@pytest.mark.parametrize(
    ("name", "seq", "expected"),
    [
        ("llama-3-8b", (1024, 2048, 4096), (1024, 2048, 4096)),
        ("llama-3-8b", (4096, 8192, 16384), (2048, 4096, 8192)),
        ("bert-base", (1024, 2048, 4096), (128, 256, 512)),
        ("whisper-large-v3", (1024, 2048, 4096), (112, 224, 448)),
    ],
)
def test_usual_lengths_double_up_to_the_models_context_or_the_devices_longest(
    name: str, seq: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert usual_lengths(named(name), seq) == expected
