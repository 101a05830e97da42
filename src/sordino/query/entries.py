"""The entries of a declaration: where one stands, and the plain values that it may hold.

Every error names file and key, the rule, and what to write instead, and no object of the caller is shown: a table in
memory must not leak through the text of an error.
"""

from __future__ import annotations

import json
import math
import numbers
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import decimal_reading, is_finite, readable, show
from sordino.privacy.wording import counted
from sordino.query.same_name import folded
from sordino.query.types import LARGEST

__all__ = [
    "LONGEST_NAME", "MOST_ROWS", "Place", "check_names", "closest", "count", "key_text", "name_fault", "number", "section",
    "shown", "whole_number", "yes_or_no",
]  # fmt: skip

LONGEST_NAME, MOST_ROWS = 200, 10**9
_PASSED: Mapping[tuple[str, ...], str] = {
    ("budget",): "Pass budget=so.Budget(1, 1e-6), or a dict with epsilon and delta.",
    ("columns",): 'Pass a dict such as {"age": {"type": "int", "min": 0, "max": 110}}.',
}


@dataclass(frozen=True)
class Place:
    """Where in a declaration something stands: the file, unless it is Python, and the keys that lead to it."""

    file: str | None = None
    keys: tuple[str, ...] = ()

    def at(self, key: str) -> Place:
        """The place of a key within this one."""
        short = key if len(key) <= LONGEST_NAME else f"{key[: LONGEST_NAME - 3]}..."
        return Place(self.file, (*self.keys, key_text(short)))

    def item(self, index: int) -> Place:
        """The place of one value of the list at this place."""
        return Place(self.file, (*self.keys[:-1], f"{self.keys[-1]}[{index}]"))

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, ".".join(self.keys)) if part) or "the dataset"

    def wrong(self, value: object, rule: str, hint: str) -> InvalidDeclaration:
        """The error that the value at this place breaks a rule."""
        return InvalidDeclaration(f"{self} = {shown(value)}", rule, hint)

    def lacks(self, key: str, rule: str, hint: str) -> InvalidDeclaration:
        """The error that a key is missing at this place."""
        return InvalidDeclaration(f"{self} without {key}", rule, hint)


def key_text(key: str) -> str:
    """A key as TOML spells it: bare where it can be, else quoted."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def shown(value: object) -> str:
    """A value for an error text; what could hold data is named by its type only."""
    match value:
        case bool() | None:
            return str(value).lower()
        case str():
            return show(str(value))
        case Fraction():
            return readable(value)
        case Decimal():
            return str(value)[:80]
        case numbers.Number():
            return show(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            return f"a table of {counted(len(value), 'key')}"
        case list() | tuple():
            return f"a list of {counted(len(value), 'value')}"
        case _:
            return f"an object of type {type(value).__name__}"


def closest(word: str, known: Iterable[str]) -> str:
    """A question that proposes the known word that was probably meant, and the list of all."""
    from difflib import get_close_matches

    words = {k.casefold(): k for k in known}
    close = get_close_matches(word.casefold(), words, n=1)
    question = f"Did you mean {key_text(words[close[0]])}? " if close else ""
    first = [key_text(w) for w in words.values()][:20]
    return f"{question}Known here: {', '.join(first) or 'nothing'}{' and more' if len(words) > 20 else ''}."


def section(place: Place, value: Any, known: Sequence[str] | None = None) -> dict[str, Any]:
    """A section with text keys, all of them known unless any name may stand there."""
    if not isinstance(value, Mapping):
        example = (
            "Write it as { key = value }."
            if place.file
            else _PASSED.get(place.keys[-1:], "Pass a dict.")
        )
        raise place.wrong(value, "a section with keys belongs here", example)
    for key in value:
        if not isinstance(key, str):
            raise place.wrong(key, "a key must be text", "Put it in quotes.")
        if known is not None and key not in known:
            raise InvalidDeclaration(
                str(place.at(key)), "it is not a known key", closest(key, known)
            )
    return dict(value)


def name_fault(name: object) -> str | None:
    """What is wrong with a name of a table or column, if anything."""
    if not isinstance(name, str) or not name.strip():
        return "a name must be text that is not empty"
    if len(name) > LONGEST_NAME:
        return f"a name has at most {LONGEST_NAME} characters"
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in name):
        return "a name holds no control characters"
    return None


def check_names(place: Place, names: Iterable[Any], what: str) -> None:
    """Refuse bad names, and two that SQL, which does not see case, or people could not tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        if fault := name_fault(name):
            raise InvalidDeclaration(f"{place}: the {what} name {shown(name)}", fault, "Rename it.")
        other = seen.setdefault(folded(name), name)
        if other != name:
            rule = "SQL does not tell names apart that differ only in case"
            raise InvalidDeclaration(
                f"{place}: the {what}s {show(other)} and {show(name)}", rule, "Rename one of them."
            )


def number(place: Place, value: Any) -> Fraction:
    """A finite number exactly as written; a float by its shortest decimal."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        hint = (
            "Write it without quotes."
            if isinstance(value, str)
            else "Write a number such as 0 or 0.5."
        )
        raise place.wrong(value, "it must be a number", hint)
    if not is_finite(value):
        raise place.wrong(value, "it must be a finite number", "Write a public limit such as 1000.")
    if not value:
        return Fraction(0)
    # A written exponent of a billion would fill the memory when made exact, so its size is looked at first.
    if isinstance(value, Decimal):
        fits = abs(value.adjusted()) <= 300 and len(value.as_tuple().digits) <= 300
    else:
        fits = (
            not isinstance(value, numbers.Rational)
            or max(abs(int(value.numerator)), int(value.denominator)) <= 10**300
        )
    exact = decimal_reading(place.keys[-1], value) if fits else Fraction(0)
    if not Fraction(1, 10**300) <= abs(exact) <= 10**300:
        raise place.wrong(
            value, "it must be 0, or between 1e-300 and 1e300 in size", "Write an ordinary number."
        )
    return exact


def whole_number(place: Place, value: Any) -> Fraction:
    """A whole number that is computed in 64 bits."""
    exact = number(place, value)
    if exact.denominator != 1:
        hint = f"Write {math.floor(exact)} or {math.ceil(exact)}, or declare the column as a float."
        raise place.wrong(value, "it must be a whole number", hint)
    if abs(exact) >= LARGEST:
        raise place.wrong(
            value,
            "it must be smaller than 2^62 in size",
            "Declare the column as a float with a step.",
        )
    return exact


def count(place: Place, value: Any) -> int:
    """How many rows or groups."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Integral)
        or not 1 <= int(value) <= MOST_ROWS
    ):
        raise place.wrong(
            value,
            "it must be a whole number from 1 to a billion",
            f"Write {place.keys[-1]} = 10 or the like.",
        )
    return int(value)


def yes_or_no(place: Place, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise place.wrong(
            value,
            "it must be true or false",
            f"Write {place.keys[-1]} = true or {place.keys[-1]} = false.",
        )
    return value
