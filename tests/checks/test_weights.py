"""Weights read out of a black box, against those of a softmax written out."""

import pytest
import torch

from bench.checks.subject import Subject, Trial
from bench.checks.weights import read, sees_its_mask
from bench.measure.conduct import Wrong
from tests.checks.test_mutants import MACHINE
from tests.measure.attentions import naive, seeing
from variants.masks import Mask
from variants.problem import Problem
from variants.registry import Variant


def problem(mask: str, n_q: int = 40, n_kv: int = 40, dtype: str = "float32", head_dim: int = 16) -> Problem:
    return Problem(1, 4, 2, n_q, n_kv, head_dim, dtype, mask=Mask.parse(mask))


def subject(make) -> Subject:
    def attention(q, k, v, *, mask, plan):
        return plan(q, k, v)

    return Subject(Variant("made up", attention, plan=make), MACHINE)


@pytest.mark.parametrize("keys", [range(40), [0], [3, 39, 17], range(0, 40, 2)])
def test_the_weights_are_those_of_the_softmax(keys) -> None:
    p = problem("causal")
    q, k = torch.randn(1, 4, 40, 16), torch.randn(1, 2, 40, 16)
    scores = (q[0] @ k[0].repeat_interleave(2, 0).mT) / 4.0
    exact = scores.masked_fill(torch.ones(40, 40).triu(1).bool(), -torch.inf).softmax(-1)
    got = read(subject(naive), p, q, k, list(keys))
    torch.testing.assert_close(got, exact[:, :, list(keys)], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("hidden", "text"), [(True, "row 5 also sees key 9"), (False, "row 5 does not see key 4")])
def test_a_pair_that_is_wrong_is_named(hidden: bool, text: str) -> None:
    def make(p: Problem):
        visible = p.mask.dense(p.seq_q, p.seq_kv)
        visible[5, 9 if hidden else 4] ^= True
        return seeing(p, visible)

    with pytest.raises(Wrong, match=rf"{text} \(head 0; 1 of 40 rows are wrong\)"):
        sees_its_mask(subject(make), Trial(problem("causal")))


@pytest.mark.parametrize(("factor", "dtype"), [(1.008, "bfloat16"), (0.992, "bfloat16"), (1.002, "float16")])
def test_a_scale_that_no_norm_shows_is_read_off_the_slope(factor: float, dtype: str) -> None:
    p = problem("full", 129, 129, dtype, head_dim=64)
    with pytest.raises(Wrong, match=r"scores are scaled by (1\.00[0-9]+|0\.99[0-9]+) of what they should be"):
        sees_its_mask(subject(lambda p: seeing(p, p.mask.dense(p.seq_q, p.seq_kv), factor)), Trial(p))


def test_at_long_lengths_the_edges_of_the_mask_are_read() -> None:
    def make(p: Problem):
        late = Mask.parse("causal+window:17").dense(p.seq_q, p.seq_kv)
        return seeing(p, late)

    p = problem("causal+window:16", 2000, 2000, head_dim=64)
    assert sees_its_mask(subject(naive), Trial(p)) == 0.0
    with pytest.raises(Wrong, match="also sees"):
        sees_its_mask(subject(make), Trial(p))
