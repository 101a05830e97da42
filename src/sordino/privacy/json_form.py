"""The stored form of mechanisms and losses: `{"kind": ..., "v": ..., fields}`, every number as an exact rational text.

The meaning of a stored kind and version never changes; a new meaning is a new version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

Field: TypeAlias = Fraction | int | tuple[Fraction, ...] | tuple[str, ...]

__all__ = ["Field", "dump", "load", "rational", "rationals"]


def dump(kind: str, version: int, fields: Mapping[str, Field]) -> str:
    """The text of one object."""
    texts = {name: [str(x) for x in value] if isinstance(value, tuple) else str(value) for name, value in fields.items()}
    return json.dumps({"kind": kind, "v": version, **texts})


def load(text: str, known: Mapping[tuple[str, int], Any]) -> tuple[Any, dict[str, Any]]:
    """What `known` holds for the text's kind and version, and the other fields."""
    try:
        fields = json.loads(text)
        key = fields.pop("kind"), fields.pop("v")
        entry = known.get(key)
    except (ValueError, KeyError, TypeError, AttributeError):
        rule = 'a stored object is a JSON object with "kind" and "v"'
        raise InvalidInput(show(text), rule, "Pass a text made by to_json().") from None
    if entry is None:
        names = ", ".join(f"{kind} v{version}" for kind, version in known)
        rule = f"the kind and version must be one of: {names}"
        raise InvalidInput(f"kind {show(key[0])} v{show(key[1])}", rule, "A newer Sordino may know it.")
    return entry, fields


def rational(fields: Mapping[str, Any], name: str) -> Fraction:
    """The exact value of one field."""
    value = fields.get(name)
    if isinstance(value, str):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            pass
    hint = "Pass a text made by to_json()."
    raise InvalidInput(f"{name}={show(value)}", f'field "{name}" must be an exact rational text such as "1/2"', hint)


def rationals(fields: Mapping[str, Any], name: str) -> tuple[Fraction, ...]:
    """The exact values of a list field."""
    values = fields.get(name)
    if not isinstance(values, list):
        raise InvalidInput(f"{name}={show(values)}", f'field "{name}" must be a list', "Pass a text made by to_json().")
    return tuple(rational({name: value}, name) for value in values)
