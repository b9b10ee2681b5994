"""Wrapped public packages: what they see is our mask, their gradients are right, and they touch nothing else."""

import logging
import random
import sys

import pytest
import torch
from torch import Tensor
from torch.autograd import grad
from torch.nn.functional import scaled_dot_product_attention

from bench.measure.accuracy import judge
from bench.measure.inputs import Attention
from variants import registry
from variants.machine import Machine
from variants.masks import Mask
from variants.problem import DTYPES, Problem
from variants.registry import Unsupported

VARIANTS = registry.load()
IMPORTS = {"local_attention": "local_attention", "hf_longformer": "transformers", "hf_bigbird": "transformers"}
MACHINE = Machine("cpu", "a machine", 1 << 34, packages={"local-attention": "1.11.2", "transformers": "5.24.0"})
LENGTHS = (1, 2, 5, 64, 100, 129)
BLOCK = 64


def prepared(name: str, problem: Problem) -> Attention:
    pytest.importorskip(IMPORTS[name])
    assert VARIANTS[name].refusal(problem, MACHINE) is None
    return VARIANTS[name].bind(problem, VARIANTS[name].prepare(problem))


def plain(n: int, mask: str = "full", head_dim: int = 16, dtype: str = "float32", batch: int = 2) -> Problem:
    return Problem(batch, 3, 3, n, n, head_dim, dtype, mask=Mask.parse(mask))


def normals(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    p, generator = problem, torch.Generator().manual_seed(5)
    q, k, v = torch.randn(3, p.batch, p.heads, p.seq_q, p.head_dim, generator=generator)
    return q, k, v


def weights(name: str, n: int, mask: str = "full", batch: int = 2) -> tuple[Tensor, Tensor]:
    """The weights (batch, heads, n, n) that a variant gives, read by one-hot values, and all scores."""
    problem = plain(n, mask, head_dim=n, batch=batch)
    q, k, _ = normals(problem)
    return prepared(name, problem)(q, k, torch.eye(n).expand_as(q).contiguous()), q @ k.mT * problem.scale


def check_weights(name: str, n: int, mask: str) -> None:
    seen, scores = weights(name, n, mask)
    visible = Mask.parse(mask).dense(n, n)
    assert torch.equal(seen > 0, visible.expand_as(seen))
    torch.testing.assert_close(seen, scores.masked_fill(~visible, -torch.inf).softmax(-1))


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("window", [1, 2, 17, 64, 100, 1000])
@pytest.mark.parametrize("causal", ["", "causal+"])
def test_local_attention_sees_its_window(n: int, window: int, causal: str) -> None:
    check_weights("local_attention", n, f"{causal}window:{window}")


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("window", [3, 4, 17, 64, 1000])
@pytest.mark.parametrize("extra", ["", "+global:1", "+global:7", "+global:1000"])
def test_longformer_sees_its_window_and_global_tokens(n: int, window: int, extra: str) -> None:
    check_weights("hf_longformer", n, f"window:{window}{extra}")


def test_longformer_itself_fails_on_one_key_to_a_side() -> None:
    """Once it does not, there is no need to refuse such a window."""
    transformers = pytest.importorskip("transformers")
    longformer = pytest.importorskip("transformers.models.longformer.modeling_longformer")
    config = transformers.LongformerConfig(hidden_size=8, num_attention_heads=1, attention_window=[2])
    x = torch.randn(1, 4, 1, 8)
    with pytest.raises(RuntimeError, match="expanded size"):
        longformer.LongformerSelfAttention(config, 0)._sliding_chunks_query_key_matmul(x, x, 1)


def test_longformer_keeps_no_tensor_after_a_call() -> None:
    for mask in ("window:9", "window:9+global:2"):
        problem = plain(30, mask)
        pytest.importorskip("transformers")
        plan = VARIANTS["hf_longformer"].prepare(problem)
        VARIANTS["hf_longformer"].bind(problem, plan)(*normals(problem))
        layer = plan[0]
        assert not any(part.given for part in (layer.query, layer.key, layer.value))


@pytest.mark.parametrize("n", [705, 800, 832, 1024])
def test_bigbird_sees_the_blocks_of_the_paper(n: int) -> None:
    """Its own plans would count the last block twice at 1024, and it takes block 0 for every random one in eval."""
    seen, scores = weights("hf_bigbird", n, batch=1)
    last = (n - 1) // BLOCK
    drawn = []
    for head in seen[0]:
        for i, row in enumerate(head.split(BLOCK)):
            blocks = [part > 0 for part in row.split(BLOCK, dim=1)]
            assert all(part.all() or not part.any() for part in blocks)
            visible = {j for j, part in enumerate(blocks) if part.all()}
            if i in (0, last):
                assert visible == set(range(last + 1))
            else:
                always = {0, last, i - 1, i, i + 1}
                assert always <= visible
                drawn.append(visible - always)
    middle = last - 1
    assert [len(blocks) for blocks in drawn] == [3] * 3 * middle
    assert drawn[:middle] != drawn[middle : 2 * middle]
    assert set.union(*drawn) == set(range(1, last))
    torch.testing.assert_close(seen, scores.masked_fill(seen == 0, -torch.inf).softmax(-1))


@pytest.mark.parametrize("n", [800, 1024])
def test_bigbird_differentiates_what_it_shows(n: int) -> None:
    visible = weights("hf_bigbird", n, batch=1)[0] > 0
    problem = plain(n)
    inputs = [x.requires_grad_() for x in normals(problem)]
    upstream = torch.randn(inputs[0].shape, generator=torch.Generator().manual_seed(6))
    ours = prepared("hf_bigbird", problem)(*inputs)
    dense = scaled_dot_product_attention(*inputs, attn_mask=visible)
    torch.testing.assert_close(ours, dense)
    for a, b in zip(grad(ours, inputs, upstream), grad(dense, inputs, upstream), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "n", "mask"),
    [
        *(("local_attention", n, mask) for n in (1, 300) for mask in ("window:17", "causal+window:64", "window:1")),
        *(("hf_longformer", n, mask) for n in (1, 300) for mask in ("window:17", "window:64+global:5")),
        ("hf_bigbird", 900, "full"),
    ],
)
def test_agrees_with_the_oracle(name: str, n: int, mask: str, dtype: str) -> None:
    problem = plain(n, mask, 40, dtype)
    verdict = judge(prepared(name, problem), problem, "fwdbwd", seed=2, exact=VARIANTS[name].exact)
    assert verdict.reason is None


