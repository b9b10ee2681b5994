"""The report of a run that was recorded: its numbers, computed a second time from the text of the CSV."""

import csv
import math
import statistics
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import t

from bench.analysis.contents import Contents
from bench.analysis.frame import read
from bench.analysis.text import TO

RECORDED = Path(__file__).parents[1] / "data" / "scaling-two-cores.csv"
WINDOW, GLOBAL = "causal+window:256", "causal+window:256+global:16"
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]


@pytest.fixture(scope="module")
def report() -> Contents:
    return Contents(read([RECORDED]), "sdpa")


def rows() -> list[dict[str, str]]:
    with RECORDED.open(newline="") as file:
        return list(csv.DictReader(file))


def median(cell: str) -> float:
    """Of a cell that holds many numbers."""
    return statistics.median(map(float, cell.split()))


Key = tuple[str, str, int]  # mask, variant, length


def visits_ms() -> tuple[dict[Key, list[float]], dict[Key, list[float]]]:
    """Each visit's median: of quiet visits, and of all."""
    ok = [row for row in rows() if row["status"] == "ok"]
    best = min(median(row["canary_samples_ms"]) for row in ok)
    quiet, every = defaultdict(list), defaultdict(list)
    for row in ok:
        key = row["mask"], row["variant"], int(row["seq_kv"])
        every[key].append(median(row["samples_ms"]))
        if median(row["canary_samples_ms"]) <= 1.1 * best and float(row.get("crowding") or 0) <= 0.1:
            quiet[key].append(median(row["samples_ms"]))
    return quiet, every


def quiet_ms() -> dict[Key, list[float]]:
    """Each visit's median; of quiet visits, where there are any."""
    quiet, every = visits_ms()
    return {key: quiet.get(key, found) for key, found in every.items()}


def none_quiet() -> set[Key]:
    """The cases of which no visit was quiet."""
    quiet, every = visits_ms()
    return set(every) - set(quiet)


def latency_ms(mask: str, variant: str) -> dict[int, float]:
    return {n: statistics.median(ms) for (m, v, n), ms in quiet_ms().items() if (m, v) == (mask, variant)}


def peak_bytes(mask: str, variant: str) -> dict[int, int]:
    peaks: dict[int, int] = {}
    for row in rows():
        if (row["mask"], row["variant"], row["status"]) == (mask, variant, "ok"):
            n = int(row["seq_kv"])
            peaks[n] = max(peaks.get(n, 0), int(row["peak_bytes"]))
    return peaks


def test_latencies_and_peaks_are_those_of_the_file(report: Contents) -> None:
    cases = report.cases[report.cases["status"] == "ok"].set_index(["mask", "variant", "seq_kv"])
    assert len(cases) >= 50
    found = quiet_ms()
    assert set(cases.index) == set(found)
    for key, visits in found.items():
        assert cases.loc[key, "latency_ms"] == pytest.approx(statistics.median(visits))
        assert cases.loc[key, "peak_bytes"] == peak_bytes(*key[:2])[key[2]]
        if len(visits) > 1:
            logs = np.log(visits)
            low, high = t.interval(0.95, len(logs) - 1, logs.mean(), logs.std(ddof=1) / math.sqrt(len(logs)))
            assert cases.loc[key, "low_ms"] == pytest.approx(math.exp(low))
            assert cases.loc[key, "high_ms"] == pytest.approx(math.exp(high))


def exponent(costs: dict[int, float]) -> float:
    """Of fixed cost and power law, by SciPy's least squares on logarithms from many starting points."""
    n, logs = np.array(sorted(costs), dtype=float), np.log([costs[n] for n in sorted(costs)])

    def residuals(x: np.ndarray) -> np.ndarray:
        return np.log(np.exp(x[1]) * ((n / n[0]) ** x[0] + x[2])) - logs  # type: ignore[no-any-return]

    starts = [(p, logs[0], share) for p in (0.5, 1, 1.5, 2) for share in (0.0, 0.1, 1.0)]
    bounds = ([0, -np.inf, 0], [4, np.inf, np.inf])
    tries = [least_squares(residuals, s, bounds=bounds, xtol=1e-12, ftol=1e-12, gtol=1e-12) for s in starts]
    return float(min(tries, key=lambda found: found.cost).x[0])


