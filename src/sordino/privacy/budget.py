"""What the owner of a table promises to everybody in it: that all answers together are (epsilon, delta)-private."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.exact import Number, bounds, readable, show
from sordino.privacy.notebook import card

__all__ = ["Budget"]

_LEAST, _MOST = Fraction(1, 10**300), Fraction(10**6)


@dataclass(frozen=True, repr=False)
class Budget:
    """The epsilon and delta that all answers together may reach, exactly; a float is read at the smaller of its
    readings.

    0.3 as a float is a hair below 3/10, so that three answers of 1/10 do not fit into it; write `Fraction(3, 10)` or
    `Decimal("0.3")` for exactly three tenths.

    Example:
        >>> Budget(1, delta=1e-6)
        Budget(epsilon=1, delta=1e-06)
        >>> Budget.from_json(Budget(Fraction(1, 3)).to_json()) == Budget(Fraction(1, 3))
        True
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    if TYPE_CHECKING:

        def __init__(self, epsilon: Number, delta: Number = 0) -> None: ...

    def __post_init__(self) -> None:
        epsilon, delta = bounds("epsilon", self.epsilon), bounds("delta", self.delta)
        if not _LEAST <= epsilon.lower <= epsilon.upper <= _MOST:
            rule = "a budget's epsilon must be greater than zero (at least 1e-300) and at most a million"
            raise InvalidInput(f"epsilon={show(self.epsilon)}", rule, "Pass a number such as 1.")
        if not 0 <= delta.lower <= delta.upper < 1:
            rule = "a budget's delta must be at least 0 and below 1"
            raise InvalidInput(
                f"delta={show(self.delta)}", rule, "Pass 0, or a number such as 1e-6."
            )
        object.__setattr__(self, "epsilon", epsilon.lower)
        object.__setattr__(self, "delta", delta.lower)

    def to_json(self) -> str:
        """The exact stored form."""
        return json_form.dump("budget", 1, {"epsilon": self.epsilon, "delta": self.delta})

    @staticmethod
    def from_json(text: str) -> Budget:
        """The budget that `to_json` stored."""
        budget, fields = json_form.load(text, {("budget", 1): Budget})
        loaded: Budget = budget(
            json_form.rational(fields, "epsilon"), json_form.rational(fields, "delta")
        )
        return loaded

    def _repr_html_(self) -> str:
        facts = {"epsilon": readable(self.epsilon), "delta": readable(self.delta)}
        return card("Budget", facts, notes=["What all answers together may reveal of one person."])

    def __repr__(self) -> str:
        return f"Budget(epsilon={readable(self.epsilon)}, delta={readable(self.delta)})"
