"""The keys of a grouping: public ones are all answered, private ones are selected with noise.

A public text key enters the engine as its place in the list of all keys (one with a long list as itself, looked up in that
list before) and a number as its number of steps, so that nothing but public keys can come back, whatever the data hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sordino.errors import InvalidInput, TooLarge
from sordino.query import tree
from sordino.query.meaning import nodes
from sordino.query.meaning.domains import domain
from sordino.query.meaning.expressions import key_index
from sordino.query.meaning.reading import is_long
from sordino.query.typed import Typed
from sordino.query.types import Number, Text

__all__ = ["MOST_KEYS", "Key", "all_keys", "bind_key"]

MOST_KEYS = 1_000_000


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
    known = domain(typed)
    if known is None:
        if isinstance(typed.type, Text):
            return Key(name, typed.sql, None, None)
        rule = "the values that a group key can take must be public, or text to be selected privately"
        hint = "Declare min and max (and step) of its columns, or group by BUCKET(LEAST(GREATEST(x, 0), 100), 10)."
        raise InvalidInput(f"GROUP BY {name}", rule, hint)
    size = known.__len__()  # len() ends at 2^63
    if size > MOST_KEYS:
        rule = f"at most {MOST_KEYS:,} keys can be answered; this one has {size:,}"
        raise TooLarge(f"GROUP BY {name}", rule, "Use wider buckets, for example BUCKET(x, 10) or DATE_TRUNC('month', d).")
    values = tuple(known)
    match typed.type:
        case Text() if is_long([str(value) for value in values]):
            # whatever is typed as listed text is one of its values or NULL already: it is grouped by itself
            return Key(name, typed.sql, values, values)
        case Text():
            place = nodes.place_in([str(value) for value in values], typed.sql)
            return Key(name, place, tuple(range(1, size + 1)), values)
        case Number(step=Fraction() as step):
            steps = tuple(int(Fraction(v) / step) for v in values if isinstance(v, int | Fraction))
            return Key(name, key_index(typed), steps, values)
        case _:
            return Key(name, typed.sql, values, values)


def all_keys(keys: Sequence[Key]) -> list[tuple[Any, ...]]:
    """The cells of every combination of public keys, in order."""
    size = math.prod(len(key.cells or ()) for key in keys)
    if size > MOST_KEYS:
        names = ", ".join(key.name for key in keys)
        rule = f"at most {MOST_KEYS:,} combinations of keys can be answered; these are {size:,}"
        raise TooLarge(f"GROUP BY {names}", rule, "Group by fewer columns, or use wider buckets.")
    return list(itertools.product(*(key.cells or () for key in keys)))
