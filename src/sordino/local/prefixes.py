"""Values from a very large domain, as prefixes: how they are read, how a search has levels, how reports are counted.

Values are whole numbers of up to 64 bits, or short texts read as such numbers. Hashes are linear in a prefix's bits, so
that they add up by XOR: many prefixes are counted at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.local.answers import as_array, has_gaps, is_missing, missing_answer
from sordino.local.hashing import LocalHashing, product
from sordino.local.protocol import Column, Counts
from sordino.local.report_text import is_column, one_line
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an

__all__ = [
    "LONGEST",
    "MOST_CANDIDATES",
    "Levels",
    "Prefixes",
    "as_numbers",
    "as_text",
    "best_levels",
    "best_values",
    "checked_length",
    "extended",
    "folded",
    "least_share",
    "one_number",
    "supports_of_prefixes",
]

_MOST_WORK = 4e9
"""Operations on words of 64 reports; some seconds."""
MOST_CANDIDATES = 2**26
"""At one level: their counts take half a gigabyte."""
_MOST_KEPT = 4096
_MOST_LEVELS = 24
_MISSED = 0.05
_FALSE = 0.05


@dataclass(frozen=True)
class Levels:
    """The lengths of the prefixes asked for, the last being whole values, and how many survive each level."""

    lengths: tuple[int, ...]
    kept: int

    @property
    def groups(self) -> int:
        """One group of persons for each level, and one that confirms."""
        return len(self.lengths) + 1

    def candidates(self, level: int) -> int:
        """How many prefixes a level compares."""
        before = self.lengths[level - 1] if level else 0
        return int(min(self.kept, 2**before) * 2 ** (self.lengths[level] - before))

    @property
    def widest(self) -> int:
        """The most prefixes that a level compares."""
        return max(self.candidates(i) for i in range(len(self.lengths)))

    def work(self, persons: int, values: int) -> float:
        """About how many operations on words the search takes."""
        compared = sum(self.candidates(i) for i in range(len(self.lengths)))
        return persons / self.groups * compared / 64 * (2 * values.bit_length() + 1)


def best_values(odds: Fraction) -> int:
    """The power of two nearest to odds + 1, the best number of hash values, in ratio."""
    return int(2 ** min(8, max(1, round(math.log2(float(odds + 1))))))


def best_levels(odds: Fraction, values: int, length: int, persons: int, most: int) -> Levels:
    """The levels that find the smallest shares, among those that take some seconds."""
    options = []
    for count in range(1, min(length, _MOST_LEVELS) + 1):
        # room for prefixes that are frequent by many rare values
        kept = 2 << (most - 1).bit_length()
        while kept <= max(_MOST_KEPT, 4 * most):
            step = max(1, -(-(length - kept.bit_length() + 1) // count))
            first = length - (count - 1) * step
            if first >= 1:
                options.append(Levels((*range(first, length, step), length), kept))
            kept *= 2
    options = [one for one in options if one.widest <= MOST_CANDIDATES]
    slow = [one.work(persons, values) > _MOST_WORK for one in options]
    if all(slow):
        return min(options, key=lambda one: one.work(persons, values))
    quick = [one for one, too_slow in zip(options, slow, strict=True) if not too_slow]
    return min(
        quick,
        key=lambda one: (least_share(one, odds, values, persons, most), one.work(persons, values)),
    )


def least_share(levels: Levels, odds: Fraction, values: int, persons: int, most: int) -> float:
    """The share that is found with probability 95 % or so, by the normal law of estimates.

    It must be among the best at each level against noise alone, and differ from 0 in the group that confirms.
    """
    from scipy.special import ndtri

    e, g = float(odds), values
    own = e / (e + g - 1)
    deviation = math.sqrt((g - 1) / g**2 * levels.groups / persons) / (own - 1 / g)
    survive = [
        (most if i == len(levels.lengths) - 1 else levels.kept) / levels.candidates(i)
        for i in range(levels.groups - 1)
    ]
    noise = max(float(ndtri(1 - min(0.5, min(survive)))), float(ndtri(1 - _FALSE / most)))
    return deviation * (noise + float(ndtri(1 - _MISSED / levels.groups)))


Prefixes = npt.NDArray[np.uint64]
Words = npt.NDArray[np.uint64]

LONGEST = 48
"""Longer prefixes are folded to this many bits, by a fixed linear map, before they are hashed."""

_TABLE_BYTES = 1 << 25
_FAR = [(0x9E3779B97F4A7C15 * (2 * i + 1) % 2**64) >> 16 for i in range(64 - LONGEST)]


def folded(prefixes: Prefixes) -> npt.NDArray[np.int64]:
    """Prefixes as categories: bits from the 49th on are each replaced by a fixed pattern of the lower 48."""
    found = prefixes & np.uint64(2**LONGEST - 1)
    for i, pattern in enumerate(_FAR):
        bit = prefixes >> np.uint64(LONGEST + i) & np.uint64(1)
        found ^= bit * np.uint64(pattern)
    return found.astype(np.int64)


def extended(parents: Prefixes, step: int) -> Prefixes:
    """Every parent followed by every pattern of `step` bits."""
    return (parents[:, None] << np.uint64(step) | np.arange(2**step, dtype=np.uint64)).reshape(-1)


def supports_of_prefixes(
    oracle: LocalHashing, column: Column, length: int, parents: Prefixes, step: int
) -> Counts:
    """How many reports speak for each extension of the parents by `step` bits, in the order of `extended`."""
    counts = np.zeros((len(parents), 2**step), np.int64)
    digit = oracle.values.bit_length() - 1
    words = max(1, _TABLE_BYTES // (8 * digit << step))
    for start in range(0, len(column), 64 * words):
        part = column[start : start + 64 * words]
        bits, value = _planes(oracle, part, length)
        suffixes = _combined(bits[:step], value)
        for i, parent in enumerate(parents.tolist()):
            own = value.copy()
            for j in range(length - step):
                if parent >> j & 1:
                    own ^= bits[step + j]
            wrong = suffixes[0] ^ own[0]
            for plane in range(1, digit):
                wrong |= suffixes[plane] ^ own[plane]
            counts[i] += len(part) - np.bitwise_count(wrong).sum(1, dtype=np.int64)
    return counts.reshape(-1)


def _planes(oracle: LocalHashing, column: Column, length: int) -> tuple[list[Words], Words]:
    """For each bit of a prefix the hash of it alone, and the reported value: a row of words for each bit of a hash."""
    maps, value = np.divmod(column, oracle.values)
    digit = oracle.values.bit_length() - 1
    everything = np.arange(oracle.values)
    single = []
    for i in range(min(length, LONGEST)):
        here = (maps >> (i // digit * digit)) & (oracle.values - 1)
        single.append(
            _packed(product(everything, np.int64(1 << i % digit), oracle.values)[here], digit)
        )
    for pattern in _FAR[: max(0, length - LONGEST)]:
        single.append(
            np.bitwise_xor.reduce([single[i] for i in range(LONGEST) if pattern >> i & 1])
        )
    return single, _packed(value, digit)


def _packed(hashes: Column, digit: int) -> Words:
    """Each bit of many hashes, 64 of them a word."""
    rows = np.zeros((digit, 8 * -(-len(hashes) // 64)), np.uint8)
    for j in range(digit):
        ones = np.packbits((hashes >> j & 1).astype(bool))
        rows[j, : len(ones)] = ones
    return rows.view(np.uint64)


def _combined(bits: list[Words], like: Words) -> Words:
    """The hashes of all patterns of these bits, lowest bit first: planes, patterns, words."""
    table = np.zeros((len(like), 2 ** len(bits), like.shape[1]), np.uint64)
    for i, bit in enumerate(bits):
        table[:, 2**i : 2 ** (i + 1)] = table[:, : 2**i] ^ bit[:, None]
    return table


_LONGEST = 64


def checked_length(length: Any, *, text: bool) -> None:
    """Refuse a length that values cannot have."""
    if (
        isinstance(length, bool)
        or not isinstance(length, int)
        or not 1 <= length <= _LONGEST
        or (text and length % 8)
    ):
        rule = f"bits must be a whole number from 1 to {_LONGEST}; for texts a multiple of 8"
        raise InvalidInput(
            f"bits={show(length)}",
            rule,
            "Longer values: agree on a public hash, and look up what is found.",
        )


def one_number(value: Any, length: int, *, text: bool) -> int:
    """One value as a number."""
    if text:
        return int.from_bytes(_encoded(value, length), "big")
    if (
        isinstance(value, int | np.integer)
        and not isinstance(value, bool)
        and 0 <= value < 2**length
    ):
        return int(value)
    raise _outside(value, length)


def as_numbers(values: Any, length: int, *, text: bool) -> Prefixes:
    """Many values as numbers, the first letter of a text in the highest bits."""
    if has_gaps(values):
        raise missing_answer()
    if not is_column(values) or len(values) == 0:
        rule = "values come as one list or one-dimensional array, at least one"
        raise InvalidInput(a_or_an(type(values).__name__), rule, "Pass one value for each person.")
    if text:
        return _texts([v.as_py() if hasattr(v, "as_py") else v for v in values], length)
    array = as_array(values) if not isinstance(values, list | tuple) else None
    if array is None or array.dtype.kind not in "iu":
        given = values if array is None else array.tolist()
        return np.array([one_number(v, length, text=False) for v in given], np.uint64)
    if int(array.min()) < 0 or int(array.max()) >= 2**length:
        wrong = array.min() if int(array.min()) < 0 else array.max()
        raise _outside(wrong, length)
    return array.astype(np.uint64)


def _texts(values: list[Any], length: int) -> Prefixes:
    size = length // 8
    padded = np.frombuffer(b"".join(_encoded(v, length) for v in values), np.uint8).reshape(
        -1, size
    )
    found = np.zeros(len(padded), np.uint64)
    for i in range(size):
        found = found << np.uint64(8) | padded[:, i].astype(np.uint64)
    return found


def _encoded(value: Any, length: int) -> bytes:
    if is_missing(value):
        raise missing_answer()
    try:
        data = value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError:
        data = None
    if not isinstance(data, bytes) or len(data) > length // 8 or b"\0" in data:
        rule = f"a value must be a text or bytes of at most {length // 8} bytes, without zero bytes"
        hint = "Shorten values, or allow more bits."
        if not isinstance(value, str | bytes):
            hint = "Pass texts, or search for whole numbers without text=True."
        raise InvalidInput(one_line(value), rule, hint)
    return data.ljust(length // 8, b"\0")


def as_text(numbers: Prefixes, length: int) -> tuple[str, ...]:
    """The texts that numbers stand for."""
    size = length // 8
    return tuple(
        n.to_bytes(size, "big").rstrip(b"\0").decode("utf-8", "backslashreplace")
        for n in numbers.tolist()
    )


def _outside(value: Any, length: int) -> InvalidInput:
    if is_missing(value):
        return missing_answer()
    convert = isinstance(value, float | np.floating)
    hint = (
        "Convert values, as by .astype(int)."
        if convert
        else "Allow more bits, or pass text=True for texts."
    )
    return InvalidInput(
        one_line(value), f"a value must be a whole number from 0 to 2^{length} - 1", hint
    )
