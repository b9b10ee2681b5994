"""Operations over bytes, by hand."""

from dataclasses import asdict

import pytest

from bench.analysis.roofline import bound, intensity, least_bytes
from bench.results.columns import Case

FULL = asdict(Case("sdpa", "fwd", "full", 1, 4, 4, 1024, 1024, 64, "float32", "cpu"))


def test_full_attention_by_hand() -> None:
    assert least_bytes(FULL) == 4 * 4 * 1024 * 64 * 4  # q, k, v and out
    assert intensity(FULL) == 4 * 4 * 1024**2 * 64 / (4 * 4 * 1024 * 64 * 4) == 256
    assert intensity(FULL | {"dtype": "bfloat16"}) == 512
    assert intensity(FULL | {"direction": "fwdbwd"}) == 3.5 * 256 / 2  # dO, dQ, dK and dV as well


def test_grouped_heads_share_keys() -> None:
    grouped = FULL | {"heads": 8, "kv_heads": 2, "batch": 3}
    assert least_bytes(grouped) == 3 * (2 * 8 + 2 * 2) * 1024 * 64 * 4


def test_decoding_is_bound_by_the_cache() -> None:
    decoding = FULL | {"seq_q": 1, "mask": "causal", "dtype": "bfloat16"}
    assert intensity(decoding) == pytest.approx(1, rel=0.01)  # 4 n d operations over 2 n d numbers of 2 bytes


@pytest.mark.parametrize(
    "mask", ["full", "causal", "window:4", "causal+window:4", "causal+window:4+global:3", "global:3"]
)
@pytest.mark.parametrize(("seq_q", "seq_kv"), [(1, 20), (3, 20), (20, 20), (20, 3)])
def test_keys_that_no_query_sees_are_not_read(mask: str, seq_q: int, seq_kv: int) -> None:
    case = FULL | {"mask": mask, "heads": 1, "kv_heads": 1, "seq_q": seq_q, "seq_kv": seq_kv, "head_dim": 1}
    dense = Case(**case).problem().mask.dense(seq_q, seq_kv)
    assert least_bytes(case) == 4 * (2 * seq_q + 2 * int(dense.any(0).sum()))


def test_the_lower_roof_bounds() -> None:
    assert bound(10, ceiling_tflops=1, copy_gb_s=50) == 0.5
    assert bound(40, ceiling_tflops=1, copy_gb_s=50) == 1
