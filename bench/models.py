"""Public models as attention problems: their kinds of attention layers, from models.toml, which names its sources.

python -m bench.models
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from bench import cli
from bench.errors import UserError
from variants.masks import Mask
from variants.problem import ITEM_BYTES, Problem

DESCRIPTION = """Lists the models that bench.run --model knows: the layers, heads, head size and mask of each kind of
attention, what of it cannot be timed here, and where each number was read."""

EXAMPLES = """\
  python -m bench.models
  python -m bench.models llama-3-8b gemma-2-9b"""

PHASES = ("prefill", "decode")

ALONE = (
    "times of attention alone: no projections, no position embedding, no norms, no update of the cache of keys and "
    "values, no feed-forward layers"
)

_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Attention:
    """Layers that ask the same problem. `seq_q` and `seq_kv` are set where the model fixes them, else they are the
    length's."""

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mask: Mask
    seq_q: int | None = None
    seq_kv: int | None = None

    def grows(self, phase: str) -> bool:
        """Whether its problem differs from one length of the text to the next."""
        return self.seq_kv is None or (phase == "prefill" and self.seq_q is None)

    @property
    def decodes(self) -> bool:
        """Whether a token at a time can pass it: what it sees is either behind the token or known from the start."""
        return self.seq_q is None and (self.mask.causal or self.seq_kv is not None)

    def problem(self, phase: str, length: int, batch: int = 1, dtype: str = "float32", device: str = "cpu") -> Problem:
        """What a layer is asked at a length of the text.

        In prefill a query a token, in decode one query against the keys of `length` tokens, its own among them. A layer
        with a window has them all before it, too, and the mask hides what is too old; a rolling cache, which holds no
        more keys than the window, would pass over fewer bytes: ask for a `length` of the window to see that one.
        """
        seq_q = 1 if phase == "decode" else self.seq_q or length
        seq_kv = self.seq_kv or length
        return Problem(batch, self.heads, self.kv_heads, seq_q, seq_kv, self.head_dim, dtype, device, self.mask)

    def cache_bytes(self, length: int, batch: int, dtype: str) -> int:
        """Bytes of the keys and values that its layers keep to decode the next token: no more than a query can see."""
        seen = self.mask.pairs(1, self.seq_kv or length) if self.decodes else 0
        return 2 * self.layers * batch * self.kv_heads * self.head_dim * seen * ITEM_BYTES[dtype]


@dataclass(frozen=True)
class Model:
    """A model. `context` is the longest sequence that it was made for; `left_out` is what its attention has beside the
    problems here; `sources` are URLs."""

    name: str
    title: str
    context: int
    attentions: tuple[Attention, ...]
    sources: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def phases(self) -> tuple[str, ...]:
        """Prefill, and decode if any of its layers decodes."""
        return PHASES if any(kind.decodes for kind in self.attentions) else PHASES[:1]

    def kinds(self, phase: str) -> tuple[Attention, ...]:
        """The layers that run in a phase: in decode those alone that decode, for an encoder has run by then.

        UserError for a phase that the model does not have.
        """
        if phase not in self.phases:
            raise UserError(f"--phase: {self.name} has no {phase!r}, for it is no decoder; accepted: prefill")
        return tuple(kind for kind in self.attentions if phase == "prefill" or kind.decodes)

    def cache_bytes(self, length: int, batch: int, dtype: str) -> int:
        """Bytes of the keys and values that all layers keep to decode the next token; 0 where nothing decodes."""
        return sum(kind.cache_bytes(length, batch, dtype) for kind in self.attentions)

    def remarks(self, phase: str, lengths: Sequence[int]) -> Iterator[str]:
        """What a reader of its times at these lengths has to know."""
        if self.left_out:
            yield f"left out: {'; '.join(self.left_out)}"
        kinds, longest = self.kinds(phase), max(lengths)
        if hides := [kind.name for kind in kinds if phase == "decode" and (kind.mask.window or longest) < longest]:
            yield f"keys that the window of {', '.join(hides)} hides are there all the same; a rolling cache drops them"
        own = [kind.name for kind in kinds if not kind.grows(phase)]
        if len(own) == len(kinds):
            yield "all its lengths are its own, so --seq changes nothing"
            return
        if own:
            yield f"the lengths of {', '.join(own)} are its own, so --seq does not change them"
        if beyond := [str(n) for n in lengths if n > self.context]:
            yield f"beyond its context of {self.context}: {', '.join(beyond)}"


def named(name: str) -> Model:
    """The model of this name. UserError repeats another name, and lists those that there are."""
    known = every()
    if name not in known:
        raise UserError(f"{name!r} is not a model known here; accepted: {', '.join(known)}")
    return known[name]


@cache
def every() -> dict[str, Model]:
    """Name -> model, in the order of the file."""
    stated = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    models = [_model(**table) for table in stated["model"]]
    return {model.name: model for model in models}


def _model(attention: list[dict[str, Any]], sources: list[str], left_out: Sequence[str] = (), **rest: Any) -> Model:
    kinds = tuple(_attention(**kind) for kind in attention)
    return Model(attentions=kinds, sources=tuple(sources), left_out=tuple(left_out), **rest)


def _attention(heads: int, mask: str, kv_heads: int | None = None, **rest: Any) -> Attention:
    return Attention(heads=heads, kv_heads=kv_heads or heads, mask=Mask.parse(mask), **rest)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = cli.Parser("models", DESCRIPTION, EXAMPLES)
    p.add_argument(
        "models", nargs="*", type=cli.comma_separated(named), metavar="MODELS", help="these models alone (default: all)"
    )
    return p


def main(argv: list[str]) -> int:
    """Prints the models; returns the exit status."""
    options = parser().parse_args(argv)
    for model in chain.from_iterable(options.models) if options.models else every().values():
        print("\n".join(_lines(model)))
    return 0


def _lines(model: Model) -> Iterator[str]:
    yield f"{model.name}  {model.title}, context {model.context}"
    for kind in model.attentions:
        lengths = f", {kind.seq_q or 'n'} queries, {kind.seq_kv or 'n'} keys" if kind.seq_q or kind.seq_kv else ""
        grouped = f" ({kind.kv_heads} kv)" if kind.kv_heads != kind.heads else ""
        yield f"    {kind.layers} x {kind.name}: {kind.heads} heads{grouped} of {kind.head_dim}, {kind.mask}{lengths}"
    if model.left_out:
        yield f"    left out: {'; '.join(model.left_out)}"
    yield from (f"    {source}" for source in model.sources)


if __name__ == "__main__":
    cli.run(main)
