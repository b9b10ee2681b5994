"""The table: who is first, what is compared with what, and that nothing failed is hidden or has a speed."""

import itertools

from bench.analysis.tables import Table, heading, tables
from tests.analysis.made_up import compared_cases, failed, grouped, row


def table(*rows, baseline: str = "sdpa") -> Table:
    (only,) = tables(compared_cases(*rows, baseline=baseline), baseline)
    return only


def column(made: Table, name: str) -> list[str]:
    at = made.header.index(name)
    return [cells[at].text for section in made.sections for cells in section]


def test_lengths_ascend_and_the_fastest_comes_first_in_each() -> None:
    made = table(
        row("naive", 2048, 5.0),
        row("sdpa", 2048, 4.0),
        row("flex", 512, 3.0),
        row("sdpa", 512, 1.0),
        row("naive", 512, 2.0),
    )
    assert [len(section) for section in made.sections] == [3, 2]
    assert column(made, "length") == ["512", "512", "512", "2048", "2048"]
    assert column(made, "variant") == ["sdpa", "naive", "flex", "sdpa", "naive"]
    assert column(made, "latency ms") == ["1.00", "2.00", "3.00", "4.00", "5.00"]
    assert [cells[1].style for section in made.sections for cells in section] == ["best", "", "", "best", ""]


def test_lengths_are_sorted_as_numbers_not_as_text() -> None:
    assert column(table(row(n=16384), row(n=512), row(n=2048)), "length") == ["512", "2048", "16384"]


def test_speed_ups_are_over_the_baseline_at_the_same_length() -> None:
    made = table(row("sdpa", 512, 1.0), row("naive", 512, 4.0), row("sdpa", 1024, 6.0), row("naive", 1024, 2.0))
    assert column(made, "vs sdpa") == ["1.00x", "0.250x", "3.00x", "1.00x"]
    assert column(table(row("sdpa", 512, 1.0), row("naive", 512, 4.0), baseline="naive"), "vs naive") == [
        "4.00x",
        "1.00x",
    ]


def test_where_the_baseline_failed_there_is_no_speed_up_and_no_other_number_takes_its_place() -> None:
    made = table(
        *(row("sdpa", 512, 2.0), row("naive", 512, 1.0), row("flex", 512, 1.5)),
        *(failed("oom", "no memory", "sdpa", 1024), row("naive", 1024, 8.0), row("flex", 1024, 9.0)),
        *(row("naive", 2048, 10.0), row("flex", 2048, 20.0)),
    )
    assert column(made, "vs sdpa") == ["2.00x", "1.33x", "1.00x", "", "", "", ""]
    assert column(made, "latency ms") == ["1.00", "1.50", "2.00", "8.00", "9.00", "10.0", "20.0"]


def test_another_problems_baseline_is_no_baseline() -> None:
    rows = [row("sdpa", 512, 1.0), row("naive", 512, 2.0, mask="full"), row("naive", 512, 2.0, dtype="float16")]
    for made in tables(compared_cases(*rows), "sdpa"):
        assert "vs sdpa" not in made.header or column(made, "vs sdpa") == ["1.00x"]


def test_a_table_a_mask_and_a_combination_of_the_other_axes() -> None:
    combinations = itertools.product(("causal", "full", "causal+window:16"), ("bwd", "fwd"), ("float16", "float32"))
    made = tables(compared_cases(*(row(mask=m, direction=d, dtype=t) for m, d, t in combinations)), "sdpa")
    assert [t.title.split(" · ")[:3] for t in made][:4] == [
        ["full", "fwd", "float16"],
        ["causal", "fwd", "float16"],
        ["causal+window:16", "fwd", "float16"],
        ["full", "fwd", "float32"],
    ]
    assert len({t.title for t in made}) == len(made) == 12


def test_the_title_names_the_problem() -> None:
    times = "\N{MULTIPLICATION SIGN}"
    assert table(row(kv_heads=8)).title == f"causal · fwd · float32 · batch 1 · 8 heads {times} 64 · cpu · hot cache"
    assert f"8 heads (2 kv) {times} 64" in table(row()).title
    assert f"1 head {times} 64" in table(row(heads=1, kv_heads=1)).title


def test_what_differs_between_environments_is_in_the_title_and_apart() -> None:
    made = tables(compared_cases(row("sdpa", ms=1.0), row("naive", ms=2.0, threads=4, run="b")), "sdpa")
    assert [t.title.split(" · ")[-1] for t in made] == ["2 threads", "4 threads"]
    assert all(len(t.sections) == 1 for t in made)


def test_queries_and_keys_that_differ_in_number_are_both_shown() -> None:
    assert column(table(row(seq_q=1, seq_kv=4096)), "length")[0].split()[::2] == ["1", "4096"]


def test_approximations_are_marked_and_ranked_apart() -> None:
    made = table(row("linear", ms=0.1, exact=False), row("sdpa", ms=2.0), row("naive", ms=3.0))
    assert column(made, "variant") == ["sdpa", "naive", "≈ linear"]
    assert made.sections[0][0][1].style == "best"
    assert made.sections[0][2][1].style == ""
    assert any("approximates" in note.text for note in made.notes)


def test_an_approximation_is_no_baseline() -> None:
    made = table(row("sdpa", ms=0.1, exact=False), row("naive", ms=3.0))
    assert "vs sdpa" not in made.header


