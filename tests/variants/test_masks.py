"""What a mask means, counts and is called, set beside counting on small sizes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from variants.masks import ACCEPTED, FULL, Mask

sizes = st.integers(1, 24)
counts = st.none() | st.integers(1, 30)
masks = st.builds(Mask, st.booleans(), counts, counts)


def sees(mask: Mask, row: int, key: int, n_q: int, n_kv: int) -> bool:
    """The definition, pair by pair."""
    i = row + n_kv - n_q
    if mask.causal and key > i:
        return False
    if mask.global_tokens is not None and (key < mask.global_tokens or 0 <= i < mask.global_tokens):
        return True
    if mask.window is not None:
        return abs(i - key) < mask.window
    return mask.global_tokens is None or i == key


@given(masks, sizes, sizes)
def test_dense_is_the_definition(mask: Mask, n_q: int, n_kv: int) -> None:
    expected = [[sees(mask, row, key, n_q, n_kv) for key in range(n_kv)] for row in range(n_q)]
    assert mask.dense(n_q, n_kv).tolist() == expected


@given(masks, sizes, sizes)
def test_counts_agree_with_counting(mask: Mask, n_q: int, n_kv: int) -> None:
    dense = mask.dense(n_q, n_kv)
    empty = mask.empty_rows(n_q, n_kv)
    assert mask.pairs(n_q, n_kv) == int(dense.sum())
    assert mask.hides_nothing(n_q, n_kv) == bool(dense.all())
    assert dense.any(1).tolist() == [row >= empty for row in range(n_q)], "empty rows are the first ones"
    assert torch.equal(dense[empty:], mask.dense(n_q - empty, n_kv)), "and leave the mask of the others as it is"


def test_counts_far_beyond_what_could_be_counted() -> None:
    n, w, g = 1 << 30, 256, 16
    assert FULL.pairs(n, n) == n * n
    assert Mask(causal=True).pairs(n, n) == n * (n + 1) // 2
    assert Mask(causal=True, window=w).pairs(n, n) == n * w - w * (w - 1) // 2
    assert Mask(window=w).pairs(n, n) == n * (2 * w - 1) - w * (w - 1)
    assert Mask(global_tokens=g).pairs(n, n) == 2 * g * n - g * g + n - g


def test_mask_mod_broadcasts_as_flex_attention_calls_it() -> None:
    zero = torch.zeros((), dtype=torch.int64)
    q_idx, kv_idx = torch.tensor(3), torch.tensor(5)
    assert Mask(causal=True).at(6, 6)(zero, zero, q_idx, kv_idx).shape == ()
    assert not Mask(causal=True).at(6, 6)(zero, zero, q_idx, kv_idx)
    assert Mask(causal=True).at(4, 6)(zero, zero, q_idx, kv_idx), "row 3 of 4 stands at position 5 of 6"


@given(masks)
def test_text_form_round_trips(mask: Mask) -> None:
    assert Mask.parse(str(mask)) == mask


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("full", "full"), ("global:16+window:256+causal", "causal+window:256+global:16"), ("window:007", "window:7")],
)
def test_terms_come_in_any_order(text: str, canonical: str) -> None:
    assert str(Mask.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "''"),
        ("casual", "'casual'"),
        ("causal:3", "'causal:3'"),
        ("window", "'window'"),
        ("window:", "'window:'"),
        ("window:0", "'window:0'"),
        ("window:-4", "'window:-4'"),
        ("window:1.5", "'window:1.5'"),
        ("window:²", "'window:²'"),
        ("causal+causal", "'causal'"),
        ("causal+full", "'full'"),
        ("causal+", "''"),
        ("window:3+window:4", "'window:4'"),
    ],
)
def test_a_refusal_repeats_the_text_and_says_what_would_do(text: str, culprit: str) -> None:
    with pytest.raises(ValueError, match="accepted") as refusal:
        Mask.parse(text)
    assert repr(text) in str(refusal.value) and culprit in str(refusal.value) and ACCEPTED in str(refusal.value)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_a_window_is_a_whole_number_of_at_least_one(value: object) -> None:
    with pytest.raises(ValueError, match="window") as refusal:
        Mask(window=value)  # type: ignore[arg-type]
    assert repr(value) in str(refusal.value)
