"""Optimised local hashing: hash the category to few values by a random linear map, and report map and randomized value.

Theorem. A report is log(odds)-differentially private, and two categories collide under exactly (g^(t-1) - 1)/(g^t - 1)
of the maps, g being the number of values and t that of digits. Proof in protocols.md.

The maps are over finite fields: primes, and powers of two up to 2^24. Elements are the whole numbers below the order;
in powers of two their bits are polynomials, added by XOR. The same lines serve Python integers and NumPy arrays, but
for `products`, which is for arrays and quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local import protocol
from sordino.local.answers import Categories, Indices, counted
from sordino.local.frequency import Frequency
from sordino.local.protocol import Column, Counts, below, chance, odds_below
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.privacy.exact import Number, show

__all__ = [
    "POLYNOMIALS",
    "LocalHashing",
    "add",
    "checked_order",
    "is_order",
    "least_order",
    "next_prime",
    "product",
    "products",
    "subtract",
]

Elements: TypeAlias = npt.NDArray[np.int64]

_TAILS = (3, 3, 3, 5, 3, 3, 27, 3, 9, 5, 9, 27, 33, 3, 43, 9, 9, 39, 9, 5, 3, 33, 27)

POLYNOMIALS = {1 << degree: 1 << degree | tail for degree, tail in enumerate(_TAILS, start=2)}
"""For each power of two the least irreducible polynomial of its degree over the field of two elements, as bits."""

_MOST_HASHED = 256
_MOST_LOGARITHMS = 2**16


@cache
def _is_prime(n: int) -> bool:
    """Miller and Rabin's test with the first twelve primes, which errs for no number below 2^64."""
    small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if n < 2 or any(n % p == 0 for p in small):
        return n in small
    odd = (n - 1) >> (twos := ((n - 1) & (1 - n)).bit_length() - 1)
    return all(
        pow(p, odd, n) == 1 or any(pow(p, odd << i, n) == n - 1 for i in range(twos)) for p in small
    )


@cache
def next_prime(n: int) -> int:
    """The least prime that is not below n."""
    while not _is_prime(n):
        n += 1
    return n


def least_order(n: int) -> int:
    """The number of elements of the smallest field at hand that has at least n."""
    return min([next_prime(n), *(order for order in POLYNOMIALS if order >= n)])


def is_order(n: int) -> bool:
    """Whether n can be a number of hash values."""
    return _is_prime(n) or (n in POLYNOMIALS and n <= _MOST_HASHED)


def add(a: Any, b: Any, order: int) -> Any:
    """a + b in the field."""
    return a ^ b if order in POLYNOMIALS else (a + b) % order


def subtract(a: Any, b: Any, order: int) -> Any:
    """a - b in the field."""
    return a ^ b if order in POLYNOMIALS else (a - b) % order


def product(a: Any, b: Any, order: int) -> Any:
    """a b in the field; for powers of two the product of polynomials, reduced as it grows."""
    if order not in POLYNOMIALS:
        return a * b % order
    top, total = order.bit_length() - 2, a * 0
    for i in range(top + 1):
        total = total ^ a & -(b >> i & 1)
        a = a << 1 ^ (a >> top) * POLYNOMIALS[order]
    return total


def products(a: Elements, b: Elements, order: int) -> Elements:
    """The same for arrays, by logarithms where it is worth a table, else in narrow words."""
    if order not in POLYNOMIALS:
        return a * b % order
    if order <= _MOST_LOGARITHMS:
        powers, logarithms = _tables(order)
        return np.asarray(powers[logarithms[a] + logarithms[b]])
    return np.asarray(product(a.astype(np.int32), b.astype(np.int32), order), np.int64)


@cache
def _tables(order: int) -> tuple[Elements, Elements]:
    """The powers of a generator, twice and then zeros, and the logarithms; that of zero leads to the zeros."""
    logarithms = np.full(order, -1)
    generator = 1
    while (logarithms < 0).any():
        generator += 1
        powers = np.ones(1, np.int64)
        while len(powers) < order - 1:
            powers = np.concatenate(
                [powers, product(powers, product(powers[-1], generator, order), order)]
            )
        powers = powers[: order - 1]
        logarithms[:] = -1
        logarithms[powers] = np.arange(order - 1)
        logarithms[0] = 2 * (order - 1)
    return np.concatenate([powers, powers, np.zeros(2 * order, np.int64)]), logarithms


