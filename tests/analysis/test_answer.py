"""The answer in words, from made-up rows whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from bench.analysis.answer import Paragraph, answer
from bench.analysis.scatter import leaders, with_scatter
from bench.analysis.statistics import log_t_interval
from bench.analysis.text import TO
from bench.results.columns import Row
from tests.analysis.made_up import failed, row, series_of

LENGTHS = [512, 1024, 2048, 4096]


def visits(variant: str, n: int, ms: float, times: int = 3, spread: float = 0.01, **changes: object) -> list[Row]:
    """Visits that lie this far apart, about ms."""
    factors = np.linspace(1 - spread, 1 + spread, times) if times > 1 else [1.0]
    return [row(variant, n, ms * float(f), visit=at, **changes) for at, f in enumerate(factors, 1)]


def curve(variant: str, *ms: float, **changes: object) -> list[Row]:
    return [made for n, x in zip(LENGTHS, ms, strict=False) for made in visits(variant, n, x, **changes)]  # type: ignore[arg-type]


def said(*rows: list[Row], baseline: str = "sdpa") -> list[str]:
    (paragraph,) = answer(series_of(*(r for part in rows for r in part)), baseline)
    return [line.text for line in paragraph.lines]


def test_a_crossover_in_words() -> None:
    # As 2 ** -1, 2 ** 0 and so on: the ratio of the two is 1 at 1448 = 1024 * sqrt(2) tokens.
    lines = said(curve("sdpa", 1, 2, 4, 8), curve("flex", 2, 2 * 2**0.5, 4 / 2**0.5, 4))
    assert lines[0] == "Fastest: sdpa from 512 to 1k; flex from 2k to 4k."
    # Curves that bend leave the crossing wider than the visits alone.
    assert lines[1].startswith("From 1,400 tokens (")
    assert ") on use flex instead of sdpa: 2.00x (" in lines[1]
    assert lines[1].endswith(") as fast at 4k.")


def test_one_variant_ahead_everywhere() -> None:
    lines = said(curve("sdpa", 2, 4, 8, 16), curve("flex", 1, 2, 4, 8), curve("naive", 9, 9, 9, 9))
    assert lines[0] == "Fastest: flex from 512 to 4k."
    assert lines[1].startswith("At 4k flex is 2.00x (")
    assert lines[1].endswith(") as fast as sdpa.")


def test_the_lead_over_the_baseline_is_told_though_two_share_it() -> None:
    lines = said(curve("sdpa", 8, 8, 8, 8), curve("flex", 2, 2, 2, 2), curve("naive", 2, 2, 2, 2.001))
    assert lines[0] == "Fastest: flex or naive (too close to call) from 512 to 4k."
    assert lines[1].startswith("At 4k flex is 4.00x (")
    assert lines[1].endswith(") as fast as sdpa.")


def test_too_close_to_call_is_an_answer() -> None:
    lines = said(curve("sdpa", 1, 2, 4, 8, spread=0.05), curve("flex", 1.01, 2.01, 3.99, 8, spread=0.05))
    assert lines[0] == "Fastest: flex or sdpa (too close to call) from 512 to 4k."
    assert not any("use" in line.split() or "as fast" in line for line in lines)


def test_the_fewest_changes_are_advised() -> None:
    """sdpa and flex share the lead at 1k, so one change, between 1k and 2k, is enough."""
    lines = said(curve("sdpa", 1, 2, 8, 16), curve("flex", 2, 2.005, 4, 8))
    assert lines[0] == "Fastest: sdpa at 512; flex or sdpa (too close to call) at 1k; flex from 2k to 4k."
    assert sum("instead of" in line for line in lines) == 1


def test_one_visit_each_ranks_nothing() -> None:
    lines = said(curve("sdpa", 1, 2, 4, 8, times=1), curve("flex", 9, 9, 9, 9, times=1))
    assert lines[0].startswith("Each case was visited once")
    assert not any("Fastest" in line for line in lines)


def test_a_case_visited_once_is_ranked_where_it_is_far_off() -> None:
    slow = [row("naive", n, 100.0) for n in LENGTHS]
    lines = said(curve("sdpa", 1, 2, 4, 8), curve("flex", 2, 4, 8, 16), slow)
    assert lines[0] == "Fastest: sdpa from 512 to 4k."


def test_what_no_visit_tells_is_not_called_close() -> None:
    slow = [made for n in LENGTHS for made in visits("sdpa", n, 50.0, times=1, crowding=0.9)]
    lines = said(curve("flex", 1, 2, 4, 8), slow)
    assert lines[0] == "Fastest: flex or sdpa (not told by these visits) from 512 to 4k."
    assert not any("use" in line.split() or "as fast" in line for line in lines)
    assert "No visit was quiet, and the time may well be too long: sdpa at 512, 1k, 2k, 4k." in lines


def test_a_change_is_told_where_no_crossing_is() -> None:
    """Only naive is clear of sdpa at 2k, and flex is as fast as that: where flex overtook sdpa is not told."""
    close = [
        made for n, ms in zip(LENGTHS, (1.5, 2.1, 3.8, 3.8), strict=True) for made in visits("flex", n, ms, 2, 0.1)
    ]
    lines = said(curve("sdpa", 1, 2, 4.4, 4.4), close, curve("naive", 2, 3, 3.9, 3.9))
    assert lines[0].endswith("; flex or naive (too close to call) from 2k to 4k.")
    assert "From 2k on use flex instead of sdpa." in lines


def test_no_lead_is_told_over_what_may_be_as_fast() -> None:
    """naive is clear of sdpa at 4k, but flex, which is advised, scatters too far to be."""
    unsure = [made for n, ms in zip(LENGTHS, (1, 2, 4, 7.8), strict=True) for made in visits("flex", n, ms, 2, 0.1)]
    lines = said(curve("sdpa", 1.3, 2.6, 5.2, 8), unsure, curve("naive", 1.5, 2.9, 5.9, 7.5))
    assert not any(line.startswith("At 4k") for line in lines)


def test_an_approximation_is_told_apart() -> None:
    lines = said(curve("sdpa", 1, 2, 4, 8), curve("linear", 0.5, 0.6, 0.7, 0.8, exact=False, error_budget=None))
    assert lines[0] == "Only sdpa was measured, so there is nothing to rank."
    (told,) = [line for line in lines if line.startswith("≈ linear approximates attention, and is 10.0x (")]
    assert told.endswith(") as fast as sdpa at 4k.")


def test_what_is_wrong_is_named_and_never_ranked() -> None:
    bad = [failed("wrong", "far off", "flex", n) for n in LENGTHS]
    (paragraph,) = answer(series_of(*curve("sdpa", 1, 2, 4, 8), *bad), "sdpa")
    assert paragraph.lines[0].text == "Only sdpa was measured, so there is nothing to rank."
    (told,) = [line for line in paragraph.lines if line.style == "bad"]
    assert told.text == "Not ranked, for it is wrong at 512, 1k, 2k, 4k: flex (far off)."


def test_what_is_wrong_at_one_length_is_ranked_at_none_and_each_reason_is_told() -> None:
    bad = [*curve("flex", 1, 1, 1), failed("wrong", "far off", "flex", 4096)]
    bad += [*curve("naive", 3, 6, 12), failed("crashed", "signal 11", "naive", 4096)]
    lines = said(curve("sdpa", 2, 4, 8, 16), bad)
    assert lines[0] == "Fastest: sdpa from 512 to 4k."
    assert "Not ranked, for it is wrong at 4k: flex (far off)." in lines
    assert "Status crashed at 4k: naive (signal 11)." in lines


def test_the_leanest_and_by_how_much() -> None:
    small, large = 2**20, 10 * 2**20
    lines = said(curve("sdpa", 1, 2, 4, 8, peak_bytes=large), curve("flex", 2, 3, 5, 9, peak_bytes=small))
    assert "Leanest: flex from 512 to 4k (1.00 MiB above the inputs at 4k, 10.0x less than sdpa)." in lines
    alike = said(curve("sdpa", 1, 2, 4, 8, peak_bytes=large), curve("flex", 2, 3, 5, 9, peak_bytes=int(1.015 * large)))
    assert "Leanest: flex and sdpa from 512 to 4k (10.0 MiB above the inputs at 4k)." in alike  # the least of the two


def test_the_leanest_is_told_only_where_peaks_are_known() -> None:
    unknown = [row("flex", n, ms, visit=at, peak_bytes=None) for n, ms in ((1024, 3.0), (2048, 5.0)) for at in (1, 2)]
    known = [made for n, ms in ((512, 2.0), (4096, 9.0)) for made in visits("flex", n, ms, peak_bytes=2**20)]
    lines = said(curve("sdpa", 1, 2, 4, 8, peak_bytes=None), known + unknown)
    words = "flex at 512; flex at 4k (1.00 MiB above the inputs at 4k; not known everywhere of flex, sdpa)"
    assert f"Leanest: {words}." in lines


def test_what_stopped_a_variant_on_the_way_is_told() -> None:
    rows = [*curve("flex", 1), *visits("flex", 4096, 8), failed("timeout", "too long", "flex", 1024)]
    lines = said(curve("sdpa", 1, 2, 4, 8), rows)
    assert "Reach: sdpa to 4k, the longest asked for; flex to 4k, but timeout at 1k." in lines


def test_how_far_each_went_and_what_stopped_it() -> None:
    rows = [*curve("naive", 1, 2), failed("oom", "8 GiB asked for", "naive", 2048)]
    rows += [failed("skipped", "out of memory at 2048 already", "naive", 4096)]
    lines = said(curve("sdpa", 1, 2, 4, 8), rows)
    assert "Reach: sdpa to 4k, the longest asked for; naive to 1k, then oom (8 GiB asked for)." in lines


def test_what_a_window_saves() -> None:
    rows = [*curve("sdpa", 1, 4, 16, 64), *curve("sdpa", 1, 2, 4, 8, mask="causal+window:256")]
    plain, windowed = answer(series_of(*rows), "sdpa")
    assert not any("leaves" in line.text for line in plain.lines)
    (told,) = [line.text for line in windowed.lines if "leaves" in line.text]
    # 256 * 257 / 2 pairs of the first 256 rows, 256 of each of the others; over 4096 * 4097 / 2.
    share = (256 * 257 / 2 + (4096 - 256) * 256) / (4096 * 4097 / 2)
    assert f"{share:.0%}" == "12%"
    took = f"takes 12 % (12{TO}13 %) of the time of sdpa under causal"  # 8 of 64 ms
    assert told == f"At 4k the mask leaves 12 % of causal's pairs, and sdpa {took}."


def test_nothing_right_is_said_first() -> None:
    (paragraph,) = answer(series_of(*(failed("wrong", "far off", "sdpa", n) for n in LENGTHS)), "sdpa")
    assert paragraph.lines[0].text == "No exact variant has a time here."
    assert [line.style for line in paragraph.lines] == ["bad", "bad"]


def test_a_paragraph_for_each_problem_and_nothing_across_them() -> None:
    rows = [*curve("sdpa", 1, 2, 4, 8, heads=8, kv_heads=8), *curve("flex", 2, 4, 8, 16, heads=4, kv_heads=4)]
    paragraphs = answer(series_of(*rows), "sdpa")
    assert all(isinstance(paragraph, Paragraph) for paragraph in paragraphs)
    assert [p.lines[0].text.split()[1] for p in paragraphs] == ["flex", "sdpa"]
    assert "4 heads" in paragraphs[0].title and "8 heads" in paragraphs[1].title


def test_names_are_words_and_no_more() -> None:
    lines = said(curve("<b>\x1b[31m", 1, 2, 4, 8), curve("sdpa", 2, 4, 8, 16))
    assert lines[0] == "Fastest: <b> [31m from 512 to 4k."


def test_a_lead_that_changes_hands_twice() -> None:
    """flex is ahead in the middle alone: each change is told once, with a lead where it is advised, and to where."""
    lines = said(curve("sdpa", 1, 1, 1, 1), curve("flex", 2, 0.5, 0.5, 2))
    assert lines[0] == "Fastest: sdpa at 512; flex from 1k to 2k; sdpa at 4k."
    there, back = (line for line in lines if "instead of" in line)
    assert " to 2k use flex instead of sdpa: 2.00x (" in there
    assert there.endswith(") as fast at 2k.")
    assert " on use sdpa instead of flex: 2.00x (" in back
    assert back.endswith(") as fast at 4k.")
    # 2 and 0.5 meet 1 half way between the lengths: at 724 and 2896.
    assert there.startswith("From 720 tokens (")
    assert back.startswith("From 2,900 tokens (")


def test_no_lead_is_claimed_where_it_is_lost_again() -> None:
    """Ahead at 2k alone, beside each other at 4k: the lead told is that at 2k."""
    lines = said(curve("sdpa", 1, 1, 2, 2), curve("flex", 2, 2, 1, 2.001))
    (told,) = [line for line in lines if "instead of" in line]
    assert told.endswith(") as fast at 2k.")
    assert "too close" not in told


@pytest.mark.parametrize(("variants", "times"), [(2, 2), (4, 3), (5, 2)])
def test_of_equal_variants_one_is_called_the_fastest_alone_in_few_lengths(variants: int, times: int) -> None:
    """Many lengths, one problem each, so that nothing is pooled over more cases than one length has."""
    rng = np.random.default_rng(7)
    alone = 0
    for _ in range(300):
        medians = np.exp(rng.normal(0, 0.02, (variants, times)))
        low_ms, high_ms = zip(*(log_t_interval(m.tolist()) for m in medians), strict=True)
        frame = pd.DataFrame(
            {
                "variant": list("abcdefg"[:variants]),
                "latency_ms": np.median(medians, axis=1),
                "visits": times,
                "quiet": times,
                "low_ms": low_ms,
                "high_ms": high_ms,
            }
        )
        alone += len(leaders(with_scatter(frame).to_dict("records"))) == 1  # type: ignore[arg-type]
    assert alone <= 25  # of 300 at 5 %: mean 15, standard deviation 3.8
