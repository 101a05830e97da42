"""What an owner lets people do beside the budget: caps for each question and each day, approval above a price, sharing.

These are house rules about prices, and no promise of privacy rests on them: the ledger's budgets are that. A price is
the epsilon that an answer alone satisfies, as previews show it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from sordino.errors import InvalidInput
from sordino.privacy.exact import readable

__all__ = ["DAY", "Caps", "NeedsApproval", "Policy", "over_cap"]

DAY = 86_400.0
"""A day is the last 24 hours."""


@dataclass(frozen=True)
class Caps:
    """What one person may spend on one question, and in a day; None: as much as the budget allows."""

    per_question: Fraction | None = None
    per_day: Fraction | None = None


@dataclass(frozen=True)
class Policy:
    """The rules of one dataset. `sharing` names those who see each other's answers ("*": all who may ask)."""

    approval_above: Fraction | None = None
    sharing: frozenset[str] = frozenset()
    caps: Caps = field(default_factory=Caps)
    """For people without caps of their own."""
    suspended: bool = False
    """Whether the owner lets nobody ask for now."""

    @property
    def words(self) -> list[str]:
        """The rules as sentences."""
        found = []
        if self.suspended:
            found.append("The owner has suspended it: no question is answered for now.")
        if self.approval_above is not None:
            found.append(
                f"A question above epsilon {readable(self.approval_above)} waits for the owner's approval."
            )
        if self.caps.per_question is not None:
            found.append(
                f"A question costs at most epsilon {readable(self.caps.per_question)}, unless somebody has a cap."
            )
        if self.caps.per_day is not None:
            found.append(
                f"In a day somebody spends at most epsilon {readable(self.caps.per_day)}, unless they have a cap."
            )
        if self.sharing:
            found.append(
                f"Answers are shared among: {', '.join(sorted(self.sharing)).replace('*', 'all who may ask')}."
            )
        return found

    def told_to(self, name: str) -> Policy:
        """The rules without the names of those who share answers, for whoever is not one of them."""
        return self if name in self.sharing else replace(self, sharing=self.sharing & {"*"})

    def shares(self, one: str, other: str) -> bool:
        """Whether an answer to one may be given to the other; everybody may have their own again."""
        return one == other or "*" in self.sharing or {one, other} <= self.sharing

    def waits(self, price: Fraction) -> bool:
        """Whether a question at this price waits for its owner."""
        return self.approval_above is not None and price > self.approval_above


class NeedsApproval(InvalidInput):
    """A question above the owner's price that gave no reason."""

    def __init__(self, price: Fraction, above: Fraction) -> None:
        super().__init__(
            f"a price of epsilon {readable(price)}",
            f"above {readable(above)} a question waits for the owner's approval, who wants to know why it is asked",
            "Send it with a reason, or ask for less: a smaller epsilon or a larger error.",
        )


def over_cap(price: Fraction, spent_today: Fraction, caps: Caps) -> InvalidInput | None:
    """The refusal of a question that is beyond a cap, if it is."""
    if caps.per_question is not None and price > caps.per_question:
        rule = f"a question of yours may cost at most epsilon {readable(caps.per_question)}"
        return InvalidInput(
            f"a price of epsilon {readable(price)}",
            rule,
            "Ask with a smaller epsilon, or a larger error.",
        )
    if caps.per_day is not None and spent_today + price > caps.per_day:
        left = max(caps.per_day - spent_today, Fraction(0))
        rule = f"your questions may cost at most epsilon {readable(caps.per_day)} a day, and {readable(left)} is left of it"
        return InvalidInput(
            f"a price of epsilon {readable(price)}",
            rule,
            "Ask for less, or tomorrow. Nothing was charged.",
        )
    return None
