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
    claims: list[Claim] = []
    for number, claim in enumerate(stated.get("claim", []), 1):
        try:
            claims += _claims({"direction": "fwd", "dtype": "float32", **stated.get("defaults", {}), **claim}, device)
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}, claim {number}: {error}") from None
    if not claims:
        raise UserError(f"{path}: no [[claim]] in it")
    return claims


def _claims(stated: Mapping[str, Any], device: str) -> Iterator[Claim]:
    """A claim for each combination of the settings that are lists. ValueError."""
    kind = _kind(stated)
    settings = {name: _values(stated[name]) for name in _SETTINGS if name in stated}
    lengths: list[Any] = []
    if KINDS[kind].unit == "exponent":
        lengths = settings.pop("seq", [])
        if len(lengths) != 2 or lengths[0] == lengths[1]:
            raise ValueError(f"{kind} needs two lengths: seq = [SHORT, LONG]")
    for values in itertools.product(*settings.values()):
        own = dict(zip(settings, values, strict=True))
        of = [_term(stated["of"], {**own, "seq": n}, device) for n in lengths or [own["seq"]]]
        than = stated.get("than", RESULT)
        yield Claim(
            about=str(stated.get("about", "")),
            kind=kind,
            number=float(stated[kind]),
            of=Term(of[-1].cases + of[0].cases, "/", of[0].text) if lengths else of[0],
            than=None if than == RESULT else _term(than, own, device),
            at=" · ".join((" to ".join(map(str, lengths or [own["seq"]])), own["dtype"], own["direction"])),
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
    needed = ["of", "heads", "head_dim", "seq", *(["than"] if KINDS[kinds[0]].against else [])]
    for key in needed:
        if key not in stated:
            raise ValueError(f"{kinds[0]} needs {key}")
    if not KINDS[kinds[0]].against and "than" in stated:
        raise ValueError(f"{kinds[0]} takes no than")
    if stated.get("than") == RESULT and KINDS[kinds[0]].quantity != "peak":
        raise ValueError(f"than = {RESULT!r} is for peaks, and {kinds[0]} is about time")
    return kinds[0]


def _values(stated: Any) -> list[Any]:
    return stated if isinstance(stated, list) else [stated]


def _term(text: Any, settings: Mapping[str, Any], device: str) -> Term:
    """The cases in a text, under the one operation in it."""
    if not isinstance(text, str):
        raise ValueError(f"of: {text!r} is no text")
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
        own[key] = value if key in ("dtype", "direction") else int(value)
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
