"""A trend over files: a column each, and the last over the first."""

from pathlib import Path

from bench.analysis import trend
from bench.analysis.cases import cases
from bench.analysis.frame import from_rows
from bench.analysis.trend import File
from bench.results.columns import Row
from tests.analysis.made_up import failed, row


def file(name: str, *rows: Row) -> File:
    frame = from_rows(rows)
    return File(Path(name), frame, cases(frame))


def lines(*files: File, reference: str | None = None) -> list[list[str]]:
    return [
        [cell.text for cell in line]
        for table in trend.tables(files, reference)
        for section in table.sections
        for line in section
    ]


def test_the_last_is_held_to_the_first() -> None:
    files = [
        file("a.csv", row(ms=2.0), row("flex", ms=1.0), row("naive", 512)),
        file("b.csv", row(ms=3.0), failed("oom", variant="flex"), failed("oom", variant="never")),
        file("c.csv", row(ms=5.0), row("flex", ms=0.5), failed("error", variant="naive", n=512)),
    ]
    assert lines(*files) == [
        ["512", "naive", "1.00", "", "error", ""],
        ["1024", "flex", "1.00", "oom", "0.500", "0.500x"],
        ["1024", "sdpa", "2.00", "3.00", "5.00", "2.50x"],
    ]
    assert trend.tables(files, None)[0].header == ("length", "variant", "a", "b", "c", "last/first")


def test_relative_to_a_variant_of_the_same_file() -> None:
    files = [
        file("a.csv", row(ms=2.0), row("flex", ms=1.0)),
        file("b.csv", row("flex", ms=1.0)),
        file("c.csv", row(ms=8.0, device_name="x"), row("flex", ms=2.0, device_name="x")),
    ]
    assert lines(*files, reference="sdpa") == [["1024", "flex", "0.500x", "no sdpa", "0.250x", "0.500x"]]


def test_files_of_one_name_are_called_by_their_paths() -> None:
    files = [file("mon/r.csv", row()), file("tue/r.csv", row())]
    assert trend.names(files) == ["mon/r.csv", "tue/r.csv"]


def test_when_a_file_began() -> None:
    began = "2026-01-01T00:00:00+00:00"
    assert file("a.csv", row(), row("flex", started=began)).started == began
