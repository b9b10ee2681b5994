"""The models: facts that hang together and agree with what is known of them otherwise, and the problems they ask."""

import tomllib
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from bench import models
from bench.errors import UserError
from bench.models import Attention, Model, every, named
from variants.masks import Mask
from variants.problem import Problem

CAUSAL = Mask(causal=True)
MODELS = every().values()

# Heads times head size, where that is the width of the residual stream, from each model's paper or card.
WIDTHS = {
    "llama-3-8b": 4096,
    "llama-3-70b": 8192,
    "qwen2.5-7b": 3584,
    "qwen3-8b": 4096,
    "smollm2-135m": 576,
    "llama-2-7b": 4096,
    "gpt2": 768,
    "gpt2-xl": 1600,
    "pythia-1.4b": 2048,
    "falcon-7b": 4544,
    "gemma-2b": 2048,
    "mistral-7b-v0.1": 4096,
    "phi-3-mini-4k": 3072,
    "bert-base": 768,
    "longformer-base-4096": 768,
    "vit-l-16": 1024,
    "whisper-large-v3": 1280,
}


def kinds(name: str) -> dict[str, Attention]:
    return {kind.name: kind for kind in named(name).attentions}


def test_names_are_there_once_and_every_model_names_its_sources() -> None:
    stated = tomllib.loads(Path(models.__file__).with_suffix(".toml").read_text())
    assert max(Counter(table["name"] for table in stated["model"]).values()) == 1
    assert len(MODELS) >= 12
    for model in MODELS:
        assert model.sources and all(source.startswith("https://") for source in model.sources)
        assert len({kind.name for kind in model.attentions}) == len(model.attentions)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_model_can_be_asked_in_each_of_its_phases(model: Model) -> None:
    for phase, dtype in product(model.phases, ("float32", "bfloat16")):
        for kind in model.kinds(phase):
            assert kind.layers >= 1
            assert kind.problem(phase, 64, 2, dtype).empty_rows == 0


@pytest.mark.parametrize(("name", "width"), WIDTHS.items())
def test_heads_make_up_the_width_of_the_model(name: str, width: int) -> None:
    assert {kind.heads * kind.head_dim for kind in named(name).attentions} == {width}


def test_every_sort_of_attention_is_among_them() -> None:
    all_kinds = [kind for model in MODELS for kind in model.attentions]
    assert any(1 < kind.kv_heads < kind.heads for kind in all_kinds)
    assert any(kind.kv_heads == 1 for kind in all_kinds)
    assert any(kind.kv_heads == kind.heads and kind.mask == CAUSAL for kind in all_kinds)
    assert any(kind.mask.causal and kind.mask.window for kind in all_kinds)
    assert any(kind.mask.global_tokens for kind in all_kinds)
    assert any(kind.mask == Mask() and kind.seq_q is kind.seq_kv is None for kind in all_kinds)
    assert any(kind.seq_q == kind.seq_kv == 197 for kind in all_kinds)
    assert {kind.seq_q for kind in all_kinds if kind.seq_kv == 77} == {64**2, 32**2, 16**2, 8**2}
    assert {len(model.attentions) for model in MODELS} >= {1, 2, 3, 8}


def test_local_and_global_layers_alternate_as_published() -> None:
    every_other = ["local" if layer % 2 == 0 else "global" for layer in range(42)]
    every_sixth = ["global" if layer % 6 == 0 else "local" for layer in range(1, 35)]
    for name, layers in (("gemma-2-9b", every_other), ("gemma-3-4b", every_sixth), ("gpt-oss-20b", every_other[:24])):
        assert {kind.name: kind.layers for kind in named(name).attentions} == Counter(layers)


def test_diffusion_has_sixteen_blocks_that_attend_to_the_image_and_to_the_text() -> None:
    by_size = {kind: n.layers for kind, n in kinds("stable-diffusion-1.5").items()}
    down, middle, up = 3 * 2, 1, 3 * 3
    for sort in ("self", "text"):
        assert sum(layers for name, layers in by_size.items() if name.startswith(sort)) == down + middle + up
    assert {kind.heads * kind.head_dim for kind in kinds("stable-diffusion-1.5").values()} == {320, 640, 1280}


def test_a_longformer_token_sees_256_to_each_side_itself_and_the_global_one() -> None:
    (kind,) = named("longformer-base-4096").attentions
    seen = kind.mask.dense(2048, 2048)
    assert seen[1000].nonzero().flatten().tolist() == [0, *range(1000 - 256, 1000 + 257)]
    assert seen[0].all()


@pytest.mark.parametrize(
    ("name", "kind", "window"), [("mistral-7b-v0.1", "local", 4096), ("gpt-oss-20b", "local", 128)]
)
def test_a_causal_window_holds_as_many_keys_as_its_name_says(name: str, kind: str, window: int) -> None:
    seen = kinds(name)[kind].mask.dense(1, 5000)
    assert seen.nonzero()[:, 1].tolist() == list(range(5000 - window, 5000))


