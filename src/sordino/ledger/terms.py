"""What a ledger is bound to: whose data it guards, and the budget in force."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.accounting.charge import NOTHING, Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import InvalidDeclaration
from sordino.ledger.chain import Broken
from sordino.privacy.budget import Budget
from sordino.privacy.exact import readable
from sordino.query.dataset import Dataset

__all__ = ["Allowance", "Terms", "charge_facts", "read_charge", "short"]


@dataclass(frozen=True)
class Allowance:
    """A budget, and the part of its delta that is kept for selecting private keys."""

    budget: Budget
    reserved_delta: Fraction = Fraction(0)

    def meter(self, spent: Charge = NOTHING) -> TwoMeterFilter:
        """The filter that keeps the budget, after what was spent."""
        return TwoMeterFilter(self.budget, self.reserved_delta, spent)

    @property
    def facts(self) -> dict[str, str]:
        """The stored form."""
        numbers = {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "reserved_delta": self.reserved_delta}
        return {name: str(number) for name, number in numbers.items()}

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Allowance:
        """What `facts` stored."""
        budget = Budget(Fraction(facts["epsilon"]), Fraction(facts["delta"]))
        return Allowance(budget, Fraction(facts["reserved_delta"]))

    def __str__(self) -> str:
        kept = f" ({readable(self.reserved_delta)} of it for keys)" if self.reserved_delta else ""
        return f"epsilon {readable(self.budget.epsilon)}, delta {readable(self.budget.delta)}{kept}"


@dataclass(frozen=True)
class Terms:
    """The lineage of the data (its protected tables by name, each with its unit and neighbour relation) and the allowance.

    The lineage names whose privacy the budget is about. It does not depend on where the data are stored, so that a new
    export of the same table continues the same ledger.
    """

    lineage: tuple[tuple[str, str, str], ...]
    allowance: Allowance

    @staticmethod
    def of(dataset: Dataset) -> Terms:
        """What a dataset declares."""
        if dataset.budget is None:
            hint = "Add [budget] with epsilon and delta, or pass budget=Budget(1, 1e-6)."
            raise InvalidDeclaration("a dataset without a budget", "a session needs to know what may be spent", hint)
        protected = sorted(
            (table.name, table.person or "row", table.neighbors.value)
            for table in dataset.tables.values()
            if not table.public
        )
        return Terms(tuple(protected), Allowance(dataset.budget, dataset.reserved_delta or Fraction(0)))

    @property
    def name(self) -> str:
        """The name of the lineage: its tables."""
        return "+".join(name for name, _, _ in self.lineage) or "public"

    @property
    def facts(self) -> dict[str, Any]:
        """The stored form."""
        return {"lineage": [list(table) for table in self.lineage], "allowance": self.allowance.facts}

    @staticmethod
    def read(facts: Mapping[str, Any]) -> Terms:
        """What `facts` stored."""
        lineage = tuple((str(name), str(unit), str(neighbors)) for name, unit, neighbors in facts["lineage"])
        return Terms(lineage, Allowance.of(facts["allowance"]))

    def __str__(self) -> str:
        tables = ", ".join(f"{name} by {unit} ({neighbors})" for name, unit, neighbors in self.lineage)
        return f"{tables or 'public tables only'}; {self.allowance}"


_FINEST = 2**1024


def short(charge: Charge) -> Charge:
    """A charge that can be written down: an amount with a denominator beyond 2^1024, which would make every later sum
    longer, is rounded up to a multiple of 2^-1024."""

    def cut(x: Fraction) -> Fraction:
        return x if x.denominator <= _FINEST else Fraction(math.ceil(x * _FINEST), _FINEST)

    return Charge(*(None if x is None else cut(x) for x in charge.meters), cut(charge.delta))


def charge_facts(charge: Charge) -> dict[str, str | None]:
    """The stored form of a charge: exact rationals as text."""
    pure, mu_squared, rho = (None if x is None else str(x) for x in charge.meters)
    return {"pure": pure, "mu_squared": mu_squared, "rho": rho, "delta": str(charge.delta)}


def read_charge(facts: Mapping[str, Any]) -> Charge:
    """What `charge_facts` stored."""
    amounts = (facts["pure"], facts["mu_squared"], facts["rho"], facts["delta"])
    if facts["delta"] is None:
        raise Broken("a charge has no delta")
    return Charge(*(None if x is None else Fraction(x) for x in amounts))  # type: ignore[arg-type]
