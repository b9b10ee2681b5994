"""Inputs come from the seed alone, can be made again in parts, and the telling ones tell what they should."""

import pytest
import torch

from bench.measure.inputs import MODES, Normals, Telling, make_inputs, make_upstream
from variants import oracle
from variants.masks import Mask
from variants.oracle import sample_triples, visible_keys
from variants.problem import DTYPES, Problem

SMALL = Problem(2, 4, 2, 30, 50, 16)
LARGE = Problem(1, 2, 2, 9000, 20000, 64)  # more numbers than are drawn


def telling(mask: str, n_q: int = 300, n_kv: int = 300, dtype: str = "float32", turn: int = 0) -> Telling:
    p = Problem(2, 4, 2, n_q, n_kv, 64, dtype, mask=Mask.parse(mask))
    t = sample_triples(p)
    return Telling(p, 0, t, visible_keys(p, t), turn)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("direction", ["fwd", "bwd", "fwdbwd"])
def test_inputs_are_what_the_problem_asks_for(direction: str, dtype: str) -> None:
    p = Problem(2, 4, 2, 30, 50, 16, dtype)
    q, k, v = make_inputs(p, 0, direction)
    assert q.shape == make_upstream(p, 0).shape == (2, 4, 30, 16)
    assert k.shape == v.shape == (2, 2, 50, 16)
    for x in (q, k, v):
        assert x.dtype == getattr(torch, dtype)
        assert x.is_contiguous()
        assert x.is_leaf
        assert x.requires_grad == (direction != "fwd")


@pytest.mark.parametrize("p", [SMALL, LARGE])
def test_inputs_depend_on_the_seed_alone(p: Problem) -> None:
    torch.manual_seed(1)
    first = (*make_inputs(p, 5), make_upstream(p, 5))
    torch.manual_seed(2)
    for x, y, z in zip(first, (*make_inputs(p, 5), make_upstream(p, 5)), make_inputs(p, 6), strict=False):
        assert x.equal(y)
        assert not x.equal(z)
    assert len({float(x.flatten()[0]) for x in first}) == 4


@pytest.mark.parametrize("p", [SMALL, LARGE])
def test_parts_made_again_equal_the_whole(p: Problem) -> None:
    normals = Normals("k", 3, p)
    whole = normals.whole("cpu")
    for b in range(p.batch):
        for h in range(p.kv_heads):
            assert normals.head(b, h).equal(whole[b, h])
    b, h, n = torch.tensor([[0, 0, p.batch - 1], [0, p.kv_heads - 1, 0], [0, p.seq_kv - 1, 7]])
    assert normals.tokens(b, h, n).equal(whole[b, h, n])


@pytest.mark.parametrize("p", [SMALL, LARGE])
def test_numbers_are_standard_normal_and_no_token_comes_twice(p: Problem) -> None:
    x = Normals("k", 0, p).whole("cpu")
    assert abs(float(x.mean())) < 5 / x.numel() ** 0.5
    assert abs(float(x.std()) - 1) < 5 / x.numel() ** 0.5
    tokens = x.flatten(0, 2)
    assert len(set(tokens[:, 0].tolist())) > 0.99 * min(len(tokens), 2**20)
    # heads are not copies of one another
    correlation = (x[0, 0] * x[0, 1]).mean()
    assert abs(float(correlation)) < 5 / x[0, 0].numel() ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_mode_does_what_it_is_for(dtype: str) -> None:
    inputs = telling("causal+window:50+global:4", dtype=dtype)
    p, t = inputs.problem, inputs.triples
    share: dict[str, list[float]] = {mode: [] for mode in MODES}
    for b, kv_head, index in t.by_kv_head(p):
        k, v = inputs.keys_and_values(b, kv_head)
        everything = torch.ones(len(index), p.seq_kv, dtype=torch.bool)
        unmasked = torch.softmax(inputs.queries[index].double() @ k.double().T * p.scale, 1)
        for i, weights in zip(index.tolist(), unmasked, strict=True):
            mode, seen = MODES[int(inputs.mode[i])], inputs.visible[i]
            if mode == "low":
                share[mode].append(float((inputs.queries[i].double() @ k.double()[seen].T * p.scale).exp().sum()))
            elif seen.all():
                continue
            elif mode == "edge-outside":
                share[mode].append(float(weights[~seen].max()))
            else:
                share[mode].append(float((weights[seen] / weights[seen].sum()).max()))
        assert oracle.exact(inputs.queries[index], k, v, everything, p.scale).largest_score.max() < 60
    typical = {mode: torch.tensor(values).median() for mode, values in share.items()}
    assert typical["plain"] < 0.5 < typical["peaked"]
    assert typical["edge-inside"] > 0.8
    assert typical["edge-outside"] > 0.8
    assert typical["low"] < 0.1  # against the 1 of a padded key


def test_edges_on_all_sides_are_aimed_at() -> None:
    inputs = telling("causal+window:50+global:4", 400, 400)
    aims: set[int] = set()
    for i in (inputs.mode == MODES.index("edge-outside")).nonzero()[:, 0].tolist():
        b, h, row = (int(x[i]) for x in (inputs.triples.batch, inputs.triples.head, inputs.triples.row))
        if row > 100:
            scores = inputs.queries[i] @ inputs.keys_and_values(b, h // 2)[0].T
            aim = int(scores.argmax())
            assert not inputs.visible[i, aim]
            aims.add(aim if aim < 10 else aim - row)
    assert {4, -50, 1} <= aims  # beyond the global tokens, before the window, in the future


def test_modes_take_turns_on_rows_heads_and_calls() -> None:
    inputs = telling("full")
    t = inputs.triples
    last = inputs.mode[t.row == 299].tolist()
    assert set(last) == set(range(len(MODES)))
    counts = torch.bincount(inputs.mode, minlength=len(MODES))
    assert counts.min() > 0.8 * counts.max()
    assert telling("full", turn=1).mode.equal((inputs.mode + 1) % len(MODES))


def test_what_the_variant_gets_is_what_the_oracle_makes_anew() -> None:
    inputs = telling("causal", 40, 60)
    q, k, v = inputs.tensors("bwd")
    t = inputs.triples
    assert q[t.batch, t.head, t.row].equal(inputs.queries)
    for b, kv_head, _ in t.by_kv_head(inputs.problem):
        keys, values = inputs.keys_and_values(b, kv_head)
        assert k[b, kv_head].equal(keys)
        assert v[b, kv_head].equal(values)
    upstream = inputs.upstream_tensor()
    assert upstream[t.batch, t.head, t.row].equal(inputs.upstream)
    assert int(upstream.count_nonzero()) == int(inputs.upstream.count_nonzero())