def test_the_interval_is_blank_with_one_visit() -> None:
    once, twice = row("naive", ms=1.0), [row("sdpa", ms=2.0, visit=v) for v in (1, 2)]
    assert "95 % interval" not in table(once).header
    assert column(table(once, *twice), "95 % interval") == ["", "2.00\N{EN DASH}2.00"]
    assert column(table(once, *twice), "visits") == ["1", "2"]


def test_what_failed_stands_below_the_worst_first_and_never_in_a_row() -> None:
    made = table(
        row("sdpa", 512, 1.0),
        row("sdpa", 1024, 1.0),
        row("naive", 512, 2.0),
        failed("skipped", "one call would take about 9 s", "naive", 1024),
        *(
            failed("unsupported", "runs on CUDA only", name, n)
            for name in ("xformers", "sdpa_cudnn")
            for n in (512, 1024)
        ),
        *(failed("wrong", "error 1, budget 1e-6", "flex", n) for n in (512, 1024)),
        *(failed(status, status, "mine", n) for status, n in (("crashed", 512), ("error", 1024))),
    )
    assert [note.text for note in made.notes] == [
        "flex: wrong (error 1, budget 1e-6)",
        "mine: error at 1024 (error)",
        "mine: crashed at 512 (crashed)",
        "sdpa_cudnn, xformers: unsupported (runs on CUDA only)",
        "naive: skipped at 1024 (one call would take about 9 s)",
    ]
    assert [note.style for note in made.notes] == ["bad", "bad", "bad", "", ""]
    assert column(made, "variant") == ["sdpa", "naive", "sdpa"]


def test_several_reasons_share_a_line() -> None:
    made = table(
        *(row("sdpa", n) for n in (512, 1024, 2048)),
        *(failed("skipped", f"about {n} s", "naive", n) for n in (1024, 2048)),
    )
    assert [note.text for note in made.notes] == ["naive: skipped at 1024 (about 1024 s), at 2048 (about 2048 s)"]


def test_a_variant_that_ended_in_two_ways_has_a_line_each_with_its_lengths_ascending() -> None:
    made = table(
        *(row("sdpa", n, ms=1e3) for n in (512, 1024, 16384)),
        *(failed("skipped", "too long", "naive", n) for n in (16384, 1024)),
        failed("oom", "no memory", "naive", 512),
        failed("oom", "no memory", "chunked", 512),
    )
    assert [note.text for note in made.notes] == [
        "chunked, naive: oom at 512 (no memory)",
        "naive: skipped at 1024, 16384 (too long)",
    ]


def test_where_nothing_ran_there_are_only_reasons() -> None:
    made = table(failed("oom", "no memory"))
    assert made.sections == []
    assert [note.text for note in made.notes] == ["sdpa: oom (no memory)"]


def test_no_failure_prints_as_a_number() -> None:
    made = table(row("sdpa"), failed("oom", variant="naive"), failed("wrong", variant="flex"))
    texts = [cell.text for section in made.sections for cells in section for cell in cells]
    assert "naive" not in texts
    assert "flex" not in texts
    assert not {"0", "0.00", "nan", "0 B", "nanx", "inf"} & set(texts)


def test_memory_and_error_have_units_and_digits() -> None:
    made = table(row(peak_bytes=3 * 2**29, error=1.234e-7))
    assert column(made, "peak memory") == ["1.50 GiB"]
    assert column(made, "error") == ["1.2e-07"]


def test_the_heading_names_the_machine_and_a_missing_baseline() -> None:
    lines = [cell.text for cell in heading(grouped(row("naive")), "sdpa")]
    assert lines[0] == "a made-up CPU · 2 threads · torch 2.13.0+cpu · commit abc1234"
    assert lines[1] == "1 of 1 visits were quiet"
    assert "sdpa is not in these results" in lines[2]
    assert len(heading(grouped(row()), "sdpa")) == 2
    never_ok = grouped(row("naive"), failed("oom", "8 GiB asked for", "sdpa", 1024))
    assert "no speed-ups: sdpa has no latency; --baseline takes naive" in [
        cell.text for cell in heading(never_ok, "sdpa")
    ]


def test_a_share_above_the_ceiling_is_flagged_and_not_shown() -> None:
    made = table(row("naive", ceiling_tflops=1e3), row(ms=2.0, ceiling_tflops=1e-9))
    assert column(made, "of ceiling") == ["0.1 %", "> 100 %"]  # causal, 8 heads: 1.07 GFLOP in 1 and in 2 ms
    assert any("trust neither" in note.text and note.style == "bad" for note in made.notes)
    assert not any("ceiling" in note.text for note in table(row(ceiling_tflops=1e3)).notes)


def test_how_many_visits_were_quiet_is_told_where_not_all_were() -> None:
    rows = [
        row(ms=1.0, visit=1, canary_samples_ms=(10.0,)),
        row(ms=9.0, visit=2, canary_samples_ms=(11.5,)),
        row("naive", ms=2.0, canary_samples_ms=(10.0,)),
        row("flex", ms=3.0, canary_samples_ms=(20.0,)),
    ]
    made = table(*rows)
    assert column(made, "visits") == ["1 of 2", "1", "0 of 1"]
    assert column(made, "latency ms") == ["1.00", "2.00", "3.00"]
    assert any("10 % longer" in note.text for note in made.notes)
    assert [cell.text for cell in heading(grouped(*rows), "sdpa")][1] == "2 of 4 visits were quiet"
