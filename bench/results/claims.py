"""Claims as a TOML file states them: which cases are compared in what, and what is to come out.

    [defaults]
    heads = 4
    head_dim = 64

    [[claim]]
    about = "a window"                             # claims about the same are printed together
    seq = [4096, 16384]                            # a list makes a claim of each
    of = "sliding_window window:256"
    than = "sdpa_flash full"
    faster_at_least = 5                            # one of KINDS

A case is a variant and a mask, with `key=value` where it departs from the claim: "naive full seq=512". `of` and `than`
are a case, a sum of cases ("a + b"), or one over another ("a direction=fwdbwd / a").
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.results.columns import Case
from variants.masks import Mask
from variants.problem import DIRECTIONS, Problem


@dataclass(frozen=True)
class Kind:
    """What a claim is about.

    quantity  time or peak
    against   whether `of` is compared with `than`
    inverted  whether the value is `than` over `of`, not `of` over `than`
    bound     how the value is to stand to the claim's number: >=, <= or ==
    unit      of the value: x, ms, bytes, or exponent, of growth between two lengths of `of`
    """

    quantity: str
    against: bool
    inverted: bool
    bound: str
    unit: str


KINDS = {
    "faster_at_least": Kind("time", True, True, ">=", "x"),
    "time_at_most": Kind("time", True, False, "<=", "x"),
    "smaller_at_least": Kind("peak", True, True, ">=", "x"),
    "peak_at_most": Kind("peak", True, False, "<=", "x"),
    "time_growth_at_most": Kind("time", False, False, "<=", "exponent"),
    "peak_growth_at_most": Kind("peak", False, False, "<=", "exponent"),
    "ms_at_most": Kind("time", False, False, "<=", "ms"),
    "bytes_at_most": Kind("peak", False, False, "<=", "bytes"),
    "bytes_exactly": Kind("peak", False, False, "==", "bytes"),
}
RESULT = "result"  # as `than` of a peak: the bytes of what `of` returns

_SETTINGS = ("seq", "dtype", "direction", "seq_q", "seq_kv", "batch", "heads", "kv_heads", "head_dim")
_WORDS = ("dtype", "direction")
_ACCEPTED = {str: "a word", int: "a whole number"}
_OPERATIONS = ("/", "+")


@dataclass(frozen=True)
class Term:
    """Cases under one operation: their sum, or the first over the second."""

    cases: tuple[Case, ...]
    operation: str
    text: str


@dataclass(frozen=True)
class Claim:
    """One claim: `of`, compared with `than` or as it is, is to keep to a number; `at` says at which length and how."""

    about: str
    kind: str
    number: float
    of: Term
    than: Term | None
    at: str

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every case that it takes to judge the claim."""
        return self.of.cases + (self.than.cases if self.than else ())


def read(path: Path, device: str) -> list[Claim]:
    """The claims of a file. UserError, in one line, for what cannot be read or meant."""
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; a file of claims is expected") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from None
    defaults, listed = stated.get("defaults", {}), stated.get("claim", [])
    if not isinstance(defaults, dict) or not isinstance(listed, list) or not all(isinstance(c, dict) for c in listed):
        raise UserError(f"{path}: [defaults] and [[claim]] are expected, each a table")
    claims: list[Claim] = []
    for number, claim in enumerate(listed, 1):
        try:
            claims += _claims({"direction": "fwd", "dtype": "float32", **defaults}, claim, device)
        except ValueError as error:
            raise UserError(f"{path}, claim {number}: {error}") from None
    if not claims:
        raise UserError(f"{path}: no [[claim]] in it")
    return claims


