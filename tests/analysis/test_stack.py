"""What all layers of a model come to: sums by hand, and nothing that a kind of layer lacks is made up."""

import re
from typing import Any

import pandas as pd
import pytest

from bench.analysis.stack import MIX, tables
from bench.analysis.tables import Cell, Table
from bench.models import Attention, Model
from bench.results.columns import Row
from tests.analysis.made_up import failed, grouped, row
from variants.masks import Mask

LOCAL, GLOBAL = "causal+window:256", "causal"
TWO_KINDS = Model(
    "two-kinds",
    "Two Kinds",
    context=2048,
    attentions=(
        Attention("local", 3, 8, 2, 64, Mask.parse(LOCAL)),
        Attention("global", 2, 8, 2, 64, Mask.parse(GLOBAL)),
    ),
    sources=("https://example.org",),
    left_out=("a soft cap",),
)
PICTURES = Model(
    "pictures",
    "Pictures",
    context=197,
    attentions=(Attention("self", 24, 8, 2, 64, Mask(), seq_q=197, seq_kv=197),),
    sources=("https://example.org",),
)
LISTENS = Model(
    "listens",
    "Listens",
    context=448,
    attentions=(
        Attention("encoder", 4, 8, 2, 64, Mask(), seq_q=1500, seq_kv=1500),
        Attention("decoder", 3, 8, 2, 64, Mask(causal=True)),
        Attention("cross", 2, 8, 2, 64, Mask(), seq_kv=1500),
    ),
    sources=("https://example.org",),
)


def local(variant: str, ms: float, n: int = 1024, **changes: Any) -> Row:
    return row(variant, n, ms, mask=LOCAL, **changes)


def globally(variant: str, ms: float, n: int = 1024, **changes: Any) -> Row:
    return row(variant, n, ms, mask=GLOBAL, **changes)


# naive 3 x 1 + 2 x 4 = 11, flex 3 x 0.5 + 2 x 6 = 13.5, the faster of each 3 x 0.5 + 2 x 4 = 9.5
ROWS = (local("naive", 1.0), globally("naive", 4.0), local("flex", 0.5), globally("flex", 6.0))


def only(cases: pd.DataFrame, model: Model = TWO_KINDS) -> Table:
    (table,) = tables(cases, [model])
    return table


def column(table: Table, name: str) -> list[str]:
    at = table.header.index(name)
    return [cells[at].text for section in table.sections for cells in section]


def notes(table: Table) -> list[str]:
    return [note.text for note in table.notes]


def test_times_add_up_over_layers_and_the_fastest_of_each_kind_may_be_mixed() -> None:
    table = only(grouped(*ROWS))
    assert column(table, "variant") == [MIX, "naive", "flex"]
    assert column(table, "all layers ms") == ["9.50", "11.0", "13.5"]
    assert table.sections[0][0][:3] == (Cell("1024"), Cell(MIX, "best"), Cell("9.50", "best"))
    assert f"{MIX} at 1024: local by flex, global by naive" in notes(table)


def test_where_one_variant_is_fastest_in_every_kind_there_is_no_mix() -> None:
    table = only(grouped(*ROWS, local("sdpa", 0.1), globally("sdpa", 0.1)))
    assert column(table, "variant") == ["sdpa", "naive", "flex"]
    assert not any(MIX in note for note in notes(table))


def test_mixes_are_named_length_by_length() -> None:
    shorter = [
        local("naive", 1.0, 512),
        globally("naive", 2.0, 512),
        local("flex", 2.0, 512),
        globally("flex", 1.0, 512),
    ]
    table = only(grouped(*ROWS, *shorter))
    assert column(table, "length") == ["512", "512", "512", "1024", "1024", "1024"]
    assert f"{MIX} at 512: local by naive, global by flex" in notes(table)
    assert f"{MIX} at 1024: local by flex, global by naive" in notes(table)


