"""What is written into the page: as JSON that no markup can leave, under a policy that names its scripts, and small."""

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from bench.analysis.contents import Contents
from bench.analysis.frame import from_rows
from bench.analysis.identity import BUILT_IN, looks
from bench.analysis.text import plain
from bench.errors import UserError
from bench.page import document, vega
from bench.page.content import content
from bench.results.columns import Row
from tests.analysis.made_up import failed, row
from tests.page.browser import html

HOSTILE = "</script><script>alert(1)</script><!-- &amp; \u2028 $policy ${data} \\u003c"


class Scripts(HTMLParser):
    """The text of each script of a page, and its policy, as a parser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.policy = ""
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A script begins, or the policy stands here."""
        self.inside = tag == "script"
        if self.inside:
            self.texts.append("")
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        """Whatever began has ended."""
        self.inside = False

    def handle_data(self, data: str) -> None:
        """A piece of text."""
        if self.inside:
            self.texts[-1] += data


@pytest.fixture(autouse=True)
def _no_vega(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making Vega's script takes seconds, and none of these tests runs it."""
    monkeypatch.setattr("tests.page.browser.script", lambda: "var vegaEmbed;")


def content_of(*rows: Row, baseline: str = "sdpa") -> dict[str, Any]:
    """What the page of these rows holds."""
    return content(Contents(from_rows(rows), baseline))


def column(part: dict[str, Any], name: str) -> list[Any]:
    """A column's values, row by row."""
    values = part[name]
    return values if isinstance(values, list) else [values["words"][at] for at in values["at"]]


def test_data_comes_back_as_it_was_and_ends_no_script() -> None:
    rows = [row(HOSTILE), failed("error", HOSTILE, "flex")]
    page = Scripts(html(rows, title=HOSTILE))
    assert len(page.texts) == 3
    data = json.loads(page.texts[0])
    assert not re.search("[<>&\u2028\u2029]", page.texts[0])
    assert HOSTILE in column(data["cases"], "variant")
    assert json.loads(document.as_json(HOSTILE)) == HOSTILE
    assert any(
        plain(HOSTILE) == cell["text"] for table in data["tables"] for row in table["sections"][0] for cell in row
    )


def test_the_policy_forbids_requests_and_every_other_script() -> None:
    page = Scripts(html([row()]))
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in page.texts[1:]]
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == " ".join(f"'sha256-{value}'" for value in hashes)
    assert "eval" not in page.policy


def test_the_page_names_nothing_to_be_fetched() -> None:
    page = re.sub(r"<script.*?</script>", "", html([row()]), flags=re.DOTALL)
    assert not re.search(r"\b(src|href)=(?!\"#)|url\(|@import", page)


def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    vega.check()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[html\]'"):
        vega.check()


def test_a_script_is_what_a_browser_will_read() -> None:
    assert vega.inline("a\r\nb</script>\r") == "a\nb<\\/script>\n"


def test_visits_go_with_their_case_and_say_whether_they_count() -> None:
    given = content_of(
        row("sdpa", 512, 1.0, visit=1),
        row("flex", 512, 4.0, visit=1),
        row("sdpa", 512, 9.0, visit=2, crowding=0.5),
        failed("oom", "no", "flex", 1024),
    )
    of_cases, of_visits = given["cases"], given["visits"]
    names = list(zip(column(of_cases, "variant"), column(of_cases, "seq_kv"), strict=True))
    seen = [names[at] for at in column(of_visits, "case")]
    assert seen == [("sdpa", 512), ("flex", 512), ("sdpa", 512), ("flex", 1024)]
    assert column(of_visits, "counts") == [True, True, False, False]
    speedups = dict(zip(names, column(of_cases, "speedup"), strict=True))
    assert speedups == {("sdpa", 512): 1, ("flex", 512): 0.25, ("flex", 1024): None}


def test_growths_say_what_tells_their_problems_apart_and_nothing_that_is_not_shown() -> None:
    sizes = [256, 512, 1024, 2048, 4096]
    rows = [row("sdpa", n, 2.0 * n, batch=batch, peak_bytes=n**2) for n in sizes for batch in (1, 2)]
    growths = content_of(*rows, failed("oom", "no", "flex", batch=2))["growths"]
    assert set(growths) == {"mask", "batch", "fixed", "variant", "exact", "quantity", "lengths"} | {
        *("exponent", "low", "high", "fixed_cost", "strays", "reason")
    }
    keys = zip(column(growths, "batch"), column(growths, "variant"), column(growths, "quantity"), strict=True)
    found = dict(zip(keys, column(growths, "exponent"), strict=True))
    assert {key: value for key, value in found.items() if value is not None} == {
        (batch, "sdpa", quantity): pytest.approx(power, abs=0.01)
        for batch in (1, 2)
        for quantity, power in (("latency_ms", 1.0), ("peak_bytes", 2.0))
    }
    assert found[2, "flex", "latency_ms"] is None
    assert "0 lengths, and a fit wants 4 at least" in column(growths, "reason")


def test_samples_are_all_there_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert content_of(row(ms=(1.25, 2.5)), failed("oom", variant="flex"))["samples"] == [[1.25, 2.5], []]
    thousand = [row(visit=at + 1) for at in range(1000)]
    assert len(content_of(*thousand)["samples"]) == 1000
    assert content_of(*thousand, row(visit=1001))["samples"] is None
    monkeypatch.setattr("bench.page.content.MOST_SAMPLES", 3)
    assert content_of(row(ms=(1.0, 2.0)), row("flex", ms=(1.0, 2.0)))["samples"] is None


def test_looks_are_those_of_the_other_figures_and_have_a_shape() -> None:
    given = content_of(*(row(name) for name in (*BUILT_IN, "mine")))["looks"]
    assert [look["variant"] for look in given] == [*BUILT_IN, "mine"]
    expected = looks([*BUILT_IN, "mine"])
    shapes = document._file("looks.js").split("const MARKERS = {")[1].split("};")[0]
    for look in given:
        assert (look["colour"], look["marker"]) == expected[look["variant"]][:2]
        assert re.search(rf'^  "?{re.escape(look["marker"])}"?: ', shapes, re.MULTILINE)


def test_twenty_thousand_visits_are_under_six_megabytes() -> None:
    visits = [row(v, 512, (1.234567, 2.345678), visit=at + 1) for v in BUILT_IN for at in range(8)]
    one = from_rows(visits)
    copies = range(1, 20_000 // len(one) + 2)
    many = pd.concat([one.assign(batch=n, latency_ms=one["latency_ms"] * 1.0001**n) for n in copies], ignore_index=True)
    page = document.render(Contents(many, "sdpa"), "Many", vega.script())
    assert len(many) >= 20_000
    assert len(page.encode()) < 6_000_000 - 900_000  # less what Vega's own script takes
