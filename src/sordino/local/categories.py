"""The categories of a question: a number of them, or their names in order."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local.given import is_column, is_missing, one_line
from sordino.privacy.exact import show

__all__ = ["Categories", "Indices", "counted"]

Categories: TypeAlias = int | Collection[str]
"""How many categories there are, or a list, array or column of their names, all different."""

Indices: TypeAlias = npt.NDArray[np.int64]

_HINT = 'Pass their number, such as 3, or their names, such as ["yes", "no"].'


def counted(given: Any, most: int) -> tuple[int, tuple[str, ...] | None]:
    """How many categories were given, and their names if they have any."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    names = None if whole else _names(given)
    count = int(given) if names is None else len(names)
    if not 2 <= count <= most:
        raise InvalidInput(f"categories={show(count)}", f"this protocol takes 2 to {most} categories", _HINT)
    return count, names


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, set | frozenset):
        rule = "categories have an order, and a set has none"
        raise InvalidInput(f"categories={one_line(given)}", rule, "Pass a list, such as sorted(...) of the set.")
    rule = "categories must be a whole number or a list of different texts"
    if not is_column(given):
        raise InvalidInput(f"categories={one_line(given)}", rule, _HINT)
    names = [name.as_py() if hasattr(name, "as_py") else name for name in given]
    if wrong := [name for name in names if not isinstance(name, str)]:
        value = f"={one_line(given)}" if isinstance(given, list | tuple) else f" with {one_line(wrong[0])}"
        number = (
            isinstance(wrong[0], int | float | np.number) and not isinstance(wrong[0], bool) and not is_missing(wrong[0])
        )
        hint = 'Write numbers as texts, such as ["1", "2"], or pass how many categories there are.'
        raise InvalidInput(f"categories{value}", rule, hint if number else _HINT)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"categories with {one_line(str.__str__(name))} twice", rule, "Name each category once.")
        seen.add(name)
    return tuple(str.__str__(name) for name in names)  # plain texts, also of an array or of an enumeration
