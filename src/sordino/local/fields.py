"""Finite fields, for maps of which it is known exactly how often they meet: primes, and powers of two up to 2^24.

Elements are the whole numbers below the order; in powers of two their bits are polynomials, added by XOR. The same
lines serve Python integers and NumPy arrays, but for `products`, which is for arrays and quick.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput

__all__ = ["POLYNOMIALS", "add", "checked_order", "is_order", "least_order", "next_prime", "product", "products", "subtract"]

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
    return all(pow(p, odd, n) == 1 or any(pow(p, odd << i, n) == n - 1 for i in range(twos)) for p in small)


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
            powers = np.concatenate([powers, product(powers, product(powers[-1], generator, order), order)])
        powers = powers[: order - 1]
        logarithms[:] = -1
        logarithms[powers] = np.arange(order - 1)
        logarithms[0] = 2 * (order - 1)
    return np.concatenate([powers, powers, np.zeros(2 * order, np.int64)]), logarithms


def checked_order(order: object) -> int:
    """The order of a field that is at hand."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 2 or not is_order(order):
        rule = "the number of hash values must be a prime, or a power of two up to 256"
        raise InvalidInput(f"values={order!r}", rule, "Use .calibrated(epsilon=...), which finds the best.")
    return order
