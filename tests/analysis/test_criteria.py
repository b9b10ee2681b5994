"""What --fail-on takes: thresholds by hand, and refusals that repeat what was typed."""

import pytest

from bench.analysis.criteria import Criteria, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latency:5%,memory:1%,accuracy,status", Criteria(0.05, 0.01, True, True)),
        ("status , latency: 0.05", Criteria(latency=0.05, status=True)),
        ("latency:2.5%", Criteria(latency=0.025)),
        ("latency:150%", Criteria(latency=1.5)),
        ("memory:0%", Criteria(memory=0.0)),
    ],
)
def test_thresholds_are_shares(text: str, expected: Criteria) -> None:
    found = parse(text)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "''"),
        ("speed:5%", "'speed:5%'"),
        ("latency", "'latency'"),
        ("latency:5", "'latency:5'"),
        ("latency:", "'latency:'"),
        ("latency:-1%", "'latency:-1%'"),
        ("latency:nan%", "'latency:nan%'"),
        ("latency:inf%", "'latency:inf%'"),
        ("latency:5%%", "'latency:5%%'"),
        ("accuracy:5%", "'accuracy:5%'"),
        ("status,status", "'status' stands twice"),
        ("status,", "''"),
    ],
)
def test_what_is_not_understood_is_repeated_beside_what_is(text: str, named: str) -> None:
    with pytest.raises(ValueError, match="accepted: latency:5%, memory:1%, accuracy, status") as caught:
        parse(text)
    assert named in str(caught.value)
