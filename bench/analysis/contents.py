"""What a report says, as data: made once from the rows, shown on a terminal, as Markdown, as a page, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis import accuracy, scaling, stack, tables
from bench.analysis.answer import Paragraph, answer
from bench.analysis.cases import cases
from bench.analysis.growth import growths
from bench.analysis.tables import Cell, Table

if TYPE_CHECKING:
    import pandas as pd

    from bench.models import Model


@dataclass(frozen=True)
class Contents:
    """The visits, the cases and growths that they make, and what is said of them.

    heading       where the cases were measured, and how quietly
    answer        a paragraph a problem
    wholes        a table a model: what all its layers come to
    measured      a table a problem: each case's numbers
    derived       tables of growth and of accuracy
    """

    visits: pd.DataFrame
    cases: pd.DataFrame
    growths: pd.DataFrame
    heading: list[Cell]
    answer: list[Paragraph]
    wholes: list[Table]
    measured: list[Table]
    derived: list[Table]


def contents(visits: pd.DataFrame, baseline: str, models: Sequence[Model] = ()) -> Contents:
    """What is said of these visits, with speed-ups over `baseline` and what all layers of `models` come to."""
    grouped = cases(visits)
    grown = growths(grouped)
    return Contents(
        visits,
        grouped,
        grown,
        heading=tables.heading(grouped, baseline),
        answer=answer(grouped, baseline),
        wholes=stack.tables(grouped, models),
        measured=tables.tables(grouped, baseline),
        derived=[*scaling.tables(grouped, grown, baseline), *accuracy.tables(grouped)],
    )
