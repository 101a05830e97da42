"""Public files beside tables in PostgreSQL: their rows are sent with each question that reads them, as parameters.

DuckDB reads them, so that they pass the same gate as always. Nothing is created in the database for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sordino.engines.gate import Admitted, unreadable
from sordino.engines.postgres.dialect import quoted
from sordino.query.dataset import Table
from sordino.query.types import FIRST_DAY, FIRST_MOMENT, LAST_DAY, LAST_MOMENT

__all__ = ["Sent", "sent"]

_MOST_CELLS = 2_000_000


@dataclass(frozen=True, repr=False)
class Sent:
    """The columns of a public table: names, types, and the cells that are sent."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    values: tuple[list[Any], ...]
    columns: tuple[Admitted, ...] = ()

    def sql(self, before: int) -> str:
        """The rows, from parameters after the first ones."""
        arrays = ", ".join(
            f"CAST(${before + i + 1} AS {kind}[])" for i, kind in enumerate(self.kinds)
        )
        places = ", ".join(f"r{i}" for i in range(len(self.kinds)))
        items = ", ".join(
            f"r{i}{' COLLATE ' + quoted('C') if kind == 'TEXT' else ''} AS {quoted(name)}"
            for i, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
        )
        return f"SELECT {items} FROM unnest({arrays}) AS l({places})"  # noqa: S608


def sent(tables: Sequence[Table]) -> dict[str, Sent]:
    """The rows of public files in canonical form, as DuckDB reads them."""
    if not tables:
        return {}
    from sordino.engines.duckdb import DuckDB

    with closing(DuckDB(tables)) as engine:
        return {table.name: _sent(table, engine.public_rows(table)) for table in tables}


def _sent(table: Table, rows: Any) -> Sent:
    import pyarrow as pa
    import pyarrow.compute as pc

    if rows.num_rows * rows.num_columns > _MOST_CELLS:
        raise unreadable(
            table, f"it has more than {_MOST_CELLS:,} cells, too many to be sent with each question"
        )
    kinds, values = [], []
    for cells in rows.columns:
        kind = cells.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if pc.any(pc.match_substring(cells, "\0")).as_py():
                raise unreadable(table, "a text in it holds NUL, which PostgreSQL has not")
            kinds.append("TEXT")
        elif pa.types.is_boolean(kind):
            kinds.append("BOOLEAN")
        elif pa.types.is_integer(kind) and str(kind) != "uint64":
            kinds.append("BIGINT")
        elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            kinds.append("NUMERIC")
        elif pa.types.is_floating(kind):
            kinds.append("DOUBLE PRECISION")
        elif pa.types.is_date(kind):
            kinds.append("DATE")
            cells = _within(cells, pa.date32(), pa.int32(), FIRST_DAY, LAST_DAY)
        elif pa.types.is_timestamp(kind):
            kinds.append("TIMESTAMP")
            cells = _within(cells, pa.timestamp("us"), pa.int64(), FIRST_MOMENT, LAST_MOMENT)
        else:
            raise unreadable(table, f"its cells of type {kind} cannot be sent to PostgreSQL")
        values.append(cells.to_pylist())
    return Sent(tuple(rows.column_names), tuple(kinds), tuple(values))


def _within(cells: Any, kind: Any, whole: Any, first: Any, last: Any) -> Any:
    """Days or moments within the calendar, beyond which Python has none; every question moves them there, too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = (pa.scalar(end, kind).cast(whole) for end in (first, last))
    numbers = cells.cast(kind, safe=False).cast(whole)
    return pc.min_element_wise(
        pc.max_element_wise(numbers, low, skip_nulls=False), high, skip_nulls=False
    ).cast(kind)
