"""A question in SQL: a condition such as `age >= 65 AND smoker`, read by the product's own front end.

Only functions that cannot fail are understood, of each row by itself; a condition that is NULL counts as not true. The
names and types of columns are public. The engine is a locked DuckDB that sees the rows and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.query import tree
from sordino.query.dataset import Column
from sordino.query.front.sql import parse_condition
from sordino.query.meaning.expressions import condition, indicator
from sordino.query.meaning.reading import read
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Number, Text, Truth

__all__ = ["Predicate"]

_LOCKED = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@dataclass(frozen=True)
class Predicate:
    """A function of rows, 1 where the condition is true and 0 elsewhere.

    Example:
        >>> import numpy as np
        >>> rows = {"age": np.array([70, 30]), "smoker": np.array([True, True])}
        >>> Predicate.of("age >= 65 AND smoker", rows)(rows).tolist()
        [1, 0]
    """

    text: str
    sql: str

    @classmethod
    def of(cls, text: str, rows: Any) -> Predicate:
        """The condition, understood for rows with these columns; refused if it is not understood."""
        columns = {field.name: _column(field.type) for field in _table(rows).schema}

        def typed(column: tree.Column) -> Typed:
            known = columns.get(column.name)
            if known is None:
                rule = "a condition may name columns of the sample that hold numbers, truths, texts or dates"
                named = ", ".join(name for name, kind in columns.items() if kind) or "none"
                raise InvalidInput(f"the column {show(column.name)}", rule, f"There are: {named}.")
            return read(known, exp.Column(this=exp.Identifier(this=column.name, quoted=True)))

        truth = indicator(condition(parse_condition(text), typed)).sql
        counted = exp.Coalesce(this=truth, expressions=[exp.Literal.number(0)])
        return cls(text, f'SELECT {counted.sql("duckdb")} AS "found" FROM "rows"')  # noqa: S608

    def __call__(self, rows: Any) -> npt.NDArray[np.int64]:
        """One number for each row."""
        import duckdb

        with duckdb.connect(":memory:") as connection:
            connection.register("rows", _table(rows))
            for setting in _LOCKED:
                connection.execute(setting)
            found: npt.NDArray[np.int64] = np.array(connection.execute(self.sql).fetchnumpy()["found"], np.int64)
        return found


def _table(rows: Any) -> Any:
    """Rows as an Arrow table."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, Mapping):
        return pa.table({name: pa.array(column) for name, column in rows.items()})
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        return pa.Table.from_pandas(rows, preserve_index=False)
    if hasattr(rows, "to_arrow"):
        return rows.to_arrow()
    hint = "Pass an Arrow table, a data frame or a mapping of columns, or ask with a function."
    raise InvalidInput(f"a {type(rows).__name__}", "a condition needs rows with named columns", hint)


def _column(kind: Any) -> Column | None:
    """What is public of a column, its type; None for types that no condition understands."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return Column("bool", Truth())
    if types.is_integer(kind):
        return Column("int", Number(step=Fraction(1)))
    if types.is_floating(kind) or types.is_decimal(kind):
        return Column("float", Number())
    if types.is_string(kind) or types.is_large_string(kind):
        return Column("text", Text())
    if types.is_date(kind):
        return Column("date", Day())
    return Column("datetime", Moment()) if types.is_timestamp(kind) and kind.tz is None else None
