"""How the rows of a band are cut: each once, with exactly the keys that it needs, in few pieces however long it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variants.masks import Mask
from variants.stretches import stretches

sizes = st.integers(1, 600)


@given(st.booleans(), st.integers(1, 700), st.none() | st.integers(1, 80), sizes, sizes, st.sampled_from([16, 64, 200]))
def test_each_row_is_in_one_block_with_the_keys_of_its_window(
    causal: bool, window: int, global_tokens: int | None, n_q: int, n_kv: int, block_rows: int
) -> None:
    mask = Mask(causal=causal, window=window, global_tokens=global_tokens)
    offset, lowest = n_kv - n_q, min(global_tokens or 0, n_kv)
    rows: list[int] = []
    for s in stretches(0, n_q, n_q, n_kv, mask, block_rows):
        for block in range(s.blocks):
            own = range(s.row + block * s.rows, s.row + (block + 1) * s.rows)
            key = s.key + block * s.rows
            first = max(own[0] + offset - window + 1, lowest)
            end = min(own[-1] + offset + (1 if causal else window), n_kv)
            assert s.keys == max(end - first, 0)
            assert not s.keys or (key == first and key + s.keys <= n_kv)
            assert s.cut == key - (own[0] + offset - window + 1)
            rows += own
    assert rows == list(range(n_q))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [1, 256, 5000])
def test_pieces_do_not_grow_with_the_sequence(causal: bool, window: int) -> None:
    mask = Mask(causal=causal, window=window)
    short, long = (len(list(stretches(0, n, n, n, mask, 64))) for n in (16_384, 1_048_576))
    assert short == long <= 2 * (window // 64 + 2)
