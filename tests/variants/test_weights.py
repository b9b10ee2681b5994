"""Which keys a variant really sees: attention is linear in v, so that one-hot values show its weights."""

from collections.abc import Iterable
from itertools import product, starmap

import pytest
import torch
from torch import Tensor

from tests.variants.test_contract import MACHINE, NOT_ON_CPU, VARIANTS
from variants.masks import Mask
from variants.problem import Problem

EAGER = [n for n, v in VARIANTS.items() if v.exact and not v.compiled and n not in NOT_ON_CPU]
N, HEAD_DIM = 200, 40


def weights(name: str, mask: Mask, n_q: int, n_kv: int) -> Tensor:
    """The weights (n_q, n_kv) that a variant gives to keys, `HEAD_DIM` of them at a time along the batch."""
    batch = -(-n_kv // HEAD_DIM)
    problem = Problem(batch, 1, 1, n_q, n_kv, HEAD_DIM, mask=mask)
    generator = torch.Generator().manual_seed(3)
    q, k = (torch.randn(1, 1, n, HEAD_DIM, generator=generator).expand(batch, -1, -1, -1) for n in (n_q, n_kv))
    one_hot = torch.eye(n_kv, batch * HEAD_DIM).view(n_kv, batch, HEAD_DIM).transpose(0, 1)[:, None]
    variant = VARIANTS[name]
    out = variant.bind(problem, variant.prepare(problem))(q.contiguous(), k.contiguous(), one_hot.contiguous())
    return out[:, 0].transpose(0, 1).reshape(n_q, -1)[:, :n_kv]


def expected_keys(mask: Mask, row: int) -> set[int]:
    """The keys that a row of N sees, spelled out."""
    end = row + 1 if mask.causal else N
    if row < (mask.global_tokens or 0):
        return set(range(end))
    assert mask.window is not None
    band = range(max(0, row - mask.window + 1), min(end, row + mask.window))
    return set(band) | set(range(min(mask.global_tokens or 0, end)))


def takers(masks: Iterable[Mask], n_q: int, n_kv: int) -> list[tuple[str, Mask, int, int]]:
    problems = [Problem(1, 1, 1, n_q, n_kv, HEAD_DIM, mask=mask) for mask in masks]
    taken = [(name, p) for name in EAGER for p in problems if VARIANTS[name].refusal(p, MACHINE) is None]
    return [(name, p.mask, n_q, n_kv) for name, p in taken]


WINDOWS = tuple(starmap(Mask, product([False, True], [1, 2, N - 1, N, N + 1], [None, 3])))


@pytest.mark.parametrize(("name", "mask", "n_q", "n_kv"), takers(WINDOWS, N, N), ids=str)
def test_sees_exactly_its_window(name: str, mask: Mask, n_q: int, n_kv: int) -> None:
    seen = weights(name, mask, n_q, n_kv)
    for row in range(N):
        assert set(seen[row].nonzero()[:, 0].tolist()) == expected_keys(mask, row), f"row {row}"
    assert (seen >= 0).all()
    torch.testing.assert_close(seen.sum(1), torch.ones(N), rtol=0, atol=8 * torch.finfo(torch.float32).eps)


MASKS = tuple(map(Mask.parse, ("full", "causal", "causal+window:70", "window:70", "global:20", "window:70+global:20")))
UNEQUAL = [case for lengths in ((1, 150), (70, 150), (150, 70)) for case in takers(MASKS, *lengths)]


@pytest.mark.parametrize(("name", "mask", "n_q", "n_kv"), UNEQUAL, ids=str)
def test_sees_exactly_its_mask_at_unequal_lengths(name: str, mask: Mask, n_q: int, n_kv: int) -> None:
    assert torch.equal(weights(name, mask, n_q, n_kv) > 0, mask.dense(n_q, n_kv))
