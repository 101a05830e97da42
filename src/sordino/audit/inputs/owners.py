"""Whose rows they are: the person of each row of each table, also through foreign keys. For the owner, nothing is hidden."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from sordino.audit.inputs.cell_forms import form
from sordino.query.dataset import Table

__all__ = ["ROW", "Owner", "column_named", "owners"]

Owner = tuple[str, Hashable]
"""The kind of persons and the person."""

ROW = ""
"""The kind of persons who have one row each."""


def owners(tables: Iterable[Table], frames: Mapping[str, Any]) -> dict[str, list[Owner | None]]:
    """The owner of each row of the protected tables, None if it is nobody's; `frames` are their rows, as Arrow tables."""
    by_name = {table.name: table for table in tables}
    found: dict[str, list[Owner | None]] = {}

    def of(table: Table) -> list[Owner | None]:
        if table.name not in found:
            frame = frames[table.name]
            if table.via is not None:
                parent = by_name[table.via.parent]
                whose = dict(zip(_keys(frames[parent.name], table.via.of_parent), of(parent), strict=True))
                found[table.name] = [None if key is None else whose.get(key) for key in _keys(frame, table.via.own)]
            elif table.person is not None:
                names = _keys(frame, (table.person,))
                found[table.name] = [None if name is None else (table.persons or "", name) for name in names]
            else:
                found[table.name] = [(ROW, (table.name, i)) for i in range(len(frame))]
        return found[table.name]

    for table in by_name.values():
        if not table.public:
            of(table)
    return found


def _keys(frame: Any, names: tuple[str, ...]) -> list[Hashable | None]:
    """The cells of these columns, row by row; None where one is missing."""
    columns = [frame.column(column_named(frame, name)).to_pylist() for name in names]
    rows = zip(*columns, strict=True)
    return [None if None in row else tuple(map(form, row)) for row in rows]


def column_named(frame: Any, name: str) -> str:
    """The column of that name but for case."""
    return next(str(own) for own in frame.column_names if own.casefold() == name.casefold())
