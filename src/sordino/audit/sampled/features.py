"""What may tell two inputs apart: columns derived from outputs, each a small frozen object that can be sent to a worker.

Values, the finest binary digit of a float, differences, sums, extremes, which coordinates hold which symbol, whole outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from sordino.audit.sampled.outputs import Codes, Column, Floats, Table, code, mix

__all__ = ["MINUS_ZERO", "ZERO", "Feature", "propose"]

_NOT_A_NUMBER = code("not a number")
_ALL_PAIRS = 8
_MOST_PLACES = 32
_FREQUENT = 0.01
ZERO, MINUS_ZERO, SUBNORMAL = -2000, -2001, -1023
"""What stands for the binary places of 0 and -0, and the exponent of numbers below 2^-1022."""
_DIGITS: tuple[Any, ...] = ("last digit", "exponent", "length", "grain")


class Feature(Protocol):
    """One number or atom for each run."""

    @property
    def words(self) -> str:
        """What it is, as the subject of a sentence."""

    def column(self, table: Table) -> Column:
        """Its values."""


def place(name: str) -> str:
    """A column in words."""
    return f"output{name}" if name else "the output"


@dataclass(frozen=True)
class Value:
    """The output itself, or one place of it."""

    name: str

    @property
    def words(self) -> str:
        return place(self.name)

    def column(self, table: Table) -> Column:
        return table.column(self.name)


@dataclass(frozen=True)
class Shape:
    """Types and sizes."""

    words: str = "the type and size of the output"

    def column(self, table: Table) -> Column:
        return Column(np.zeros(table.size), np.asarray(table.shape))


@dataclass(frozen=True)
class Digits:
    """The binary digits of a float: its exponent, the place of its last digit, how many digits, and both together."""

    name: str
    what: Literal["last digit", "exponent", "length", "grain"]

    @property
    def words(self) -> str:
        texts = {"last digit": "the binary place of the last digit", "exponent": "the binary exponent",
                 "length": "the number of binary digits", "grain": "the pair of binary exponent and last digit"}  # fmt: skip
        return f"{texts[self.what]} of {place(self.name)}"

    def column(self, table: Table) -> Column:
        base = table.column(self.name)
        bits = base.numbers.view(np.int64)
        mantissa = bits & ((1 << 52) - 1)
        exponent = ((bits >> 52) & 0x7FF) - 1023
        lowest = np.frexp((mantissa & -mantissa).astype(np.float64))[1] - 1
        length = np.where(mantissa == 0, 0, 52 - lowest)
        zero = base.numbers == 0
        if self.what == "exponent":
            found = np.where(zero, ZERO, exponent)
        elif self.what == "length":
            found = np.where(zero, -1, length)
        else:
            place = exponent - length + (exponent == SUBNORMAL)
            last = np.where(zero, np.where(bits < 0, MINUS_ZERO, ZERO), place)
            found = last if self.what == "last digit" else 4096 * exponent + last
        return Column(found.astype(np.float64), base.atoms)


@dataclass(frozen=True)
class Part:
    """A number modulo one."""

    name: str

    @property
    def words(self) -> str:
        return f"the fractional part of {place(self.name)}"

    def column(self, table: Table) -> Column:
        base = table.column(self.name)
        return Column(base.numbers - np.floor(base.numbers), base.atoms)


@dataclass(frozen=True)
class Fine:
    """What float64 cannot show of an exact number."""

    name: str

    @property
    def words(self) -> str:
        return f"the last digits of {place(self.name)}"

    def column(self, table: Table) -> Column:
        base = table.column(self.name)
        fine = np.zeros(table.size) if base.fine is None else (base.fine % 1024).astype(np.float64)
        return Column(fine, base.atoms)


@dataclass(frozen=True)
class Combined:
    """The difference or the sum of two places."""

    first: str
    second: str
    sign: Literal[-1, 1]

    @property
    def words(self) -> str:
        return f"{place(self.first)} {'-' if self.sign < 0 else '+'} {place(self.second)}"

    def column(self, table: Table) -> Column:
        a, b = table.column(self.first), table.column(self.second)
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = a.numbers + self.sign * b.numbers
        if a.atoms is None and b.atoms is None and np.isfinite(numbers).all():
            return Column(numbers)
        both = a.is_number() & b.is_number() & np.isfinite(numbers)
        return Column(np.where(both, numbers, 0.0), np.where(both, 0, _NOT_A_NUMBER))


Marks = tuple[tuple[float, ...], ...]


def symbols(table: Table, names: Sequence[str], marks: Marks) -> list[Codes]:
    """For each place the atom or the frequent value that stands there; 0 for any other number."""
    found = []
    for name, frequent in zip(names, marks, strict=True):
        base = table.column(name)
        codes = np.zeros(table.size, np.int64) if base.atoms is None else base.atoms.copy()
        for value in frequent:
            codes[(base.numbers == value) & (codes == 0)] = code(repr(value))
        found.append(codes)
    return found


@dataclass(frozen=True)
class Pattern:
    """Which places hold which symbol."""

    names: tuple[str, ...]
    marks: Marks

    @property
    def words(self) -> str:
        return "the pattern of symbols in the output"

    def column(self, table: Table) -> Column:
        mixed: Any = np.int64(1)
        for codes in symbols(table, self.names, self.marks):
            mixed = mix(mixed, codes)
        return Column(np.zeros(table.size), np.broadcast_to(mixed, table.size))


@dataclass(frozen=True)
class Plain:
    """Something of the numbers among symbols."""

    names: tuple[str, ...]
    marks: Marks
    what: Literal["count", "first place", "last place", "total", "largest", "smallest"]

    @property
    def words(self) -> str:
        texts = {"count": "how many places hold a number", "first place": "the first place that holds a number",
                 "last place": "the last place that holds a number", "total": "the sum of the numbers",
                 "largest": "the largest of the numbers", "smallest": "the smallest of the numbers"}  # fmt: skip
        return f"{texts[self.what]} in the output" + (" that are not symbols" if any(self.marks) else "")

    def column(self, table: Table) -> Column:
        plain = np.stack([codes == 0 for codes in symbols(table, self.names, self.marks)])
        if self.what == "count":
            return Column(plain.sum(axis=0).astype(float))
        some = plain.any(axis=0)
        atoms = None if some.all() else np.where(some, 0, _NOT_A_NUMBER)
        if self.what == "first place":
            found = plain.argmax(axis=0).astype(float)
        elif self.what == "last place":
            found = (len(plain) - 1 - plain[::-1].argmax(axis=0)).astype(float)
        else:
            numbers = np.stack([table.column(name).numbers for name in self.names])
            if self.what == "total":
                with np.errstate(over="ignore", invalid="ignore"):
                    found = np.nan_to_num(np.where(plain, numbers, 0.0).sum(axis=0))
            elif self.what == "largest":
                found = np.where(plain, numbers, -np.inf).max(axis=0)
            else:
                found = np.where(plain, numbers, np.inf).min(axis=0)
        return Column(np.where(some, found, 0.0), atoms)


@dataclass(frozen=True)
class Rank:
    """Where the largest or the smallest number stands, or how far they are apart."""

    names: tuple[str, ...]
    what: Literal["largest", "smallest", "spread", "lead"]

    @property
    def words(self) -> str:
        texts = {"largest": "the place of the largest number", "smallest": "the place of the smallest number",
                 "spread": "the distance of the largest and the smallest number",
                 "lead": "the distance of the two largest numbers"}  # fmt: skip
        return f"{texts[self.what]} in the output"

    def column(self, table: Table) -> Column:
        columns = [table.column(name) for name in self.names]
        low = self.what != "smallest"
        numbers = np.stack([np.where(c.is_number(), c.numbers, -np.inf if low else np.inf) for c in columns])
        if self.what == "largest":
            return Column(numbers.argmax(axis=0).astype(float))
        if self.what == "smallest":
            return Column(numbers.argmin(axis=0).astype(float))
        if self.what == "lead":
            top = np.partition(numbers, len(numbers) - 2, axis=0)
            return _finite(top[-1], top[-2])
        least = np.stack([np.where(c.is_number(), c.numbers, np.inf) for c in columns]).min(axis=0)
        return _finite(numbers.max(axis=0), least)


def _finite(a: Floats, b: Floats) -> Column:
    with np.errstate(over="ignore", invalid="ignore"):
        gap = a - b
    good = np.isfinite(gap)
    return Column(np.where(good, gap, 0.0), None if good.all() else np.where(good, 0, _NOT_A_NUMBER))


@dataclass(frozen=True)
class Above:
    """How many places hold a number above their usual middle."""

    names: tuple[str, ...]
    middles: tuple[float, ...]

    @property
    def words(self) -> str:
        return "how many places of the output are above their middle"

    def column(self, table: Table) -> Column:
        found = np.zeros(table.size)
        for name, middle in zip(self.names, self.middles, strict=True):
            base = table.column(name)
            found += (base.numbers > middle) & base.is_number()
        return Column(found)


@dataclass(frozen=True)
class Whole:
    """The whole output as one symbol."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:
        return "the whole output"

    def column(self, table: Table) -> Column:
        mixed: Any = np.asarray(table.shape)
        for name in self.names:
            base = table.column(name)
            mixed = mix(mixed, base.numbers.view(np.int64))
            if base.atoms is not None:
                mixed = np.where(base.atoms == 0, mixed, mix(mixed, base.atoms))
            if base.fine is not None:
                mixed = np.where(base.fine == 0, mixed, mix(mixed, base.fine))
        return Column(np.zeros(table.size), np.broadcast_to(mixed, table.size))


