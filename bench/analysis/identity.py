"""A variant's looks: colour, marker and line style, the same in every figure of every file.

The colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/) and of Paul Tol
(https://sronpersonalpages.nl/~pault/), picked to stay apart under red-green colour blindness; besides, no two
built-in variants share a marker, so they can be told apart without any colour.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple


class Look(NamedTuple):
    """How a variant is drawn, in matplotlib's terms."""

    colour: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]


_SOLID, _DASHED, _DOTTED, _DASH_DOT = "-", (0, (4.0, 1.5)), (0, (1.0, 1.2)), (0, (5.0, 1.2, 1.0, 1.2))

BUILT_IN = {
    "naive": Look("#000000", "*", _SOLID),
    "chunked": Look("#E69F00", "s", _SOLID),
    "sliding_window": Look("#009E73", "^", _SOLID),
    "longformer": Look("#CC79A7", "D", _SOLID),
    "global_tokens": Look("#882255", "v", _SOLID),
    "sdpa": Look("#0072B2", "o", _SOLID),
    "sdpa_math": Look("#B3B3B3", "P", _DASHED),
    "sdpa_flash": Look("#56B4E9", "X", _DASHED),
    "sdpa_efficient": Look("#117733", "p", _DASHED),
    "sdpa_cudnn": Look("#661100", "h", _DASHED),
    "xformers": Look("#332288", "<", _SOLID),
    "flex": Look("#D55E00", ">", _SOLID),
}

# Other people's variants are dotted or dash-dotted, which no built-in one is.
_OTHERS = [
    Look(colour, marker, line)
    for line, marker, colour in product(
        (_DOTTED, _DASH_DOT), ("o", "s", "^", "D"), ("#EE3377", "#999933", "#44AA99", "#AA4499", "#DDCC77", "#6699CC")
    )
]


def looks(variants: Iterable[str]) -> dict[str, Look]:
    """A look for each variant, no two alike (among the first 48 that are not built in).

    A name that is not built in has the look that its checksum picks. Should two names in one figure pick the
    same, the one later in the alphabet takes the next that is free: the only way a look depends on company.
    """
    names = sorted(set(variants))
    found = {name: BUILT_IN[name] for name in names if name in BUILT_IN}
    for name in names:
        if name not in found:
            start = zlib.crc32(name.encode()) % len(_OTHERS)
            free = (look for look in _OTHERS[start:] + _OTHERS[:start] if look not in found.values())
            found[name] = next(free, _OTHERS[start])
    return found
