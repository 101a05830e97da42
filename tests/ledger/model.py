"""What a ledger should do, in plain dicts and fractions: no files, no hashes, no locks."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["Asked", "Model"]


@dataclass
class Asked:
    """A charge that was granted."""

    question: str
    amount: Fraction
    analyst: str | None
    status: str = "unanswered"
    answer: bytes | None = None


@dataclass
class Model:
    """The reference: what must come of each call, by the name of the error, or `ok`."""

    cap: Fraction
    asked: dict[tuple[str, str | None], Asked] = field(default_factory=dict)
    parts: dict[str, Fraction] = field(default_factory=dict)
    entries: int = 1

    def left(self, analyst: str | None) -> Fraction | None:
        """What an analyst may spend; None without a sub-budget where there are some."""
        whole = self.cap - sum(each.amount for each in self.asked.values())
        if not self.parts:
            return whole
        own = self.parts.get(analyst or "*", self.parts.get("*"))
        spent = sum(each.amount for each in self.asked.values() if each.analyst == analyst)
        return None if own is None else min(whole, own - spent)

    def charge(self, request: str, question: str, amount: Fraction, analyst: str | None) -> str:
        """A new question is charged if it fits; an old one is answered again or refused. Each analyst has own ids."""
        if (request, analyst) in self.asked:
            known = self.asked[request, analyst]
            same = known.question == question and known.status == "answered"
            return "again" if same else "RequestRefused"
        left = self.left(analyst)
        if left is None or amount > left:
            return "InvalidInput" if left is None else "BudgetExceeded"
        self.asked[request, analyst] = Asked(question, amount, analyst)
        self.entries += 1
        return "ok"

    def settle(self, request: tuple[str, str | None], answer: bytes | None) -> str:
        """An open charge is answered or forfeited, once."""
        if self.asked[request].status != "unanswered":
            return "RequestRefused"
        self.asked[request].status, self.asked[request].answer = (
            "forfeited" if answer is None else "answered",
            answer,
        )
        self.entries += 1
        return "ok"

    def declare(self, cap: Fraction) -> None:
        """Another budget is in force from now on."""
        self.entries += cap != self.cap
        self.cap = cap

    def allot(self, analyst: str, part: Fraction | None) -> str:
        """A sub-budget is given, or taken back."""
        if part is not None and part > self.cap:
            return "InvalidInput"
        self.parts.pop(analyst, None)
        self.parts |= {} if part is None else {analyst: part}
        self.entries += 1
        return "ok"
