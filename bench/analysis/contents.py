"""What a report says, as data: made once from the rows, shown on a terminal, as Markdown, as a page, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bench.analysis import accuracy, answer, cases, growth, lengths, relative, scaling, stack, tables

if TYPE_CHECKING:
    import pandas as pd

    from bench.analysis.answer import Paragraph
    from bench.analysis.groups import Group
    from bench.analysis.tables import Cell, Table
    from bench.models import Model


@dataclass(frozen=True)
class Contents:
    """What is said of these visits, with speed-ups over `baseline` and what all layers of `models` come to.

    Each part is made when it is first asked for, so that figures can be drawn of one while the next is made.
    """

    visits: pd.DataFrame
    baseline: str
    models: Sequence[Model] = ()

    @cached_property
    def series(self) -> list[Group]:
        """The cases of each problem, as `bench.analysis.lengths.series` has them."""
        return lengths.series(cases.cases(self.visits))

    @cached_property
    def cases(self) -> pd.DataFrame:
        """All cases, series by series, with length, scatter, speed-up and share of the error's budget."""
        return relative.compared(self.series, self.baseline)

    @cached_property
    def growths(self) -> pd.DataFrame:
        """How time and memory grow with the length, a row a series, variant and quantity."""
        return growth.growths(self.series)

    @cached_property
    def heading(self) -> list[Cell]:
        """Where the cases were measured, and how quietly."""
        return tables.heading(self.cases, self.baseline)

    @cached_property
    def answer(self) -> list[Paragraph]:
        """A paragraph a series: what to use at which length."""
        return answer.answer(self.series, self.baseline)

    @property
    def tables(self) -> list[Table]:
        """All tables, in the order in which they are shown."""
        return [*self.wholes, *self.measured, *self.derived]

    @cached_property
    def wholes(self) -> list[Table]:
        """A table a model: what all its layers come to."""
        return stack.tables(self.cases, self.models)

    @cached_property
    def measured(self) -> list[Table]:
        """A table a problem: each case's numbers."""
        return tables.tables(self.cases, self.baseline)

    @cached_property
    def derived(self) -> list[Table]:
        """Tables of growth and of accuracy."""
        return [*scaling.tables(self.series, self.growths, self.baseline), *accuracy.tables(self.series)]
