"""Small finite fields, for hash functions whose collisions are known exactly: primes, and powers of two up to 256.

Elements are the whole numbers below the order. The same lines serve Python integers and NumPy arrays.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sordino.errors import InvalidInput

__all__ = ["add", "checked_order", "is_order", "next_prime", "product"]

_POLYNOMIALS = {4: 0b111, 8: 0b1011, 16: 0b10011, 32: 0b100101, 64: 0b1000011, 128: 0b10000011, 256: 0b100011011}
"""Irreducible polynomials over the field of two elements, as bits."""


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


def is_order(n: int) -> bool:
    """Whether a field of n elements is at hand."""
    return _is_prime(n) or n in _POLYNOMIALS


def add(a: Any, b: Any, order: int) -> Any:
    """a + b in the field."""
    return a ^ b if order in _POLYNOMIALS else (a + b) % order


def product(a: Any, b: Any, order: int) -> Any:
    """a b in the field; for powers of two the product of polynomials, reduced as it grows."""
    if order not in _POLYNOMIALS:
        return a * b % order
    top, total = order.bit_length() - 2, a * 0
    for i in range(top + 1):
        total = total ^ a * (b >> i & 1)
        a = a << 1 ^ (a >> top) * _POLYNOMIALS[order]
    return total


def checked_order(order: object) -> int:
    """The order of a field that is at hand."""
    if isinstance(order, bool) or not isinstance(order, int) or order < 2 or not is_order(order):
        rule = "the number of hash values must be a prime, or a power of two up to 256"
        raise InvalidInput(f"values={order!r}", rule, "Use .calibrated(epsilon=...), which finds the best.")
    return order