def test_an_interval_adds_up_the_ends_of_its_kinds() -> None:
    cases = grouped(local("naive", 1.0), globally("naive", 4.0))
    ends = {LOCAL: (0.9, 1.2), GLOBAL: (3.0, 5.0)}
    cases[["low_ms", "high_ms"]] = [ends[mask] for mask in cases["mask"]]
    assert column(only(cases), "95 % interval") == ["8.70\N{EN DASH}13.6"]  # 3 x 0.9 + 2 x 3, 3 x 1.2 + 2 x 5


def test_a_kind_that_has_no_interval_leaves_the_whole_without() -> None:
    cases = grouped(local("naive", 1.0), globally("naive", 4.0))
    cases.loc[cases["mask"] == LOCAL, ["low_ms", "high_ms"]] = (0.9, 1.2)
    assert "95 % interval" not in only(cases).header


def test_the_peak_is_the_largest_and_what_is_saved_adds_up() -> None:
    of_local = {"peak_bytes": 3 * 2**20, "saved_bytes": 2**20}
    of_global = {"peak_bytes": 2**20, "saved_bytes": 2**21}
    made = [
        local("naive", 1.0, direction="fwdbwd", **of_local),
        globally("naive", 4.0, direction="fwdbwd", **of_global),
    ]
    table = only(grouped(*made))
    assert column(table, "peak memory") == ["3.00 MiB"]
    assert column(table, "saved memory") == ["7.00 MiB"]  # 3 x 1 + 2 x 2
    assert "most tokens/s" not in table.header
    assert not any(note.startswith("cache of keys and values") for note in notes(table))


def test_tokens_a_second_and_the_cache_by_hand() -> None:
    prefill = only(grouped(local("naive", 1.0), globally("naive", 4.0)))
    assert column(prefill, "most tokens/s") == ["93,100"]  # 1024 in 11 ms
    decoding = [local("naive", 0.1, seq_q=1), globally("naive", 0.1, seq_q=1)]
    table = only(grouped(*decoding))
    assert table.title.startswith("Two Kinds, decode, all 5 attention layers · fwd · float32 · batch 1 · cpu")
    assert column(table, "most tokens/s") == ["2,000"]  # one in 5 x 0.1 ms
    for made in (prefill, table):
        # 2 x 2 kv heads x 64 x 4 bytes a token and layer; 256 tokens in three layers, 1024 in two
        assert "cache of keys and values, all layers, a window holding what it sees: 2.75 MiB at 1024" in notes(made)


def test_what_one_kind_lacks_has_no_time_and_its_reason_is_told() -> None:
    table = only(grouped(*ROWS, local("sdpa", 0.1), failed("oom", "no memory", "sdpa", mask=GLOBAL)))
    assert "sdpa" not in column(table, "variant")
    assert "global: sdpa: oom (no memory)" in notes(table)
    assert f"{MIX} at 1024: local by sdpa, global by naive" in notes(table)


def test_what_all_kinds_lack_is_told_once() -> None:
    reason = "runs on CUDA only"
    table = only(grouped(*ROWS, *(failed("unsupported", reason, "xformers", mask=mask) for mask in (LOCAL, GLOBAL))))
    assert [note for note in notes(table) if "xformers" in note] == ["xformers: unsupported (runs on CUDA only)"]


def test_a_wrong_variant_is_in_no_mix() -> None:
    table = only(grouped(*ROWS, failed("wrong", "far off", "fast", mask=LOCAL), globally("fast", 0.1)))
    assert f"{MIX} at 1024: local by flex, global by fast" in notes(table)
    (note,) = [note for note in table.notes if note.text == "local: fast: wrong (far off)"]
    assert note.style == "bad"


def test_what_was_never_measured_is_told_too() -> None:
    table = only(grouped(*ROWS, local("sdpa", 1.0), local("naive", 1.0, 2048)))
    assert column(table, "length") == ["1024"] * 3
    assert "global: sdpa: not measured at 1024" in notes(table)
    assert "global: flex, naive, sdpa: not measured at 2048" in notes(table)


