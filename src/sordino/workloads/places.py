"""Which column and which of its values a user means: names without regard to case, values however they are passed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sordino.errors import InvalidInput
from sordino.plan.names import find
from sordino.privacy.exact import show
from sordino.query.tree import Value

__all__ = ["place_of", "places_of", "value_key"]


def places_of(names: Sequence[str], given: Any, what: str) -> list[int]:
    """The places of columns that are named by a text or several texts;
    `what` says of which argument they are a part.
    """
    own = (given,) if isinstance(given, str) else given
    if not isinstance(own, Sequence) or not all(isinstance(name, str) for name in own):
        rule = "columns are named by a text, or by several"
        raise InvalidInput(
            f"{what}: {show(given)}", rule, f"Write {names[0]!r}, or {tuple(names[:2])!r}."
        )
    return [names.index(find("column", name, names, "")) for name in own]


def value_key(given: Any) -> tuple[bool, Any] | None:
    """What tells a value apart from others of its column, however it was passed; None for what no column holds.

    True is not 1, a float is the decimal that it is written as, and numbers of NumPy are numbers.
    """
    value = given.item() if isinstance(given, np.generic) else given
    if isinstance(value, float | Decimal):
        value = Fraction(str(value)) if math.isfinite(value) else None
        return None if value is None else (False, value)
    known = isinstance(value, str | int | Fraction | date) or value is None
    return (isinstance(value, bool), value) if known else None


def place_of(values: Sequence[Value], given: Any) -> int | None:
    """The place of a value among all values of a column; None if it is none of them."""
    key = value_key(given)
    return next((k for k, known in enumerate(values) if key == value_key(known)), None)
