"""What may tell two inputs apart: columns derived from outputs, each a small frozen object that can be sent to a
worker.

Values, the finest binary digit of a float, differences, sums, extremes, which coordinates hold which symbol, whole
outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from sordino.audit.sampled.outputs import Codes, Column, Floats, Table, code, mix

__all__ = ["MINUS_ZERO", "ZERO", "Feature", "propose"]

_NOT_A_NUMBER = code("not a number")
_ALL_PAIRS = 8
_MOST_PLACES = 32
_FREQUENT = 0.01
ZERO, MINUS_ZERO, SUBNORMAL = -2000, -2001, -1023
"""What stands for the binary places of 0 and -0, and the exponent of numbers below 2^-1022."""
DigitKind = Literal["last digit", "exponent", "length", "grain"]
_DIGITS: Mapping[DigitKind, str] = MappingProxyType({
    "last digit": "the binary place of the last digit",
    "exponent": "the binary exponent",
    "length": "the number of binary digits",
    "grain": "the pair of binary exponent and last digit",
})  # fmt: skip


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
    what: DigitKind

    @property
    def words(self) -> str:
        return f"{_DIGITS[self.what]} of {place(self.name)}"

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
        return _numbers_where(a.is_number() & b.is_number() & np.isfinite(numbers), numbers)


def _numbers_where(good: npt.NDArray[np.bool_], numbers: Floats) -> Column:
    """These numbers where they are good, "not a number" elsewhere."""
    if good.all():
        return Column(numbers)
    return Column(np.where(good, numbers, 0.0), np.where(good, 0, _NOT_A_NUMBER))


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


Summarize = Callable[[Floats, npt.NDArray[np.bool_]], Floats]
"""From the numbers of all places, a row for each, and where they count as numbers, to one number for each run."""


def _low(numbers: Floats, plain: npt.NDArray[np.bool_]) -> Floats:
    return np.where(plain, numbers, -np.inf)


def _high(numbers: Floats, plain: npt.NDArray[np.bool_]) -> Floats:
    return np.where(plain, numbers, np.inf)


def _lead(numbers: Floats, plain: npt.NDArray[np.bool_]) -> Floats:
    top = np.partition(_low(numbers, plain), len(numbers) - 2, axis=0)
    return np.asarray(top[-1] - top[-2])


_SUMMARIES: Mapping[str, Summarize] = MappingProxyType({
    "how many places hold a number": lambda _, plain: plain.sum(axis=0),
    "the first place that holds a number": lambda _, plain: plain.argmax(axis=0),
    "the last place that holds a number": lambda _, plain: len(plain) - 1 - plain[::-1].argmax(axis=0),
    "the sum of the numbers": lambda numbers, plain: np.nan_to_num(np.where(plain, numbers, 0.0).sum(axis=0)),
    "the largest of the numbers": lambda numbers, plain: _low(numbers, plain).max(axis=0),
    "the smallest of the numbers": lambda numbers, plain: _high(numbers, plain).min(axis=0),
    "the place of the largest number": lambda numbers, plain: _low(numbers, plain).argmax(axis=0),
    "the place of the smallest number": lambda numbers, plain: _high(numbers, plain).argmin(axis=0),
    "the distance of the largest and the smallest number":
        lambda numbers, plain: _low(numbers, plain).max(axis=0) - _high(numbers, plain).min(axis=0),
    "the distance of the two largest numbers": _lead,
})  # fmt: skip
_NAMES = tuple(_SUMMARIES)
_AMONG_SYMBOLS, _OF_ALL, _OF_PLACES = _NAMES[:6], _NAMES[3:6], _NAMES[6:]


@dataclass(frozen=True)
class Summary:
    """Something of the numbers at several places, those aside that are symbols."""

    names: tuple[str, ...]
    marks: Marks
    what: str

    @property
    def words(self) -> str:
        return f"{self.what} in the output" + (" that are not symbols" if any(self.marks) else "")

    @property
    def family(self) -> str:
        return "of places" if self.what in _OF_PLACES else "of numbers"

    def column(self, table: Table) -> Column:
        numbers = np.stack([table.column(name).numbers for name in self.names])
        plain = np.stack([codes == 0 for codes in symbols(table, self.names, self.marks)])
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.asarray(_SUMMARIES[self.what](numbers, plain), float)
        good = np.isfinite(found) & (plain.any(axis=0) | (self.what == _AMONG_SYMBOLS[0]))
        return _numbers_where(good, found)


@dataclass(frozen=True)
class Above:
    """How many places hold a number above their usual middle."""

    names: tuple[str, ...]
    middles: tuple[float, ...]

    @property
    def words(self) -> str:
        return "how many places of the output are above their middle"

    def column(self, table: Table) -> Column:
        columns = zip(map(table.column, self.names), self.middles, strict=True)
        above = [(base.numbers > middle) & base.is_number() for base, middle in columns]
        return Column(np.sum(above, axis=0, dtype=float))


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
            found += [*(Digits(name, what) for what in _DIGITS), Part(name)]
        elif (np.abs(base.numbers) > 1).any() or np.signbit(base.numbers[base.numbers == 0]).any():
            found.append(Digits(name, "last digit"))
        if base.fine is not None:
            found.append(Fine(name))
    if len(names) > 1:
        found += _several(table, names[:_MOST_PLACES], tuple(numeric[:_MOST_PLACES]))
    return found


def _several(table: Table, names: tuple[str, ...], numeric: tuple[str, ...]) -> list[Feature]:
    marks = tuple(_frequent(table.columns[name]) for name in names)
    atoms = any(column.atoms is not None for column in table.columns.values())
    found = list[Feature]()
    if any(marks) or len(numeric) < len(names) or atoms:
        found.append(Pattern(names, marks))
    if len(numeric) < 2:
        return found
    own = tuple(marks[names.index(name)] for name in numeric)
    if any(own) or atoms:
        found += [Summary(numeric, own, what) for what in _AMONG_SYMBOLS]
    found += [Summary(numeric, ((),) * len(numeric), what) for what in (*_OF_ALL, *_OF_PLACES)]
    middles = tuple(float(np.median(table.columns[name].numbers)) for name in numeric)
    found.append(Above(numeric, middles))
    pairs = list(itertools.combinations(numeric, 2))
    if len(numeric) > _ALL_PAIRS:
        pairs = [*itertools.pairwise(numeric), *((numeric[0], b) for b in numeric[2:])]
    return found + [Combined(b, a, sign) for a, b in pairs for sign in (-1, 1)]


def _frequent(column: Column) -> tuple[float, ...]:
    """Values that come back so often that they are symbols, of a place that holds other numbers as well."""
    numbers = column.numbers[column.is_number()]
    values, counts = np.unique(numbers, return_counts=True)
    often = values[counts >= max(3, _FREQUENT * len(column.numbers))]
    return tuple(often[:16].tolist())
