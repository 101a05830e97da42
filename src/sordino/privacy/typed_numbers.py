"""Numbers as people type them: `0.1` is exactly one tenth."""

from __future__ import annotations

import re
from fractions import Fraction

from sordino.errors import InvalidInput

__all__ = ["as_typed", "exact"]

_NUMBER = re.compile(
    r"([+-]?)(\d+/\d+|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)", re.ASCII | re.IGNORECASE
)
_LONGEST = 400
"""Longer texts, and exponents beyond it, are refused: nobody types them, and their fractions would fill the memory."""


def exact(text: str, option: str = "a number") -> Fraction:
    """The number that was typed, exactly; `option` names it in a refusal.

    Example:
        >>> exact("0.1"), exact("3/4"), exact("1e-6")
        (Fraction(1, 10), Fraction(3, 4), Fraction(1, 1000000))
    """
    typed = text.strip()
    value = as_typed(option, text)
    match = _NUMBER.fullmatch(typed)
    if match is None:
        hint = "Write a number such as 0.1, 3/4 or 1e-6"
        comma = typed.replace(",", ".", 1)
        point = (
            f"; with a decimal point: {comma}"
            if comma != typed and _NUMBER.fullmatch(comma)
            else ""
        )
        raise InvalidInput(value, "it is not a number", f"{hint}{point}.")
    _, _, exponent = typed.lower().partition("e")
    if len(typed) > _LONGEST or abs(int(exponent or 0)) > _LONGEST:
        raise InvalidInput(
            value, f"it has more than {_LONGEST} digits", "Write an ordinary number."
        )
    if "/" in typed and int(typed.partition("/")[2]) == 0:
        raise InvalidInput(value, "it divides by zero", "Write a fraction such as 3/4.")
    return Fraction(typed)


def as_typed(option: str, text: str) -> str:
    """An option as it was typed, for a refusal; long texts are cut."""
    return f"{option} {text[:40]!r}" + ("..." if len(text) > 40 else "")
