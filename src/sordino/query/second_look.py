"""What an owner should look at again: choices in a declaration that are allowed, and often not meant.

Everything is said from the declaration alone; no data are read, and nothing here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sordino.privacy.exact import readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.wording import counted
from sordino.query.dataset import Column, Dataset, Table
from sordino.query.same_name import folded
from sordino.query.types import Number, Text

__all__ = ["Remark", "second_look"]

_LARGE_EPSILON, _LARGE_DELTA = 10, Fraction(1, 10_000)
_MANY_ROWS, _MANY_VALUES = 1000, 1000
_WIDE = 10**7
_TELLING = re.compile(
    r"(^|_)(name|surname|lastname|firstname|e?mail|phone|mobile|address|street|ssn|passport|iban|birth_?day|dob|ip)(_|$)"
)


@dataclass(frozen=True)
class Remark:
    """One thing to look at: the key that it is about, what is unusual, and what to do."""

    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def second_look(dataset: Dataset) -> tuple[Remark, ...]:
    """All remarks, in the order of the declaration.

    Example:
        >>> data = Dataset("visits.parquet", unit="patient_id", columns={"age": {"type": "int"}}, budget={"epsilon": 1})
        >>> [remark.key for remark in second_look(data)]
        ['tables.visits.max_rows', 'tables.visits.columns.age']
    """
    tables = (remark for table in dataset.tables.values() for remark in _of_table(table))
    return (*_of_budget(dataset), *tables)


def _of_budget(dataset: Dataset) -> Iterator[Remark]:
    budget = dataset.budget
    if budget is None:
        yield Remark(
            "budget",
            "there is none, so that each session must be given one. Add epsilon and delta.",
        )
        return
    if budget.epsilon > _LARGE_EPSILON:
        text = (
            f"epsilon {readable(budget.epsilon)} promises little: "
            "somebody who guesses can become almost certain. Usual: 1."
        )
        yield Remark("budget.epsilon", text)
    if budget.delta > _LARGE_DELTA:
        text = f"delta {readable(budget.delta)} lets some persons be shown entirely. Usual: below 1 / number of persons."
        yield Remark("budget.delta", text)
    texts = [table.name for table in dataset.tables.values() if table.has_private_keys]
    if budget.delta == 0 and texts:
        text = f"without it nobody can group by the text columns of {', '.join(texts)}. Add delta = 1e-6, if that is wanted."
        yield Remark("budget.delta", text)


def _of_table(table: Table) -> Iterator[Remark]:
    key = f"tables.{table.name}"
    if table.public:
        yield Remark(
            f"{key}.public", "every cell of this table may be shown to everybody. Is that so?"
        )
    elif table.person is None and table.via is None:
        yield Remark(
            f"{key}.unit",
            'each row is another person. If somebody may have two rows, name the column: unit = "...".',
        )
    elif table.bounds.total is None:
        text = "it is not set, so that each question must bring its own bound. Add how many rows of each person count."
        yield Remark(f"{key}.max_rows", text)
    elif table.bounds.total >= _MANY_ROWS:
        yield Remark(
            f"{key}.max_rows",
            f"{counted(table.bounds.total, 'row')} of each person may count, and noise grows with it.",
        )
    if table.neighbors is Neighbors.REPLACE and table.via is None:
        yield Remark(
            f"{key}.neighbors", "with replace the number of persons is public. Is that so?"
        )
    if not table.columns:
        yield Remark(
            f"{key}.columns",
            "no column is declared, so that rows and persons can be counted, and nothing else.",
        )
    for name, column in table.columns.items():
        yield from _of_column(f"{key}.columns.{name}", name, column, table)


def _of_column(key: str, name: str, column: Column, table: Table) -> Iterator[Remark]:
    kind = column.type
    if not table.public and _TELLING.search(name.casefold()):
        yield Remark(
            key, "its name sounds as if it told who somebody is. Drop it, unless questions need it."
        )
    if not table.public and table.person is not None and folded(name) == folded(table.person):
        yield Remark(key, "it names the persons. Drop it: persons can be counted without it.")
    if isinstance(kind, Number) and kind.values is None and not table.public:
        if kind.lower is None or kind.upper is None:
            yield Remark(
                key, "without min and max it can be counted and compared, but not added up."
            )
        elif column.kind == "float" and kind.step and (kind.upper - kind.lower) / kind.step > _WIDE:
            limits = f"{readable(kind.lower)} to {readable(kind.upper)}"
            text = f"it goes from {limits} in steps of {readable(kind.step)}. Are narrower limits true?"
            yield Remark(key, text)
    if isinstance(kind, Text | Number) and kind.values is not None and not table.public:
        if len(kind.values) > _MANY_VALUES:
            yield Remark(
                key,
                f"it lists {counted(len(kind.values), 'value')}; a group is answered for each. Are all of them public?",
            )
        if len(kind.values) == 1:
            yield Remark(
                key,
                f"it lists one value, {show(kind.values[0])}; any other cell is read as missing.",
            )
