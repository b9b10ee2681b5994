"""The results file: whole rows, never lost, never overwritten."""

import csv
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.results.columns import COLUMNS, Row
from bench.results.store import Store
from tests.results.rows import ROW

ROWS = [replace(ROW, visit=n) for n in (1, 2, 3)]


def write(path: Path, rows: list[Row]) -> bytes:
    with Store(path) as store:
        for row in rows:
            store.append(row)
    return path.read_bytes()


def test_rows_come_back_as_they_went_in(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.csv"
    write(path, ROWS)
    with Store(path, resume=True) as store:
        assert store.rows == ROWS
    with path.open(newline="") as file:
        assert next(csv.reader(file)) == list(COLUMNS)


def test_each_row_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    with Store(path) as store:
        for n, row in enumerate(ROWS, start=1):
            store.append(row)
            assert path.read_bytes().count(b"\n") == n + 1


def test_an_existing_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    before = write(path, ROWS)
    with pytest.raises(UserError, match=r"exists; add --resume"):
        Store(path)
    assert path.read_bytes() == before


def test_resuming_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not exist"):
        Store(tmp_path / "results.csv", resume=True)


def test_a_line_torn_anywhere_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    whole = write(path, ROWS)
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:cut])
        with Store(path, resume=True) as store:
            kept = sum(end <= cut for end in ends) - 1
            assert store.rows == ROWS[: max(kept, 0)]
            for row in ROWS[len(store.rows) :]:
                store.append(row)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"not ours", b"\x00\xff\n", b"run,visit\n"])
def test_a_file_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match="header differs"):
        Store(path, resume=True)
    assert path.read_bytes() == content


def test_a_malformed_row_is_refused_with_its_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    content = write(path, ROWS).replace(b",float32,", b",float31,").replace(b",1024,1024,", b",1024,many,")
    path.write_bytes(content)
    with pytest.raises(UserError, match="line 2: column 'seq_kv': 'many' is not of type int"):
        Store(path, resume=True)
    assert path.read_bytes() == content


def test_a_second_run_into_the_same_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    with Store(path) as store:
        store.append(ROW)
        with pytest.raises(UserError, match="another run is writing"):
            Store(path, resume=True)
    with Store(path, resume=True) as store:
        assert store.rows == [ROW]


@pytest.mark.parametrize("name", ["", "file/results.csv"])
def test_what_cannot_be_written_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--out") as refusal:
        Store(tmp_path / name)
    assert "\n" not in str(refusal.value)
    assert str(tmp_path) in str(refusal.value)


def test_an_interrupt_does_not_tear_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.csv"
    write_all = os.write

    def interrupted(file: int, data: bytes) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return write_all(file, data[: len(data) // 2 + 1])

    with Store(path) as store:
        monkeypatch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append(ROW)
        assert store.rows == [ROW]
    monkeypatch.undo()
    with Store(path, resume=True) as store:
        assert store.rows == [ROW]
