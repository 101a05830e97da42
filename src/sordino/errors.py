"""Every exception that Sordino raises on purpose.

SordinoError
├── BudgetExceeded                     a charge does not fit into what is left; nothing was spent
├── EngineFailed                       the engine failed on admitted work; tells nothing of data; the charge stays
├── LedgerError                        the ledger cannot be used: where, why, how to recover. Nothing was granted
│   ├── LedgerDamaged                  it is not what was written: changed, cut short, replaced or put back
│   ├── LedgerMismatch                 it belongs to other tables, or holds another budget than the declaration
│   └── LedgerUnavailable              it cannot be read or written: missing, locked, read-only, full, failing, too new
├── RequestRefused                     a request id that stands for another question, or for a charge without an answer
└── InvalidInput (also a ValueError)   a value breaks a rule; says value, rule and hint
    ├── InvalidDeclaration             the owner's declaration breaks a rule; says file, key, rule and fix
    ├── OffLattice                     a number does not lie on the mechanism's lattice
    ├── TooLarge                       an enumeration would not finish; says how large it is
    └── UnsupportedSQL                 a question that cannot be asked; says what, where, and what to write instead

DeclarationWarning (a UserWarning)     a declaration that gives away or risks too much: a password, a role that writes
LedgerWarning (a UserWarning)          the same data are asked through another ledger as well
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Self

__all__ = [
    "BudgetExceeded",
    "Code",
    "DeclarationWarning",
    "EngineFailed",
    "InvalidDeclaration",
    "InvalidInput",
    "LedgerDamaged",
    "LedgerError",
    "LedgerMismatch",
    "LedgerUnavailable",
    "LedgerWarning",
    "OffLattice",
    "RequestRefused",
    "SordinoError",
    "TooLarge",
    "UnsupportedSQL",
    "no_attribute",
    "visible",
]


class SordinoError(Exception):
    """The root of all errors that Sordino raises; control characters in a message become escapes."""

    def __init__(self, message: str = "") -> None:
        super().__init__(visible(message))


def visible(text: str) -> str:
    r"""The same lines; what would move a cursor, ring or turn the order of letters is an escape such as \x1b."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def no_attribute(owner: object, name: str, other_words: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that is not there, with what to write where its name is that of another library."""
    hint = f". {other_words[name]}" if name in other_words else ""
    text = f"{type(owner).__name__!r} object has no attribute {name!r}{hint}"
    return AttributeError(text, name=name, obj=owner)  # with both, Python proposes the nearest name


class BudgetExceeded(SordinoError):
    """A charge that does not fit: the message says its cost, what is left, what to do instead. Nothing was spent."""

    def __init__(self, cost: str, left: str, hint: str) -> None:
        self.cost, self.left, self.hint = cost, left, hint
        super().__init__(f"this query costs {cost}, {left} is left. {hint}")

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[str, str, str]]:
        return type(self), (self.cost, self.left, self.hint)


class EngineFailed(SordinoError):
    """The engine failed after the charge: one fixed text, since its own may quote cells. The charge is not refunded."""

    def __init__(self) -> None:
        super().__init__(
            "this query could not be finished after it was charged, and its charge stays spent. "
            "Check memory, disk space and that the source files are unchanged; details are withheld, as they may quote data."
        )


class LedgerError(SordinoError):
    """A ledger that cannot be used: the message says where, what is wrong and how to recover. Nothing was granted.

    `outcome` says what became of the request, where that needs to be said.
    """

    def __init__(self, place: str, rule: str, hint: str, outcome: str = "") -> None:
        self.place, self.rule, self.hint, self.outcome = place, rule, hint, outcome
        super().__init__(f"ledger {place}: {rule}. {hint}{outcome and ' '}{outcome}")

    def __reduce__(self) -> tuple[type[LedgerError], tuple[str, str, str, str]]:
        return type(self), (self.place, self.rule, self.hint, self.outcome)


class LedgerDamaged(LedgerError):
    """A ledger that is not what was written: an entry changed, removed or reordered, or an older copy put back."""


class LedgerMismatch(LedgerError):
    """A ledger of other tables, or with another budget, than the declaration says."""


class LedgerUnavailable(LedgerError):
    """A ledger that cannot be read or written now."""


class RequestRefused(SordinoError):
    """A request id that was used for another question, or whose charge has no answer to give again."""

    def __init__(self, request: str, rule: str, hint: str) -> None:
        self.request, self.rule, self.hint = request, rule, hint
        super().__init__(f"request {request!r}: {rule}. {hint}")

    def __reduce__(self) -> tuple[type[RequestRefused], tuple[str, str, str]]:
        return type(self), (self.request, self.rule, self.hint)


class Code(Enum):
    """What a refusal is about, where another module says it in words of its own:
    it goes by the code, never by the text.
    """

    AGGREGATE = "an aggregate, where one row is meant"
    DECLARATION = "advice to declare something"
    QUERY_PART = "advice to use a part of a whole query"
    STATEMENT = "a statement that does not only read"
    SUBQUERY = "a second SELECT"
    SYNTAX = "SQL that cannot be parsed"
    TABLE_NAME = "a column of a table that is not there"
    WINDOW = "a window function"


class InvalidInput(SordinoError, ValueError):
    """A value that breaks a rule: the message says which value, which rule, and what to do instead.

    For editors: `place` are the first character of the question that it is about and the one behind the last, or, where
    only that is known, `word` is what is written there; `instead` is what was probably meant.
    """

    place: tuple[int, int] | None = None
    word: str = ""
    instead: str = ""

    def __init__(self, value: str, rule: str, hint: str, code: Code | None = None) -> None:
        self.value, self.rule, self.hint, self.code = value, rule, hint, code
        super().__init__(f"got {value}: {rule}. {hint}")

    def about(
        self, *, place: tuple[int, int] | None = None, word: str = "", instead: str = ""
    ) -> Self:
        """The same, with where it is."""
        self.place, self.word, self.instead = place, word, instead
        return self

    def __reduce__(
        self,
    ) -> tuple[type[InvalidInput], tuple[str, str, str, Code | None], dict[str, object]]:
        where: dict[str, object] = {"place": self.place, "word": self.word, "instead": self.instead}
        return type(self), (self.value, self.rule, self.hint, self.code), where


class InvalidDeclaration(InvalidInput):
    """A declaration that breaks a rule; the message points to file and key. No data was read."""


class OffLattice(InvalidInput):
    """A number that is not a whole multiple of the mechanism's step."""


class TooLarge(InvalidInput):
    """An exhaustive computation that would take too long; nothing was computed."""


class UnsupportedSQL(InvalidInput):
    """SQL outside the supported part; no data was touched and nothing was spent."""


class DeclarationWarning(UserWarning):
    """What an owner declared works, and gives away or risks more than it must."""


class LedgerWarning(UserWarning):
    """Two ledgers guard the same data, so that its budget can be spent twice."""
