"""Global state that a variant has no business changing: whatever comes after it would be measured differently."""

from __future__ import annotations

import torch


def snapshot() -> dict[str, object]:
    """The state, by what a user would call it."""
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "grad mode": torch.is_grad_enabled(),
        "the number of threads": torch.get_num_threads(),
        "the random seed": torch.initial_seed(),
        "the float32 matmul precision": torch.get_float32_matmul_precision(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def changed(before: dict[str, object]) -> str | None:
    """What differs now from `before`, in one line; None where nothing does."""
    after = snapshot()
    changes = [f"{name} from {before[name]} to {after[name]}" for name in before if before[name] != after[name]]
    return f"changed {', '.join(changes)}" if changes else None
