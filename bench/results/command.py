"""The command that measures one case again."""

from __future__ import annotations

import shlex

from bench.results.columns import Case


def command(case: Case, threads: int | None = None) -> str | None:
    """The `python -m bench.run ...` line that measures this case and no other, quoted for a shell; on so many threads.

    None for a name that --variants would take for several, for a word of its own, or for another name. A variant
    that is registered from elsewhere needs --import besides: a case does not know where its variant came from.
    """
    if case.variant == "all" or "," in case.variant or case.variant != case.variant.strip():
        return None
    options = {
        "variants": case.variant,
        "seq": case.seq_kv,
        **({"seq-q": case.seq_q} if case.seq_q != case.seq_kv else {}),
        "batch": case.batch,
        "heads": case.heads,
        **({"kv-heads": case.kv_heads} if case.kv_heads != case.heads else {}),
        "head-dim": case.head_dim,
        "dtype": case.dtype,
        "mask": case.mask,
        "direction": case.direction,
        "device": case.device,
        "cache": case.cache,
        **({"threads": threads} if threads else {}),
    }
    words = (word for name, value in options.items() for word in _option(name, str(value)))
    return shlex.join(["python", "-m", "bench.run", *words])


def _option(name: str, value: str) -> tuple[str, ...]:
    """An option and its value: joined where the value alone would be taken for an option or for a file of them."""
    return (f"--{name}={value}",) if value[:1] in ("-", "@", "") else (f"--{name}", value)
