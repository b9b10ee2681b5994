"""What is asked of a variant: sizes, dtype, device and mask, in ints and strings alone (no tensor, no torch)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from variants.masks import FULL, Mask

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
DTYPES = tuple(ITEM_BYTES)
DIRECTIONS = ("fwd", "bwd", "fwdbwd")

# The backward pass has five matrix products where the forward pass has two.
_FORWARDS = {"fwd": 1.0, "bwd": 2.5, "fwdbwd": 3.5}


@dataclass(frozen=True)
class Problem:
    """One attention problem.

    q is (batch, heads, seq_q, head_dim); k and v are (batch, kv_heads, seq_kv, head_dim). Query head h reads
    kv head h // (heads // kv_heads). Self-attention (seq_q == seq_kv), cross-attention (seq_q != seq_kv) and
    decoding against a cache (seq_q == 1) are the same problem. Scores are scaled by head_dim ** -0.5.
    """

    batch: int
    heads: int
    kv_heads: int
    seq_q: int
    seq_kv: int
    head_dim: int
    dtype: str = "float32"
    device: str = "cpu"
    mask: Mask = FULL

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.type == "int" and (not isinstance(value, int) or value < 1):
                raise ValueError(f"{f.name}: {value!r} is not a whole number of at least 1")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: {self.kv_heads} does not divide {self.heads} heads")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype: {self.dtype!r} is not one of {', '.join(DTYPES)}")

    @property
    def scale(self) -> float:
        """What a score q . k is multiplied by before the softmax."""
        return float(self.head_dim**-0.5)

    @property
    def pairs(self) -> int:
        """Visible (query, key) pairs over the whole batch and all heads."""
        return self.batch * self.heads * self.mask.pairs(self.seq_q, self.seq_kv)

    @property
    def empty_rows(self) -> int:
        """How many of the first query rows see no key; their output is zeros."""
        return self.mask.empty_rows(self.seq_q, self.seq_kv)

    def flops(self, direction: str) -> float:
        """Floating-point operations that the visible pairs need: 4 a pair and head_dim forward, 2.5 times that back."""
        return 4.0 * self.pairs * self.head_dim * _FORWARDS[direction]
