"""The keys of a grouping: public ones are all answered, private ones are selected with noise.

How public ones enter the engine is told in `query/meaning/finite.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sordino.errors import InvalidInput, TooLarge
from sordino.plan.relations import LookedUp
from sordino.query import tree
from sordino.query.dataset import Contents
from sordino.query.meaning.finite import MOST_VALUES, finite, size_of
from sordino.query.typed import Typed
from sordino.query.types import Text

__all__ = ["MOST_KEYS", "Key", "all_keys", "bind_key", "bind_keys", "how_many"]

MOST_KEYS = MOST_VALUES


@dataclass(frozen=True)
class Key:
    """One grouping expression: its name for people, its SQL in the lines, and all its values if they are public.

    `cells` are what the engine returns for these values. `looked_up` is the column of a public table that it is; a
    private key with one has too many values there.
    """

    name: str
    sql: exp.Expr
    cells: tuple[Any, ...] | None
    values: tuple[tree.Value, ...] | None
    looked_up: LookedUp | None = None

    @property
    def private(self) -> bool:
        """Whether its values must be selected."""
        return self.values is None


def bind_keys(found: Sequence[tuple[str, Typed, LookedUp | None]]) -> tuple[Key, ...]:
    """The keys of typed expressions, each with its name and the public column that it is, if it is one.

    Where too many combinations are public, texts that only a public table lists are selected privately instead.
    """
    keys = tuple(bind_key(*one) for one in found)
    if any(key.private for key in keys) or how_many(keys) <= MOST_KEYS:
        return keys
    return tuple(
        Key(name, typed.sql, None, None, looked_up) if _only_found(typed, looked_up) else key
        for key, (name, typed, looked_up) in zip(keys, found, strict=True)
    )


def bind_key(name: str, typed: Typed, looked_up: LookedUp | None = None) -> Key:
    """The key of a typed expression; refused if its values are neither public nor text."""
    size = size_of(typed)
    if size is None:
        if isinstance(typed.type, Text):
            return Key(name, typed.sql, None, None, looked_up)
        rule = (
            "the values that a group key can take must be public, or text to be selected privately"
        )
        hint = "Declare min and max (and step) of its columns, or group by BUCKET(LEAST(GREATEST(x, 0), 100), 10)."
        raise InvalidInput(f"GROUP BY {name}", rule, hint)
    if size > MOST_KEYS:
        rule = f"at most {MOST_KEYS:,} keys can be answered; this one has {size:,}"
        raise TooLarge(
            f"GROUP BY {name}",
            rule,
            "Use wider buckets, for example BUCKET(x, 10) or DATE_TRUNC('month', d).",
        )
    known = finite(typed)
    return Key(name, known.sql, known.cells, known.values, looked_up)


def _only_found(typed: Typed, looked_up: LookedUp | None) -> bool:
    contents = None if looked_up is None else looked_up.table.contents
    filled = contents is not None and looked_up is not None and looked_up.column in contents.filled
    return filled and isinstance(typed.type, Text)


def all_keys(keys: Sequence[Key]) -> list[tuple[Any, ...]]:
    """The cells of every combination of public keys, in order.

    Of keys from one look into a public table these are the combinations that its rows have.
    """
    size = how_many(keys)
    if size > MOST_KEYS:
        names = ", ".join(key.name for key in keys)
        rule = f"at most {MOST_KEYS:,} combinations of keys can be answered; these are {size:,}"
        raise TooLarge(f"GROUP BY {names}", rule, "Group by fewer columns, or use wider buckets.")
    blocks = _blocks(keys)
    if all(len(block) == 1 for block, _ in blocks):
        return list(itertools.product(*((cell for (cell,) in cells) for _, cells in blocks)))
    order = [place for block, _ in blocks for place in block]
    back = [order.index(place) for place in range(len(keys))]
    rank = [{cell: i for i, cell in enumerate(key.cells or ())} for key in keys]
    found = (
        tuple(itertools.chain(*parts))
        for parts in itertools.product(*(cells for _, cells in blocks))
    )
    placed = [tuple(cells[place] for place in back) for cells in found]
    return sorted(
        placed, key=lambda cells: [ranks[cell] for ranks, cell in zip(rank, cells, strict=True)]
    )


def how_many(keys: Sequence[Key]) -> int:
    """The number of combinations of public keys."""
    return math.prod(len(cells) for _, cells in _blocks(keys))


def _blocks(keys: Sequence[Key]) -> list[tuple[list[int], Sequence[tuple[Any, ...]]]]:
    """The places of keys that belong together, each block with the cells that they have together."""
    looks: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        name = (
            key.looked_up.look
            if key.looked_up is not None and _contents(key) is not None
            else f"alone {place}"
        )
        looks.setdefault(name, []).append(place)
    return [(places, _together([keys[place] for place in places])) for places in looks.values()]


def _contents(key: Key) -> Contents | None:
    """The rows of the public table that has the key, where they tell more than the key's own values."""
    contents = None if key.looked_up is None else key.looked_up.table.contents
    return (
        contents
        if contents is not None and key.looked_up and key.looked_up.column in contents.columns
        else None
    )


def _together(keys: Sequence[Key]) -> Sequence[tuple[Any, ...]]:
    contents = _contents(keys[0])
    columns = [key.looked_up.column for key in keys if key.looked_up is not None]
    if contents is None or (len(keys) == 1 and columns[0] not in contents.filled):
        return [(cell,) for key in keys for cell in key.cells or ()]
    cell_of = [dict(zip(key.values or (), key.cells or (), strict=True)) for key in keys]
    rows = contents.combinations(columns)
    known = [
        row
        for row in rows
        if all(value in cells for cells, value in zip(cell_of, row, strict=True))
    ]
    return sorted(
        tuple(cells[value] for cells, value in zip(cell_of, row, strict=True)) for row in known
    )
