"""Each variant looks the same everywhere and like no other, also to colour-blind eyes."""

import itertools
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.identity import BUILT_IN, looks

NAMES = (
    *("naive", "chunked", "sliding_window", "longformer", "global_tokens", "sdpa", "sdpa_math", "sdpa_flash"),
    *("sdpa_efficient", "sdpa_cudnn", "xformers", "flex"),
)
# Machado, Oliveira and Fernandes (2009), severity 1: https://doi.org/10.1109/TVCG.2009.113
SIGHT = {
    "full": np.eye(3),
    "no red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}


def cielab(colour: str, sight: str) -> np.ndarray:
    """CIE L*a*b* of a colour as seen."""
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_built_in_colours_stay_apart(sight: str) -> None:
    for one, other in itertools.combinations(BUILT_IN.values(), 2):
        assert np.linalg.norm(cielab(one.colour, sight) - cielab(other.colour, sight)) > 10


def test_every_built_in_variant_has_a_look_and_a_marker_of_its_own() -> None:
    assert set(BUILT_IN) == set(NAMES)
    assert len({look.marker for look in BUILT_IN.values()}) == len(BUILT_IN)


@given(st.sets(st.one_of(st.text(max_size=8), st.sampled_from(NAMES)), max_size=48))
def test_no_two_look_alike_in_whatever_order_they_come(names: set[str]) -> None:
    found = looks(names)
    assert len(set(found.values())) == len(names)
    shuffled = list(names)
    random.Random(1).shuffle(shuffled)
    assert looks(shuffled) == found


@given(st.text(), st.sets(st.sampled_from(NAMES)))
def test_built_in_company_changes_nobodys_look(name: str, company: set[str]) -> None:
    assert looks([name, *company])[name] == looks([name])[name]


def test_a_look_is_the_same_in_every_process() -> None:
    code = "from bench.analysis.identity import looks; print(looks(['my_variant'])['my_variant'])"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {f"{looks(['my_variant'])['my_variant']}\n"}
