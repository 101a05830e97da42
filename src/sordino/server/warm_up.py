"""Questions to made-up rows, of every kind that is asked often: what is loaded or computed once is ready after them.

Otherwise the first question would take longer than all others, and overrun its slot.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sordino.errors import SordinoError
from sordino.privacy.budget import Budget
from sordino.query.dataset import Column, Dataset, Table
from sordino.query.types import Number, Text
from sordino.server.made_up_rows import made_up
from sordino.session import Session

__all__ = ["questions", "warm_up"]


def questions(dataset: Dataset) -> Iterator[str]:
    """Typical questions about the protected tables: counts, means, medians, with filters and groups."""
    for table in dataset.tables.values():
        if table.public:
            continue
        name = _quoted(table.name)
        yield f"SELECT COUNT(*) AS n FROM {name}"  # noqa: S608
        numbers = [
            column
            for column in table.columns
            if _is_bounded(table.columns[column]) and not _is_person(table, column)
        ]
        texts = [
            column
            for column, of in table.columns.items()
            if isinstance(of.type, Text) and not _is_person(table, column)
        ]
        for column in map(_quoted, numbers[:1]):
            yield f"SELECT COUNT(*) AS n, AVG({column}) AS a FROM {name} WHERE {column} > 1"  # noqa: S608
            yield f"SELECT MEDIAN({column}) AS m FROM {name}"  # noqa: S608
        for column in map(_quoted, texts[:1]):
            yield f"SELECT COUNT(*) AS n FROM {name} WHERE UPPER(LOWER({column})) LIKE '%A%B%C%'"  # noqa: S608
            yield f"SELECT {column}, COUNT(*) AS n FROM {name} GROUP BY {column}"  # noqa: S608


def warm_up(
    dataset: Dataset, rows: int = 200, asked: Callable[[str], None] = lambda _: None
) -> None:
    """Ask made-up rows, of the form of a dataset, all typical questions; what is refused is left out."""
    budget = dataset.budget
    plenty = made_up(dataset, rows).with_budget(
        Budget(1000, budget.delta if budget is not None else 0)
    )
    with Session(plenty) as session:
        for question in questions(dataset):
            for mechanism in ("laplace", "gaussian"):
                with contextlib.suppress(SordinoError):
                    asked(question)
                    session.sql(question, epsilon=1, mechanism=mechanism)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_person(table: Table, column: str) -> bool:
    return table.person is not None and column.lower() == table.person.lower()


def _is_bounded(of: Column) -> bool:
    return isinstance(of.type, Number) and of.type.bounded