@pytest.mark.parametrize("mask", ["causal", WINDOW])
@pytest.mark.parametrize("variant", ["naive", "chunked", "sdpa", "flex"])
def test_exponents_are_those_of_a_library(report: Contents, mask: str, variant: str) -> None:
    fits = report.growths.set_index(["mask", "variant", "quantity"])
    # Two visits: the mean of their logarithms, which the fit goes through, is that of their median.
    for quantity, costs in (("latency_ms", latency_ms(mask, variant)), ("peak_bytes", peak_bytes(mask, variant))):
        found = fits.loc[(mask, variant, quantity)]
        assert found["strays"] == 0
        assert found["exponent"] == pytest.approx(exponent(costs), abs=0.02)  # type: ignore[arg-type]


def crossing(ours: dict[int, float], theirs: dict[int, float]) -> float:
    """Where two latencies meet, by hand: straight lines in logarithms between the lengths about the change."""
    apart = {n: math.log(ours[n] / theirs[n]) for n in LENGTHS}
    before = max(n for n in LENGTHS if apart[n] > 0)
    after = min(n for n in LENGTHS if apart[n] < 0 and n > before)
    return float(before * (after / before) ** (apart[before] / (apart[before] - apart[after])))


@pytest.mark.parametrize("variant", ["longformer", "chunked"])
def test_the_crossing_lies_where_two_straight_lines_meet(report: Contents, variant: str) -> None:
    by_hand = crossing(latency_ms(GLOBAL, variant), latency_ms(GLOBAL, "sdpa"))
    (table,) = [table for table in report.derived if table.title.startswith(f"how it scales · {GLOBAL}")]
    at = table.header.index("faster than sdpa")
    (told,) = [row[at].text for row in table.sections[0] if row[0].text == variant]
    assert told.startswith(f"from {float(f'{by_hand:.2g}'):,.0f} (")
    low, high = (int(n.replace(",", "")) for n in told.split("(")[1].rstrip(")").split(TO))
    assert low <= by_hand <= high


def test_the_answer_in_words(report: Contents) -> None:
    causal, window, both = ([line.text for line in paragraph.lines] for paragraph in report.answer)
    ours, base = latency_ms("causal", "sdpa"), latency_ms("causal", "chunked")
    interval = causal[1].split("(")[1].split(")")[0]
    low, high = map(float, interval.split(TO))
    assert low < base[16384] / ours[16384] < high
    assert causal[:2] == [
        "Fastest: flex or sdpa (too close to call) at 512; sdpa from 1k to 16k.",
        f"At 16k sdpa is {base[16384] / ours[16384]:.2f}x ({interval}) as fast as chunked.",
    ]
    lean, base_peak = peak_bytes(WINDOW, "chunked")[16384], peak_bytes(WINDOW, "sdpa")[16384]
    least = f"{lean / 2**20:.1f} MiB above the inputs at 16k, {base_peak / lean:.1f}x less than sdpa"
    assert f"Leanest: sliding_window from 512 to 2k; chunked from 4k to 16k ({least})." in window
    # 256 keys a row but for the first 255 rows, over half a square.
    share = (256 * 16384 - 255 * 256 / 2) / (16384 * 16385 / 2)
    spent = latency_ms(WINDOW, "flex")[16384] / ours[16384]
    leaves, takes = (f"{part:.1%}".replace("%", " %") for part in (share, spent))
    (saved,) = [line for line in window if "leaves" in line]
    assert saved.startswith(f"At 16k the mask leaves {leaves} of causal's pairs, and flex takes {takes} (")
    assert saved.endswith(" %) of the time of sdpa under causal.")
    low, high = saved.split("(")[1].split(" %)")[0].split(TO)
    assert float(low) < 100 * spent < float(high)
    longer, flex = latency_ms(GLOBAL, "longformer"), latency_ms(GLOBAL, "flex")
    change, back = [line for line in both if "instead of" in line]
    by_hand = math.exp(
        math.log(2048)
        + math.log(2)
        * math.log(longer[2048] / flex[2048])
        / (math.log(longer[2048] / flex[2048]) - math.log(longer[4096] / flex[4096]))
    )
    assert change.startswith(f"From {float(f'{by_hand:.2g}'):,.0f} tokens (")
    assert f") to 8k use longformer instead of flex: {flex[8192] / longer[8192]:.2f}x (" in change
    assert change.endswith(") as fast at 8k.")
    assert f" use flex instead of longformer: {longer[16384] / flex[16384]:.2f}x (" in back
    unquiet = {v: [n for n in LENGTHS if (GLOBAL, v, n) in none_quiet()] for v in ("longformer", "flex")}
    assert unquiet == {"longformer": [4096], "flex": []}
    assert "No visit was quiet, and the time may well be too long: longformer at 4k." in both
    assert "Reach: " in window[-1] and "naive to 8k, then skipped (one call would take about 6.3 s)" in window[-1]
