"""The judge: right variants are never accused, and each mistake is caught and named."""

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from bench.measure.accuracy import judge
from bench.measure.inputs import make_inputs
from tests.measure.attentions import RIGHT, Attention, dense, naive, seeing
from tests.measure.mistakes import BACKWARD_MISTAKES, MISTAKES, aligned_at_the_start, mask_ignored
from variants.masks import Mask
from variants.problem import DTYPES, Problem

pytestmark = pytest.mark.usefixtures("one_thread")

PROBLEMS = (
    # (mask, n_q, n_kv, heads, kv_heads)
    ("full", 1, 1, 1, 1),
    ("causal", 2, 2, 2, 1),
    ("causal+window:8+global:3", 17, 17, 4, 2),
    ("window:16", 127, 127, 2, 2),
    ("causal", 128, 128, 3, 1),
    ("window:16+global:4", 300, 300, 4, 2),
    ("causal+window:64", 1000, 1000, 2, 1),
    ("causal", 1, 300, 4, 2),
    ("window:16", 40, 300, 4, 4),
    ("causal", 300, 40, 2, 1),
)
HIDDEN_IN_BFLOAT16 = "scale off by 0.8 %"


def problem(
    mask: str = "causal", n_q: int = 300, n_kv: int = 0, heads: int = 4, kv_heads: int = 2, dtype: str = "float32"
) -> Problem:
    return Problem(1 if heads == 1 else 2, heads, kv_heads, n_q, n_kv or n_q, 32, dtype, mask=Mask.parse(mask))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_variant_is_not_accused(name: str, dtype: str) -> None:
    for seed, (mask, n_q, n_kv, heads, kv_heads) in enumerate(PROBLEMS):
        p = problem(mask, n_q, n_kv, heads, kv_heads, dtype)
        verdict = judge(RIGHT[name](p), p, "fwdbwd", seed)
        assert verdict.reason is None, p
        assert 0 <= verdict.error <= verdict.budget < 0.3


@pytest.mark.slow
def test_no_right_variant_is_accused_on_any_of_two_thousand_problems() -> None:
    draw = random.Random(0)
    for seed in range(2000):
        mask, n_q, n_kv, heads, kv_heads = draw.choice(PROBLEMS)
        head_dim, dtype, name = draw.choice((16, 40, 64, 128)), draw.choice(DTYPES), draw.choice(list(RIGHT))
        p = Problem(draw.choice((1, 2)), heads, kv_heads, n_q, n_kv, head_dim, dtype, mask=Mask.parse(mask))
        assert judge(RIGHT[name](p), p, draw.choice(("fwd", "bwd")), seed).reason is None, (name, p, seed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_caught(name: str, dtype: str) -> None:
    if (name, dtype) == (HIDDEN_IN_BFLOAT16, "bfloat16"):
        pytest.skip("below twice the textbook's own error: float32 shows it")
    make, masks = MISTAKES[name]
    for seed, mask in enumerate(masks):
        p = problem(mask, dtype=dtype)
        reason = judge(make(p), p, "fwd", seed).reason
        assert reason is not None, p
        assert reason.startswith("error ")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_q", "n_kv"), [(40, 300), (300, 40), (1, 300)])
def test_causal_that_is_aligned_at_the_start_is_caught(n_q: int, n_kv: int, dtype: str) -> None:
    p = problem("causal", n_q, n_kv, dtype=dtype)
    assert judge(aligned_at_the_start(p), p, "fwd", 0).reason


@pytest.mark.parametrize("seed", range(5))
def test_a_single_query_takes_every_mode(seed: int) -> None:
    """Decoding one token on one head: one row, but each mode has its turn."""
    p = Problem(1, 1, 1, 1, 400, 64, "bfloat16", mask=Mask.parse("causal+window:100"))
    assert judge(seeing(p, dense(p, Mask.parse("causal+window:101"))), p, "fwd", seed).reason
    assert judge(seeing(p, dense(p, Mask.parse("causal+window:99"))), p, "fwd", seed).reason
    assert judge(naive(p), p, "fwd", seed).reason is None


@pytest.mark.parametrize("n", [2048, 5000])
def test_one_leaked_key_among_thousands_shows_even_in_16_bits(n: int) -> None:
    p = Problem(1, 2, 2, n, n, 64, "bfloat16", mask=Mask.parse("causal+window:1500"))
    reason = judge(seeing(p, dense(p, Mask.parse("causal+window:1501"))), p, "fwd", 0).reason
    assert reason is not None
    assert "edge-outside rows" in reason


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BACKWARD_MISTAKES)
def test_a_mistake_in_the_gradients_is_caught(name: str, dtype: str) -> None:
    make, wrong = BACKWARD_MISTAKES[name]
    for seed, (mask, n) in enumerate((("causal", 40), ("causal+window:16+global:4", 300))):
        p = problem(mask, n, dtype=dtype)
        reason = judge(make(p), p, ("bwd", "fwdbwd")[seed], seed).reason
        assert reason is not None, p
        assert reason.startswith(f"{wrong} is ")
        assert judge(make(p), p, "fwd", seed).reason is None


