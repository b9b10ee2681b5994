"""Which panel, which length, how many side by side."""

import pandas as pd
import pytest

from bench.analysis.panels import columns, panels
from tests.analysis.made_up import grouped, row


def test_a_panel_a_mask_titled_by_it() -> None:
    data = panels(grouped(row(mask="causal+window:16"), row(), row(mask="full")))
    assert list(data["panel"]) == ["full", "causal", "causal+window:16"]


def test_titles_add_what_else_varies() -> None:
    data = panels(grouped(*(row(direction=d, heads=h, kv_heads=2) for d in ("bwd", "fwd") for h in (2, 4))))
    assert list(data["panel"]) == [f"causal · {d} · {h} heads" for d in ("fwd", "bwd") for h in (2, 4)]


def test_environments_stand_apart() -> None:
    data = panels(grouped(row(), row(torch="2.12", run="b")))
    assert list(data["panel"]) == ["causal · torch 2.12", "causal · torch 2.13.0+cpu"]


def test_the_length_is_what_was_swept() -> None:
    sizes = [(512, 512), (1024, 1024), (1, 512), (1, 4096), (2048, 77), (4096, 77)]
    data = panels(grouped(*(row(seq_q=q, seq_kv=kv) for q, kv in sizes)))
    drawn = {(case["seq_q"], case["seq_kv"]): (case["length"], case["panel"]) for case in data.to_dict("records")}
    assert drawn == {
        (512, 512): (512, "causal"),
        (1024, 1024): (1024, "causal"),
        (1, 512): (512, "causal · seq_q 1"),
        (1, 4096): (4096, "causal · seq_q 1"),
        (2048, 77): (2048, "causal · seq_kv 77"),
        (4096, 77): (4096, "causal · seq_kv 77"),
    }


@pytest.mark.parametrize(
    ("masks", "others", "across"),
    [(1, 1, 1), (1, 2, 2), (1, 5, 3), (2, 1, 2), (3, 4, 3), (4, 1, 2), (5, 1, 3), (6, 2, 3)],
)
def test_panels_side_by_side(masks: int, others: int, across: int) -> None:
    data = pd.DataFrame({"mask": [m for m in range(masks) for _ in range(others)], "panel": range(masks * others)})
    assert columns(data) == across
