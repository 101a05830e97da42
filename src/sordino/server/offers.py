"""Offers as JSON brings them: numbers as JSON numbers or as exact texts, read alike by previews and by charges."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, show
from sordino.privacy.typed_numbers import exact
from sordino.query.offer import Offer
from sordino.server.link import JSON

__all__ = ["as_json", "number", "offer"]

_NUMBERS = ("epsilon", "confidence", "rows", "delta", "query_epsilon")


def offer(given: Mapping[str, JSON]) -> Offer:
    """The offer of a question; what is no part of an offer is refused later, with the words of `Session.sql`.

    Example:
        >>> offer({"epsilon": "0.1", "nonnegative": True})
        {'epsilon': Fraction(1, 10), 'nonnegative': True}
    """
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name == "error" and isinstance(value, Mapping):
            read[name] = {key: number(f"error of {key}", each) for key, each in value.items()}
        elif name in _NUMBERS or name == "error":
            read[name] = None if value is None else number(name, value)
        elif name in ("nonnegative", "bias") and not isinstance(value, bool | None):
            raise InvalidInput(
                f"{name}={show(value)}",
                "it is true or false",
                f"Pass {name} as true, or leave it out.",
            )
        else:
            read[name] = value
    return cast("Offer", read)


def number(name: str, value: JSON) -> Number:
    """A number of an offer: a text is read exactly, a JSON number as Python's."""
    if isinstance(value, str):
        return exact(value, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(
            f"{name}={show(value)}", f"{name} must be a number", 'Pass 0.1, or the text "0.1".'
        )
    return value


def as_json(value: Number) -> JSON:
    """A number in a form that `number` reads back exactly."""
    return value if isinstance(value, int | float) else str(Fraction(value))