def checked_order(order: object) -> int:
    """The order of a field that is at hand."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 2 or not is_order(order):
        rule = "the number of hash values must be a prime, or a power of two up to 256"
        raise InvalidInput(
            f"values={order!r}", rule, "Use .calibrated(epsilon=...), which finds the best."
        )
    return order


_BLOCK = 1 << 18
_MOST_VALUES = 2**12


@dataclass(frozen=True, init=False, repr=False)
class LocalHashing(Frequency):
    """Report a map and the randomized hash value: the whole number map * values + value.

    A category is its digits in base g = `values`, a map is as many digits, not all zero; the hash is their inner
    product in the field of g elements.

    Example:
        >>> h = LocalHashing.calibrated(epsilon=1, categories=4096)
        >>> h.values, h.digits, h.bits
        (4, 6, 14)
    """

    values: int

    kind = "local.hashing"
    most = 2**48
    parameters = ("values",)

    def __init__(self, odds: Number, categories: Categories, values: int) -> None:
        super().__init__(odds, categories)
        object.__setattr__(self, "values", checked_order(values))
        if not _fits(self.values, self.categories):
            rule = "a map and a value must fit 62 bits together"
            raise InvalidInput(
                f"values={values}", rule, "Use fewer categories, or .calibrated(epsilon=...)."
            )

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: Categories) -> Self:
        """The number of hash values with the least variance that is epsilon-private: near e^epsilon + 1."""
        odds, (count, _) = odds_below(epsilon), counted(categories, cls.most)
        near = min(math.floor(odds) + 1, next_prime(count), _MOST_VALUES)
        fit = [g for g in range(2, next_prime(near + 1) + 1) if is_order(g) and _fits(g, count)]
        orders = [g for g in fit if g >= near // 2] or fit[-1:]
        best = min((cls(odds, count, g) for g in orders), key=lambda one: one.total_variance(1))
        return cls(odds, categories, best.values)

    @cached_property
    def digits(self) -> int:
        """The digits of a category in base `values`."""
        return _digits(self.values, self.categories)

    @property
    def maps(self) -> int:
        """How many maps there are, the one that forgets everything not counted."""
        return int(self.values**self.digits) - 1

    @property
    def own(self) -> Fraction:
        """The probability that the reported value is that of the true category."""
        return self.odds / (self.odds + self.values - 1)

    @property
    def other(self) -> Fraction:
        """The probability that the reported value is that of a given other category."""
        collide = Fraction(self.values ** (self.digits - 1) - 1, self.maps)
        return collide * self.own + (1 - collide) * (1 - self.own) / (self.values - 1)

    @property
    def bits(self) -> int:
        """How many bits one report needs."""
        return (self.maps * self.values - 1).bit_length()

    @property
    def limit(self) -> int:
        """Maps are 1 to values^digits - 1."""
        return int(self.values ** (self.digits + 1))

    def work(self, persons: int) -> int:
        """A transform over the table of all reports if it fits, else every report against every category."""
        if not self.cells:
            return persons * self.categories * self.digits
        return persons + self.limit * (self.values * (self.digits - 1) + 1)

    def hash(self, maps: Any, x: Any) -> Any:
        """The hash of x under maps; whole numbers or arrays."""
        total = maps * 0
        for _ in range(self.digits):
            total = add(
                total, product(maps % self.values, x % self.values, self.values), self.values
            )
            maps, x = maps // self.values, x // self.values
        return total

    def _draw(self, true: Indices, source: Bits) -> Column:
        maps = uniform(self.maps, len(true), source) + 1
        truthful = bernoulli(self.own, len(true), source)
        lie = uniform(self.values - 1, len(true), source) + 1
        value = self.hash(maps, true)
        reports: Column = maps * self.values + np.where(
            truthful, value, (value + lie) % self.values
        )
        return reports

    def _draw_one(self, true: int, source: Bits) -> int:
        one = 1 + below(self.maps, source)
        value = self.hash(one, true)
        if not chance(self.own, source):
            value = (value + 1 + below(self.values - 1, source)) % self.values
        return int(one * self.values + value)

    def check(self, column: Column) -> None:
        """Refuse what is no pair of map and value."""
        super().check(column)
        if column.size and column.min() < self.values:
            rule = f"the map of a report of {self!r} is at least 1"
            raise InvalidInput(f"report {show(column.min())}", rule, "These reports were damaged.")

    def supports(self, column: Column) -> Counts:
        """How many reports have the hash of each category, each report asked for each category."""
        return self.supports_for(column, self._everything())

    def supports_for(self, column: Column, some: Indices) -> Counts:
        """How many reports have the hash of each of some categories."""
        counts = np.zeros(len(some), np.int64)
        step = max(1, _BLOCK // len(some))
        for start in range(0, len(column), step):
            maps, value = np.divmod(column[start : start + step, None], self.values)
            counts += (self.hash(maps, some[None, :]) == value).sum(0)
        return counts

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from a table of reports, one digit after the other.

        Digit by digit the maps are summed out: at x, those reports (map digit a, value c) come together that agree in
        c - a x. What is left at c = 0 is the number of reports whose value is the hash.
        """
        g, t = self.values, self.digits
        everything = np.arange(g)
        table = cells.reshape((g,) * (t + 1))
        for axis in range(t):
            last = axis == t - 1
            front = np.moveaxis(table, axis, 0)
            out = np.empty((g, *front.shape[1:-1], 1 if last else g), np.int64)
            for x in range(g):
                moved = add(
                    everything[:1] if last else everything,
                    product(everything, np.int64(x), g)[:, None],
                    g,
                )
                out[x] = sum(front[a][..., moved[a]] for a in range(g))
            table = np.moveaxis(out, 0, axis)
        return np.ascontiguousarray(table).reshape(-1)[: self.categories]


def _digits(base: int, categories: int) -> int:
    digits = 1
    while base**digits < categories:
        digits += 1
    return digits


def _fits(values: int, categories: int) -> bool:
    """Whether a map and a value are a number below 2^62."""
    return bool(values ** (_digits(values, categories) + 1) < 2**62)


protocol.kinds["local.hashing", 1] = LocalHashing.from_fields
