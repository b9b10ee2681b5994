"""The exact result of a small problem, by an independent route, and the budget that it grants."""

import math

import pytest
import torch

from bench.checks.reference import Reference, cost_of
from bench.measure.conduct import Wrong
from variants.masks import Mask
from variants.problem import Problem


def parts(text: str = "causal", n_q: int = 12, n_kv: int = 8, dtype: str = "float32"):
    problem = Problem(2, 4, 2, n_q, n_kv, 16, dtype, mask=Mask.parse(text))
    q, k, v = (torch.randn(2, h, n, 16).to(getattr(torch, dtype)) for h, n in ((4, n_q), (2, n_kv), (2, n_kv)))
    keys, values = (x.double().repeat_interleave(2, 1) for x in (k, v))
    scores = (q.double() @ keys.mT / 4).masked_fill(~problem.mask.dense(n_q, n_kv), -math.inf)
    return Reference(problem, q, k, v), (scores.softmax(-1).nan_to_num(0.0) @ values), q.dtype


@pytest.mark.parametrize("text", ["full", "causal", "window:3", "window:2+global:1"])
def test_the_exact_result_of_every_row(text: str) -> None:
    reference, expected, _ = parts(text)
    torch.testing.assert_close(reference.out, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rounding_is_within_the_budget_and_a_wrong_row_is_not(dtype: str) -> None:
    reference, expected, kind = parts("causal", 8, 8, dtype)
    assert 0 < reference.used(expected.to(kind), "it") <= 1
    wrong = expected.to(kind)
    wrong[1, 2, 5] *= 2
    with pytest.raises(Wrong, match=r"it: error \S+ is over its budget \S+ \(batch 1, head 2, row 5\)"):
        reference.used(wrong, "it")


def test_what_is_not_finite_is_wrong() -> None:
    reference, expected, _ = parts()
    expected[0, 0, 5, 0] = torch.nan
    with pytest.raises(Wrong, match="it: not finite"):
        reference.used(expected, "it")


def test_what_a_mask_costs() -> None:
    assert cost_of(Mask()) == 0.0
    assert cost_of(Mask(window=5000)) == 0.0
    narrow, wide = cost_of(Mask(window=8)), cost_of(Mask(window=256))
    assert 2 > narrow > wide > 0.2
