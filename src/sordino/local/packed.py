"""Rows of packed bits, one bit for each category: category j is bit j mod 8 of byte j div 8."""

from __future__ import annotations

import numpy as np

from sordino.errors import InvalidInput
from sordino.local.categories import Indices
from sordino.local.protocol import Column, Counts

__all__ = ["SMALL", "bit_sums", "cell_sums", "put", "row_width", "spare_mask"]

SMALL = 16
"""Up to so many categories a row is one or two bytes, of which every value is counted; longer rows are whole words."""

_BLOCK_BYTES = 1 << 20


def row_width(categories: int) -> int:
    """The bytes of one row."""
    return -(-categories // 8) if categories <= SMALL else 8 * -(-categories // 64)


def spare_mask(categories: int) -> Column:
    """A row of ones at the categories and zeros behind them."""
    ones = np.arange(8 * row_width(categories)) < categories
    return np.packbits(ones, bitorder="little")


def check_rows(column: Column, categories: int) -> None:
    """Refuse rows with a bit behind the last category."""
    spare = ~spare_mask(categories)
    if spare.any() and (column[:, spare != 0] & spare[spare != 0]).any():
        rule = f"a report over {categories} categories has no bit behind the last one"
        raise InvalidInput("a report with more bits", rule, "These reports were damaged, or made by another protocol.")


def put(rows: Column, places: Indices, ones: Column) -> None:
    """Set one bit in each row, in place."""
    at = np.arange(len(rows)), places >> 3
    shift = (places & 7).astype(np.uint8)
    rows[at] = rows[at] & ~(np.uint8(1) << shift) | ones.astype(np.uint8) << shift


def bit_sums(rows: Column, categories: int) -> Counts:
    """How many rows have each bit, by adding rows as binary numbers in parallel, half of them to the other half."""
    words = np.ascontiguousarray(rows).view(np.uint64) if rows.shape[1] % 8 == 0 else None
    if words is None:
        return np.asarray(np.unpackbits(rows, axis=1, bitorder="little", count=categories).sum(0, dtype=np.int64))
    size = 1 << max(3, (_BLOCK_BYTES // (8 * words.shape[1])).bit_length() - 1)
    total = np.zeros(64 * words.shape[1], np.int64)
    for start in range(0, len(words), size):
        block = words[start : start + size]
        if len(block) < size:
            block = np.concatenate([block, np.zeros((size - len(block), words.shape[1]), np.uint64)])
        for digit, plane in enumerate(_add_rows(block)):
            total += np.unpackbits(plane.view(np.uint8), bitorder="little").astype(np.int64) << digit
    return total[:categories]


def _add_rows(rows: Column) -> list[Column]:
    """The binary digits of the sums over rows, whose number is a power of two, in every lane."""
    digits = [rows]
    while len(digits[0]) > 1:
        half = len(digits[0]) // 2
        added: list[Column] = []
        carry: Column = np.zeros(1, np.uint64)
        for i, digit in enumerate(digits):
            a, b = digit[:half], digit[half:]
            either: Column = a ^ b
            both: Column = a & b
            if i:
                both |= either & carry
                either ^= carry
            added.append(either)
            carry = both
        digits = [*added, carry]
    return [digit[0] for digit in digits]


def cell_sums(cells: Counts, categories: int) -> Counts:
    """How many reports have each bit, from how often each possible row of one or two bytes occurs."""
    values = np.arange(len(cells))
    return np.array([cells[values >> j & 1 == 1].sum() for j in range(categories)])
