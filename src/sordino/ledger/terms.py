"""What a ledger is bound to: whose data it guards, and the budget in force."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.exact import readable
from sordino.query.dataset import Dataset

__all__ = ["Allowance", "Terms", "charge_facts", "read_charge", "short"]


_LONGEST = 8192


@dataclass(frozen=True)
class Allowance:
    """A budget, and the part of its delta that is kept for selecting private keys."""

    budget: Budget
    reserved_delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        numbers = (self.budget.epsilon, self.budget.delta, self.reserved_delta)
        if max(max(x.numerator, x.denominator).bit_length() for x in numbers) > _LONGEST:
            rule = "a budget must be written down, and this fraction has too many digits"
            raise InvalidInput(str(self.budget), rule, "Round it to a decimal number.")

    def meter(self, spent: Charge = NOTHING) -> TwoMeterFilter:
        """The filter that keeps the budget, after what was spent."""
        return TwoMeterFilter(self.budget, self.reserved_delta, spent)

    @property
    def facts(self) -> dict[str, str]:
        """The stored form."""
        numbers = {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "reserved_delta": self.reserved_delta,
        }
        return {name: str(number) for name, number in numbers.items()}

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Allowance:
        """What `facts` stored."""
        return Allowance(
            Budget(_amount(facts["epsilon"]), _amount(facts["delta"])),
            _amount(facts["reserved_delta"]),
        )

    def __str__(self) -> str:
        kept = f" ({readable(self.reserved_delta)} of it for keys)" if self.reserved_delta else ""
        return f"epsilon {readable(self.budget.epsilon)}, delta {readable(self.budget.delta)}{kept}"


@dataclass(frozen=True)
class Terms:
    """The lineage of the data (protected tables by name, each with its unit and neighbour relation) and the allowance.

    The lineage names whose privacy the budget is about. It does not depend on where the data are stored, so that a new
    export of the same table continues the same ledger. `max_rows` is what the bound of that name means: the rows of one
    person in an answer, or, in ledgers that were begun before it meant that, within a group.
    """

    lineage: tuple[tuple[str, str, str], ...]
    allowance: Allowance
    max_rows: Literal["answer", "group"] = "answer"

    @staticmethod
    def of(dataset: Dataset) -> Terms:
        """What a dataset declares."""
        if dataset.budget is None:
            hint = "Add [budget] with epsilon and delta, or pass budget=Budget(1, 1e-6)."
            raise InvalidDeclaration(
                "a dataset without a budget", "a session needs to know what may be spent", hint
            )
        protected = sorted(
            (table.name, table.unit, table.neighbors.value)
            for table in dataset.tables.values()
            if not table.public
        )
        return Terms(
            tuple(protected), Allowance(dataset.budget, dataset.reserved_delta or Fraction(0))
        )

    @property
    def name(self) -> str:
        """The name of the lineage: its tables."""
        return "+".join(name for name, _, _ in self.lineage) or "public"

    @property
    def facts(self) -> dict[str, Any]:
        """The stored form."""
        meaning = {"max_rows": self.max_rows} if self.max_rows == "answer" else {}
        return {
            "lineage": [list(table) for table in self.lineage],
            "allowance": self.allowance.facts,
            **meaning,
        }

    @staticmethod
    def read(facts: Mapping[str, Any]) -> Terms:
        """What `facts` stored."""
        lineage = tuple((name, unit, neighbors) for name, unit, neighbors in facts["lineage"])
        if not all(type(word) is str for table in lineage for word in table):
            raise TypeError
        if facts.get("max_rows", "answer") != "answer":
            raise ValueError
        return Terms(
            lineage, Allowance.of(facts["allowance"]), "answer" if "max_rows" in facts else "group"
        )

    def __str__(self) -> str:
        tables = ", ".join(
            f"{name} by {unit} ({neighbors})" for name, unit, neighbors in self.lineage
        )
        before = "; max_rows within a group" if self.max_rows == "group" else ""
        return f"{tables or 'public tables only'}; {self.allowance}{before}"


_GRID = 2**128 * 10**30 * math.lcm(*range(1, 41))
_DELTA_GRID = 2**1100 * 10**320
_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,2999})(?:/([1-9][0-9]{0,2999}))?")


def short(charge: Charge) -> Charge:
    """A charge on the ledger's grid, rounded up to it: decimals and floats in use, and fractions like 1/3, are on it.

    So all sums are short as well. Else an analyst could make them ever longer, by denominators without common factors.
    """
    pure, mu_squared, rho = (None if x is None else _onto(x, _GRID) for x in charge.meters)
    return Charge(pure, mu_squared, rho, _onto(charge.delta, _DELTA_GRID))


def _onto(x: Fraction, grid: int) -> Fraction:
    return x if grid % x.denominator == 0 else Fraction(math.ceil(x * grid), grid)


def charge_facts(charge: Charge) -> dict[str, str | None]:
    """The stored form of a charge: exact rationals as text."""
    pure, mu_squared, rho = (None if x is None else str(x) for x in charge.meters)
    return {"pure": pure, "mu_squared": mu_squared, "rho": rho, "delta": str(charge.delta)}


def read_charge(facts: Mapping[str, Any]) -> Charge:
    """What `charge_facts` stored; the same object for the same facts."""
    return _charge(facts["pure"], facts["mu_squared"], facts["rho"], facts["delta"])


@lru_cache(maxsize=4096)
def _charge(pure: str | None, mu_squared: str | None, rho: str | None, delta: str) -> Charge:
    first, second, third = (
        None if text is None else _amount(text) for text in (pure, mu_squared, rho)
    )
    return Charge(first, second, third, _amount(delta))


def _amount(text: Any) -> Fraction:
    """An exact rational as `str` writes it and nothing else: each amount has one text, and none takes long to read."""
    match = _AMOUNT.fullmatch(text)
    amount = Fraction(int(match[1]), int(match[2] or 1)) if match else Fraction(0)
    if str(amount) != text:
        raise ValueError
    return amount
