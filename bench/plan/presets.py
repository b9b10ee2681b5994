"""What a run measures when nothing is said: a decoder's masks, at sizes and with a cache that suit the device."""

from __future__ import annotations

from dataclasses import dataclass

from variants.masks import Mask

MASKS = tuple(map(Mask.parse, ("causal", "causal+window:256", "causal+window:256+global:16")))


@dataclass(frozen=True)
class Preset:
    """Default sizes, precision and cache of a kind of device."""

    seq: tuple[int, ...]
    heads: tuple[int, ...]
    head_dim: tuple[int, ...]
    dtypes: tuple[str, ...]
    caches: tuple[str, ...]


CPU = Preset(seq=(1024, 2048, 4096), heads=(4,), head_dim=(64,), dtypes=("float32",), caches=("hot",))
ACCELERATOR = Preset(
    seq=(1024, 2048, 4096, 8192, 16384, 32768), heads=(16,), head_dim=(128,), dtypes=("bfloat16",), caches=("cold",)
)


def of(device: str) -> Preset:
    """The defaults for a torch device type."""
    return CPU if device == "cpu" else ACCELERATOR


_GATED_CPU = Preset(seq=(576,), heads=(2,), head_dim=(64,), dtypes=("float32",), caches=("hot",))
_GATED_ACCELERATOR = Preset(seq=(4096,), heads=(16,), head_dim=(128,), dtypes=("bfloat16",), caches=("hot",))


def gated(device: str) -> Preset:
    """What a gate compares on a torch device type: calls of milliseconds, of which hundreds fit into its time."""
    return _GATED_CPU if device == "cpu" else _GATED_ACCELERATOR
