"""Approximations, against their own formula written out key by key in float64."""

import math

import pytest
import torch
import torch.nn.functional as F

from variants import registry
from variants.masks import Mask
from variants.problem import Problem

VARIANTS = registry.load()


def run(name: str, problem: Problem, *inputs: torch.Tensor) -> torch.Tensor:
    variant = VARIANTS[name]
    return variant.bind(problem, variant.prepare(problem))(*inputs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_q", "n_kv"), [(1, 1), (300, 300), (513, 513), (1, 300), (40, 300), (300, 40)])
def test_linear_attention_is_its_formula(causal: bool, n_q: int, n_kv: int) -> None:
    problem = Problem(2, 4, 2, n_q, n_kv, 16, mask=Mask(causal=causal))
    q, k, v = torch.randn(2, 4, n_q, 16), torch.randn(2, 2, n_kv, 16), torch.randn(2, 2, n_kv, 16)
    visible = problem.mask.dense(n_q, n_kv)
    keys, values = (x.double().repeat_interleave(2, 1) for x in (k, v))
    weights = ((F.elu(q.double()) + 1) @ (F.elu(keys) + 1).mT) * visible
    expected = (weights / weights.sum(3, keepdim=True)).nan_to_num(0.0) @ values
    torch.testing.assert_close(run("linear", problem, q, k, v).double(), expected, rtol=1e-4, atol=1e-5)


def test_probsparse_attends_for_the_queries_that_stand_out_and_averages_for_the_rest() -> None:
    n, d = 200, 16
    problem = Problem(1, 2, 1, n, n, d)
    q, k, v = torch.randn(1, 2, n, d), torch.randn(1, 1, n, d), torch.randn(1, 1, n, d)
    sampled = VARIANTS["probsparse"].prepare(problem)
    count = math.ceil(5 * math.log(n))
    assert sampled.shape == (n, count)
    out = run("probsparse", problem, q, k, v)
    for h in range(2):
        scores = q[0, h].double() @ k[0, 0].double().T / math.sqrt(d)
        measure = [float(scores[i, s].max() - scores[i, s].sum() / n) for i, s in enumerate(sampled)]
        chosen = sorted(range(n), key=measure.__getitem__)[-count:]
        expected = v[0, 0].double().mean(0).expand(n, d).clone()
        expected[chosen] = scores[chosen].softmax(1) @ v[0, 0].double()
        torch.testing.assert_close(out[0, h].double(), expected, rtol=1e-4, atol=1e-5)


def test_probsparse_is_exact_where_the_sample_is_all() -> None:
    q, k, v = torch.randn(3, 1, 1, 8, 16)
    out = run("probsparse", Problem(1, 1, 1, 8, 8, 16), q, k, v)
    torch.testing.assert_close(out, (q @ k.mT / 4).softmax(-1) @ v)


def test_probsparse_takes_no_mask_and_as_many_queries_as_keys() -> None:
    variant = VARIANTS["probsparse"]
    assert variant.refuses(Mask(causal=True)) == "takes no causal mask"
    assert variant.limits is not None
    assert variant.limits(Problem(1, 1, 1, 1, 8, 16), None) == "takes as many queries as keys"
