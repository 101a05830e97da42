"""Sums of products of tables over columns, and the parts that each cell has in them: columns are summed over in turn.

Tables that hold a column are multiplied in two groups, and these are summed over it by one product of matrices, so that
a clique of a million cells costs little more than the pairs in it. Tables on the way are shares of their largest cell,
and no cell becomes zero: nothing under- or overflows.

Source: Koller and Friedman (2009), Probabilistic graphical models, chapters 9 and 10.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sordino.workloads.allocation import ColumnSet
from sordino.workloads.junction_tree import eliminated

__all__ = ["Elimination"]

Floats = npt.NDArray[np.float64]
_FLOOR = 1e-100
_FEW = 7
"""Up to this many tables all ways to make two groups of them are compared."""


@dataclass(frozen=True)
class _Step:
    """A column that is summed over, the numbers of the tables in both groups, and which columns stand where."""

    column: int
    groups: tuple[tuple[int, ...], tuple[int, ...]]
    both: ColumnSet
    alone: tuple[ColumnSet, ColumnSet]

    @property
    def made(self) -> ColumnSet:
        return self.both + self.alone[0] + self.alone[1]

    def side(self, k: int) -> ColumnSet:
        """The columns of a group, as a stack of matrices has them."""
        return (*self.both, *self.alone[k], self.column)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Both groups of a step, multiplied, and the table that they made, by the size of its largest cell."""

    sides: tuple[Floats, Floats]
    made: Floats
    top: float


class Elimination:
    """How the product of tables over some columns is summed over all columns but the kept ones."""

    def __init__(
        self, sizes: Sequence[int], scopes: Sequence[ColumnSet], kept: ColumnSet = ()
    ) -> None:
        self._sizes, self._kept, self._scopes = sizes, kept, list(scopes)
        live = set(range(len(scopes)))
        self._steps: list[_Step] = []
        for column, _ in eliminated(sizes, scopes, kept):
            used = sorted(number for number in live if column in self._scopes[number])
            if used:
                step = self._step(column, used)
                live -= set(used)
                live.add(len(self._scopes))
                self._steps.append(step)
                self._scopes.append(step.made)
        self._last = sorted(live)

    def shares(self, tables: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """The logarithm of the sum of the product of positive tables, and which share of it each of their cells has.

        A cell's share is the slope of that logarithm by the logarithm of the cell.
        """
        if self._kept:
            raise AssertionError("shares are of sums over all columns")
        log, seen, live = self._forward(tables)
        log += sum(math.log(float(live[number])) for number in self._last)
        shares = {number: np.ones(()) for number in self._last}
        made = len(self._scopes)
        for step, own in zip(reversed(self._steps), reversed(seen), strict=True):
            made -= 1
            slope = (shares.pop(made) / own.made / own.top).reshape(
                self._size(step.both), self._size(step.alone[0]), -1
            )
            first, second = own.sides
            parts = (first * (slope @ second), second * (slope.transpose(0, 2, 1) @ first))
            for k, part in enumerate(parts):
                wide = part.reshape(self._shape(step.side(k)))
                for number in step.groups[k]:
                    shares[number] = self._summed(wide, step.side(k), self._scopes[number])
        return log, [shares[number] for number in range(len(tables))]

    def table(self, tables: Sequence[Floats]) -> Floats:
        """The shares that the kept columns' cells have in the sum."""
        _, _, live = self._forward(tables)
        found, _ = self._product([live[n] for n in self._last], self._last, self._kept)
        return np.asarray(found / found.sum())

    def _forward(self, tables: Sequence[Floats]) -> tuple[float, list[_Seen], dict[int, Floats]]:
        live, log, seen = dict(enumerate(tables)), 0.0, list[_Seen]()
        for step in self._steps:
            sides = list[Floats]()
            for k, group in enumerate(step.groups):
                whole, scale = self._product([live.pop(n) for n in group], group, step.side(k))
                stack = (self._size(step.both), self._size(step.alone[k]), self._sizes[step.column])
                sides.append(np.ascontiguousarray(whole).reshape(stack))
                log += scale
            made = (sides[0] @ sides[1].transpose(0, 2, 1)).reshape(self._shape(step.made))
            top = float(made.max())
            log += math.log(top)
            made = np.maximum(made / top, _FLOOR)
            live[len(tables) + len(seen)] = made
            seen.append(_Seen((sides[0], sides[1]), made, top))
        return log, seen, live

    def _product(
        self, tables: Sequence[Floats], numbers: Sequence[int], columns: ColumnSet
    ) -> tuple[Floats, float]:
        """The product of tables over some columns as shares of its largest cell, and the logarithm of that."""
        found, log = np.ones([1] * len(columns)), 0.0
        for table, number in zip(tables, numbers, strict=True):
            own = self._scopes[number]
            wide = [self._sizes[i] if i in own else 1 for i in columns]
            found = found * np.transpose(
                table, [own.index(i) for i in columns if i in own]
            ).reshape(wide)
            top = float(found.max())
            found = np.maximum(found / top, _FLOOR)
            log += math.log(top)
        return np.broadcast_to(found, self._shape(columns)), log

    def _step(self, column: int, used: Sequence[int]) -> _Step:
        """The cheapest way to multiply some tables and sum over a column."""
        best, least = None, math.inf
        for left in self._groups(column, used):
            right = tuple(number for number in used if number not in left)
            one, other = self._union(left), self._union(right)
            both = tuple(i for i in one if i in other and i != column)
            products = self._size(one) * len(left) + self._size(other) * len(right)
            every = self._size(tuple({*one, *other}))
            cost = 2.0 * products + (0.15 if both else 0.05) * every + 300.0 * self._size(both)
            if cost < least:
                first, second = (
                    tuple(i for i in side if i != column and i not in both) for side in (one, other)
                )
                best, least = _Step(column, (left, right), both, (first, second)), cost
        if best is None:
            raise AssertionError("some table holds the column")
        return best

    def _groups(self, column: int, used: Sequence[int]) -> list[tuple[int, ...]]:
        """First groups: all of them for few tables, else those of one table or of one or two neighbours."""
        first, rest = used[0], used[1:]
        if len(used) <= _FEW:
            every = (itertools.combinations(rest, r) for r in range(len(used)))
            return [(first, *more) for group in every for more in group]
        near = sorted({i for number in used for i in self._scopes[number]} - {column})
        found: dict[tuple[int, ...], None] = {(number,): None for number in used}
        for count in (1, 2):
            for chosen in itertools.combinations(near, count):
                within = tuple(n for n in used if {*self._scopes[n]} <= {column, *chosen})
                beside = tuple(n for n in used if {*self._scopes[n]} & {*chosen})
                found |= dict.fromkeys((within, beside))
        return [group for group in found if group]

    def _union(self, numbers: Sequence[int]) -> ColumnSet:
        return tuple(dict.fromkeys(i for number in numbers for i in self._scopes[number]))

    def _shape(self, columns: ColumnSet) -> tuple[int, ...]:
        return tuple(self._sizes[i] for i in columns)

    def _size(self, columns: ColumnSet) -> int:
        return math.prod(self._shape(columns))

    @staticmethod
    def _summed(table: Floats, own: ColumnSet, columns: ColumnSet) -> Floats:
        """A table over fewer columns, in another order."""
        kept = [i for i in own if i in columns]
        found = table.sum(axis=tuple(axis for axis, i in enumerate(own) if i not in columns))
        return np.asarray(np.transpose(found, [kept.index(i) for i in columns]))
