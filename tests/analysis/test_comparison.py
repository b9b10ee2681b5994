"""Two files joined on the case: ratios by hand, nothing lost, and the same story told from either side."""

import math
import random

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis import differences
from bench.analysis.cases import CASE
from bench.analysis.comparison import Comparison, check_once, compare, unlike
from bench.errors import UserError
from bench.results.columns import STATUSES, Row
from tests.analysis.made_up import failed, grouped, row


def compared(base: list[Row], new: list[Row]) -> Comparison:
    return compare(grouped(*base), grouped(*new))


def test_ratios_are_new_over_base() -> None:
    cases = compared([row(ms=2.0, peak_bytes=100)], [row(ms=3.0, peak_bytes=50)]).cases
    assert cases["time_ratio"].to_list() == [1.5]
    assert cases["memory_ratio"].to_list() == [0.5]


def test_the_join_is_on_the_whole_case() -> None:
    base = [row(ms=1.0), row(n=2048), row(mask="full"), row("naive"), row(dtype="float16"), row(direction="bwd")]
    found = compared(base, [row(ms=4.0), row("flex")])
    assert found.cases["time_ratio"].to_list() == [4.0]
    assert len(found.only_base) == 5
    assert found.only_new["variant"].to_list() == ["flex"]


def test_a_case_that_failed_on_either_side_has_no_ratio() -> None:
    found = compared(
        [row(), failed("oom", variant="flex"), failed("oom", variant="naive")],
        [failed("wrong"), row("flex"), failed("oom", variant="naive")],
    )
    assert found.cases["time_ratio"].isna().all()
    assert len(found.cases) == 3


def test_by_canary_the_machines_own_pace_is_taken_out() -> None:
    base = [row(ms=2.0, canary_samples_ms=(10.0,))]
    (found,) = compared(base, [row(ms=3.3, canary_samples_ms=(11.0,))]).cases.to_dict("records")
    assert found["time_ratio"] == pytest.approx(1.65)
    assert found["steady_ratio"] == pytest.approx(1.5)


def visits(times: list[float], **changes: object) -> list[Row]:
    return [row(ms=ms, visit=number, **changes) for number, ms in enumerate(times, 1)]


def test_how_well_two_runs_agree_is_told() -> None:
    base = [row(n=n, ms=1.0) for n in range(1, 11)]
    new = [row(n=n, ms=1.0 + n / 100) for n in range(1, 11)]
    (line,) = differences.repeatability(compared(base, new).cases)
    assert line.text == "by canary: nine in ten of the 10 cases that were quiet in both files agree within 9.0 %"
    disturbed = [row(n=n, ms=9.0, canary_samples_ms=(30.0,)) for n in range(1, 11)]
    quiet = row(n=99, canary_samples_ms=(10.0,))
    assert not differences.repeatability(compared(base, [*disturbed, quiet]).cases)


@pytest.mark.parametrize(
    ("base", "new", "overlap", "held"),
    [
        ([1.0, 1.01, 1.02], [0.9, 1.2, 1.5], 1, 1),  # 1.2 is outside of the first's, 1.01 inside of the second's
        ([1.0, 1.01, 1.02], [2.0, 2.01, 2.02], 0, 0),
        ([1.0, 1.01, 1.02], [1.0, 1.01, 1.02], 1, 2),
    ],
)
def test_whether_intervals_overlap_and_hold_the_others_time(
    base: list[float], new: list[float], overlap: int, held: int
) -> None:
    lines = differences.repeatability(compared(visits(base), visits(new)).cases)
    assert lines[-1].text == (
        f"95 % intervals overlap in {overlap} of 1 cases, and hold the other file's time {held} times of 2"
    )


def test_no_peak_is_no_ratio_and_no_infinity() -> None:
    found = compared(
        [row(peak_bytes=0), row("naive", peak_bytes=None), row("flex", peak_bytes=5)],
        [row(peak_bytes=5), row("naive", peak_bytes=5), row("flex", peak_bytes=0)],
    )
    assert found.cases["memory_ratio"].isna().all()


def test_the_environment_says_what_differs() -> None:
    found = compared([row()], [row(threads=4, torch="2.14.0", driver="580")])
    assert found.environment == {"threads": ("2", "4"), "torch": ("2.13.0+cpu", "2.14.0"), "driver": ("", "580")}
    lines = [cell.text for cell in differences.environments(found.environment)]
    assert lines == ["threads: 2 → 4", "torch: 2.13.0+cpu → 2.14.0", "driver: none → 580"]


def test_other_machines_and_methods_are_not_comparable() -> None:
    lines = differences.environments(compared([row()], [row(device_name="another", method="0")]).environment)
    assert [cell.text for cell in lines if cell.style == "bad"] == [
        "different machines: absolute times are not comparable",
        "different ways of measuring: the numbers are not comparable",
    ]


def test_a_case_in_two_environments_of_one_file_is_refused() -> None:
    check_once("a.csv", grouped(row(run="a"), row(run="b")))
    with pytest.raises(UserError, match=r"a\.csv: 2 cases .* threads \(2, 4\)"):
        check_once("a.csv", grouped(row(), row(threads=4, run="b")))