def propose(table: Table) -> list[Feature]:
    """The features to try on outputs like these; constant ones are left to those who look at them."""
    names = tuple(table.columns)
    found: list[Feature] = [Shape(), *(Value(name) for name in names)]
    if len(names) > 1 or names != ("",):
        found.append(Whole(names))
    numeric = [name for name in names if table.columns[name].is_number().any()]
    for name in numeric[:_MOST_PLACES]:
        base = table.columns[name]
        if (base.numbers != np.floor(base.numbers)).any():
            found += [
                Digits(name, "last digit"),
                Digits(name, "exponent"),
                Digits(name, "length"),
                Digits(name, "grain"),
                Part(name),
            ]
        elif (np.abs(base.numbers) > 1).any() or np.signbit(base.numbers[base.numbers == 0]).any():
            found.append(Digits(name, "last digit"))
        if base.fine is not None:
            found.append(Fine(name))
    if len(names) > 1:
        found += _several(table, names[:_MOST_PLACES], tuple(numeric[:_MOST_PLACES]))
    return found


def _several(table: Table, names: tuple[str, ...], numeric: tuple[str, ...]) -> list[Feature]:
    marks = tuple(_frequent(table.columns[name]) for name in names)
    found: list[Feature] = [Pattern(names, marks)] if any(marks) or len(numeric) < len(names) or _atoms(table) else []
    if len(numeric) < 2:
        return found
    own = tuple(marks[names.index(name)] for name in numeric)
    none: Marks = ((),) * len(numeric)
    if any(own) or _atoms(table):
        whats: tuple[Any, ...] = ("count", "first place", "last place", "total", "largest", "smallest")
        found += [Plain(numeric, own, what) for what in whats]
    extra: tuple[Any, ...] = ("total", "largest", "smallest")
    found += [Plain(numeric, none, what) for what in extra]
    ranks: tuple[Any, ...] = ("largest", "smallest", "spread", "lead")
    found += [Rank(numeric, what) for what in ranks]
    found.append(Above(numeric, tuple(float(np.median(table.columns[name].numbers)) for name in numeric)))
    pairs = list(itertools.combinations(numeric, 2))
    if len(numeric) > _ALL_PAIRS:
        pairs = [(a, b) for a, b in itertools.pairwise(numeric)] + [(numeric[0], b) for b in numeric[2:]]
    return found + [Combined(b, a, sign) for a, b in pairs for sign in (-1, 1)]


def _atoms(table: Table) -> bool:
    return any(column.atoms is not None for column in table.columns.values())


def _frequent(column: Column) -> tuple[float, ...]:
    """Values that come back so often that they are symbols, of a place that holds other numbers as well."""
    numbers = column.numbers[column.is_number()]
    values, counts = np.unique(numbers, return_counts=True)
    often = values[counts >= max(3, _FREQUENT * len(column.numbers))]
    return tuple(often[:16].tolist())
