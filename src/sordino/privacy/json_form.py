"""The stored form of everything: `{"kind": ..., "v": ..., fields}`. The meaning of a kind and version never changes.

Mechanisms and losses (`dump`, `load`) hold every number as an exact rational text. Answers and reports (`write`,
`read`) hold plain JSON, the same for the same facts; a text that is none, or damaged, is refused without being quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias, TypeVar

from sordino.errors import InvalidInput
from sordino.privacy.exact import show
from sordino.privacy.wording import a_or_an

Stored: TypeAlias = dict[str, Any]
"""A stored object, as JSON holds it."""
Field: TypeAlias = (
    Fraction | int | tuple[Fraction, ...] | tuple[str, ...] | str | Stored | list[Any]
)

__all__ = [
    "Field", "Stored", "categories", "dump", "encodable", "list_of", "load", "loaded", "nested", "rational", "rationals",
    "read", "text_of", "texts_of", "truth_of", "whole", "wholes", "write",
]  # fmt: skip

Kept = TypeVar("Kept")
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)

_MOST_CHARACTERS = 100_000
"""No stored number is longer: the longest losses of calibrated protocols, of a hundred reports, have 19,000."""
_MOST_POWER = 10_000
_PLAIN_DIGITS = 4000
_PLAIN_BITS = 13_000
_RATIO = re.compile(r"(-?[0-9]+)(?:/([0-9]+))?")


def dump(kind: str, version: int, fields: Mapping[str, Field]) -> str:
    """The text of one object; `nested` makes a field of another one that is stored."""
    return json.dumps(
        {"kind": kind, "v": version, **{name: _plain(value) for name, value in fields.items()}}
    )


def nested(text: str) -> Stored:
    """A stored object as a field of another one."""
    found: Stored = json.loads(text)
    return found


def loaded(field: Any, read: Callable[[str], Kept]) -> Kept:
    """What a reader of stored texts makes of such a field."""
    return read(json.dumps(field))


def load(text: str, known: Mapping[tuple[str, int], Any]) -> tuple[Any, dict[str, Any]]:
    """What `known` holds for the text's kind and version, and the other fields."""
    try:
        fields = json.loads(text)
        key = fields.pop("kind"), fields.pop("v")
        entry = known.get(key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        rule = 'a stored object is a JSON object with "kind" and "v"'
        raise InvalidInput(show(text), rule, "Pass a text made by to_json().") from None
    if entry is None:
        names = ", ".join(f"{kind} v{version}" for kind, version in known)
        rule = f"the kind and version must be one of: {names}"
        raise InvalidInput(
            f"kind {show(key[0])} v{show(key[1])}", rule, "A newer Sordino may know it."
        )
    return entry, fields


def write(
    kind: str, version: int, fields: Mapping[str, Any], *, indent: int | None = None, infinite: bool = False
) -> str:  # fmt: skip
    """The text of plain facts; ValueError if a number in them is too long to be written.

    So it is if one is NaN or infinite, unless `infinite` allows that.
    """
    separators = (",", ":") if indent is None else None
    facts = {"kind": kind, "v": version, **fields}
    text = json.dumps(
        facts, sort_keys=True, indent=indent, separators=separators, ensure_ascii=False, allow_nan=infinite
    )  # fmt: skip
    return encodable(text)


def read(
    text: object, kind: str, newest: int, what: str, build: Callable[[dict[str, Any]], Kept], *,
    hint: str = "Pass a text made by to_json().", infinite: bool = False,
) -> Kept:  # fmt: skip
    """What `build` makes of the fields of a stored text; whatever it raises means that the text is damaged.

    `infinite` says that the numbers of JSON may be NaN or infinite.
    """
    try:
        fields = json.loads(text_of(text), parse_constant=None if infinite else _refuse)
        found, version = fields.pop("kind"), fields.pop("v")
    except _DAMAGED:
        raise _damaged(text, what) from None
    if found != kind:
        raise InvalidInput(f"kind {show(found)}", f'a stored {what} is of kind "{kind}"', hint)
    if type(version) is int and version > newest:
        rule = f"this Sordino reads its kind up to version {newest}"
        raise InvalidInput(
            f"a stored {what} of version {show(version)}", rule, "Install a newer Sordino."
        )
    try:
        if type(version) is not int or version != newest:
            raise ValueError
        return build(fields)
    except _DAMAGED:
        raise _damaged(text, what) from None


def encodable(text: str) -> str:
    r"""The text with each lone surrogate as its escape (\ud800), which JSON reads back; a pair becomes its character.

    No data hold them, but names given in Python may, and UTF-8 does not.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "backslashreplace").decode()
    return text


def text_of(stored: Any) -> str:
    """A stored text; ValueError if it is something else."""
    if type(stored) is not str:
        raise ValueError
    return stored


def truth_of(stored: Any) -> bool:
    """A stored truth value."""
    if type(stored) is not bool:
        raise ValueError
    return stored


def list_of(stored: Any) -> list[Any]:
    """A stored list."""
    if type(stored) is not list:
        raise ValueError
    return stored


def texts_of(stored: Any) -> tuple[str, ...]:
    """A stored list of texts."""
    return tuple(map(text_of, list_of(stored)))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _damaged(text: object, what: str) -> InvalidInput:
    shown = (
        f"a text of {len(text):,} characters"
        if isinstance(text, str)
        else a_or_an(type(text).__name__)
    )
    return InvalidInput(
        shown,
        f"it is not a stored {what}, or it is damaged",
        "Pass a text made by to_json(), unchanged.",
    )


def rational(fields: Mapping[str, Any], name: str) -> Fraction:
    """The exact value of one field."""
    value = fields.get(name)
    if isinstance(value, str):
        try:
            return _number(value)
        except (ValueError, ZeroDivisionError):
            pass
    hint = "Pass a text made by to_json()."
    raise InvalidInput(
        f"{name}={show(value)}",
        f'field "{name}" must be an exact rational text such as "1/2"',
        hint,
    )


def rationals(fields: Mapping[str, Any], name: str) -> tuple[Fraction, ...]:
    """The exact values of a list field."""
    values = fields.get(name)
    if not isinstance(values, list):
        raise InvalidInput(
            f"{name}={show(values)}",
            f'field "{name}" must be a list',
            "Pass a text made by to_json().",
        )
    return tuple(rational({name: value}, name) for value in values)


def whole(fields: Mapping[str, Any], name: str) -> int:
    """The value of a field that must be a whole number."""
    return _whole(name, rational(fields, name))


def wholes(fields: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The values of a list field that must be whole numbers."""
    return tuple(_whole(name, value) for value in rationals(fields, name))


def categories(fields: Mapping[str, Any]) -> int | list[str]:
    """The names of the categories, as many as there are, or their number where they have none."""
    count, names = whole(fields, "categories"), fields.get("names")
    if names is None:
        return count
    if not isinstance(names, list) or len(names) != count:
        rule = f"there must be as many names as categories, {count}"
        raise InvalidInput(f"names={show(names)}", rule, "Pass a text made by to_json().")
    return names


def _whole(name: str, exact: Fraction) -> int:
    if exact.denominator != 1:
        rule = f'field "{name}" must be a whole number'
        raise InvalidInput(f"{name}={show(exact)}", rule, "Pass a text made by to_json().")
    return exact.numerator


def _plain(value: Field) -> Any:
    """A field as JSON holds it: numbers as exact texts; what is stored already, as it is."""
    if isinstance(value, dict | list):
        return value
    return [_text(x) for x in value] if isinstance(value, tuple) else _text(value)


def _text(value: Fraction | int | str | tuple[Any, ...]) -> str:
    if isinstance(value, Fraction) and value.denominator != 1:
        return f"{_digits(value.numerator)}/{_digits(value.denominator)}"
    return _digits(value.numerator) if isinstance(value, Fraction | int) else str(value)


def _number(text: str) -> Fraction:
    if len(text) > _MOST_CHARACTERS:
        raise ValueError
    ratio = _RATIO.fullmatch(text)
    if ratio:
        return Fraction(_integer(ratio[1]), _integer(ratio[2] or "1"))
    _, _, power = text.lower().partition("e")
    if power and abs(int(power)) > _MOST_POWER:
        raise ValueError
    return Fraction(text)


def _digits(number: int) -> str:
    """Python itself writes and reads at most 4300 digits."""
    if number.bit_length() < _PLAIN_BITS:
        return str(number)
    from flint import fmpz

    return str(fmpz(number))


def _integer(digits: str) -> int:
    if len(digits) < _PLAIN_DIGITS:
        return int(digits)
    from flint import fmpz

    return int(fmpz(digits))