def _claims(defaults: Mapping[str, Any], own: Mapping[str, Any], device: str) -> Iterator[Claim]:
    """A claim for each combination of the settings that are lists. ValueError."""
    stated = {**defaults, **own}
    kind = _kind(stated)
    settings = {name: _values(name, stated[name]) for name in _SETTINGS if name in stated}
    lengths: list[Any] = settings.pop("seq") if KINDS[kind].unit == "exponent" else []
    if lengths and (len(lengths) != 2 or lengths[0] == lengths[1]):
        raise ValueError(f"{kind} needs two lengths: seq = [SHORT, LONG]")
    for values in itertools.product(*settings.values()):
        at = dict(zip(settings, values, strict=True))
        of = [_term("of", stated["of"], {**at, "seq": n}, device) for n in lengths or [at["seq"]]]
        than = stated.get("than", RESULT)
        if (lengths or than == RESULT) and KINDS[kind].quantity == "peak" and len(of[0].cases) != 1:
            raise ValueError(f"of: {stated['of']!r}: one case alone is expected")
        if lengths and (len(of[0].cases) != 1 or of[0].cases[0].seq_kv == of[-1].cases[0].seq_kv):
            raise ValueError(f"of: {stated['of']!r}: one case is expected, whose length is that of the claim")
        also = [f"{name} {at[name]}" for name in own if name in _SETTINGS[3:]]
        where = (" to ".join(map(str, lengths or [at["seq"]])), at["dtype"], at["direction"], *also)
        yield Claim(
            about=str(stated.get("about", "")),
            kind=kind,
            number=_number(kind, stated[kind]),
            of=Term(of[-1].cases + of[0].cases, "/", of[0].text) if lengths else of[0],
            than=None if than == RESULT else _term("than", than, at, device),
            at=" · ".join(where),
        )


def _kind(stated: Mapping[str, Any]) -> str:
    """The kind of the claim; ValueError where it is not whole, or says what is not understood."""
    known = {*_SETTINGS, *KINDS, "about", "of", "than"}
    for key in stated:
        if key not in known:
            raise ValueError(f"{key!r} is not understood; accepted: {', '.join(sorted(known))}")
    kinds = [key for key in KINDS if key in stated]
    if len(kinds) != 1:
        raise ValueError(f"it takes one of {', '.join(KINDS)}, and has {' and '.join(kinds) or 'none'}")
    (kind,) = kinds
    for key in ("of", "heads", "head_dim", "seq", *(["than"] if KINDS[kind].against else [])):
        if key not in stated:
            raise ValueError(f"{kind} needs {key}")
    if not KINDS[kind].against and "than" in stated:
        raise ValueError(f"{kind} takes no than")
    if stated.get("than") == RESULT and KINDS[kind].quantity != "peak":
        raise ValueError(f"than = {RESULT!r} is for peaks, and {kind} is about time")
    return kind


def _values(name: str, stated: Any) -> list[Any]:
    """The values of a setting; ValueError for none, and for one of another type."""
    values = stated if isinstance(stated, list) else [stated]
    kind: type = str if name in _WORDS else int
    if not values or not all(type(value) is kind for value in values):
        raise ValueError(f"{name}: {stated!r} is not understood; accepted: {_ACCEPTED[kind]}, or a list of them")
    return values


def _number(kind: str, stated: Any) -> float:
    if type(stated) not in (int, float) or not math.isfinite(stated):
        raise ValueError(f"{kind}: {stated!r} is not a number")
    return float(stated)


def _term(key: str, text: Any, settings: Mapping[str, Any], device: str) -> Term:
    """The cases in a text, under the one operation in it."""
    if not isinstance(text, str):
        raise ValueError(f"{key}: {text!r} is no text")
    operation = next((sign for sign in _OPERATIONS if f" {sign} " in text), "+")
    cases = tuple(_case(part, settings, device) for part in text.split(f" {operation} "))
    if operation == "/" and len(cases) != 2:
        raise ValueError(f"{text!r}: one case over another is expected")
    return Term(cases, operation, text)


def _case(text: str, settings: Mapping[str, Any], device: str) -> Case:
    if len(text.split()) < 2:
        raise ValueError(f"{text!r} is no case: a variant and a mask are expected, as in 'sdpa full'")
    variant, mask, *departures = text.split()
    own = dict(settings)
    for departure in departures:
        key, equals, value = departure.partition("=")
        if key not in _SETTINGS or not equals:
            raise ValueError(
                f"{text!r}: {departure!r} is not understood; accepted: {', '.join(_SETTINGS)}, as in seq=512"
            )
        own[key] = value if key in _WORDS else int(value)
    if own["direction"] not in DIRECTIONS:
        raise ValueError(f"direction: {own['direction']!r} is not one of {', '.join(DIRECTIONS)}")
    problem = Problem(
        batch=own.get("batch", 1),
        heads=own["heads"],
        kv_heads=own.get("kv_heads", own["heads"]),
        seq_q=own.get("seq_q", own["seq"]),
        seq_kv=own.get("seq_kv", own["seq"]),
        head_dim=own["head_dim"],
        dtype=own["dtype"],
        device=device,
        mask=Mask.parse(mask),
    )
    return Case.of(variant, own["direction"], problem)
