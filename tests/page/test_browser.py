"""The page in a browser, from disk: what it shows is what the CSV holds, whatever that is, and nothing in it runs."""

import csv
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analysis.text import TO
from bench.results.columns import Row
from bench.results.command import command
from tests.analysis.made_up import failed, row, write
from tests.page.browser import chromium, html

pytest.importorskip("vl_convert", reason="the package that carries Vega is not installed")

SCRIPT, IMAGE = "<script>window.ran = 1</script>", "<img src=x onerror='window.ran = 1'>"
ENDING = "</script><script>window.ran = 1</script>"


def visits(variant: str, n: int, *ms: float, **changes: Any) -> list[Row]:
    """A visit for each of these latencies, of three samples around it."""
    return [row(variant, n, (0.9 * m, m, 1.2 * m), visit=at, **changes) for at, m in enumerate(ms, 1)]


ROWS = [
    *visits("sdpa", 512, 1.0, 1.25),
    *visits("sdpa", 1024, 4.5, 4.25, 4.75),
    *visits("flex", 512, 11.0, 12.0),
    *visits("flex", 1024, 3.0, 2.5),
    *visits("flex", 1024, 0.125, 0.25, mask="full"),
    *visits("sdpa", 1024, 100.0, mask="full"),
    failed("wrong", "far off", "naive", 512),
    failed("skipped", "one call would take about 9 s", "naive", 1024),
    failed("unsupported", "takes no causal mask", "other", 1024),
]


page_of = cache(html)  # many tests open the same rows


