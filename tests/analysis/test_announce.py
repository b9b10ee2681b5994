"""What a gate tells: the worst first in its table, and in XML and workflow commands nothing that a name could break."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from bench.analysis.announce import github, junit, summary, table
from bench.analysis.decision import Rules
from bench.analysis.paired import BETTER, NOTED, OPEN, WORSE, Finding, Outcome
from bench.analysis.render import markdown
from tests.analysis import made_up

RULES = Rules(0.03)


def outcome(variant: str = "a", *findings: tuple[str, str], verdict: str = "SAME", **changes: Any) -> Outcome:
    """An outcome of 8 pairs of 2 against 2.1 ms; `changes` are to any column of its rows."""
    base = changes.pop("base_variant", variant)
    return Outcome(
        made_up.row(base, **changes).flat(),
        made_up.row(variant, **changes).flat(),
        verdict,
        pairs=8,
        base_ms=2.0,
        new_ms=2.1,
        ratio=1.05,
        low=1.04,
        high=1.06,
        memory_ratio=1.25,
        findings=[Finding(*finding) for finding in findings],
    )


SLOWER = outcome("d", ("time: +5.0 % (+4.0 % to +6.0 %)", WORSE), verdict="SLOWER")
UNDECIDED = outcome("c", ("time: +1.0 %, not decided", OPEN), verdict="INCONCLUSIVE")
FASTER = outcome("b", ("time: -5.0 % (-6.0 % to -4.0 %)", BETTER), verdict="FASTER")
SAME = outcome("a")
BIGGER = outcome("e", ("peak memory: 1 B → 2 B", WORSE), ("time: -5.0 %", BETTER), verdict="FASTER")
WRONG = Outcome(
    made_up.row("f").flat(),
    made_up.failed("wrong", variant="f").flat(),
    "NOT COMPARABLE",
    0,
    findings=[Finding("status: ok → wrong (a reason)", WORSE)],
)
BOTH_WRONG = Outcome(
    made_up.failed("wrong", variant="g").flat(),
    made_up.failed("wrong", variant="g").flat(),
    "NOT COMPARABLE",
    0,
    findings=[Finding("wrong on both sides (a reason)", NOTED)],
)
EVERYTHING = [SAME, FASTER, UNDECIDED, SLOWER, BIGGER, WRONG, BOTH_WRONG]


def cells(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """Each row of the table as heading -> text."""
    told = table(outcomes, RULES)
    return [
        dict(zip(told.header, (cell.text for cell in row), strict=True)) for section in told.sections for row in section
    ]


def test_what_is_worse_comes_first_then_what_is_open_then_what_is_better() -> None:
    assert [row["variant"] for row in cells(EVERYTHING)] == ["d", "e", "f", "c", "b", "a", "g"]
    assert cells(EVERYTHING) == cells(EVERYTHING[::-1])


def test_a_row_has_times_ratio_interval_memory_pairs_and_verdict() -> None:
    [row] = cells([SLOWER])
    assert list(row.values()) == [
        *("d", "causal · fwd", "2.00", "2.10", "+5.0 %", "+4.0 %\N{EN DASH}+6.0 %", "1.25x", "8", "SLOWER")
    ]


def test_what_is_not_known_stays_empty() -> None:
    [row] = cells([WRONG])
    assert math.isnan(WRONG.ratio)
    assert [row[name] for name in ("base ms", "new ms", "new/base", "95 % interval", "memory new/base", "pairs")] == [
        *[""] * 6
    ]
    assert row["verdict"] == "NOT COMPARABLE"


def test_there_is_a_note_a_finding_in_the_order_of_the_table() -> None:
    notes = table(EVERYTHING, RULES).notes
    assert [note.text for note in notes] == [
        "d, causal · fwd: time: +5.0 % (+4.0 % to +6.0 %)",
        "e, causal · fwd: peak memory: 1 B → 2 B",
        "e, causal · fwd: time: -5.0 %",
        "f, causal · fwd: status: ok → wrong (a reason)",
        "c, causal · fwd: time: +1.0 %, not decided",
        "b, causal · fwd: time: -5.0 % (-6.0 % to -4.0 %)",
        "g, causal · fwd: wrong on both sides (a reason)",
    ]
    assert [note.style for note in notes] == ["bad", "bad", "", "bad", "", "", ""]


def test_verdicts_stand_out_where_anything_is_worse() -> None:
    told = table(EVERYTHING, RULES)
    styles = {row[0].text: row[-1].style for section in told.sections for row in section}
    assert styles == {"d": "bad", "e": "bad", "f": "bad", "c": "", "b": "good", "a": "", "g": ""}


def test_the_threshold_is_in_the_title() -> None:
    assert table([SAME], RULES).title == "new against base, threshold 3.0 %"


def test_the_summary_counts_verdicts_and_what_is_worse() -> None:
    told = summary(EVERYTHING)
    assert told.text == "7 cases: 1 SLOWER, 2 FASTER, 1 SAME, 1 INCONCLUSIVE, 2 NOT COMPARABLE; 3 worse"
    assert told.style == "bad"
    assert summary([SAME]).text == "1 cases: 1 SAME; none worse" and summary([SAME]).style == "best"


def test_no_outcome_is_no_row_and_no_failure() -> None:
    assert table([], RULES).sections == [] and github([]) == ""
    assert summary([]).text == "0 cases: none; none worse"
    assert ElementTree.fromstring(junit([])).attrib["tests"] == "0"


def test_junit_has_a_test_a_contest_failed_where_worse_and_skipped_where_not_decided() -> None:
    suite = ElementTree.fromstring(junit(EVERYTHING))
    assert suite.tag == "testsuite"
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("7", "3")
    tests = {case.attrib["classname"]: case for case in suite.iter("testcase")}
    assert list(tests) == [f"gate.{name}" for name in "abcdefg"]
    told = {name.removeprefix("gate."): [child.tag for child in case] for name, case in tests.items()}
    assert told == {
        **{"a": [], "b": [], "c": ["skipped"], "d": ["failure"], "e": ["failure"], "f": ["failure"], "g": ["skipped"]}
    }
    assert len(list(suite.iter("failure"))) == 3 and len(list(suite.iter("skipped"))) == 2
    assert all(case.attrib["name"] == "causal · fwd" for case in tests.values())


def test_junit_says_why() -> None:
    suite = ElementTree.fromstring(junit(EVERYTHING))
    messages = [child.attrib["message"] for case in suite.iter("testcase") for child in case]
    assert messages == [
        "INCONCLUSIVE: time: +1.0 %, not decided",
        "time: +5.0 % (+4.0 % to +6.0 %)",
        "peak memory: 1 B → 2 B; time: -5.0 %",
        "status: ok → wrong (a reason)",
        "NOT COMPARABLE: wrong on both sides (a reason)",
    ]


def test_junit_says_in_which_encoding_it_is_written() -> None:
    text = junit([SLOWER])
    assert ElementTree.fromstring(text.encode("utf-8")).find("testcase") is not None
    assert text.startswith("<?xml") and text.endswith("\n")


def test_github_has_an_error_where_worse_a_warning_where_open_and_else_nothing() -> None:
    assert github(EVERYTHING).splitlines() == [
        "::warning title=c%2C causal · fwd::time: +1.0 %25, not decided",
        "::error title=d%2C causal · fwd::time: +5.0 %25 (+4.0 %25 to +6.0 %25)",
        "::error title=e%2C causal · fwd::peak memory: 1 B → 2 B",
        "::error title=f%2C causal · fwd::status: ok → wrong (a reason)",
    ]


def test_github_escapes_what_its_documentation_names() -> None:
    told = github([outcome("50%, a::b", ("100%: one,\r\ntwo %0A", WORSE), mask="causal+window:4")])
    assert told.count("\n") == 1 and told.endswith("\n")
    command, _, data = told.strip().removeprefix("::").partition("::")
    name, _, properties = command.partition(" ")
    assert name == "error"
    assert properties == "title=50%25%2C a%3A%3Ab%2C causal+window%3A4 · fwd"
    assert data == "100%25: one,%0D%0Atwo %250A"
    assert unquote(data) == "100%: one,\r\ntwo %0A"


MARKUP = ["<b>&amp;\"'</b>", "[red]x[/]", "a|b`c`", "]]>", "größe", "a::error::b", "\x1b[31mred\x07", "a\nb"]


@pytest.mark.parametrize("name", MARKUP)
def test_markup_in_a_name_stays_text(name: str) -> None:
    told = [outcome(name, (f"status: ok → error ({name})", WORSE), verdict="NOT COMPARABLE")]
    plain = "".join(c if c.isprintable() else " " for c in name).strip()
    assert cells(told)[0]["variant"] == plain
    case = ElementTree.fromstring(junit(told)).find("testcase")
    assert case is not None and case.attrib["classname"] == f"gate.{plain}"
    assert len(github(told).splitlines()) == 1 and github(told).startswith("::error title=")
    assert github(told).count("::") == 2 + github(told).partition("::status")[2].count("::")


def test_markup_in_a_name_stays_text_in_markdown() -> None:
    text = markdown(table([outcome("<b>|[x](y)", ("a *reason*", WORSE))], RULES))
    assert r"\<b\>\|\[x\](y)" in text and r"a \*reason\*" in text


def test_another_variant_is_named_with_the_one_it_is_compared_with() -> None:
    told = outcome("mine", ("slower", WORSE), base_variant="sdpa")
    assert cells([told])[0]["variant"] == "mine against sdpa"
    assert "title=mine against sdpa%2C causal · fwd::" in github([told])


def test_names_have_lengths_and_dtypes_only_where_these_differ() -> None:
    def places(*outcomes: Outcome) -> list[str]:
        return sorted({row["at"] for row in cells(outcomes)})

    assert places(outcome(), outcome("b")) == ["causal · fwd"]
    assert places(outcome(n=1024), outcome(n=4096)) == ["causal · fwd · 1024", "causal · fwd · 4096"]
    assert places(outcome(), outcome(dtype="bfloat16")) == ["causal · fwd · bfloat16", "causal · fwd · float32"]
    assert places(outcome(), outcome(mask="full", direction="fwdbwd")) == ["causal · fwd", "full · fwdbwd"]
    assert places(outcome(batch=1), outcome(batch=2)) == ["causal · fwd · batch 1", "causal · fwd · batch 2"]
    assert places(outcome(n=64), outcome(seq_q=1, n=64)) == [
        "causal · fwd · 1 \N{MULTIPLICATION SIGN} 64",
        "causal · fwd · 64",
    ]


def test_no_two_contests_have_the_same_name() -> None:
    axes = product("ab", (64, 128), (1, 2), ((2, 2), (4, 2), (4, 4)), (16, 32), ("float32", "float16"), ("fwd", "bwd"))
    many = [
        outcome(variant, n=n, batch=batch, heads=heads, kv_heads=kv, head_dim=d, dtype=dtype, direction=direction)
        for variant, n, batch, (heads, kv), d, dtype, direction in axes
    ]
    names = [(row["variant"], row["at"]) for row in cells(many)]
    assert len(set(names)) == len(names) == 2 * 2 * 2 * 3 * 2 * 2 * 2