@pytest.mark.parametrize(
    ("name", "mask", "sizes", "reason"),
    [
        ("local_attention", "full", (2, 2, 64, 64), "needs a window"),
        ("local_attention", "window:9+global:2", (2, 2, 64, 64), "takes no global tokens"),
        ("local_attention", "window:9", (4, 2, 64, 64), "takes no grouped heads"),
        ("local_attention", "window:9", (2, 2, 1, 64), "takes as many queries as keys"),
        ("hf_longformer", "global:9", (2, 2, 64, 64), "needs a window"),
        ("hf_longformer", "causal+window:9", (2, 2, 64, 64), "takes no causal mask"),
        ("hf_longformer", "window:9", (4, 2, 64, 64), "takes no grouped heads"),
        ("hf_longformer", "window:9", (2, 2, 1, 64), "takes as many queries as keys"),
        ("hf_longformer", "window:2", (2, 2, 64, 64), "needs a window of at least 3"),
        ("hf_bigbird", "causal", (2, 2, 768, 768), "takes no causal mask"),
        ("hf_bigbird", "full", (4, 2, 768, 768), "takes no grouped heads"),
        ("hf_bigbird", "full", (2, 2, 768, 769), "takes as many queries as keys"),
        ("hf_bigbird", "full", (2, 2, 704, 704), "needs more than 704 tokens"),
    ],
)
def test_says_what_it_does_not_take(name: str, mask: str, sizes: tuple[int, int, int, int], reason: str) -> None:
    problem = Problem(1, *sizes, 16, mask=Mask.parse(mask))
    assert (VARIANTS[name].refusal(problem, MACHINE) or "").startswith(reason)


@pytest.mark.parametrize("name", IMPORTS)
def test_without_its_package_it_names_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = plain(768, str(VARIANTS[name].some_mask()))
    package = IMPORTS[name].replace("_", "-")
    assert VARIANTS[name].refusal(problem, Machine("cpu", "a machine", 1)) == f"needs the package {package}"
    monkeypatch.setitem(sys.modules, IMPORTS[name], None)
    with pytest.raises(Unsupported, match=f"^{package} cannot be imported: "):
        VARIANTS[name].prepare(problem)


@pytest.mark.parametrize("name", IMPORTS)
def test_leaves_the_random_state_and_its_inputs_alone(name: str) -> None:
    numpy = pytest.importorskip("numpy")
    problem = plain(768, str(VARIANTS[name].some_mask()), batch=1)
    inputs = normals(problem)
    before = [x.clone() for x in inputs]
    pytest.importorskip(IMPORTS[name])

    def state() -> tuple[object, ...]:
        drawn = numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist(), random.getstate()
        return *drawn, torch.is_grad_enabled(), torch.get_default_device(), logging.getLogger().level

    untouched = state()
    out = prepared(name, problem)(*inputs)
    assert state() == untouched
    assert all(map(torch.equal, inputs, before))
    assert torch.equal(out, prepared(name, problem)(*inputs))
