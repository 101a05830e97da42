"""What an analyst offers for an answer: an epsilon, or the error that it may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, Literal

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, open_unit, positive, show

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """Exactly one of epsilon and error; the others have public defaults.

    `error` is the half-width that every aggregate (or each named one) may have with probability `confidence`; where it
    depends on the number of rows of a group, `rows` is the number to assume. `key_delta` is spent on selecting private keys.
    """

    epsilon: Fraction | None = None
    error: Mapping[str, Fraction] | Fraction | None = None
    confidence: Fraction = Fraction(19, 20)
    mechanism: Literal["laplace", "gaussian"] | None = None
    rows: Fraction | None = None
    key_delta: Fraction | None = None
    nonnegative: bool = False

    @classmethod
    def offered(
        cls,
        epsilon: Number | None = None,
        error: Number | Mapping[str, Number] | None = None,
        confidence: Number = 0.95,
        mechanism: Any = None,
        rows: Number | None = None,
        key_delta: Number | None = None,
        nonnegative: bool = False,
    ) -> Cost:
        """A checked offer. Epsilon is read at the smaller, confidence at the larger reading of a float."""
        if (epsilon is None) == (error is None):
            value = f"epsilon={show(epsilon)}, error={show(error)}"
            rule = "a query is priced by its epsilon or by the error it may have"
            raise InvalidInput(value, rule, "Pass epsilon=0.1, or error=50.")
        if mechanism not in (None, "laplace", "gaussian"):
            rule = "there are two kinds of noise"
            hint = 'Pass "laplace" or "gaussian", or nothing for the one with the smaller error.'
            raise InvalidInput(f"mechanism={show(mechanism)}", rule, hint)
        allowed: Mapping[str, Fraction] | Fraction | None = None
        if isinstance(error, Mapping):
            allowed = {str(name): positive(f"error of {name}", x).lower for name, x in error.items()}
        elif error is not None:
            allowed = positive("error", error).lower
        return cls(
            None if epsilon is None else positive("epsilon", epsilon).lower,
            allowed,
            open_unit("confidence", confidence).upper,
            mechanism,
            None if rows is None else positive("rows", rows).lower,
            None if key_delta is None else open_unit("key_delta", key_delta, "Pass a small number such as 1e-8.").lower,
            bool(nonnegative),
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
