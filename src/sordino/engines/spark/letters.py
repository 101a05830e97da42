"""Letters whose case DuckDB changes in another way than Spark, found by trying all of Unicode
(tests/engines/test_spark.py).

Spark goes by words and may make two letters of one; letter by letter, what is left are some Greek ones, the German
sharp s, the Turkish capital i, and letters of younger versions of Unicode, which DuckDB leaves as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LETTERS", "Letters"]


@dataclass(frozen=True)
class Letters:
    """Letters that become others, place by place, and those that stay."""

    before: str
    after: str
    stay: str


def _letters(*ranges: tuple[int, int]) -> str:
    return "".join(chr(code) for first, last in ranges for code in range(first, last + 1))


_SMALL = (
    (0x1F80, 0x1F87),
    (0x1F90, 0x1F97),
    (0x1FA0, 0x1FA7),
    (0x1FB3, 0x1FB3),
    (0x1FC3, 0x1FC3),
    (0x1FF3, 0x1FF3),
)
_LARGE = (
    (0x1F88, 0x1F8F),
    (0x1F98, 0x1F9F),
    (0x1FA8, 0x1FAF),
    (0x1FBC, 0x1FBC),
    (0x1FCC, 0x1FCC),
    (0x1FFC, 0x1FFC),
)
LETTERS = {
    "LOWER": Letters("\u0130", "i", "\u1c89\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc"
                     + _letters((0x10D50, 0x10D65), (0x16EA0, 0x16EB8))),
    "UPPER": Letters("\u00df" + _letters(*_SMALL), "\u1e9e" + _letters(*_LARGE),
                     "\u019b\u0264\u1c8a\ua7cd\ua7cf\ua7d3\ua7d5\ua7db" + _letters((0x10D70, 0x10D85), (0x16EBB, 0x16ED3))),
}  # fmt: skip
