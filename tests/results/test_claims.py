"""Claims as a file states them: which cases, which kind, and one line for what cannot be meant."""

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.results.claims import Claim, read

ROOT = Path(__file__).parents[2]
HEAD = "[defaults]\nheads = 4\nhead_dim = 64\n[[claim]]\n"
WINDOW = 'of = "sliding_window window:8"\nthan = "sdpa full"\nfaster_at_least = 2\n'


def claims(tmp_path: Path, text: str) -> list[Claim]:
    path = tmp_path / "claims.toml"
    path.write_text(text)
    return read(path, "cpu")


def test_lists_make_a_claim_of_each_combination(tmp_path: Path) -> None:
    found = claims(tmp_path, f'{HEAD}seq = [64, 128]\ndtype = ["float32", "bfloat16"]\n{WINDOW}')
    assert [claim.at for claim in found] == [
        "64 · float32 · fwd",
        "64 · bfloat16 · fwd",
        "128 · float32 · fwd",
        "128 · bfloat16 · fwd",
    ]
    window, full = found[-1].cases
    assert (window.variant, window.mask, window.seq_q, window.seq_kv, window.heads, window.kv_heads) == (
        *("sliding_window", "window:8"),
        *(128, 128, 4, 4),
    )
    assert (full.variant, full.mask, full.dtype, full.direction, full.device) == (
        "sdpa",
        "full",
        "bfloat16",
        "fwd",
        "cpu",
    )


def test_what_departs_from_the_defaults_is_said(tmp_path: Path) -> None:
    one, two = claims(tmp_path, f"{HEAD}seq = 64\nheads = [1, 2]\n{WINDOW}")
    assert (one.at, two.at) == ("64 · float32 · fwd · heads 1", "64 · float32 · fwd · heads 2")


def test_a_case_may_depart_from_its_claim(tmp_path: Path) -> None:
    text = 'of = "naive full kv_heads=2 direction=fwdbwd"\nthan = "sdpa full seq_q=16 + sdpa full seq_kv=8"\n'
    (claim,) = claims(tmp_path, f"{HEAD}seq = 64\n{text}time_at_most = 1.5\n")
    naive, short, few = claim.cases
    assert (naive.kv_heads, naive.direction) == (2, "fwdbwd")
    assert [(case.seq_q, case.seq_kv) for case in (short, few)] == [(16, 64), (64, 8)]
    assert claim.than is not None and claim.than.operation == "+"


def test_growth_takes_its_two_lengths_from_the_list(tmp_path: Path) -> None:
    (claim,) = claims(tmp_path, f'{HEAD}seq = [64, 256]\nof = "sdpa full"\ntime_growth_at_most = 1.1\n')
    assert [case.seq_kv for case in claim.of.cases] == [256, 64] and claim.of.operation == "/"
    assert claim.at == "64 to 256 · float32 · fwd"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no [[claim]] in it"),
        ("[[claim", "no TOML"),
        (f"{HEAD}seq = 64\n{WINDOW}speed = 3\n", "'speed' is not understood"),
        (f"{HEAD}seq = 64\n{WINDOW}time_at_most = 3\n", "it takes one of"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nthan = "naive full"\n', "and has none"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nfaster_at_least = 3\n', "needs than"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nthan = "naive full"\nms_at_most = 3\n', "takes no than"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nthan = "result"\ntime_at_most = 3\n', "is for peaks"),
        (f"{HEAD}{WINDOW}", "needs seq"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\ntime_growth_at_most = 1\n', "two lengths"),
        (f'{HEAD}seq = 64\nof = "sdpa"\nms_at_most = 1\n', "'sdpa' is no case"),
        (f'{HEAD}seq = 64\nof = "sdpa windw:3"\nms_at_most = 1\n', "'windw:3' is not understood"),
        (f'{HEAD}seq = 64\nof = "sdpa full n=3"\nms_at_most = 1\n', "'n=3' is not understood"),
        (f'{HEAD}seq = 64\nof = "sdpa full seq=x"\nms_at_most = 1\n', "'x'"),
        (f'{HEAD}seq = -4\nof = "sdpa full"\nms_at_most = 1\n', "-4 is not a whole number"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nms_at_most = "fast"\n', "'fast'"),
        (f'{HEAD}seq = 64\ndirection = "up"\nof = "sdpa full"\nms_at_most = 1\n', "direction: 'up'"),
        (f'{HEAD}seq = 64\nof = "a full / b full / c full"\nms_at_most = 1\n', "one case over another"),
        (f"{HEAD}seq = 64\nof = 3\nms_at_most = 1\n", "of: 3 is no text"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nthan = 3\ntime_at_most = 1\n', "than: 3 is no text"),
        ("claim = 3\n", "each a table"),
        ("[claim]\nseq = 64\n", "each a table"),
        (f'{HEAD}seq = []\nof = "sdpa full"\nms_at_most = 1\n', "seq: [] is not understood"),
        (f'{HEAD}seq = "64"\nof = "sdpa full"\nms_at_most = 1\n', "seq: '64' is not understood"),
        (f'{HEAD}seq = 64\nbatch = true\nof = "sdpa full"\nms_at_most = 1\n', "batch: True is not understood"),
        (f'{HEAD}seq = 64\nof = "sdpa full"\nms_at_most = nan\n', "ms_at_most: nan is not a number"),
        (f'{HEAD}seq = [64, 64]\nof = "sdpa full"\ntime_growth_at_most = 1\n', "two lengths"),
        (f'{HEAD}seq = [64, 128]\nof = "a full + b full"\ntime_growth_at_most = 1\n', "one case is expected"),
        (f'{HEAD}seq = [64, 128]\nof = "a full seq=32"\ntime_growth_at_most = 1\n', "one case is expected"),
        (f'{HEAD}seq = 64\nof = "a full + b full"\nthan = "result"\npeak_at_most = 1\n', "one case alone"),
    ],
)
def test_what_cannot_be_meant_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        claims(tmp_path, text)
    assert told in str(caught.value) and "\n" not in str(caught.value)
    assert str(tmp_path / "claims.toml") in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.toml: No such file"):
        read(tmp_path / "nothing.toml", "cpu")


def test_the_suites_own_claims_can_be_read() -> None:
    found = read(ROOT / "results" / "claims.toml", "cpu")
    assert {claim.about for claim in found} >= {"sliding_window", "growth", "peers"}