def test_an_approximation_is_ranked_apart_and_in_no_mix() -> None:
    table = only(grouped(*ROWS, local("linear", 0.01, exact=False), globally("linear", 0.01, exact=False)))
    assert column(table, "variant") == [MIX, "naive", "flex", "≈ linear"]
    assert [cells[1].style for cells in table.sections[0]] == ["best", "", "", ""]
    assert any(note.startswith("≈ approximates") for note in notes(table))


def test_what_the_model_leaves_out_and_what_lies_beyond_it_is_told() -> None:
    table = only(grouped(*(made("naive", 1.0, n) for n in (2048, 4096) for made in (local, globally))))
    assert "left out: a soft cap" in notes(table)
    assert "beyond its context of 2048: 4096" in notes(table)
    assert any(note.startswith("times of attention alone: no projections") for note in notes(table))


def test_phases_directions_and_environments_have_tables_of_their_own() -> None:
    rows = [*ROWS, *(made("naive", 1.0, seq_q=1) for made in (local, globally))]
    rows += [made("naive", 1.0, threads=4, run="b") for made in (local, globally)]
    rows += [made("naive", 1.0, direction="fwdbwd") for made in (local, globally)]
    titles = [table.title for table in tables(grouped(*rows), [TWO_KINDS])]
    assert len(set(titles)) == 4
    assert sum("prefill" in title and "2 threads" in title for title in titles) == 2
    assert sum("decode" in title for title in titles) == 1


def test_another_models_rows_are_not_taken_for_this_ones() -> None:
    table = only(grouped(*(made("naive", 1.0, heads=4) for made in (local, globally))))
    assert table == Table("Two Kinds: none of its layers is in these results", (), [], [])


def test_where_the_model_sets_every_length_there_is_one_row_a_variant() -> None:
    table = only(grouped(row("naive", 197, 2.0, mask="full"), row("sdpa", 197, 1.0, mask="full")), PICTURES)
    assert column(table, "length") == ["its own", "its own"]
    assert column(table, "all layers ms") == ["24.0", "48.0"]
    assert "most tokens/s" not in table.header
    assert "all its lengths are its own, so --seq changes nothing" in notes(table)


def test_layers_of_a_fixed_length_count_at_every_length_in_prefill_and_not_in_decode() -> None:
    prefill = [row("sdpa", 1500, 10.0, mask="full"), row("sdpa", 64, 1.0, mask="causal")]
    prefill += [row("sdpa", ms=2.0, seq_q=64, seq_kv=1500, mask="full")]
    decode = [row("sdpa", ms=0.5, seq_q=1, seq_kv=64, mask="causal")]
    decode += [row("sdpa", ms=0.25, seq_q=1, seq_kv=1500, mask="full")]
    first, second = tables(grouped(*prefill, *decode), [LISTENS])
    assert (column(first, "length"), column(first, "all layers ms")) == (["64"], ["47.0"])  # 4 x 10 + 3 x 1 + 2 x 2
    assert (column(second, "length"), column(second, "all layers ms")) == (["64"], ["2.00"])  # 3 x 0.5 + 2 x 0.25


def test_times_of_disturbed_visits_are_told_apart() -> None:
    quiet, loud = ROWS[:2], [local("flex", 0.5, crowding=0.5), globally("flex", 6.0)]
    table = only(grouped(*quiet, *loud))
    assert "2 of 3 times rest on visits that were all disturbed" in notes(table)  # flex, and the mix that has it


@pytest.mark.parametrize("name", ["[bold]odd", "tab\tname"])
def test_a_name_is_shown_as_text(name: str) -> None:
    table = only(grouped(local(name, 1.0), globally(name, 1.0)))
    assert column(table, "variant") == [re.sub(r"\s", " ", name)]
