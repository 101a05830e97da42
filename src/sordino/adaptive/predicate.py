"""A question in SQL: a condition such as `age >= 65 AND smoker`, read by the product's own front end.

Only functions that cannot fail are understood, of each row by itself; a condition that is NULL counts as not true. The
names and types of columns are public. The engine is a locked DuckDB that sees the rows and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from sordino.adaptive.condition_refusals import (
    of_a_condition,
    of_its_types,
    unknown_column,
    unread_column,
)
from sordino.adaptive.samples import is_arrow, is_pandas, is_polars, length, names
from sordino.engines.duckdb.dialect import write
from sordino.engines.duckdb.locked import lock
from sordino.errors import InvalidInput
from sordino.privacy.wording import a_or_an
from sordino.query import tree
from sordino.query.dataset import Column
from sordino.query.front.sql import parse_condition
from sordino.query.meaning.expressions import condition, indicator
from sordino.query.meaning.reading import read
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Number, Text, Truth

__all__ = ["Predicate"]


@dataclass(frozen=True)
class Predicate:
    """A function of rows, 1 where the condition is true and 0 elsewhere.

    Columns are known to the engine by their places, since it would take names that differ in case for one.

    Example:
        >>> import numpy as np
        >>> rows = {"age": np.array([70, 30]), "smoker": np.array([True, True])}
        >>> Predicate.of("age >= 65 AND smoker", rows)(rows).tolist()
        [1, 0]
    """

    text: str
    sql: str
    types: tuple[tuple[str, Any], ...]
    by_row: ClassVar[bool] = True

    @classmethod
    def of(cls, text: str, rows: Any) -> Predicate:
        """The condition, understood for rows with these columns; refused if it is not understood."""
        kinds = {name: _type(column) for name, column in _columns(rows).items()}
        used: list[str] = []

        def typed(column: tree.Expression) -> Typed:
            if not isinstance(column, tree.Column):
                raise InvalidInput(
                    "a subquery in a condition",
                    "one row is looked at",
                    "Write a condition on columns.",
                )
            if column.name not in kinds:
                raise unknown_column(text, column.name, tuple(kinds))
            kind = kinds[column.name]
            known = None if kind is None else _column(kind)
            if known is None:
                raise unread_column(column.name, kind)
            if column.name not in used:
                used.append(column.name)
            return read(
                known,
                exp.Column(this=exp.Identifier(this=f"c{used.index(column.name)}", quoted=True)),
            )

        try:
            parsed = parse_condition(text)
        except InvalidInput as error:
            raise of_a_condition(text, error) from None
        try:
            truth = indicator(condition(parsed, typed)).sql
        except InvalidInput as error:
            raise of_its_types(error) from None
        counted = exp.Coalesce(this=truth, expressions=[exp.Literal.number(0)])
        sql = f'SELECT {write(counted)} AS "found" FROM "rows"'  # noqa: S608
        return cls(text, sql, tuple((name, kinds[name]) for name in used))

    def __call__(self, rows: Any) -> npt.NDArray[np.int64]:
        """One number for each row."""
        import duckdb
        import pyarrow as pa

        columns = _columns(rows)
        table = pa.table(
            {f"c{i}": _arrow(columns[name], kind) for i, (name, kind) in enumerate(self.types)}
        )
        if not self.types:
            table = pa.table({"c": pa.nulls(length(rows))})
        with duckdb.connect(":memory:") as connection:
            connection.register("rows", table)
            lock(connection)
            found: npt.NDArray[np.int64] = np.array(
                connection.execute(self.sql).fetchnumpy()["found"], np.int64
            )
        return found


def _columns(rows: Any) -> dict[str, Any]:
    """The columns by their names as text."""
    found = names(rows)
    if found is None:
        hint = "Pass an Arrow table, a data frame or a mapping of columns, or ask with a function."
        raise InvalidInput(
            a_or_an(type(rows).__name__), "a condition needs rows with named columns", hint
        )
    columns = {str(name): rows[name] for name in found}
    if len(columns) < len(found):
        value, rule = (
            "columns whose names read alike",
            "the columns that a condition can name must have different names",
        )
        raise InvalidInput(value, rule, "Name them by different texts.")
    return columns


def _type(column: Any) -> Any:
    """The Arrow type of a column; None if it has none, as one of two dimensions. Decimal objects are read as floats."""
    import pyarrow as pa

    try:
        kind = _arrow(column, None).type
    except (pa.ArrowException, TypeError, ValueError):
        return None
    return pa.float64() if _objects(column) and pa.types.is_decimal(kind) else kind


def _arrow(column: Any, kind: Any) -> Any:
    """A column in Arrow's form. Of Python objects those that are not of the kind are missing, each by itself."""
    import pyarrow as pa

    if is_arrow(column):
        return column
    if is_polars(column):
        return column.to_arrow()
    if kind is None or not _objects(column):
        return pa.array(column, from_pandas=_objects(column) or is_pandas(column))
    try:
        return pa.array(column, kind, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([_cell(value, kind) for value in column], kind, from_pandas=True)


def _objects(column: Any) -> bool:
    return isinstance(getattr(column, "dtype", None), np.dtype) and column.dtype.kind == "O"


def _cell(value: Any, kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, Decimal) and pa.types.is_floating(kind):
        return float(value)
    try:
        pa.array([value], kind, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return value


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
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Column("text", Text())
    if types.is_date(kind):
        return Column("date", Day())
    return Column("datetime", Moment()) if types.is_timestamp(kind) and kind.tz is None else None
