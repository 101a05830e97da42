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
from sordino.query import tree
from sordino.query.meaning.finite import MOST_VALUES, finite, size_of
from sordino.query.typed import Typed
from sordino.query.types import Text

__all__ = ["MOST_KEYS", "Key", "all_keys", "bind_key"]

MOST_KEYS = MOST_VALUES


@dataclass(frozen=True)
class Key:
    """One grouping expression: its name for people, its SQL in the lines, and all its values if they are public.

    `cells` are what the engine returns for these values.
    """

    name: str
    sql: exp.Expr
    cells: tuple[Any, ...] | None
    values: tuple[tree.Value, ...] | None

    @property
    def private(self) -> bool:
        """Whether its values must be selected."""
        return self.values is None


def bind_key(name: str, typed: Typed) -> Key:
    """The key of a typed expression; refused if its values are neither public nor text."""
    size = size_of(typed)
    if size is None:
        if isinstance(typed.type, Text):
            return Key(name, typed.sql, None, None)
        rule = "the values that a group key can take must be public, or text to be selected privately"
        hint = "Declare min and max (and step) of its columns, or group by BUCKET(LEAST(GREATEST(x, 0), 100), 10)."
        raise InvalidInput(f"GROUP BY {name}", rule, hint)
    if size > MOST_KEYS:
        rule = f"at most {MOST_KEYS:,} keys can be answered; this one has {size:,}"
        raise TooLarge(f"GROUP BY {name}", rule, "Use wider buckets, for example BUCKET(x, 10) or DATE_TRUNC('month', d).")
    known = finite(typed)
    return Key(name, known.sql, known.cells, known.values)


def all_keys(keys: Sequence[Key]) -> list[tuple[Any, ...]]:
    """The cells of every combination of public keys, in order."""
    size = math.prod(len(key.cells or ()) for key in keys)
    if size > MOST_KEYS:
        names = ", ".join(key.name for key in keys)
        rule = f"at most {MOST_KEYS:,} combinations of keys can be answered; these are {size:,}"
        raise TooLarge(f"GROUP BY {names}", rule, "Group by fewer columns, or use wider buckets.")
    return list(itertools.product(*(key.cells or () for key in keys)))
