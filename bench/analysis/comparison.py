"""Two results files joined on the case. Every ratio is new / base, so swapping the files inverts it."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT
from bench.analysis.groups import PROBLEM, varying
from bench.analysis.text import plain
from bench.errors import UserError

COMPARED = ("status", "reason", "latency_ms", "low_ms", "high_ms", "canary_ratio", "quiet", "peak_bytes")


class Comparison(NamedTuple):
    """What two files say: their environments where these differ, the cases in both, and those in only one.

    `cases` has the columns of a case, then those of `COMPARED` with the endings _base and _new, then time_ratio,
    memory_ratio (NaN unless both are ok and above zero) and steady_ratio: the ratio of times after each was divided by
    its own canary's, which takes out what the machine itself did.
    """

    environment: dict[str, tuple[str, str]]
    cases: pd.DataFrame
    only_base: pd.DataFrame
    only_new: pd.DataFrame

    @property
    def axes(self) -> list[str]:
        """What tells one of the problems from the others in a few words: the mask, and what else varies."""
        everything = pd.concat([part[list(CASE)] for part in (self.cases, self.only_base, self.only_new)])
        return ["mask", *varying(everything, [axis for axis in PROBLEM if axis != "mask"])]


def compare(base: pd.DataFrame, new: pd.DataFrame) -> Comparison:
    """Joins the cases of two files, in each of which a case must stand once (see `check_once`)."""
    compared = [*CASE, *COMPARED]
    joined = base[compared].merge(new[compared], on=list(CASE), how="outer", suffixes=("_base", "_new"), indicator=True)
    both = joined[joined["_merge"] == "both"]
    return Comparison(
        environment={
            name: (values[0], values[1])
            for name in ENVIRONMENT
            if (values := [_values(cases, name) for cases in (base, new)])[0] != values[1]
        },
        cases=both.assign(
            time_ratio=both["latency_ms_new"] / both["latency_ms_base"],
            steady_ratio=both["canary_ratio_new"] / both["canary_ratio_base"],
            memory_ratio=_positive(both["peak_bytes_new"]) / _positive(both["peak_bytes_base"]),
        ).drop(columns="_merge"),
        only_base=joined[joined["_merge"] == "left_only"],
        only_new=joined[joined["_merge"] == "right_only"],
    )


def _positive(count: pd.Series[float]) -> pd.Series[float]:
    """NaN for none at all, of which there is no multiple."""
    return count.where(count > 0)


def check_once(name: str, cases: pd.DataFrame) -> None:
    """UserError where the file has a case more than once: in several environments, which one must not average."""
    twice = cases[cases.duplicated(list(CASE), keep=False)]
    if len(twice):
        differ = ", ".join(f"{axis} ({_values(twice, axis)})" for axis in varying(twice, (*ENVIRONMENT, "exact")))
        raise UserError(f"{name}: {len(twice)} cases were measured in several environments, which differ in {differ}")


def unlike(base: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """The axes on which two files have no value in common: "dtype (float32; bfloat16)"."""
    return [
        f"{axis} ({_values(base, axis)}; {_values(new, axis)})" for axis in CASE if not set(base[axis]) & set(new[axis])
    ]


def _values(cases: pd.DataFrame, column: str) -> str:
    """All values of a column, in order."""
    return ", ".join(plain(str(value)) for value in sorted(cases[column].unique()))
