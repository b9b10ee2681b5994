"""Which panel, which length, how many side by side."""

import pandas as pd
import pytest

from bench.figures.panels import by_axis, by_length, columns, first_panels, swept
from bench.figures.sheet import _wrapped
from tests.analysis.made_up import compared_cases, failed, row


def test_a_panel_a_mask_titled_by_it() -> None:
    data = by_length(compared_cases(row(mask="causal+window:16"), row(), row(mask="full")))
    assert list(data["panel"]) == ["full", "causal", "causal+window:16"]


def test_titles_add_what_else_varies() -> None:
    data = by_length(compared_cases(*(row(direction=d, heads=h, kv_heads=2) for d in ("bwd", "fwd") for h in (2, 4))))
    assert list(data["panel"]) == [f"causal · {d} · {h} heads" for d in ("fwd", "bwd") for h in (2, 4)]


def test_environments_stand_apart() -> None:
    data = by_length(compared_cases(row(), row(torch="2.12", run="b")))
    assert list(data["panel"]) == ["causal · torch 2.12", "causal · torch 2.13.0+cpu"]


def test_the_length_is_what_was_swept() -> None:
    sizes = [(512, 512), (1024, 1024), (1, 512), (1, 4096), (2048, 77), (4096, 77)]
    data = by_length(compared_cases(*(row(seq_q=q, seq_kv=kv) for q, kv in sizes)))
    drawn = {(case["seq_q"], case["seq_kv"]): (case["x"], case["panel"]) for case in data.to_dict("records")}
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


def test_which_axes_were_swept() -> None:
    rows = [row(heads=h, kv_heads=h, dtype=d) for h in (4, 8) for d in ("float32", "bfloat16")]
    assert swept(compared_cases(*rows)) == ["heads", "dtype"]  # kv_heads go with heads
    assert swept(compared_cases(*rows, row(heads=8, kv_heads=2))) == ["heads", "kv_heads", "dtype"]
    assert swept(compared_cases(row(), failed("oom", batch=2), row(n=2048))) == []


def test_another_axis_at_the_longest_length_that_most_have() -> None:
    rows = [row(n=n, batch=b) for n in (512, 1024, 2048) for b in (1, 2, 4) if (n, b) != (2048, 4)]
    data = by_axis(compared_cases(*rows, failed("oom", n=2048, batch=4)), "batch")
    assert set(data["seq_q"]) == {1024}
    assert list(data["x"]) == [1, 2, 4]
    assert set(data["panel"]) == {"causal"}


def test_heads_leave_grouped_ones_in_a_panel_of_their_own() -> None:
    sizes = [(4, 4), (8, 4), (8, 8)]
    data = by_axis(compared_cases(*(row(heads=h, kv_heads=kv) for h, kv in sizes)), "heads")
    assert set(data["panel"]) == {"causal · 4 kv heads"}  # 8 kv heads have one number of heads only
    tied = by_axis(compared_cases(*(row(heads=h, kv_heads=h) for h in (4, 8))), "heads")
    assert list(zip(tied["panel"], tied["x"], strict=True)) == [("causal", 4), ("causal", 8)]


def test_dtypes_keep_their_order() -> None:
    data = by_axis(compared_cases(*(row(dtype=d) for d in ("float16", "float32", "bfloat16"))), "dtype")
    assert sorted(data["x"]) == [0, 1, 2]


def test_a_figure_takes_three_rows_of_panels() -> None:
    data, left_out = first_panels(by_length(compared_cases(*(row(batch=b) for b in range(1, 15)))))
    assert (data["panel"].nunique(), left_out) == (9, 5)
    both = by_length(compared_cases(*(row(batch=b, mask=m) for b in range(1, 6) for m in ("full", "causal"))))
    assert first_panels(both)[1] == 4


def test_a_long_part_of_a_title_is_broken_between_words() -> None:
    machine = "AMD EPYC family 25 model 17, AVX512, 2 cores"
    lines = _wrapped(f"causal · {machine}", 24).replace("\N{NO-BREAK SPACE}", " ").split("\n")
    assert " ".join(lines).split() == f"causal · {machine}".split()
    assert max(map(len, lines)) <= 24