def changed(change: Callable[[Tensor], object]) -> Attention:
    """A right variant whose result is changed."""
    p = problem()
    return lambda q, k, v: change(naive(p)(q, k, v))


def first_not_a_number(out: Tensor) -> Tensor:
    out[1, 2, 3, 4] = torch.nan
    return out


def without_bounds(x: Tensor) -> Tensor:
    x.data[0, 0, 0, 0] = torch.inf
    return x


def writes_into(name: str) -> Attention:
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = naive(problem())(q, k, v)
        {"q": q, "k": k, "v": v}[name].data[-1, -1, -1, -1] += 1
        return out

    return run


def answers_in_place(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q.data.copy_(naive(problem())(q, k, v))
    return q


@pytest.mark.parametrize(
    ("attention", "reason"),
    [
        (changed(lambda out: out.double()), "returned float64 for float32 inputs"),
        (changed(lambda out: out.mT), "returned shape (2, 4, 32, 300) for queries of shape (2, 4, 300, 32)"),
        (changed(lambda out: (out, None)), "returned tuple instead of a tensor"),
        (changed(lambda out: None), "returned NoneType instead of a tensor"),
        (changed(first_not_a_number), "the result is not finite (first at batch 1, head 2, row 3)"),
        (changed(without_bounds), "the result is not finite (first at batch 0, head 0, row 0)"),
        (changed(lambda out: out.to("meta")), "returned a tensor on meta for inputs on cpu"),
        (lambda q, k, v: q, "returned a view of q"),
        (lambda q, k, v: v.repeat_interleave(2, 1).as_strided(q.shape, q.stride()) * 0 + q, "error "),
        (answers_in_place, "returned a view of q"),
        (writes_into("q"), "wrote into q"),
        (writes_into("k"), "wrote into k"),
        (writes_into("v"), "wrote into v"),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_misconduct_is_named(attention: Attention, reason: str, exact: bool) -> None:
    got = judge(attention, problem(), "fwd", 0, exact=exact or reason == "error ").reason
    assert got is not None
    assert got.startswith(reason)


def test_gradients_that_are_not_finite_or_not_there_are_named() -> None:
    p = problem(n_q=40)

    def spoilt(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k = k * 1
        k.register_hook(lambda gradient: gradient / 0)
        return naive(p)(q, k, v)

    def greedy(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = naive(p)(q, k, v)
        out.register_hook(lambda gradient: gradient.mul_(2))
        return out

    assert (judge(spoilt, p, "bwd", 0).reason or "").startswith("dK is not finite (first at ")
    assert judge(greedy, p, "bwd", 0).reason == "wrote into the upstream gradient"
    assert judge(lambda q, k, v: naive(p)(q, k, v).detach(), p, "bwd", 0).reason == "the result has no gradient"


def test_a_memoised_answer_is_caught() -> None:
    p = problem()
    answers: list[Tensor] = []

    def memoised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        answers.append(naive(p)(q, k, v))
        return answers[0]

    memoised(*make_inputs(p, 0))
    assert (judge(memoised, p, "fwd", 1).reason or "").startswith("error ")


@pytest.mark.parametrize("garbage", [1.0, -0.5])
def test_rows_that_see_nothing_must_be_zeros(garbage: float) -> None:
    p = problem("causal", 300, 40)

    def careless(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = naive(p)(q, k, v)
        out[0, 0, 0, 0] = garbage
        return out

    reason = "the result is not zero in a row that sees nothing (batch 0, head 0, row 0)"
    assert judge(careless, p, "fwd", 0).reason == reason
    assert judge(careless, p, "fwd", 0, exact=False).reason == reason


def test_an_approximation_is_measured_and_not_accused() -> None:
    p = problem()
    wrong = judge(mask_ignored(p), p, "bwd", 0)
    shown = judge(mask_ignored(p), p, "bwd", 0, exact=False)
    assert wrong.reason
    assert shown.reason is None
    assert shown.error == wrong.error > 0.5 > wrong.budget


def test_the_same_seed_gives_the_same_verdict_and_another_does_not() -> None:
    p = problem()
    first, again, other = (judge(naive(p), p, "bwd", seed) for seed in (3, 3, 4))
    assert first == again
    assert first.error != other.error


def test_what_the_variant_raises_is_not_caught() -> None:
    def broken(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        raise NotImplementedError("backward")

    with pytest.raises(NotImplementedError):
        judge(broken, problem(), "fwd", 0)


def test_a_forward_call_is_made_in_the_callers_grad_mode() -> None:
    p = problem(n_q=17)
    seen = []

    def watching(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled(), q.requires_grad))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    judge(watching, p, "fwd", 0)
    with torch.no_grad():
        judge(watching, p, "fwd", 0)
        judge(watching, p, "bwd", 0)
    with torch.inference_mode():
        judge(watching, p, "fwd", 0)
    assert seen == [(True, False, False), (False, False, False), (True, False, True), (False, True, False)]
