"""Which (query, key) pairs interact: one frozen `Mask`, its text form, its `mask_mod` and its exact counts.

A mask belongs to the problem, never to an implementation. Positions are aligned at the end: with `n_q`
queries and `n_kv` keys, query row r stands at position i = r + n_kv - n_q, so that decoding one token
against a cache is simply n_q = 1. Nothing here imports torch at load time: reading results needs masks too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

ACCEPTED = "full, or terms joined by '+': causal, window:N, global:N (N >= 1), as in causal+window:256+global:16"


def _feature(term: str, noun: str, default: Any) -> Any:
    """A mask feature: a field, the term that stands for it in the text form, and what a sentence calls it."""
    return field(default=default, metadata={"term": term, "noun": noun})


@dataclass(frozen=True)
class Mask:
    """Which keys a query sees; every feature is off by default.

    causal         j <= i.
    window         abs(i - j) < window; with `causal` the `window` latest keys, the query's own included.
    global_tokens  the first tokens see, and are seen by, every position (subject to `causal`). Without a
                   window, a query sees the global tokens and itself. A row at a negative position is never global.
    """

    causal: bool = _feature("causal", "a causal mask", False)
    window: int | None = _feature("window", "a window", None)
    global_tokens: int | None = _feature("global", "global tokens", None)

    def __post_init__(self) -> None:
        for name in ("window", "global_tokens"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(f"{TERMS[name]}: {value!r} is not a whole number of at least 1")

    @classmethod
    def parse(cls, text: str) -> Mask:
        """The mask that `text` names; terms come in any order. ValueError for anything else."""
        if text == "full":
            return cls()
        features: dict[str, Any] = {}
        for part in text.split("+"):
            term, colon, number = part.partition(":")
            name = NAMES.get(term)
            if name is None or name in features or bool(colon) != (name != "causal"):
                raise ValueError(f"mask {text!r}: {part!r} is not understood; accepted: {ACCEPTED}")
            if colon and not (number.isascii() and number.isdigit() and int(number) >= 1):
                raise ValueError(f"mask {text!r}: {part!r} needs a whole number of at least 1; accepted: {ACCEPTED}")
            features[name] = int(number) if colon else True
        return cls(**features)

    def __str__(self) -> str:
        """The canonical text form: command line, CSV and plots all use it."""
        terms = (TERMS[n] if v is True else f"{TERMS[n]}:{v}" for n, v in self.features().items())
        return "+".join(terms) or "full"

    def features(self) -> dict[str, Any]:
        """The features that are set, by field name, in canonical order."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) not in (False, None)}

    def at(self, n_q: int, n_kv: int) -> MaskMod:
        """FlexAttention's `mask_mod` for these sizes: (b, h, q_idx, kv_idx) -> bool tensor, broadcast over all four.

        https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html
        """
        offset = n_kv - n_q
        causal, window, global_tokens = self.causal, self.window, self.global_tokens

        def mask_mod(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
            i, j = q_idx + offset, kv_idx
            if window is not None:
                visible = (i - j).abs() < window
            elif global_tokens is not None:
                visible = i == j
            else:
                visible = (q_idx >= 0) & (j >= 0)
            if global_tokens is not None:
                visible = visible | (j < global_tokens) | ((i >= 0) & (i < global_tokens))
            return visible & (j <= i) if causal else visible

        return mask_mod

    def dense(self, n_q: int, n_kv: int, device: Any = "cpu") -> Tensor:
        """The mask as a bool tensor (n_q, n_kv), true where the query sees the key."""
        import torch

        mask_mod, keys = self.at(n_q, n_kv), torch.arange(n_kv, device=device)
        out = torch.empty(n_q, n_kv, dtype=torch.bool, device=device)
        for start in range(0, n_q, 64):  # the positions of all pairs at once would take 16 times the mask
            rows = torch.arange(start, min(start + 64, n_q), device=device)
            out[start : start + 64] = mask_mod(keys, keys, rows[:, None], keys)
        return out

    def pairs(self, n_q: int, n_kv: int) -> int:
        """The exact number of visible (query, key) pairs, in closed form."""
        start = n_kv - n_q
        if self.global_tokens is None:
            return self._band(start, n_kv, n_kv)
        first_global, end_global = max(start, 0), max(start, min(self.global_tokens, n_kv), 0)
        everything = Mask(causal=self.causal)
        return (
            everything._band(first_global, end_global, n_kv)
            + self._local(start, first_global, n_kv)
            + self._local(end_global, n_kv, n_kv)
        )

    def empty_rows(self, n_q: int, n_kv: int) -> int:
        """The number of query rows that see no key; they are always the first ones, and their output is zeros."""
        before_first_key = max(0, n_q - n_kv)
        if self.causal:
            return before_first_key
        if self.window is not None and self.global_tokens is None:
            return max(0, before_first_key - (self.window - 1))
        return 0

    def hides_nothing(self, n_q: int, n_kv: int) -> bool:
        """True where every query sees every key, as for one causal query against its cache."""
        return self.pairs(n_q, n_kv) == n_q * n_kv

    def _local(self, start: int, end: int, n_kv: int) -> int:
        """Visible pairs of the rows at positions start..end-1, none of them global: the band, or a global key."""
        g = min(self.global_tokens or 0, n_kv)
        global_keys = _up_to(start, end, 0, g) if self.causal else max(0, end - start) * g
        return self._band(start, end, n_kv) + global_keys - self._band(start, end, g)

    def _band(self, start: int, end: int, n_kv: int) -> int:
        """Pairs of the rows at positions start..end-1 with keys 0..n_kv-1 that the mask shows, global part aside."""
        reach = self.window if self.window is not None else (1 if self.global_tokens is not None else None)
        ahead = 0 if self.causal else (None if reach is None else reach - 1)
        upper = max(0, end - start) * n_kv if ahead is None else _up_to(start, end, ahead, n_kv)
        return upper if reach is None else upper - _up_to(start, end, -reach, n_kv)


FULL = Mask()
TERMS = {f.name: f.metadata["term"] for f in fields(Mask)}
NOUNS = {f.name: f.metadata["noun"] for f in fields(Mask)}
NAMES = {term: name for name, term in TERMS.items()}


def _up_to(start: int, end: int, ahead: int, n_kv: int) -> int:
    """The number of pairs (i, j) with start <= i < end, 0 <= j < n_kv and j <= i + ahead."""
    return _ramp(end + ahead, n_kv) - _ramp(start + ahead, n_kv) if end > start else 0


def _ramp(x: int, top: int) -> int:
    """The sum of min(max(t, 0), top) over t = ..., x - 1, x: a ramp from 0 that stays at `top`."""
    if x <= 0:
        return 0
    if x <= top:
        return x * (x + 1) // 2
    return top * (top + 1) // 2 + (x - top) * top