@dataclass
class Opened:
    """A page in its tab, and what went wrong there."""

    tab: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def texts(self, selector: str) -> list[str]:
        """What stands in each of these elements."""
        found: list[str] = self.tab.locator(selector).all_text_contents()
        return [text.strip() for text in found]

    def count(self, selector: str) -> int:
        """How many of these elements there are."""
        return int(self.tab.locator(selector).count())

    def do(self, act: Callable[[], Any]) -> None:
        """Does something after which figures are drawn again, and waits until they are."""
        before = self.tab.get_attribute("#panels", "data-drawn")
        act()
        self.tab.wait_for_function("was => document.getElementById('panels').dataset.drawn !== was", arg=before)

    def tick(self, axis: str, value: str) -> None:
        """Ticks or unticks a value of a filter."""
        self.do(lambda: self.tab.click(f'#filters input[data-axis="{axis}"][value="{value}"]'))

    def column(self, name: str) -> list[str]:
        """The cells of a column of the table, from top to bottom."""
        at = self.tab.eval_on_selector(f'#cases th[data-column="{name}"]', "head => head.cellIndex") + 1
        return self.texts(f"#cases tbody td:nth-child({at})")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the page of rows, or a page that was opened before by its address, and holds it to silence."""
    numbers, all_opened = count(), []

    def open_(rows: Iterable[Row] | str, choice: str = "", **settings: Any) -> Opened:
        address = rows if isinstance(rows, str) else ""
        if not isinstance(rows, str):
            path = tmp_path / f"{next(numbers)}.html"
            path.write_text(page_of(tuple(rows)), encoding="utf-8")
            address = f"{path.as_uri()}#{choice}"
        page = Opened(browser.new_page(**settings))
        page.tab.on("console", lambda message: page.complaints.append(message.text))
        page.tab.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.tab.on("dialog", lambda dialog: (page.complaints.append(dialog.message), dialog.dismiss()))
        page.tab.on("request", lambda request: page.requests.append(request.url))
        page.tab.goto(address)
        page.tab.wait_for_selector("#panels[data-drawn]", state="attached")
        all_opened.append(page)
        return page

    yield open_
    for page in all_opened:
        assert page.complaints == []
        assert len(page.requests) == 1 and page.requests[0].startswith("file://")
        assert page.tab.evaluate("window.ran") is None
        page.tab.close()


def expected(path: Path) -> dict[tuple[str, str, str], float]:
    """(variant, mask, length) -> median of the visits' medians, read from the CSV by hand."""
    medians: dict[tuple[str, str, str], list[float]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            if line["status"] == "ok":
                samples = [float(ms) for ms in line["samples_ms"].split()]
                medians.setdefault((line["variant"], line["mask"], line["seq_kv"]), []).append(
                    statistics.median(samples)
                )
    return {case: statistics.median(of_visits) for case, of_visits in medians.items()}


def test_the_numbers_are_those_of_the_csv(opened: Callable[..., Opened], tmp_path: Path) -> None:
    page, wanted = opened(ROWS), expected(write(tmp_path / "a.csv", ROWS))
    keys = zip(page.column("variant"), page.column("mask"), page.column("size"), strict=True)
    shown = dict(zip(keys, page.column("latency_ms"), strict=True))
    assert {case: float(text) for case, text in shown.items() if text} == pytest.approx(wanted, rel=0.005)
    ratios = dict(zip(shown, page.column("speedup"), strict=True))
    for (variant, mask, n), ms in wanted.items():
        assert float(ratios[variant, mask, n][:-1]) == pytest.approx(wanted["sdpa", mask, n] / ms, rel=0.005)


def test_intervals_errors_and_peaks_are_those_of_the_csv(opened: Callable[..., Opened]) -> None:
    changes = {"error": 3e-7, "error_budget": 4e-6, "peak_bytes": 3 * 2**20}
    page = opened(visits("sdpa", 512, 2.0, 2.2, 2.1, **changes))
    logs = [math.log(ms) for ms in (2.0, 2.2, 2.1)]
    reach = 4.30265 * statistics.stdev(logs) / math.sqrt(3)  # Student's t for two degrees of freedom, from a table
    low, high = page.column("low_ms")[0].split(TO)
    assert float(low) == pytest.approx(math.exp(statistics.mean(logs) - reach), rel=0.005)
    assert float(high) == pytest.approx(math.exp(statistics.mean(logs) + reach), rel=0.005)
    told = [page.column(name)[0] for name in ("error", "error_share", "peak_bytes", "quiet")]
    assert told == ["3.0e-7", "7.5 %", "3.00 MiB", "3 of 3"]


def test_a_caret_shows_where_the_frame_cuts_an_interval(opened: Callable[..., Opened]) -> None:
    page = opened(visits("sdpa", 512, 1.0, 1.01, 1.02) + visits("sdpa", 1024, 1.0, 3.0))  # of two visits: over decades
    carets = [page.tab.locator("#panels .cuts_marks path").nth(at).bounding_box() for at in range(2)]
    assert page.count("#panels .cuts_marks path") == 2
    frame = page.tab.locator("#panels .chart .background").first.bounding_box()
    assert carets[0]["y"] + carets[0]["height"] == pytest.approx(frame["y"] + frame["height"], abs=1.5)
    assert carets[1]["y"] == pytest.approx(frame["y"], abs=1.5)


def test_what_failed_is_shown_with_its_reason(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS)
    told = list(zip(page.column("status"), page.column("reason"), strict=True))
    for status, reason in (
        ("wrong", "far off"),
        ("skipped", "one call would take about 9 s"),
        ("unsupported", "takes no causal mask"),
    ):
        assert (status, reason) in told
        assert any(f"{status} ({reason})" in note for note in page.texts("#panels details li"))
    assert page.count("#panels .marks_marks path") == 2  # what is unsupported is no failure


def test_filters_leave_the_points_and_rows_that_they_name(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS)
    cases = {(r.case.variant, r.case.mask, r.case.seq_kv, r.facts.status) for r in ROWS}
    steps = [("variant", "flex"), ("mask", "causal"), ("variant", "flex"), ("size", "1024")]
    hidden: Counter[tuple[str, str]] = Counter()
    for axis, value in steps:
        page.tick(axis, value)
        hidden[axis, value] += 1
        out = {key for key, times in hidden.items() if times % 2}
        left = [c for c in cases if not out & {("variant", c[0]), ("mask", c[1]), ("size", str(c[2]))}]
        assert page.count("#cases tbody tr") == len(left)
        assert page.count("#panels .points_marks path") == sum(c[3] == "ok" for c in left)


def test_no_value_ticked_is_said(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS)
    page.do(lambda: page.tab.click('#filters fieldset[data-axis="mask"] .every'))
    assert page.count("#cases tbody tr") == 0
    assert "no case" in page.texts("#count")[0]


def test_columns_sort_both_ways_with_blanks_last(opened: Callable[..., Opened]) -> None:
    peaks = {"sdpa": 9 * 2**20, "flex": 10 * 2**20, "naive": 2**30}
    rows = [row(v, n, len(v) * n / 128, peak_bytes=p + n) for v, p in peaks.items() for n in (512, 4096, 1024)]
    rows += [failed("oom", "no", "naive", 8192)]
    page = opened(rows)
    table = pd.DataFrame([r.flat() for r in rows]).set_index(["variant", "seq_kv"], drop=False)
    for name, column in {"latency_ms": "latency_ms", "peak_bytes": "peak_bytes", "size": "seq_kv"}.items():
        for direction in ("ascending", "descending"):
            page.tab.press(f'#cases th[data-column="{name}"] button', "Enter")
            assert page.tab.get_attribute(f'#cases th[data-column="{name}"]', "aria-sort") == direction
            keys = list(zip(page.column("variant"), map(int, page.column("size")), strict=True))
            wanted = table[column].sort_values(ascending=direction == "ascending", na_position="last")
            assert table[column].loc[keys].fillna(-1).to_list() == wanted.fillna(-1).to_list()


def test_names_and_reasons_are_shown_as_typed(opened: Callable[..., Opened]) -> None:
    names = [SCRIPT, IMAGE, ENDING, "<b>x</b>", "&lt;", "__proto__", "7", "é \N{SNOWMAN} 長"]
    page = opened([r for name in names for r in (*visits(name, 512, 2.0), failed("error", name, name, 1024))])
    for name in names:
        assert page.column("variant").count(name) == page.texts("#filters label").count(name) + 1 == 2
        assert page.column("reason").count(name) == 1
        assert any(note.startswith(f"{name}: error ({name})") for note in page.texts("#panels details li"))
    for at in range(len(names)):
        page.tab.click(f'#cases tbody tr[data-case="{2 * at}"] button')
        page.tab.wait_for_selector(f'#detail[data-drawn="{2 * at}"]')
        assert page.texts("#detail-title")[0] in names
        page.tab.keyboard.press("Escape")


def test_a_point_opens_the_case_with_its_samples_and_its_command(opened: Callable[..., Opened]) -> None:
    rows = [*visits("sdpa", 512, 1.0, 2.0), row("flex", 512, (5.0, 6.0, 7.0, 8.0), kernel="compiled")]
    page = opened(rows)
    page.tab.click("#panels .points_marks path >> nth=0")  # sdpa comes first in the legend
    page.tab.wait_for_selector("#detail[data-drawn]")
    assert page.texts("#detail-title") == ["sdpa"]
    assert page.count("#detail .samples_marks path") == 6
    assert page.texts("#command") == [command(rows[0].case, rows[0].environment.threads)]
    page.tab.keyboard.press("Escape")
    page.tab.click("#cases tbody tr:has-text('flex')")
    page.tab.wait_for_function("document.querySelectorAll('#detail .samples_marks path').length === 4")
    detail = page.texts("#detail")[0]
    assert "compiled" in detail and "a made-up CPU" in detail and "16.0 MiB" in detail


def test_hovering_tells_the_number(opened: Callable[..., Opened]) -> None:
    page = opened(visits("sdpa", 512, 1.0, 1.5))
    page.tab.hover("#panels .points_marks path")
    assert "1.25 ms" in page.texts("#tip")[0]
    page.tab.hover("h1")
    page.tab.wait_for_selector("#tip", state="hidden")


LENGTHS = [256 * 2**k for k in range(6)]


def power_law(variant: str, time: float, memory: float, fixed_ms: float = 0.0, **changes: Any) -> list[Row]:
    """Two visits to every length, 1 % apart, whose latency and peak grow with these exponents."""
    return [
        one
        for n in LENGTHS
        for ms, bytes_ in [(fixed_ms + 3 * (n / 256) ** time, round(1e6 * (n / 256) ** memory))]
        for one in visits(variant, n, 0.995 * ms, 1.005 * ms, peak_bytes=bytes_, **changes)
    ]


GROWING = [
    *power_law("sdpa", 2.0, 1.0),
    *power_law("flex", 1.0, 0.5),
    *power_law("flex", 1.25, 0.75, mask="full"),
    *power_law("sdpa", 1.75, 1.5, fixed_ms=40.0, mask="full"),
    *power_law("naive", 2.0, 2.0)[:6],
]


def told(page: Opened, quantity: str) -> dict[tuple[str, str], str]:
    """(panel, variant) -> what is told of the growth of this quantity, for each point of it."""
    found = {}
    for panel in page.tab.locator("#panels figure").all():
        for point in panel.locator(f".{quantity}_marks path").all():
            point.hover()
            name, _, rest = page.texts("#tip strong")[0].rpartition(", ")
            assert rest == {"latency_ms": "latency", "peak_bytes": "peak memory"}[quantity]
            found[panel.locator("figcaption").text_content(), name] = page.texts("#tip")[0]
    return found


def exponent(text: str) -> float:
    """The n^1.02 that is told, which stands within its interval."""
    match = re.search(rf"n\^(\d\.\d\d) \((\d\.\d\d){TO}(\d\.\d\d)\), of 6 lengths", text)
    assert match
    value, low, high = map(float, match.groups())
    assert low <= value <= high
    return value


def test_growths_are_those_that_the_power_laws_have(opened: Callable[..., Opened]) -> None:
    page = opened(GROWING, "figure=growth")
    times, peaks = told(page, "latency_ms"), told(page, "peak_bytes")
    assert {key: exponent(text) for key, text in times.items()} == pytest.approx(
        {("causal", "sdpa"): 2.0, ("causal", "flex"): 1.0, ("full", "flex"): 1.25, ("full", "sdpa"): 1.75}, abs=0.02
    )
    assert {key: exponent(text) for key, text in peaks.items()} == pytest.approx(
        {("causal", "sdpa"): 1.0, ("causal", "flex"): 0.5, ("full", "flex"): 0.75, ("full", "sdpa"): 1.5}, abs=0.02
    )
    fixed = re.search(r"fixed cost ([\d.]+) ms", times["full", "sdpa"])
    assert fixed and float(fixed[1]) == pytest.approx(40.0, rel=0.05)


def test_a_length_far_off_its_law_is_told(opened: Callable[..., Opened]) -> None:
    lengths = [*LENGTHS, 2 * LENGTHS[-1]]
    far_off = [one for n in lengths for one in visits("sdpa", n, n / 64 * (3 if n == 2048 else 1))]
    page = opened(far_off, "figure=growth")
    (text,) = told(page, "latency_ms").values()
    assert "n^1.00" in text and "of 7 lengths" in text
    assert "1 of them far off this law" in text


def test_growths_stand_where_their_exponents_are(opened: Callable[..., Opened]) -> None:
    page = opened([*power_law("sdpa", 2.0, 1.0), *power_law("flex", 1.0, 2.0)], "figure=growth")

    def places(selector: str, at: str) -> list[float]:
        boxes = [item.bounding_box() for item in page.tab.locator(f"#panels {selector}").all()]
        return [box[at] + box["width" if at == "x" else "height"] / 2 for box in boxes]

    linear, quadratic = places(".powers_marks line", "x")
    assert places(".latency_ms_marks path", "x") == pytest.approx([linear, quadratic], abs=3)  # flex, sdpa: by name
    assert places(".peak_bytes_marks path", "x") == pytest.approx([quadratic, linear], abs=3)
    rows = dict(zip(page.texts("#panels .role-axis-label text"), places(".role-axis-label text", "y"), strict=True))
    for quantity in ("latency_ms", "peak_bytes"):
        assert places(f".{quantity}_marks path", "y") == pytest.approx([rows["flex"], rows["sdpa"]], abs=12)
    faces = [page.tab.get_attribute(f"#panels .{name}_marks path", "fill") for name in ("latency_ms", "peak_bytes")]
    assert faces[0] != faces[1] == "var(--page)"


def test_growths_follow_every_filter_but_that_of_the_length(opened: Callable[..., Opened]) -> None:
    page = opened(GROWING, "figure=growth")
    note = "the filter on length leaves it as it is"
    assert page.count("#panels .latency_ms_marks path") == 4 and note not in page.texts("#count")[0]
    page.tick("size", "1024")
    assert page.count("#panels .latency_ms_marks path") == 4 and note in page.texts("#count")[0]
    page.tick("variant", "flex")
    assert page.count("#panels .latency_ms_marks path") == page.count("#panels .peak_bytes_marks path") == 2
    assert "flex" not in page.texts("#panels .role-axis-label text")
    page.tick("mask", "full")
    assert page.texts("#panels figcaption") == ["causal"]
    page.do(lambda: page.tab.check("input[value=latency]"))
    assert note not in page.texts("#count")[0]


def test_what_has_no_growth_is_listed_with_its_reason(opened: Callable[..., Opened]) -> None:
    rows = [*GROWING, *(failed("oom", variant="other", n=n) for n in LENGTHS)]
    rows += [one for n in LENGTHS for one in visits("flex", n, n / 100.0, mask="window:8", peak_bytes=None)]
    page = opened(rows, "figure=growth")
    assert sorted(page.texts("#panels details li")) == [
        "flex, peak memory: no length has a number",
        "naive: 3 lengths, and a fit wants 4 at least",
        "other: no length has a number",
    ]
    assert page.texts("#panels summary") == [
        f"{without} growths have no point here" for without in ("4 of 8", "1 of 2")
    ]


def test_where_nothing_can_be_fitted_the_growth_says_so(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS, "figure=growth")
    assert page.tab.is_checked("input[value=growth]")
    assert page.count("#panels .chart") == 0
    assert set(page.texts("#panels .empty")) == {"No growth could be fitted here: the reasons stand below."}
    assert "sdpa: 2 lengths, and a fit wants 4 at least" in page.texts("#panels details li")


def test_names_stand_in_the_growth_as_typed(opened: Callable[..., Opened]) -> None:
    names = [IMAGE[:20], "</script>", "<b>x</b>", "&lt;", "__proto__", "7", "a'\\\"b", "line\u2028end", "é 長"]
    rows = [r for at, name in enumerate(names) for r in power_law(name, 0.5 + at / 5, 1.0)]
    page = opened([*rows, *power_law(ENDING, 1.0, 1.0)[:2]], "figure=growth")
    labels = page.tab.locator("#panels .role-axis-label text").all_text_contents()
    assert set(names) <= set(labels)
    assert {name for _, name in told(page, "latency_ms")} == set(names)
    assert f"{ENDING}: 1 lengths, and a fit wants 4 at least" in page.texts("#panels details li")


def test_a_click_on_a_growth_opens_nothing_and_it_has_no_other_axis(opened: Callable[..., Opened]) -> None:
    rows = [*power_law("sdpa", 1.0, 1.0), *power_law("sdpa", 1.0, 1.0, batch=4)]
    page = opened(rows, "x=batch")
    assert page.tab.is_enabled("input[value=batch]")
    page.do(lambda: page.tab.check("input[value=growth]"))
    assert page.tab.is_disabled("input[value=batch]")
    assert len(page.texts("#panels figcaption")) == 2
    page.tab.click("#panels .latency_ms_marks path >> nth=0")
    assert page.tab.is_hidden("#detail")
    page.do(lambda: page.tab.check("input[value=latency]"))
    assert page.tab.is_enabled("input[value=batch]") and page.tab.is_checked("input[value=batch]")


def ground(page: Opened) -> str:
    """The page's background."""
    return str(page.tab.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_dark_is_the_systems_choice_or_the_readers(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS, color_scheme="light")
    white, dark = "rgb(255, 255, 255)", "rgb(22, 24, 29)"
    assert ground(page) == white
    page.tab.emulate_media(color_scheme="dark")
    assert ground(page) == dark
    page.tab.click("#theme")
    assert ground(page) == white
    page.tab.emulate_media(color_scheme="light")
    page.tab.click("#theme")
    assert ground(page) == dark
    page.tab.emulate_media(media="print")
    assert ground(page) == white


def test_the_address_brings_back_what_was_chosen(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS)
    page.tick("variant", "flex")
    page.do(lambda: page.tab.check("input[value=memory]"))
    page.tab.click('#cases th[data-column="latency_ms"] button')
    again = opened(page.tab.url)
    assert again.tab.is_checked("input[value=memory]")
    assert not again.tab.is_checked('#filters input[value="flex"]')
    for name in ("variant", "size", "latency_ms"):
        assert again.column(name) == page.column(name)


def test_an_address_of_something_else_is_as_none(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS, "figure=x&case=length&show.variant=nobody&sort=toString&x=%00")
    assert page.tab.is_checked("input[value=latency]")
    assert page.tab.is_hidden("#detail")


UNKNOWN = ("peak_bytes", "result_bytes", "error", "error_budget", "ceiling_tflops")
ODD = [
    *(row(n=n, **dict.fromkeys(UNKNOWN)) for n in (512, 513)),
    *(row(name, 2048, error=error) for name, error in (("sdpa", 0.0), ("flex", math.inf))),
    *(row(name, n, seq_q=1) for name in ("sdpa", "flex") for n in (512, 1024)),
    *(row(heads=heads, kv_heads=kv_heads) for heads in (8, 16) for kv_heads in (2, 4)),
    row(device_name="another", run="another"),
    row("linear", exact=False, error=0.5, error_budget=None),
]
EDGES = {
    "all failed": [failed(status, variant=f"v{at}") for at, status in enumerate(("oom", "wrong", "skipped"))],
    "one case": [row()],
    "odd ones together": ODD,
}


@pytest.mark.parametrize("rows", EDGES.values(), ids=EDGES)
def test_whatever_the_rows_every_figure_and_case_opens(opened: Callable[..., Opened], rows: list[Row]) -> None:
    page = opened(rows)
    assert page.count("#cases tbody tr") == len(rows)
    for figure in ("memory", "speedup", "growth", "roofline", "error"):
        page.do(lambda name=figure: page.tab.check(f"input[value={name}]"))  # type: ignore[misc]
    page.tab.click("#cases tbody tr >> nth=0")
    page.tab.wait_for_selector("#detail[open][data-drawn]")


def test_samples_are_left_out_of_many_visits_and_that_is_said(opened: Callable[..., Opened]) -> None:
    page = opened([row(visit=at + 1) for at in range(1001)], "case=0")
    assert "1,001 visits, too many" in page.texts("#detail")[0]
    assert page.count("#detail .samples_marks path") == 0


def test_the_page_is_as_wide_as_a_narrow_window(opened: Callable[..., Opened]) -> None:
    page = opened(ROWS, viewport={"width": 400, "height": 800})
    assert page.tab.evaluate("document.documentElement.scrollWidth") == 400
    assert page.tab.evaluate("Math.max(...[...document.querySelectorAll('.chart svg')].map(s => s.clientWidth))") <= 400