def test_what_is_unlike_where_nothing_is_in_common() -> None:
    assert unlike(grouped(row(dtype="float32")), grouped(row(dtype="bfloat16"))) == ["dtype (float32; bfloat16)"]


def test_what_got_worse_comes_first_the_worst_on_top() -> None:
    base = [
        row("a"),
        row("b"),
        failed("wrong", "bad", "c"),
        failed("oom", "big", "d"),
        row("e"),
        failed("skipped", "s", "f"),
        row("g"),
    ]
    new = [
        failed("oom", "big", "a"),
        failed("wrong", "far off", "b"),
        row("c"),
        row("d"),
        failed("crashed", "signal", "e"),
        failed("skipped", "t", "f"),
        row("g"),
    ]
    lines = differences.status_changes(compared(base, new))
    assert [cell.text for cell in lines] == [
        "b: ok → wrong at 1024 (far off), causal",
        "e: ok → crashed at 1024 (signal), causal",
        "a: ok → oom at 1024 (big), causal",
        "c: wrong → ok at 1024 (bad), causal",
        "d: oom → ok at 1024 (big), causal",
    ]
    assert [cell.style for cell in lines] == ["bad", "bad", "bad", "good", "good"]


def test_lengths_that_changed_alike_share_a_line() -> None:
    base = [row(n=n, mask=mask) for n in (512, 1024) for mask in ("full", "causal")]
    new = [failed("timeout", "60 s", n=n, mask=mask) for n in (512, 1024) for mask in ("full", "causal")]
    assert [cell.text for cell in differences.status_changes(compared(base, new))] == [
        "sdpa: ok → timeout at 512, 1024 (60 s), full",
        "sdpa: ok → timeout at 512, 1024 (60 s), causal",
    ]


def test_cases_in_only_one_are_listed() -> None:
    found = compared(
        [row(), row(n=2048), row("naive", 2048), row("naive", 2048, mask="full"), row(n=2048, mask="full")], [row()]
    )
    assert [cell.text for cell in differences.only_in("a.csv", found.only_base, found.axes)] == [
        "only in a.csv: naive, sdpa at 2048 (full; causal)"
    ]
    assert differences.only_in("b.csv", found.only_new, found.axes) == []


def test_the_table_and_the_summary() -> None:
    found = compared(
        [row("naive", ms=2.0), row(ms=4.0), row("flex")],
        [row("naive", ms=4.0), row(ms=1.0), failed("oom", variant="flex")],
    )
    (table,) = differences.ratios(found.cases)
    assert table.header[-3:] == ("time new/base", "by canary", "memory new/base")
    assert [[cell.text for cell in cells] for cells in table.sections[0]] == [
        ["1024", "naive", "2.00", "4.00", "2.00x", "2.00x", "1.00x"],
        ["1024", "sdpa", "4.00", "1.00", "0.250x", "0.250x", "1.00x"],
    ]
    assert [cell.text for cell in differences.summary(found.cases)] == [
        "3 cases in both files, 2 of them ok in both",
        "time new/base: 0.250x (sdpa at 1024, causal) to 2.00x (naive at 1024, causal), geometric mean 0.707x",
    ]


sides = st.lists(
    st.tuples(
        st.sampled_from(["naive", "sdpa", "flex"]),
        st.sampled_from([512, 1024]),
        st.sampled_from([*STATUSES, "ok"]),
        st.floats(0.01, 1e4),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda drawn: drawn[:2],
)


def rows_of(side: list[tuple[str, int, str, float]]) -> list[Row]:
    return [
        row(v, n, ms, peak_bytes=int(ms * 100)) if status == "ok" else failed(status, "why", v, n)
        for v, n, status, ms in side
    ]


@given(sides, sides, st.randoms())
@settings(max_examples=12, deadline=None)
def test_swapping_the_files_inverts_the_ratios_and_order_does_not_matter(base, new, shuffle: random.Random) -> None:
    rows = rows_of(base)
    one, other = grouped(*rows), grouped(*rows_of(new))
    there, back = compare(one, other), compare(other, one)
    pd.testing.assert_series_equal(there.cases["time_ratio"], 1 / back.cases["time_ratio"])
    pd.testing.assert_series_equal(there.cases["memory_ratio"], 1 / back.cases["memory_ratio"])
    pd.testing.assert_frame_equal(there.only_base[list(CASE)], back.only_new[list(CASE)], check_index_type=False)
    assert len(there.cases) + len(there.only_base) == len(base)
    assert len(there.cases) + len(there.only_new) == len(new)
    assert len(differences.status_changes(there)) == len(differences.status_changes(back))
    shuffle.shuffle(rows)
    pd.testing.assert_frame_equal(compare(grouped(*rows), other).cases, there.cases)


def test_a_file_against_itself_is_one_throughout() -> None:
    rows = [row(n=n, ms=n / 7) for n in (512, 1024)] + [failed("oom", n=2048)]
    found = compared(rows, rows)
    assert found.environment == {}
    assert found.cases["time_ratio"].dropna().to_list() == [1.0, 1.0]
    assert not differences.status_changes(found)
    assert math.isclose(found.cases["memory_ratio"].max(), 1.0)
