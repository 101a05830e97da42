"""Neighbours of one dataset: some of its persons left out, or replaced by another person's rows, one at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from sordino.audit.inputs.rows import form
from sordino.audit.inputs.sources import stored_rows, with_rows
from sordino.mechanisms import bits
from sordino.privacy.neighbors import Neighbors
from sordino.query.dataset import Dataset, Table

__all__ = ["Neighbourhood", "neighbourhood"]


@dataclass(frozen=True)
class Neighbourhood:
    """Some neighbours with their names, and how many persons there are to choose from."""

    persons: int
    members: tuple[tuple[str, Dataset], ...]


def neighbourhood(dataset: Dataset, table: Table, most: int) -> Neighbourhood:
    """At most so many neighbours: of the persons with the most rows, with the fewest, and of others at random."""
    frame = stored_rows(table)
    rows = _rows_of(frame, table)
    chosen = _chosen(rows, most)
    return Neighbourhood(len(rows), tuple(_members(dataset, table, frame, rows, chosen)))


def _members(
    dataset: Dataset, table: Table, frame: Any, rows: dict[Hashable, list[int]], chosen: list[Hashable]
) -> Iterator[tuple[str, Dataset]]:
    order = list(rows)
    for person in chosen:
        own = set(rows[person])
        rest = [i for i in range(len(frame)) if i not in own]
        who = f"row {rows[person][0] + 1}" if table.person is None else f"a person with {_count(len(own))}"
        if table.neighbors is Neighbors.ADD_REMOVE:
            yield f"without {who}", _with_frame(dataset, table, frame.take(rest))
        elif len(order) > 1:
            donor = rows[order[order.index(person) - 1]]
            copied = _renamed(frame.take(donor), frame, table, rows[person][0])
            yield f"with {who} replaced", _with_frame(dataset, table, _joined(frame.take(rest), copied))


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _rows_of(frame: Any, table: Table) -> dict[Hashable, list[int]]:
    """The places of each person's rows; rows of nobody belong to nobody."""
    if table.person is None:
        return {i: [i] for i in range(len(frame))}
    rows: dict[Hashable, list[int]] = defaultdict(list)
    for i, cell in enumerate(frame.column(_column(frame, table.person)).to_pylist()):
        if cell is not None:
            rows[form(cell)].append(i)
    return dict(rows)


def _column(frame: Any, name: str) -> str:
    return next(str(own) for own in frame.column_names if own.casefold() == name.casefold())


def _chosen(rows: dict[Hashable, list[int]], most: int) -> list[Hashable]:
    if len(rows) <= most:
        return list(rows)
    by_size = sorted(rows, key=lambda person: len(rows[person]))
    third = most // 3
    heavy, light = by_size[len(by_size) - third :], by_size[:third]
    rest = by_size[third : len(by_size) - third]
    return [*heavy, *light, *_sample(rest, most - 2 * third)]


def _sample(items: list[Hashable], count: int) -> list[Hashable]:
    """So many of them at random."""
    pool = list(items)
    return [pool.pop(bits.source().word() % len(pool)) for _ in range(count)]


def _renamed(copied: Any, frame: Any, table: Table, place: int) -> Any:
    """Rows with the name of the person at this place."""
    if table.person is None:
        return copied
    name = _column(frame, table.person)
    column = frame.column(name).take([place] * len(copied))
    return copied.set_column(frame.column_names.index(name), frame.schema.field(name), column)


def _joined(one: Any, other: Any) -> Any:
    import pyarrow as pa

    return pa.concat_tables([one, other]).unify_dictionaries().combine_chunks()


def _with_frame(dataset: Dataset, table: Table, frame: Any) -> Dataset:
    """The same declaration over other rows."""
    tables = {**dataset.tables, table.name: with_rows(table, frame)}
    return Dataset(tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta)
