"""One thread for these tests: their problems are small, and threads that wait for each other take most of the time."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
