"""What a case will cost, from what shorter lengths of the same variant did cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A measured length: its score count (seq_q x seq_kv), its visible pairs, and what it cost."""

    scores: int
    pairs: int
    cost: float


def forecast(known: Sequence[Known], scores: int, pairs: int) -> float | None:
    """The cost to expect at a longer length, in the unit of `known`; None where nothing shorter is known.

    The larger of two: as much as the visible pairs grow (no exact variant does less), and the power law through
    the two longest known lengths. Its exponent is held between 0 and that of the full score matrix, since
    timing noise at short lengths would otherwise promise the absurd.
    """
    shorter = sorted((k for k in known if k.scores < scores), key=lambda k: k.scores)
    if not shorter:
        return None
    last = shorter[-1]
    by_pairs = last.cost * max(1.0, pairs / last.pairs)
    if len(shorter) < 2:
        return by_pairs
    before = shorter[-2]
    exponent = math.log(last.cost / before.cost) / math.log(last.scores / before.scores)
    growth = (scores / last.scores) ** min(max(exponent, 0.0), 1.0)
    return max(by_pairs, last.cost * float(growth))
