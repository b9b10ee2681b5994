"""How the query rows of a band are cut into blocks, and which keys each block sees: arithmetic alone.

In the interior, each block's keys are as many and lie as far from its rows as the next block's, so that the blocks are
one batch of small problems with one mask between them, and their keys are a view of k. Towards either end of the
sequence a block's keys are cut off, and it stands by itself. (Longformer, section 3.1, https://arxiv.org/abs/2004.05150,
cuts a band into overlapping chunks and copies them.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from variants.masks import Mask


@dataclass(frozen=True)
class Stretch:
    """Consecutive blocks of `rows` query rows from `row` on.

    The first sees `keys` keys from `key` on, the next as many from `key + rows` on, and so forth. `cut` more keys would
    lie before `key` if the window of a block were whole.
    """

    row: int
    rows: int
    blocks: int
    key: int
    keys: int
    cut: int = 0


def stretches(first: int, last: int, n_q: int, n_kv: int, mask: Mask, rows: int) -> Iterator[Stretch]:
    """Rows first..last-1 in order, in blocks of `rows`, with the keys in their windows; global keys are left out.

    One stretch holds the whole interior, so there are no more of them the longer the sequence is.
    """
    assert mask.window is not None
    offset, lowest = n_kv - n_q, min(mask.global_tokens or 0, n_kv)
    back, ahead = reach(mask)

    def ends(start: int, stop: int) -> Iterator[Stretch]:
        for row in range(start, stop, rows):
            end = min(row + rows, stop)
            key = min(max(row + offset - back, lowest), n_kv)
            keys = max(min(end + offset + ahead, n_kv) - key, 0)
            yield Stretch(row, end - row, 1, key, keys, key - (row + offset - back))

    inner = min(max(lowest + back - offset, first), last)
    blocks = max(min(n_kv - ahead - offset, last) - inner, 0) // rows
    outer = inner + blocks * rows
    yield from ends(first, inner)
    if blocks:
        yield Stretch(inner, rows, blocks, inner + offset - back, rows + back + ahead)
    yield from ends(outer, last)


def reach(mask: Mask) -> tuple[int, int]:
    """How many keys before its own, and how many after it, the window shows a query."""
    assert mask.window is not None
    return mask.window - 1, 0 if mask.causal else mask.window - 1
