"""Two results files joined on the case. Every ratio is new / base, so swapping the files inverts it.

With a reference variant, the time of a case is its multiple of the reference's time in the same file, on the same
problem and in the same environment. Such multiples can be compared across machines, which times cannot.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from bench.analysis.cases import CASE, ENVIRONMENT
from bench.analysis.groups import PROBLEM, varying
from bench.analysis.text import plain
from bench.errors import UserError

COMPARED = (
    *("status", "reason", "latency_ms", "low_ms", "high_ms", "canary_ratio", "quiet", "peak_bytes"),
    *("error", "error_budget", "multiple", "canary_multiple"),
)


class Comparison(NamedTuple):
    """What two files say: their environments where these differ, the cases in both, and those in only one.

    `cases` has the columns of a case, then those of `COMPARED` with the endings _base and _new, then time_ratio,
    memory_ratio (NaN unless both are ok and above zero) and steady_ratio: the ratio of times after each was divided by
    its own canary's, which takes out what the machine itself did.

    With a `reference`, time_ratio and steady_ratio are of multiples of its time; they are NaN for the reference itself,
    and where a file lacks it.
    """

    environment: dict[str, tuple[str, ...]]
    cases: pd.DataFrame
    only_base: pd.DataFrame
    only_new: pd.DataFrame
    reference: str | None = None

    @property
    def axes(self) -> list[str]:
        """What tells one of the problems from the others in a few words: the mask, and what else varies."""
        everything = pd.concat([part[list(CASE)] for part in (self.cases, self.only_base, self.only_new)])
        return ["mask", *varying(everything, [axis for axis in PROBLEM if axis != "mask"])]

    @property
    def unreferenced(self) -> pd.DataFrame:
        """The cases that are ok in both files, and have no time_ratio because one of them lacks the reference."""
        ok = (self.cases["status_base"] == "ok") & (self.cases["status_new"] == "ok")
        return self.cases[ok & self.cases["time_ratio"].isna() & (self.cases["variant"] != self.reference)]


def compare(base: pd.DataFrame, new: pd.DataFrame, reference: str | None = None) -> Comparison:
    """Joins the cases of two files, in each of which a case must stand once (see `check_once`)."""
    base, new = (multiples(side, reference) for side in (base, new))
    compared = [*CASE, *COMPARED]
    joined = base[compared].merge(new[compared], on=list(CASE), how="outer", suffixes=("_base", "_new"), indicator=True)
    both = joined[joined["_merge"] == "both"]
    return Comparison(
        environment=environments(base, new),
        cases=both.assign(
            time_ratio=both["multiple_new"] / both["multiple_base"],
            steady_ratio=both["canary_multiple_new"] / both["canary_multiple_base"],
            memory_ratio=_positive(both["peak_bytes_new"]) / _positive(both["peak_bytes_base"]),
        ).drop(columns="_merge"),
        only_base=joined[joined["_merge"] == "left_only"],
        only_new=joined[joined["_merge"] == "right_only"],
        reference=reference,
    )


def multiples(cases: pd.DataFrame, reference: str | None) -> pd.DataFrame:
    """The cases with what their times are compared by, as `multiple` and, by canary, `canary_multiple`.

    These are latency_ms and canary_ratio; with a reference, over those of the reference on the same problem and in the
    same environment: NaN where it has none, and for the reference itself.
    """
    if reference is None:
        return cases.assign(multiple=cases["latency_ms"], canary_multiple=cases["canary_ratio"])
    same = [axis for axis in (*CASE, *ENVIRONMENT) if axis != "variant"]
    own = cases.loc[cases["variant"] == reference, [*same, "latency_ms", "canary_ratio"]]
    over = cases[same].merge(own, on=same, how="left").set_index(cases.index)
    over = over.where(cases["variant"] != reference)
    return cases.assign(
        multiple=cases["latency_ms"] / over["latency_ms"],
        canary_multiple=cases["canary_ratio"] / over["canary_ratio"],
    )


def environments(*sides: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """What of the environment differs between files: column -> all its values in each."""
    values = {name: tuple(_values(cases, name) for cases in sides) for name in ENVIRONMENT}
    return {name: of_each for name, of_each in values.items() if len(set(of_each)) > 1}


def shared(base: pd.DataFrame, new: pd.DataFrame) -> int:
    """How many visits with times stand in both files, given their visits: one measurement, not two."""
    key = ["run", "visit", *CASE, "samples_ms"]
    there, here = (set(side.loc[side["status"] == "ok", key].itertuples(index=False)) for side in (base, new))
    return len(there & here)


def check_reference(reference: str, *sides: pd.DataFrame) -> None:
    """UserError where no file has this variant."""
    variants = sorted({plain(variant) for cases in sides for variant in cases["variant"]})
    if plain(reference) not in variants:
        raise UserError(f"--relative-to: {reference!r} is in none of the files; accepted: {', '.join(variants)}")


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
