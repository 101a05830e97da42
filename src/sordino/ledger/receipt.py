"""What is asked for, and the proof that it was paid for before any data were read."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from sordino.accounting.charge import NOTHING, Charge
from sordino.errors import InvalidInput
from sordino.ledger.chain import Link, digest
from sordino.privacy.exact import brief, show
from sordino.privacy.notebook import card
from sordino.privacy.wording import a_or_an

__all__ = ["Receipt", "Receipts", "Request", "checked_analyst", "checked_name", "request_key"]

_LONGEST = 200
_SHOWN = 50
"""How many receipts a notebook shows."""


@dataclass(frozen=True)
class Request:
    """One question under an id: the same id with the same question and offer is the same request, and answered once.

    Each analyst has ids of their own: the same id of another analyst is another request.
    """

    id: str
    question: str
    offer: str = ""
    analyst: str | None = None

    def __post_init__(self) -> None:
        checked_name(
            "request_id", self.id, "Pass a text of your own such as 'march-report-1', or nothing."
        )
        if self.analyst is not None:
            checked_analyst(self.analyst)
        for name in ("question", "offer"):
            try:
                getattr(self, name).encode()
            except UnicodeEncodeError:
                rule = "half of a surrogate pair cannot be written down"
                hint = "Use names and texts that are proper Unicode."
                raise InvalidInput(f"{a_or_an(name)} with a lone surrogate", rule, hint) from None

    @property
    def key(self) -> str:
        """The name under which a ledger keeps it."""
        return request_key(self.analyst, self.id)

    @property
    def body(self) -> str:
        """The digest of all that may not change when the request is repeated."""
        parts = (self.question, self.offer, self.analyst or "")
        return digest("".join(f"{len(part)}:{part}" for part in parts))


@dataclass(frozen=True)
class Receipt:
    """A charge in a ledger: its number there, what was charged, for which question, by whom.

    `hash` is the ledger's head at that entry: kept elsewhere, it shows later that nothing up to it was changed.
    """

    number: int
    charge: Charge
    question: str
    request_id: str = ""
    analyst: str | None = None
    time: str = ""
    hash: str = ""

    @property
    def link(self) -> Link:
        """The end of the chain at this entry."""
        return Link(self.number, self.hash)

    def __str__(self) -> str:
        whose = f" by {self.analyst}" if self.analyst else ""
        when = f", {self.time[:19]}" if self.time else ""
        asked = f", request id {self.request_id}" if self.request_id else ""
        return (
            f"Receipt {self.number}: {_charged(self.charge)}{whose}{when}{asked}: {self.question}"
        )

    def _repr_html_(self) -> str:
        facts = {
            "charged": _charged(self.charge),
            "question": self.question,
            "request id": self.request_id,
            "time": self.time,
        }
        facts |= {"analyst": self.analyst} if self.analyst else {}
        return card(f"Receipt {self.number}", {**facts, "hash": self.hash})


class Receipts(tuple[Receipt, ...]):
    """Receipts in the order of their ledger, which notebooks show as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        headings = "entry", "time", "analyst", "charged", "question"
        shown = self[-_SHOWN:]
        rows = [
            (str(r.number), r.time[:19], r.analyst or "", _charged(r.charge), r.question)
            for r in shown
        ]
        notes = [f"the last {len(shown)} of {len(self):,}"] if len(shown) < len(self) else []
        return card("Receipts", table=(headings, rows), notes=notes)


def _charged(charge: Charge) -> str:
    """What was charged, rounded up; the amounts that no epsilon says are those of the receipt's `charge`."""
    if charge == NOTHING:
        return "nothing"
    main = "Gaussian noise" if charge.pure is None else f"epsilon {brief(charge.pure, up=True)}"
    return main + (f" and delta {brief(charge.delta, up=True)} for keys" if charge.delta else "")


def request_key(analyst: str | None, request_id: str) -> str:
    """The name of a request among those of all analysts; neither part can hold the sign between them.

    Ledgers that were written before ids belonged to analysts keep the id alone, which holds no such sign.
    """
    return f"{analyst or ''}\x1f{request_id}"


def checked_analyst(value: object) -> str:
    """The name of an analyst."""
    return checked_name("analyst", value, "Pass the name under which the owner gave a sub-budget.")


def checked_name(what: str, value: object, hint: str) -> str:
    """A short text of one line."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or value != value.strip():
        rule = f"it must be a text of 1 to {_LONGEST} characters, without spaces around it"
        raise InvalidInput(f"{what}={show(value)}", rule, hint)
    if not value.isprintable() and any(unicodedata.category(c)[0] == "C" for c in value):
        raise InvalidInput(f"{what}={show(value)}", "it must hold no control characters", hint)
    return value
