"""The table of errors over their budgets."""

from bench.analysis.accuracy import tables
from tests.analysis.made_up import failed, row, series_of


def test_by_dtype_and_length() -> None:
    rows = [row("sdpa", 512, error=1e-7, error_budget=4e-7), row("sdpa", 1024, error=3e-7, error_budget=4e-7)]
    rows += [row("sdpa", 512, dtype="bfloat16", error=1e-3, error_budget=2e-3)]
    rows += [row("linear", 512, exact=False, error=0.5, error_budget=None)]
    rows += [failed("wrong", "far off", "naive", 512, error=9e-7, error_budget=3e-7)]
    (table,) = tables(series_of(*rows))
    assert table.header == ("variant", "dtype", "512", "1024")
    assert [[cell.text for cell in line] for line in table.sections[0]] == [
        ["naive", "float32", "3.00x", ""],
        ["sdpa", "bfloat16", "0.500x", ""],
        ["sdpa", "float32", "0.250x", "0.750x"],
        ["≈ linear", "float32", "5.0e-01", ""],
    ]
    assert table.sections[0][0][2].style == "bad"


def test_a_table_for_each_mask() -> None:
    titles = [table.title for table in tables(series_of(row("sdpa", 512), row("sdpa", 512, mask="full")))]
    assert len(titles) == 2
    assert all(title.startswith("error · ") for title in titles)


def test_without_an_error_there_is_no_table() -> None:
    assert tables(series_of(row("sdpa", 512, error=None, error_budget=None))) == []


def test_where_queries_are_fixed_the_lengths_stand_apart() -> None:
    rows = [row("sdpa", n, seq_q=q, error=e, error_budget=1.0) for n in (512, 1024) for q, e in ((n, 0.5), (1, 0.25))]
    same, decode = tables(series_of(*rows))
    assert decode.title == f"{same.title} · seq_q 1"
    assert same.header == decode.header == ("variant", "dtype", "512", "1024")
    assert [cell.text for cell in decode.sections[0][0]] == ["sdpa", "float32", "0.250x", "0.250x"]
