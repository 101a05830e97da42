"""What an analyst offers for an answer: an epsilon, or the error that it may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal, Never

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, open_unit, positive, show
from sordino.query.bounds import Bounds
from sordino.query.offer import unknown_names

__all__ = ["Cost"]

_LEAST, _MOST, _FINEST = Fraction(1, 10**15), Fraction(10**30), 2**128 * 10**30
_MOST_EPSILON = Fraction(10**6)
"""As much as the largest budget."""
_FINEST_DELTA = 2**1100 * 10**320
_MOST_COUNT = 10**9


@dataclass(frozen=True)
class Cost:
    """Exactly one of epsilon and error; the others have public defaults.

    `error` is the half-width that every aggregate (or each named one) may have with probability `confidence`; where it
    depends on the number of rows of a group, `rows` is the number to assume. `delta` is spent where private keys are
    selected, of the part that the owner keeps for them; None is a share of what is left of it (`pricing.py`). With
    `bias` a part of the charge measures what lies beyond the bounds. Default: where persons are bounded. Then how much
    of one person counts, where that should be less than the owner allows; and whether bounds of numbers that are not
    declared are found for a part of epsilon.
    """

    epsilon: Fraction | None = None
    error: Mapping[str, Fraction] | Fraction | None = None
    confidence: Fraction = Fraction(19, 20)
    mechanism: Literal["laplace", "gaussian"] | None = None
    rows: Fraction | None = None
    delta: Fraction | None = None
    nonnegative: bool = False
    bias: bool | None = None
    max_rows: int | None = None
    max_rows_per_group: int | None = None
    max_groups: int | None = None
    private_bounds: bool = False

    @property
    def bounds(self) -> Bounds:
        """The bounds that tighten the owner's."""
        return Bounds(self.max_rows, self.max_rows_per_group, self.max_groups)

    @classmethod
    def offered(
        cls,
        epsilon: Number | None = None,
        error: Number | Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        mechanism: Any = None,
        rows: Number | None = None,
        delta: Number | None = None,
        nonnegative: bool = False,
        bias: bool | None = None,
        max_rows: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        bounds: Any = None,
        **unknown: Never,
    ) -> Cost:
        """A checked offer. Epsilon is read at the smaller, confidence at the larger reading of a float."""
        if unknown:
            raise unknown_names(unknown)
        if (epsilon is None) == (error is None):
            value = f"epsilon={show(epsilon)}, error={show(error)}"
            rule = "a query is priced by its epsilon or by the error it may have"
            raise InvalidInput(value, rule, "Pass epsilon=0.1, or error=50.")
        if mechanism not in (None, "laplace", "gaussian"):
            rule = "there are two kinds of noise"
            hint = 'Pass "laplace" or "gaussian", or nothing for the one with the smaller error.'
            raise InvalidInput(f"mechanism={show(mechanism)}", rule, hint)
        if bounds not in (None, "private"):
            rule = "bounds of numbers are declared, or found privately for a part of the charge"
            raise InvalidInput(
                f"bounds={show(bounds)}", rule, 'Pass bounds="private", or leave it out.'
            )
        allowed: Mapping[str, Fraction] | Fraction | None = None
        if isinstance(error, Mapping):
            allowed = {str(name): _amount(f"error of {name}", x) for name, x in error.items()}
        elif error is not None:
            allowed = _amount("error", error)
        spent = (
            None
            if delta is None
            else open_unit("delta", delta, "Pass a small number such as 1e-8.").lower
        )
        if spent is not None and spent * 10**300 < 1:
            rule = "delta must be at least 1e-300"
            raise InvalidInput(f"delta={show(delta)}", rule, "Pass a small number such as 1e-8.")
        return cls(
            None if epsilon is None else _amount("epsilon", epsilon, _MOST_EPSILON),
            allowed,
            _short(open_unit("confidence", confidence).upper, up=True),
            mechanism,
            None if rows is None else _amount("rows", rows),
            None if spent is None else _short(spent, _FINEST_DELTA),
            bool(nonnegative),
            _yes_or_no("bias", bias),
            _bound("max_rows", max_rows),
            _bound("max_rows_per_group", max_rows_per_group),
            _bound("max_groups", max_groups),
            bounds == "private",
        )

    def __str__(self) -> str:
        """The offer in exact numbers, the same text for the same offer."""
        said = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                value = "{" + ", ".join(f"{name!r}: {x}" for name, x in sorted(value.items())) + "}"
            if value != field.default:
                said.append(f"{field.name}={value}")
        return ", ".join(said)


def _amount(name: str, value: Number, most: Fraction = _MOST) -> Fraction:
    """A number greater than zero that an answer can have anything to do with."""
    read = positive(name, value).lower
    if not _LEAST <= read <= most:
        rule = f"{name} must lie between 1e-15 and 1e{len(str(most)) - 1}"
        raise InvalidInput(f"{name}={show(value)}", rule, "Pass a number such as 0.1.")
    return _short(read)


def _yes_or_no(name: str, value: Any) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(
            f"{name}={show(value)}", "it is True, False or left out", f"Pass {name}=False for none."
        )
    return value


def _bound(name: str, value: Any) -> int | None:
    """How many rows or groups of one person count."""
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or not 1 <= int(value) <= _MOST_COUNT
    ):
        rule = "it must be a whole number from 1 to a billion"
        raise InvalidInput(f"{name}={show(value)}", rule, f"Pass {name}=10.")
    return int(value)


def _short(x: Fraction, finest: int = _FINEST, *, up: bool = False) -> Fraction:
    """A number of very many digits is cut, to the safe side: it is written down in the ledger and added to others."""
    if x.denominator <= 2**64 or finest % x.denominator == 0:
        return x
    return Fraction(math.ceil(x * finest) if up else math.floor(x * finest), finest)
