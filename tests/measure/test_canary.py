"""When the canary is timed, on a device that is made up."""

from collections.abc import Callable

from bench.measure.canary import Canary
from bench.measure.device import Pass, Usage


class MadeUp:
    """A device on which every timed pass takes as long as is said, and which keeps what was timed."""

    blocks = True
    memory_source = ""

    def __init__(self, canary_ms: Callable[[int], float] = lambda number: 10.0) -> None:
        self.canary_ms, self.looks = canary_ms, 0

    def settle(self, step: Pass) -> None: ...
    def synchronize(self) -> None: ...

    def usage(self, step: Callable[[], object]) -> Usage:
        raise NotImplementedError

    def time_ms(self, step: Pass, calls: int) -> float:
        step()
        self.looks += calls
        return self.canary_ms(self.looks)


def looks_after(samples_ms: list[float], calls: int = 1) -> list[int]:
    """How many looks there had been after each sample."""
    device = MadeUp()
    canary = Canary(device, "cpu")
    times = iter(samples_ms)
    timer = canary.among(lambda calls: next(times))
    looks = []
    for sample_ms in samples_ms:
        assert timer(calls) == sample_ms
        looks.append(device.looks)
    return looks


def test_it_looks_after_every_100_ms_of_samples_and_after_each_longer_one() -> None:
    assert looks_after([40.0] * 6) == [0, 0, 1, 1, 1, 2]
    assert looks_after([400.0, 60.0, 60.0]) == [1, 1, 2]
    assert looks_after([1.0] * 4, calls=50) == [0, 1, 1, 2]


def test_it_looks_twice_at_each_end_and_keeps_all_but_the_first_of_all_in_order() -> None:
    device = MadeUp(float)
    canary = Canary(device, "cpu")
    canary.at_an_end()
    canary.among(lambda calls: 100.0)(1)
    canary.at_an_end()
    assert canary.samples_ms == (2.0, 3.0, 4.0, 5.0, 6.0)
