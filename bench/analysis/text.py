"""How numbers, lengths and other people's words are written in tables and figures."""

from __future__ import annotations

import math

CROSS, TO = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"  # by name: they look like x and -
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def significant(value: float) -> str:
    """Three significant digits, never in powers of ten: 0.0123, 1.20, 1,760. Empty for NaN."""
    if math.isnan(value):
        return ""
    rounded = float(f"{value:.3g}")
    if rounded == 0 or math.isinf(rounded):
        return f"{rounded:g}"
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def size(count: float) -> str:
    """Bytes in the largest unit of which there is at least one: 1.50 MiB. Empty for NaN."""
    if math.isnan(count):
        return ""
    power = min(int(math.log2(count) // 10), len(_UNITS) - 1) if count >= 1 else 0
    return f"{significant(count / 1024**power)} {_UNITS[power]}" if power else f"{count:.0f} B"


def times(ratio: float) -> str:
    """A ratio: 2.31x. Empty for NaN."""
    return "" if math.isnan(ratio) else f"{significant(ratio)}x"


def percent(share: float) -> str:
    """A share: 57 %, 3.4 %, 0.2 %. Empty for NaN."""
    if math.isnan(share):
        return ""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %" if value >= 0.95 else f"{value:.1g} %"


def tokens(count: int) -> str:
    """A length in short where it is round: 512, 1000, 1.5k, 16k, 1M."""
    if count >= 1024**2 and count % 1024**2 == 0:
        return f"{count // 1024**2}M"
    return f"{count / 1024:g}k" if count >= 1024 and count % 512 == 0 else str(count)


def round_count(count: float) -> str:
    """A number of tokens that was estimated, in two significant digits: 2,900."""
    return f"{float(f'{count:.2g}'):,.0f}"


def round_outward(low: float, high: float) -> str:
    """An interval of such numbers, none of which is lost by rounding: 2,600-3,300."""
    units = [10 ** max(0, math.floor(math.log10(count)) - 1) for count in (low, high)]
    return f"{math.floor(low / units[0]) * units[0]:,}{TO}{math.ceil(high / units[1]) * units[1]:,}"


def length(seq_q: int, seq_kv: int) -> str:
    """The length n, or n_q by n_kv where they differ."""
    return str(seq_q) if seq_q == seq_kv else f"{seq_q} {CROSS} {seq_kv}"


def plain(text: str, longest: int = 200) -> str:
    """Somebody else's words on one line: control characters become spaces, and a long text is cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