def test_the_problems_of_llama_3_8b_at_4096() -> None:
    (layer,) = named("llama-3-8b").attentions
    assert layer.layers == 32
    prefill = Problem(2, 32, 8, 4096, 4096, 128, "bfloat16", "cuda", CAUSAL)
    assert layer.problem("prefill", 4096, 2, "bfloat16", "cuda") == prefill
    assert layer.problem("decode", 4096) == Problem(1, 32, 8, 1, 4096, 128, "float32", "cpu", CAUSAL)


def test_the_problems_of_whisper() -> None:
    model = named("whisper-large-v3")
    encoder, decoder, cross = model.kinds("prefill")
    assert encoder.problem("prefill", 100) == Problem(1, 20, 20, 1500, 1500, 64)
    assert decoder.problem("prefill", 100) == Problem(1, 20, 20, 100, 100, 64, mask=CAUSAL)
    assert cross.problem("prefill", 100) == Problem(1, 20, 20, 100, 1500, 64)
    assert model.kinds("decode") == (decoder, cross)
    assert cross.problem("decode", 100) == Problem(1, 20, 20, 1, 1500, 64)
    assert [kind.grows("prefill") for kind in (encoder, decoder, cross)] == [False, True, True]
    assert [kind.grows("decode") for kind in (decoder, cross)] == [True, False]


def test_the_cache_of_keys_and_values_by_hand() -> None:
    assert named("llama-3-8b").cache_bytes(1, 1, "bfloat16") == 2 * 32 * 8 * 128 * 2 == 128 * 1024
    assert named("llama-3-8b").cache_bytes(8192, 4, "float32") == 8192 * 4 * 2 * 128 * 1024
    mistral = named("mistral-7b-v0.1")
    assert mistral.cache_bytes(32768, 1, "float16") == mistral.cache_bytes(4096, 1, "float16") == 512 * 2**20
    a_token = 2 * 4 * 256 * 2
    assert named("gemma-3-4b").cache_bytes(8192, 1, "bfloat16") == (29 * 1024 + 5 * 8192) * a_token
    assert named("whisper-large-v3").cache_bytes(448, 1, "float16") == 32 * (448 + 1500) * 2 * 20 * 64 * 2
    assert named("bert-base").cache_bytes(512, 1, "float32") == 0


def test_what_is_not_to_be_had_is_refused_in_a_line() -> None:
    with pytest.raises(
        UserError, match=r"^'llama-4' is not a model known here; accepted: llama-3-8b, .*diffusion-1.5$"
    ):
        named("llama-4")
    for name in ("bert-base", "vit-l-16", "stable-diffusion-1.5"):
        with pytest.raises(
            UserError, match=rf"^--phase: {name} has no 'decode', for it is no decoder; accepted: prefil"
        ):
            named(name).kinds("decode")


def test_remarks_say_what_is_left_out_beyond_or_not_of_the_length() -> None:
    assert list(named("llama-3-8b").remarks("prefill", [8192])) == []
    assert list(named("llama-3-8b").remarks("decode", [4096, 16384])) == ["beyond its context of 8192: 16384"]
    (remark,) = named("gemma-2-9b").remarks("prefill", [8192])
    assert remark.startswith("left out: the soft cap of the scores")
    assert list(named("vit-l-16").remarks("prefill", [4096])) == [
        "all its lengths are its own, so --seq changes nothing"
    ]
    assert list(named("mistral-7b-v0.1").remarks("decode", [1024, 4096])) == []
    _sinks, rolling = named("gpt-oss-20b").remarks("decode", [64, 4096])
    assert rolling.startswith("keys that the window of local hides are there all the same; a rolling cache")
    for phase, name in (("prefill", "encoder"), ("decode", "cross")):
        expected = f"the lengths of {name} are its own, so --seq does not change them"
        assert list(named("whisper-large-v3").remarks(phase, [448])) == [expected]


def test_the_list_has_every_model_with_its_numbers_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert models.main([]) == 0
    out = capsys.readouterr().out
    for model in MODELS:
        for text in (model.name, model.title, *model.sources, *model.left_out):
            assert text in out
    assert "32 x self: 32 heads (8 kv) of 128, causal\n" in out
    assert "32 x cross: 20 heads of 64, full, n queries, 1500 keys\n" in out


def test_the_list_can_be_of_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert models.main(["gpt2", "bert-base"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["gpt2", "bert-base"]
    with pytest.raises(UserError, match="'gpt5' is not a model known here"):
        models.main(["gpt2,gpt5"])


def test_the_defaults_of_transformers_say_the_same() -> None:
    transformers = pytest.importorskip("transformers")
    for name, config in {
        "llama-2-7b": transformers.LlamaConfig(),
        "gpt2": transformers.GPT2Config(),
        "mistral-7b-v0.1": transformers.MistralConfig(),
        "bert-base": transformers.BertConfig(),
        "longformer-base-4096": transformers.LongformerConfig(),
        "falcon-7b": transformers.FalconConfig(),
    }.items():
        (kind,) = named(name).attentions
        assert (kind.layers, kind.heads) == (config.num_hidden_layers, config.num_attention_heads)
        assert kind.heads * kind.head_dim == config.hidden_size
