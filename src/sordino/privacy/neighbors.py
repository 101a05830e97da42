"""Which databases are neighbours, and the two views of a database: its rows, and its histogram over a finite universe.

The histogram counts the rows of each kind, in the universe's order; its L1 norm is the number of rows, and the L1
distance of two histograms is the number of rows to remove and add to get from one to the other.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence, Set
from enum import Enum
from numbers import Integral
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["Neighbors", "finite_universe", "histogram", "l1_distance", "l1_norm", "rows"]


class Neighbors(Enum):
    """The relation between databases that a promise of privacy covers.

    Privacy: ADD_REMOVE joins databases that differ by at most one person's presence, so it hides who took part. REPLACE
    joins databases of the same size that differ in at most one person's record, so the number of persons is public.

    Source: Dwork and Roth 2014, Definitions 2.3 and 2.4.

    Example:
        >>> Neighbors("replace").related((2, 1), (1, 2))
        True
        >>> Neighbors.ADD_REMOVE.related((2, 1), (1, 2))
        False
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @classmethod
    def _missing_(cls, value: object) -> Neighbors:
        names = " or ".join(repr(member.value) for member in cls)
        raise InvalidInput(
            f"neighbors={show(value)}", "it is not a known neighbour relation", f"Pass {names}."
        )

    def related(self, first: Sequence[int], second: Sequence[int]) -> bool:
        """Whether two databases, given as histograms over one universe, are neighbours; each is its own neighbour."""
        distance = l1_distance(first, second)
        if self is Neighbors.ADD_REMOVE:
            return distance <= 1
        return distance <= 2 and l1_norm(first) == l1_norm(second)

    def around(
        self, rows: Iterable[Hashable], universe: Collection[Hashable]
    ) -> Iterator[tuple[Any, ...]]:
        """Every database that one row removed or added (or replaced) at any position makes of `rows`, each once.

        The database itself is not among them, although it is related to itself.

        Example:
            >>> list(Neighbors.REPLACE.around(("+", "-"), "+-"))
            [('-', '-'), ('+', '+')]
            >>> list(Neighbors.ADD_REMOVE.around(("+",), "+-"))
            [(), ('-', '+'), ('+', '+'), ('+', '-')]
        """
        members = finite_universe(universe)
        database = tuple(rows)
        histogram(database, members)
        return self._around(database, members)

    def _around(
        self, database: tuple[Any, ...], members: tuple[Any, ...]
    ) -> Iterator[tuple[Any, ...]]:
        size = len(database)
        if self is Neighbors.REPLACE:
            for i in range(size):
                yield from (
                    (*database[:i], u, *database[i + 1 :]) for u in members if u != database[i]
                )
            return
        # Equal rows side by side: removing either, or adding one before or after, makes the same database.
        for i in range(size):
            if i == 0 or database[i] != database[i - 1]:
                yield database[:i] + database[i + 1 :]
        for i in range(size + 1):
            yield from (
                (*database[:i], u, *database[i:]) for u in members if i == size or u != database[i]
            )


def finite_universe(universe: Collection[Hashable]) -> tuple[Any, ...]:
    """The universe as a tuple, or a refusal if it is empty, unordered, or repeats or cannot tell apart its elements."""
    if isinstance(universe, Set) or not isinstance(universe, Collection):
        rule, hint = (
            "the universe must be a finite collection in a fixed order",
            "Pass a list or tuple of all rows.",
        )
        raise InvalidInput(f"universe={show(universe)}", rule, hint)
    members = tuple(universe)
    if not members:
        raise InvalidInput(
            "universe=()",
            "the universe must hold at least one row",
            "List every value a row may take.",
        )
    seen: set[Any] = set()
    for member in members:
        if _hashed(member) in seen:
            raise InvalidInput(
                show(member), "the universe lists it twice", "List each possible row once."
            )
        if member != member:
            raise InvalidInput(
                show(member),
                "an element of the universe must equal itself",
                "Use None instead of NaN.",
            )
        seen.add(member)
    return members


def _hashed(row: Any) -> Any:
    try:
        hash(row)
    except TypeError:
        hint = "Use tuples instead of lists, dicts or arrays."
        raise InvalidInput(show(row), "a row must be hashable", hint) from None
    return row


def histogram(rows: Iterable[Hashable], universe: Collection[Hashable]) -> tuple[int, ...]:
    """How many rows there are of each kind, in the universe's order.

    Example:
        >>> histogram(["+", "-", "+"], universe=["+", "-", "?"])
        (2, 1, 0)
    """
    counts = dict.fromkeys(finite_universe(universe), 0)
    for row in rows:
        if _hashed(row) not in counts:
            hint = "Add it to the universe or leave the row out."
            raise InvalidInput(
                f"row {show(row)}", "every row must be an element of the universe", hint
            )
        counts[row] += 1
    return tuple(counts.values())


def rows(histogram: Sequence[int], universe: Collection[Hashable]) -> tuple[Any, ...]:
    """The rows that a histogram counts, sorted as the universe is; the order they once had is not in a histogram.

    Example:
        >>> rows((2, 1, 0), universe=["+", "-", "?"])
        ('+', '+', '-')
    """
    members, counts = finite_universe(universe), _counts(histogram)
    if len(counts) != len(members):
        rule = (
            f"a histogram needs one count for each of the {len(members)} elements of the universe"
        )
        raise InvalidInput(
            f"{len(counts)} counts", rule, "Write a zero for a kind of row that does not occur."
        )
    return tuple(
        member for member, count in zip(members, counts, strict=True) for _ in range(count)
    )


def l1_norm(histogram: Sequence[int]) -> int:
    """The number of rows of a database given as a histogram."""
    return sum(_counts(histogram))


def l1_distance(first: Sequence[int], second: Sequence[int]) -> int:
    """How many rows must be removed and added to get from one histogram to the other.

    Example:
        >>> l1_distance((2, 1, 0), (1, 1, 1))
        2
    """
    a, b = _counts(first), _counts(second)
    if len(a) != len(b):
        rule = "two histograms must count over the same universe"
        raise InvalidInput(
            f"histograms of {len(a)} and {len(b)} counts", rule, "Make both with one universe."
        )
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def _counts(histogram: Sequence[int]) -> tuple[int, ...]:
    for count in histogram:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            hint = "Pass the number of rows of each kind, or rows to `histogram`."
            raise InvalidInput(
                f"count {show(count)}", "a histogram holds whole numbers, none below zero", hint
            )
    return tuple(int(count) for count in histogram)
