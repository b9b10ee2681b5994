"""The oracle against torch's own attention in float64, against autograd, and against answers known in closed form."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from variants import oracle
from variants.masks import Mask
from variants.oracle import Triples, sample_triples, visible_keys
from variants.problem import Problem

MASKS = ("full", "causal", "window:5", "causal+window:5", "window:5+global:3", "causal+window:5+global:3", "global:3")
SIZES = ((1, 1), (17, 17), (130, 130), (5, 33), (33, 5))


def problem(n_q: int = 17, n_kv: int | None = None, mask: str = "full", **more: int | str) -> Problem:
    sizes: dict[str, int | str] = {"batch": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, **more}
    return Problem(seq_q=n_q, seq_kv=n_kv or n_q, mask=Mask.parse(mask), **sizes)  # type: ignore[arg-type]


def tensors(p: Problem) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = ((p.heads, p.seq_q), (p.kv_heads, p.seq_kv), (p.kv_heads, p.seq_kv))
    q, k, v = (torch.randn(p.batch, h, n, p.head_dim, generator=generator, dtype=torch.float64) for h, n in sizes)
    return q, k, v


def torch_attention(p: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=p.mask.dense(p.seq_q, p.seq_kv), enable_gqa=True)


def places(t: Triples) -> tuple[Tensor, Tensor, Tensor]:
    return t.batch, t.head, t.row


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", MASKS)
def test_rows_equal_those_of_torch_in_float64(mask: str, sizes: tuple[int, int]) -> None:
    p = problem(*sizes, mask)
    q, k, v = tensors(p)
    expected = torch_attention(p, q, k, v)
    t = sample_triples(p)
    visible = visible_keys(p, t)
    for b, kv_head, index in t.by_kv_head(p):
        rows = tuple(x[index] for x in places(t))
        got = oracle.exact(q[rows], k[b, kv_head], v[b, kv_head], visible[index], p.scale)
        torch.testing.assert_close(got.out, expected[rows], rtol=1e-13, atol=1e-13)
        assert not got.out[~visible[index].any(1)].any()


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_equal_autograd_in_float64(mask: str, sizes: tuple[int, int]) -> None:
    p = problem(*sizes, mask)
    q, k, v = (x.requires_grad_() for x in tensors(p))
    t = sample_triples(p, at_most=40)
    upstream = torch.zeros_like(q)
    upstream[places(t)] = torch.randn(len(t), p.head_dim, dtype=torch.float64)
    dq, dk, dv = torch.autograd.grad(torch_attention(p, q, k, v), (q, k, v), upstream)
    visible = visible_keys(p, t)
    for b, kv_head, index in t.by_kv_head(p):
        rows = tuple(x[index] for x in places(t))
        arguments = q[rows].detach(), k[b, kv_head].detach(), v[b, kv_head].detach(), visible[index], p.scale
        got, size = oracle.exact_gradients(*arguments, upstream[rows])
        for x, y in ((got.dq, dq[rows]), (got.dk, dk[b, kv_head]), (got.dv, dv[b, kv_head])):
            torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)
        sees = visible[index].any(1)
        assert (size.dq.norm(dim=1) > 0).equal(sees)


def test_the_textbook_in_float64_equals_the_oracle() -> None:
    p = problem(mask="causal")
    q, k, v = (x[0, 0] for x in tensors(p))
    visible = p.mask.dense(p.seq_q, p.seq_kv)
    arguments = q, k, v, visible, p.scale
    upstream = torch.randn_like(q)
    exact = oracle.exact(*arguments).out
    for scale_last in (False, True):
        torch.testing.assert_close(oracle.textbook(*arguments, scale_last=scale_last), exact, rtol=1e-13, atol=1e-13)
    by_hand, _ = oracle.exact_gradients(*arguments, upstream)
    by_autograd = oracle.textbook_gradients(*arguments, upstream)
    for name in ("dq", "dk", "dv"):
        torch.testing.assert_close(getattr(by_hand, name), getattr(by_autograd, name), rtol=1e-12, atol=1e-12)


def test_scores_that_are_all_alike_give_the_mean_of_what_is_seen() -> None:
    k, v = torch.randn(2, 9, 4)
    visible = torch.ones(9, 9, dtype=torch.bool).tril()
    got = oracle.exact(torch.zeros(9, 4), k, v, visible, 0.5)
    for row in range(9):
        torch.testing.assert_close(got.out[row], v[: row + 1].double().mean(0))
    assert not got.largest_score.any()


def test_a_query_along_one_key_reads_its_value() -> None:
    k, v = torch.eye(6), torch.randn(6, 6)
    visible = torch.ones(6, 6, dtype=torch.bool)
    visible[0, 0] = False
    got = oracle.exact(100 * k, k, v, visible, 1.0)
    torch.testing.assert_close(got.out[1:], v.double()[1:], rtol=0, atol=1e-15)
    torch.testing.assert_close(got.out[0], v[1:].double().mean(0))  # what it points at is hidden
    assert got.largest_score.tolist() == [0.0, 100.0, 100.0, 100.0, 100.0, 100.0]


def test_a_row_that_sees_nothing_is_zero_and_has_no_gradient() -> None:
    q, k, v, upstream = torch.randn(4, 3, 5)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    got = oracle.exact(q, k, v, nothing, 1.0)
    assert not got.out.any()
    assert not got.largest_score.any()
    for gradients in oracle.exact_gradients(q, k, v, nothing, 1.0, upstream):
        assert not any(x.any() for x in (gradients.dq, gradients.dk, gradients.dv))


def test_sizes_are_not_zero_where_gradients_are() -> None:
    q, k, v, upstream = torch.randn(4, 1, 8)
    got, size = oracle.exact_gradients(q, k, v, torch.ones(1, 1, dtype=torch.bool), 1.0, upstream)
    assert not got.dq.any()
    assert not got.dk.any()
    assert size.dq.all()
    assert size.dk.all()


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(40, mask="causal+window:5")
    q, k, v = (x[0, 0] for x in tensors(p))
    visible = p.mask.dense(40, 40)
    t = sample_triples(p)

    def everything() -> list[Tensor]:
        got = oracle.exact(q, k, v, visible, p.scale)
        exact, size = oracle.exact_gradients(q, k, v, visible, p.scale, q)
        book = oracle.textbook_gradients(q, k, v, visible, p.scale, q)
        pairs = [x for g in (exact, size, book) for x in (g.dq, g.dk, g.dv)]
        return [got.out, got.size, *pairs, oracle.textbook(q, k, v, visible, p.scale), visible_keys(p, t).double()]

    whole = everything()
    monkeypatch.setattr(oracle, "_AT_ONCE", 3 * 40)
    for x, y in zip(everything(), whole, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-13, atol=1e-13)


def test_scores_past_the_range_of_float16_are_taken_in_float32() -> None:
    q, k = torch.full((2, 64), 576.0).half(), torch.full((3, 64), 383.0).half()
    v = torch.arange(3).half()[:, None].expand(3, 64)
    out = oracle.textbook(q, k, v, torch.ones(2, 3, dtype=torch.bool), 0.125)
    torch.testing.assert_close(out, torch.ones(2, 64).half())


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("mask", MASKS)
def test_what_triples_see_is_the_mask(mask: str, sizes: tuple[int, int]) -> None:
    p = problem(*sizes, mask)
    t = sample_triples(p)
    assert visible_keys(p, t).equal(p.mask.dense(*sizes)[t.row])


@pytest.mark.parametrize(
    ("batch", "heads", "kv_heads", "n", "n_kv"),
    [
        (1, 1, 1, 1, 1),
        (1, 4, 2, 17, 17),
        (3, 5, 1, 7, 900),
        (2, 8, 8, 1000, 1000),
        (1, 4, 4, 1 << 20, 1 << 20),
        (64, 16, 4, 1, 4096),
        (5, 40, 8, 300, 300),
        (1, 256, 256, 100, 100),
        (7, 400, 100, 30, 30),
    ],
)
def test_triples_are_few_and_reach_everywhere(batch: int, heads: int, kv_heads: int, n: int, n_kv: int) -> None:
    p = problem(n, n_kv, "causal+window:256", batch=batch, heads=heads, kv_heads=kv_heads)
    t = sample_triples(p)
    triples = list(zip(*(x.tolist() for x in places(t)), strict=True))
    assert triples == sorted(set(triples))
    assert len(t) <= min(256, max(16, (1 << 26) // n_kv))
    for axis, size in zip(places(t), (batch, heads, n), strict=True):
        assert {0, size - 1} <= set(axis.tolist())
    if heads <= 250:
        assert set(t.head.tolist()) == set(range(heads))
    assert [list(x) for x in places(sample_triples(p))] == [list(x) for x in places(t)]


def test_all_rows_are_taken_where_they_are_few() -> None:
    assert len(sample_triples(problem(17))) == 2 * 4 * 17


@pytest.mark.parametrize("mask", ["full", "window:300", "causal+window:300+global:70"])
def test_rows_where_kernels_and_masks_go_wrong_are_among_them(mask: str) -> None:
    p = problem(3000, 3100, mask)
    rows = set(sample_triples(p).row.tolist())
    ragged = {row for size in (64, 128, 256) for row in (2999 // size * size - 1, 2999 // size * size, size - 1, size)}
    edges = {x - 100 + near for x in p.mask.features().values() if x is not True and x > 100 for near in (-1, 0, 1)}
    assert {0, 1, 2998, 2999} | ragged | edges <= rows


def test_the_first_row_that_sees_a_key_is_among_them() -> None:
    p = problem(500, 100, "causal")
    rows = set(sample_triples(p).row.tolist())
    assert {0, 399, 400, 401} <= rows
