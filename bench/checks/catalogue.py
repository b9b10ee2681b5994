"""Every check by its name, in the order in which they are made: what is cheap and names a mistake best comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from bench.checks import agreement, behaviour, weights
from bench.checks.shapes import all_shapes, short_shapes, trials
from bench.checks.subject import Check, Subject, Trial
from variants.problem import Problem

Shapes = Callable[[Subject, bool], Iterable[Problem]]


def _of(shapes: Shapes, direction: str = "fwd") -> Callable[[Subject, bool], Iterator[Trial]]:
    return lambda subject, thorough: trials(subject, shapes(subject, thorough), thorough, direction)


def _single(subject: Subject, thorough: bool) -> Iterator[Problem]:
    """One batch element of each shape: what is read of the weights lies along the batch."""
    return (replace(problem, batch=1) for problem in all_shapes(subject, thorough))


def _single_short(subject: Subject, thorough: bool) -> Iterator[Problem]:
    return (replace(problem, batch=1) for problem in short_shapes(subject, thorough))


def _unmasked(subject: Subject, thorough: bool) -> Iterator[Problem]:
    return (problem for problem in all_shapes(subject, thorough) if str(problem.mask) == "full")


def _one_of_each_mask(subject: Subject, thorough: bool) -> Iterator[Problem]:
    seen: set[str] = set()
    for problem in short_shapes(subject, thorough):
        if str(problem.mask) not in seen and subject.takes(Trial(problem)):
            seen.add(str(problem.mask))
            yield problem


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(
            "kernel",
            "the kernel that it forces is the one that ran",
            agreement.kernel,
            _of(_one_of_each_mask),
            exact=False,
        ),
        Check(
            "repeat",
            "a second call gives the same bits, also after another shape; a second gradient the same numbers",
            behaviour.repeats,
            _of(short_shapes),
            exact=False,
        ),
        Check(
            "apart",
            "batch elements and heads do not mix",
            behaviour.keeps_apart,
            _of(short_shapes),
            exact=False,
        ),
        Check(
            "weights",
            "every visible pair has weight, every hidden one exactly none; rows add up to one; the scale is right",
            weights.sees_its_mask,
            _of(_single),
        ),
        Check(
            "agreement",
            "the result agrees with exact attention in float64, by the numerics rule",
            agreement.agrees,
            _of(all_shapes),
            exact=False,
        ),
        Check(
            "gradients",
            "so do dQ, dK and dV",
            agreement.agrees,
            _of(all_shapes, "fwdbwd"),
            direction="fwdbwd",
            exact=False,
        ),
        Check(
            "scale",
            "with inputs 10 and 100 times as large all is finite, and the keys that should take the weight do",
            weights.matters_at_scale,
            _of(_single_short),
        ),
        Check(
            "hidden",
            "other keys and values in hidden places leave a row as it was, bit for bit",
            behaviour.ignores_hidden_values,
            _of(short_shapes),
            exact=False,
        ),
        Check(
            "alone",
            "a batch element alone and the last query alone equal their place in the whole",
            behaviour.stands_alone,
            _of(short_shapes),
        ),
        Check(
            "layout",
            "contiguous, transposed, packed and expanded inputs give one result",
            behaviour.takes_any_layout,
            _of(_one_of_each_mask),
        ),
        Check(
            "groups",
            "grouped heads give what repeated heads give",
            behaviour.groups_like_repeats,
            _of(_one_of_each_mask),
        ),
        Check(
            "order", "unmasked, keys in another order give the same", behaviour.ignores_order_of_keys, _of(_unmasked)
        ),
        Check(
            "masked_nan",
            "NaN and infinity in hidden places reach no row",
            behaviour.ignores_hidden_nan,
            _of(_one_of_each_mask),
            property=True,
            exact=False,
        ),
        Check(
            "nan_query",
            "a NaN query comes back as NaN, and reaches no other row",
            behaviour.passes_nan_on,
            _of(_one_of_each_mask),
            property=True,
            exact=False,
        ),
    )
}
