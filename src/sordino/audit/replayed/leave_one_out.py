"""Neighbours of one dataset: some of its persons left out, or replaced by another person's rows, one at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sordino.audit.inputs.owners import Owner, column_named, owners
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
    """At most this many neighbours: of the persons with the most rows in the table, with the fewest, and others at random.

    A person is left out, or replaced, in every table of the same persons.
    """
    same = [t for t in dataset.tables.values() if t is table or (t.persons is not None and t.persons == table.persons)]
    frames = {t.name: stored_rows(t) for t in same}
    places: dict[str, dict[Owner, list[int]]] = {t.name: defaultdict(list) for t in same}
    for name, whose in owners(same, frames).items():
        for place, owner in enumerate(whose):
            if owner is not None:
                places[name][owner].append(place)
    chosen = _chosen(places[table.name], most)
    members = []
    for person in chosen:
        own = places[table.name]
        who = f"a person with {_count(len(own[person]))}" if table.has_persons else f"row {own[person][0] + 1}"
        donor = None
        if table.neighbors is Neighbors.REPLACE:
            order = list(own)
            if len(order) == 1:
                continue
            donor = order[order.index(person) - 1]
        changed = {
            t.name: with_rows(t, _without(t, frames[t.name], places[t.name], person, donor))
            for t in same
            if person in places[t.name] or donor in places[t.name]
        }
        label = f"without {who}" if donor is None else f"with {who} replaced"
        tables = {**dataset.tables, **changed}
        members.append((label, Dataset(tables=tables, budget=dataset.budget, reserved_delta=dataset.reserved_delta)))
    return Neighbourhood(len(places[table.name]), tuple(members))


def _without(table: Table, frame: Any, places: Mapping[Owner, list[int]], person: Owner, donor: Owner | None) -> Any:
    """The rows without those of a person; with a donor, the person has rows like the donor's instead.

    Columns that name rows stay the person's own. A row without them cannot be made up, so that a person who has fewer rows
    than the donor in a table with keys gets as many as it has.
    """
    own, other = places.get(person, []), places.get(donor, []) if donor else []
    gone = set(own)
    rest = frame.take([i for i in range(len(frame)) if i not in gone])
    kept = [*table.identities, *([table.person] if table.person else [])]
    if not other or (kept and not own):
        return rest
    if table.identities:
        own, other = own[: len(other)], other[: len(own)]
    copied = frame.take(other)
    for name in (column_named(frame, column) for column in kept):
        cells = frame.column(name).take(own if table.identities else own[:1] * len(other))
        copied = copied.set_column(frame.column_names.index(name), frame.schema.field(name), cells)
    return _joined(rest, copied)


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _chosen(rows: dict[Owner, list[int]], most: int) -> list[Owner]:
    if len(rows) <= most:
        return list(rows)
    by_size = sorted(rows, key=lambda person: len(rows[person]))
    third = most // 3
    heavy, light = by_size[len(by_size) - third :], by_size[:third]
    rest = by_size[third : len(by_size) - third]
    return [*heavy, *light, *_sample(rest, most - 2 * third)]


def _sample(items: list[Owner], count: int) -> list[Owner]:
    """So many of them at random."""
    pool = list(items)
    return [pool.pop(bits.source().word() % len(pool)) for _ in range(count)]


def _joined(one: Any, other: Any) -> Any:
    import pyarrow as pa

    return pa.concat_tables([one, other]).unify_dictionaries().combine_chunks()
