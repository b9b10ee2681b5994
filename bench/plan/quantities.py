"""Sizes, durations, shares, memory as people type them: 512..16384, 512..4096:+512, 1k..64k, 17,100; 2m; 5%; 24GiB."""

from __future__ import annotations

import re

SIZES = "512..16384 (doubling), 512..4096:+512 (steps), 1k..64k, 17,100,1000"

DURATIONS = "90, 90s, 1.5m, 2h"

SHARES = "5%, 2.5%, 0.05"

MEMORIES = "24GiB, 512MiB, 1.5GiB, 80GB"

_UNITS = {"": 1, "k": 2**10, "m": 2**20}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"(?P<first>[^.:,]+)(\.\.(?P<last>[^.:,]+)(:\+(?P<step>[^.:,]+))?)?")
_NUMBER = re.compile(r"([0-9]+)([km]?)", re.IGNORECASE)
_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+|[0-9]+\.")
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]+)?) ?(?:([kmgt])(i?))?b", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh]?)")


def sizes(text: str) -> tuple[int, ...]:
    """The sizes that `text` names, ascending, each once; both ends of a range are always among them.

    ValueError for what cannot be meant: reversed, empty, zero, negative, malformed.
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise _refusal(text, part, "is not understood")
        found.update(_range(text, match))
    return tuple(sorted(found))


def count(text: str) -> int:
    """A whole number of at least 1. ValueError for anything else."""
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise ValueError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def seconds(text: str) -> float:
    """The seconds in a duration such as 90, 90s, 1.5m or 2h. ValueError for anything else, and for zero."""
    match = _DURATION.fullmatch(text)
    value = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if value <= 0:
        raise ValueError(f"{text!r}: not a duration above zero; accepted: {DURATIONS}")
    return value


def share(text: str) -> float:
    """The fraction in a share such as 5%, 2.5% or 0.05. ValueError for anything else, for zero, and above 100 %."""
    number, sign = text.removesuffix("%").strip(), text.endswith("%")
    value = float(number) / (100 if sign else 1) if _DECIMAL.fullmatch(number) else 0.0
    if not 0 < value <= 1 or (value == 1 and not sign):  # a bare 1 could be meant as 1 %
        raise ValueError(f"{text!r}: not a share above zero and up to 100%; accepted: {SHARES}")
    return value


def memory(text: str) -> int:
    """The bytes in a size such as 24GiB, 512MiB or 80GB (10^9). ValueError for anything else, and for zero."""
    match = _MEMORY.fullmatch(text.strip())
    power = "bkmgt".index((match[2] or "b").lower()) if match else 0
    value = int(float(match[1]) * (1024 if match[3] else 1000) ** power) if match else 0
    if value < 1:
        raise ValueError(f"{text!r}: not a size of memory above zero; accepted: {MEMORIES}")
    return value


def _range(text: str, match: re.Match[str]) -> list[int]:
    first = _number(text, match["first"])
    if match["last"] is None:
        return [first]
    last = _number(text, match["last"])
    if last < first:
        raise _refusal(text, match[0], "runs backwards")
    if match["step"] is not None:
        return [*range(first, last, _number(text, match["step"])), last]
    doublings = (last // first).bit_length()
    return [*(size for k in range(doublings) if (size := first << k) < last), last]


def _number(text: str, word: str) -> int:
    match = _NUMBER.fullmatch(word)
    value = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if value < 1:
        raise _refusal(text, word, "is not a whole number of at least 1")
    return value


def _refusal(text: str, part: str, why: str) -> ValueError:
    where = "" if part == text else f"{text!r}: "
    return ValueError(f"{where}{part!r} {why}; accepted: {SIZES}")
