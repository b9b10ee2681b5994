"""Results CSVs come back as they went in, or are refused in one line that says where and why."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.analysis.frame import from_rows, read
from bench.errors import UserError
from bench.results.columns import COLUMNS, METHOD
from bench.results.store import Store
from tests.analysis.made_up import failed, row, write


def test_what_the_store_writes_is_read(tmp_path: Path) -> None:
    rows = [row(), failed("oom", n=2048)]
    with Store(tmp_path / "a.csv") as store:
        for r in rows:
            store.append(r)
    pd.testing.assert_frame_equal(read([tmp_path / "a.csv"]), from_rows(rows))


@pytest.mark.parametrize(
    "name", ["None", "NA", "nan", "null", "True", "12e4567", "0012345", "-", ' "quoted", ', "é 注意", "a\nb"]
)
def test_strings_come_back_as_typed(tmp_path: Path, name: str) -> None:
    frame = read([write(tmp_path / "a.csv", [row(name, kernel=name, device_name=name)])])
    assert frame[["variant", "kernel", "device_name"]].to_numpy().tolist() == [[name] * 3]


def test_types_are_as_declared(tmp_path: Path) -> None:
    frame = read([write(tmp_path / "a.csv", [row(ms=(1.5, 2.5)), failed("skipped", visit=2)])])
    assert list(frame) == list(COLUMNS)
    for name, column in COLUMNS.items():
        if column.type in ("int", "float"):
            assert frame[name].dtype == (np.int64 if column.type == "int" and not column.optional else np.float64), name
    assert frame["exact"].dtype == bool
    assert frame["samples_ms"].to_list() == [(1.5, 2.5), ()]
    assert frame["latency_ms"].to_list()[0] == 2.0
    assert frame["latency_ms"].isna().to_list() == [False, True]
    assert frame["reason"].to_list()[0] == ""


def test_files_add_up_and_extra_columns_do_not_matter(tmp_path: Path) -> None:
    one = write(tmp_path / "1.csv", [row(visit=1)], extra={"note": "mine", "another": "2"})
    two = write(tmp_path / "2.csv", [row(visit=2)])
    pd.testing.assert_frame_equal(read([one, two]), from_rows([row(visit=1), row(visit=2)]))


def test_the_same_case_in_two_runs_is_no_clash(tmp_path: Path) -> None:
    assert len(read([write(tmp_path / "a.csv", [row(run="a"), row(run="b")])])) == 2


def test_a_very_long_list_of_samples_is_read(tmp_path: Path) -> None:
    frame = read([write(tmp_path / "a.csv", [row(ms=(1.0123456789012345,) * 20_000)])])
    assert len(frame["samples_ms"].iloc[0]) == 20_000


def refusal(*paths: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(paths)
    text = str(caught.value)
    assert "\n" not in text
    assert paths[-1].name in text
    return text


def test_the_same_visit_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [row(), row(n=2048), row()])
    assert "line 4" in refusal(path)
    assert "line 2" in refusal(path)
    other = write(tmp_path / "b.csv", [row()])
    assert "a.csv, line 2" in refusal(write(tmp_path / "a.csv", [row()]), other)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"a,b\n1,2\n", "run, visit"),
        (b"\x89PNG\r\n\x1a\n", "not a CSV"),
        (b"\xff\xfe", "not a CSV"),
        (b'"never closed', "not a CSV"),
    ],
)
def test_what_is_no_results_file(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(content)
    assert expected in refusal(path)


def test_a_header_alone(tmp_path: Path) -> None:
    assert "no rows" in refusal(write(tmp_path / "a.csv", []))


def test_what_is_no_file(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "missing.csv")
    assert "directory" in refusal(tmp_path).lower()


def test_one_column_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    read([write(path, [row()])])
    pd.read_csv(path, dtype=str).drop(columns="threads").to_csv(path, index=False)
    assert refusal(path).endswith("lacks the columns threads")


def test_a_file_of_an_older_method_is_refused_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [row(method="1")])
    lines = list(csv.reader(path.read_text().splitlines()))
    at = lines[0].index("threads")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([*line[:at], *line[at + 1 :]] for line in lines)
    assert f"{path}: written by method 1, and method {METHOD} " in refusal(path)
    assert "lacks threads" in refusal(path)


def test_a_column_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [row()], extra={"note": ""})
    path.write_text(path.read_text().replace("note", "latency_ms", 1))
    assert "latency_ms stands twice" in refusal(path)


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("heads", "eight"),
        ("heads", "3"),  # of 2 kv_heads
        ("seq_q", ""),
        ("seq_q", "-1"),
        ("peak_bytes", "1.5"),
        ("error", "small"),
        ("exact", "yes"),
        ("samples_ms", "1.0 two"),
        ("samples_ms", "0.0"),
        ("samples_ms", "-1.0"),
        ("samples_ms", "nan"),
        ("samples_ms", "inf"),
        ("direction", "sideways"),
        ("dtype", "float8"),
        ("mask", "diagonal"),
        ("status", "okay"),
        ("canary_samples_ms", "-1.0"),
        ("crowding", "some"),
        ("latency_ms", "fast"),  # computed again, but malformed all the same
        ("error", "nan"),  # of a row that is ok
        ("error", "-1.0"),
        ("peak_bytes", "-5"),
        ("ceiling_tflops", "high"),
        ("threads", ""),
        ("tf32", "no"),
        ("visit", "9" * 30),
    ],
)
def test_a_malformed_cell_is_repeated_with_its_place(tmp_path: Path, column: str, cell: str) -> None:
    good, bad = row(), row(visit=2)
    path = write(tmp_path / "a.csv", [good])
    cells = bad.cells() | {column: cell}
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(cells[name] for name in COLUMNS)
    if column == "visit":
        with pytest.raises(UserError, match="too large"):
            read([path])
        return
    text = refusal(path)
    assert "line 3" in text
    assert column in text
    assert (cell or "empty") in text


def test_the_first_malformed_cell_of_the_header_is_named_and_cells_come_before_what_they_amount_to(
    tmp_path: Path,
) -> None:
    malformed = [{"torch": "", "threads": "two", "heads": "3"}, {"status": "okay", "heads": "3", "copy_gb_s": "x"}]
    for at, (changes, expected) in enumerate(zip(malformed, ("threads", "copy_gb_s"), strict=True)):
        path = tmp_path / f"{at}.csv"
        pd.DataFrame([row().cells() | changes]).to_csv(path, index=False)
        assert f"line 2: column {expected!r}" in refusal(path)


def test_what_follows_from_the_facts_is_computed_and_never_taken_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    pd.DataFrame([row(ms=(1.0, 3.0)).cells() | {"latency_ms": "99.0", "spread": "", "tflops": "7"}]).to_csv(
        path, index=False
    )
    pd.testing.assert_frame_equal(read([path]), from_rows([row(ms=(1.0, 3.0))]))


def test_a_case_that_was_refused_once_is_refused_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [failed("oom", direction="sideways")])
    assert refusal(path) == refusal(path)


def test_a_torn_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [row(), row(visit=2)])
    path.write_text(path.read_text()[:-60])
    assert "line 3" in refusal(path)


def test_a_cell_of_several_lines_does_not_shift_the_count(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", [row("a\nb"), row(), row()])
    assert "line 5" in refusal(path)
