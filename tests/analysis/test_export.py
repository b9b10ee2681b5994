"""The JSON of pytest-benchmark, held to pytest-benchmark itself."""

import json
import random

import pytest
from pytest_benchmark.stats import Stats

from bench.analysis import export
from bench.analysis.frame import from_rows
from tests.analysis.made_up import failed, row


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 40, 41])
def test_statistics_are_those_of_pytest_benchmark(count: int) -> None:
    draw = random.Random(count)
    seconds = [draw.lognormvariate(0, 1) for _ in range(count)]
    theirs = Stats()
    for sample in seconds:
        theirs.update(sample)
    ours = export.stats(seconds)
    assert ours.pop("data") == seconds
    assert ours.pop("outliers") == theirs.outliers
    assert ours == pytest.approx({name: value for name, value in theirs.as_dict().items() if name != "outliers"})


def test_constant_samples_have_no_outliers() -> None:
    assert export.stats([0.1] * 3)["outliers"] == "0;0"


def test_seconds_of_the_visits_that_count() -> None:
    rows = [
        row("naive", ms=(3.0, 5.0), visit=2, canary_samples_ms=(10.0,)),
        row("naive", ms=(1.0, 2.0), visit=1, canary_samples_ms=(10.0,)),
        row("naive", ms=(99.0,), visit=3, canary_samples_ms=(30.0,)),
        failed("oom", variant="flex"),
    ]
    document = export.pytest_benchmark(from_rows(rows))
    (benchmark,) = document["benchmarks"]
    assert benchmark["stats"]["data"] == [0.001, 0.002, 0.003, 0.005]
    assert benchmark["stats"]["median"] == 0.0025
    assert benchmark["stats"]["iterations"] == 3
    assert benchmark["name"] == "naive at 1024"
    assert benchmark["params"]["seq_kv"] == 1024
    assert benchmark["extra_info"]["latency_ms"] == 2.75
    assert benchmark["extra_info"]["peak_bytes"] == 2**24
    assert document["machine_info"]["cpu"]["brand_raw"] == "a made-up CPU"
    assert document["commit_info"]["id"] == "abc1234"
    assert document["datetime"] == "2026-11-29T12:00:00+00:00"
    assert json.loads(export.text(document)) == document


def test_names_tell_all_cases_apart() -> None:
    rows = [row(), row(n=2048), row("naive"), row(mask="full"), row(dtype="float16"), row(heads=4), row(cache="cold")]
    document = export.pytest_benchmark(from_rows(rows))
    assert len({benchmark["fullname"] for benchmark in document["benchmarks"]}) == len(rows)


def test_a_changed_tree_is_dirty() -> None:
    document = export.pytest_benchmark(from_rows([row(commit="abc1234+")]))
    assert (document["commit_info"]["id"], document["commit_info"]["dirty"]) == ("abc1234", True)
