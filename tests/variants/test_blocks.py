"""Block arithmetic, set beside counting on the dense mask and beside FlexAttention's own block masks."""

import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from variants.blocks import blocks_of
from variants.masks import Mask

sizes = st.integers(1, 40)
counts = st.none() | st.integers(1, 45)
masks = st.builds(Mask, st.booleans(), counts, counts)


def in_blocks(dense: Tensor, q_block: int, kv_block: int, beyond: bool) -> Tensor:
    """The pairs of each block, (blocks of queries, blocks of keys, pairs), filled up with `beyond`."""
    n_q, n_kv = dense.shape
    padded = F.pad(dense, (0, -n_kv % kv_block, 0, -n_q % q_block), value=beyond)
    tiled = padded.unflatten(1, (-1, kv_block)).unflatten(0, (-1, q_block))
    return tiled.transpose(1, 2).flatten(2)


@settings(max_examples=500)
@given(masks, sizes, sizes, st.integers(1, 12), st.integers(1, 12))
def test_blocks_agree_with_counting(mask: Mask, n_q: int, n_kv: int, q_block: int, kv_block: int) -> None:
    dense = mask.dense(n_q, n_kv)
    blocks = blocks_of(mask, n_q, n_kv, q_block, kv_block)
    assert blocks.touched.tolist() == in_blocks(dense, q_block, kv_block, False).any(2).tolist()
    assert blocks.whole.tolist() == in_blocks(dense, q_block, kv_block, True).all(2).tolist()


def test_a_million_tokens_take_no_million_squared() -> None:
    n, size = 1 << 20, 1 << 12
    blocks = blocks_of(Mask(causal=True, window=size, global_tokens=1), n, n, size, size)
    assert blocks.touched.sum() == 3 * (n // size) - 3  # the window's two blocks, and the global key's
    assert blocks.whole.sum() == 0
