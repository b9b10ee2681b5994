"""`python -m bench.verify`: its lines, exit status and JUnit file, and the function for plug-in authors."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import verify
from bench.errors import UserError
from bench.verify import main

HOSTILE = str(Path(__file__).parent / "measure" / "hostile.py")
MINE = '''"""Causal attention: wrong under a window, and passes a NaN on as zeros."""

import torch
from variants.registry import variant


@variant("right")
def right(q, k, v, *, causal=False):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    n_q, n_kv = scores.shape[-2:]
    empty = max(0, n_q - n_kv) if causal else 0
    if causal:
        scores = scores.masked_fill(torch.ones(n_q, n_kv).tril(n_kv - n_q) == 0, -torch.inf)[:, :, empty:]
    return torch.cat((torch.zeros_like(q[:, :, :empty]), scores.softmax(-1) @ v), 2)


@variant("early")
def early(q, k, v, *, causal=False):
    return right(q, k[:, :, : -1 or None], v[:, :, : -1 or None]) if k.shape[2] > 100 else right(q, k, v)


@variant("hushes")
def hushes(q, k, v):
    return right(q, k, v).nan_to_num(0.0)


@variant("hangs")
def hangs(q, k, v):
    while True:
        pass
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / f"mine_{abs(hash(str(tmp_path)))}.py"
    path.write_text(MINE.replace('@variant("', f'@variant("{path.stem}_'))
    return str(path)


def name(mine: str, variant: str) -> str:
    return f"{Path(mine).stem}_{variant}"


def test_a_right_variant_passes_a_check_and_says_what_was_tried(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name(mine, "right"), "--import", mine, "--check", "hidden", "--device", "cpu"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == name(mine, "right")
    said, check, tried, *_ = out[1].split()
    assert (said, check) == ("ok", "hidden")
    assert int(tried) >= 4
    assert out[-1] == f"1 variants, {tried} problems: all right; 0 properties noted"


def test_a_wrong_one_is_named_shrunk_and_can_be_repeated(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    junit = tmp_path / "verify.xml"
    wrong = [name(mine, "early"), "--import", mine, "--device", "cpu"]
    assert main([*wrong, "--check", "weights", "--junit", str(junit)]) == 1
    out = capsys.readouterr().out
    assert "WRONG weights     row 0 does not see key 100" in out
    (repeat,) = (line for line in out.splitlines() if "python -m bench.verify" in line)
    assert " --seq 101 " in repeat
    assert main(repeat.split()[3:]) == 1
    assert "row 0 does not see key 100" in capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None and "row 0 does not see key 100" in failure.get("message", "")


def test_a_property_is_noted_and_fails_only_where_that_is_wanted(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [name(mine, "hushes"), "--import", mine, "--check", "nan_query", "--device", "cpu"]
    assert main(arguments) == 0
    assert "note  nan_query   a NaN query comes back as zeros" in capsys.readouterr().out
    assert main([*arguments, "--strict"]) == 1
    assert "WRONG nan_query" in capsys.readouterr().out


def test_what_hangs_is_given_up_and_wrong(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [name(mine, "hangs"), "--import", mine, "--check", "repeat", "--timeout", "2s", "--device", "cpu"]
    assert main([*arguments, "--mask", "full"]) == 1
    assert "WRONG repeat      timeout: no result within 2 s" in capsys.readouterr().out


def test_a_problem_is_asked_only_what_there_is_to_ask_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Keys in another order are another problem under a mask; gradients are asked for in their own direction."""
    assert main(["sdpa", "--mask", "causal", "--seq", "16", "--device", "cpu"]) == 0
    told = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert "not asked" in told["order"]
    assert "1 problems" in told["gradients"]
    assert (
        main(["fails_in_backward", "--import", HOSTILE, "--check", "gradients", "--seq", "16", "--device", "cpu"]) == 1
    )
    assert "ArithmeticError: no way back" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nope"], "VARIANT: 'nope' is not registered; accepted: all, chunked"),
        (["sdpa", "--check", "nope"], "--check: 'nope' is not a check; accepted: kernel, "),
        (["sdpa", "--mask", "casual"], "--mask: mask 'casual'"),
        (["sliding_window", "--mask", "full"], "nothing was checked; none of them runs here, or takes this problem"),
        (["sdpa", "--heads", "4", "--kv-heads", "3"], "kv_heads: 3 does not divide 4 heads"),
        (["sdpa", "--quick", "--thorough"], "not allowed with argument --quick"),
        (["sdpa", "--seed", "-1"], "--seed: '-1' is not a whole number"),
        (["sdpa", "--junit", "no/such/folder/a.xml"], "--junit: no/such/folder/a.xml cannot be written"),
        (["sdpa_cudnn", "--device", "cpu"], "nothing was checked; none of them runs here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_the_user_can_put_right(arguments: list[str], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        main([*arguments, "--device", "cpu"] if "--device" not in arguments else arguments)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_as_a_function_it_says_the_same(mine: str) -> None:
    verify.hold(name(mine, "right"), "hidden", imports=[mine])
    with pytest.raises(AssertionError, match=r"row 0 does not see key 100[\s\S]*python -m bench"):
        verify.hold(name(mine, "early"), "weights", imports=[mine])
    assert "weights" in verify.checks()
    with pytest.raises(ValueError, match="variant: 'nope' is not known; accepted: "):
        verify.hold("nope", "weights")
    with pytest.raises(ValueError, match="check: 'nope' is not known; accepted: kernel, "):
        verify.hold("sdpa", "nope")
    with pytest.raises(pytest.skip.Exception, match="xformers takes no problem of hidden here"):
        verify.hold("xformers", "hidden")
