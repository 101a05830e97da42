"""Suggested bounds: what was found privately, what error a later question would have, and the lines for a declaration.

It holds nothing that was not released. The owner accepts a line by writing it into the declaration; nothing here does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from sordino.errors import visible
from sordino.privacy.exact import four_digits, readable

if TYPE_CHECKING:
    from sordino.ledger.receipt import Receipt

__all__ = ["SuggestedBound", "Suggestion"]

Limit: TypeAlias = int | Fraction | date


@dataclass(frozen=True)
class SuggestedBound:
    """One line of a declaration: `max_rows = 30`, or a column with its limits.

    `below`, `inside` and `above` are how many persons lie there, each within `margin` 95 % of the time; `errors` are
    the half-widths, 95 % of the time, of later answers under these bounds; `line` is what the owner may accept.
    """

    name: str
    column: bool
    lower: Limit | None
    upper: Limit
    below: float
    inside: float
    above: float
    margin: float
    errors: tuple[tuple[str, float], ...]
    line: str

    @property
    def held(self) -> bool:
        """Whether it is plausible that most of what there is lies within the bounds."""
        return (
            self.below + self.above <= max(0.1 * self.inside, 2 * self.margin)
            and self.inside > self.margin
        )

    @property
    def words(self) -> tuple[str, ...]:
        """What to know about it."""
        outside = max(self.below + self.above, 0.0)
        around = f"± {four_digits(self.margin)}"
        said = [
            f"about {four_digits(max(self.inside, 0.0))} persons within, {four_digits(outside)} beyond ({around} each)"
        ]
        said += [f"{what} ± {four_digits(error)} by noise" for what, error in self.errors]
        if not self.held:
            said.append("TOO UNCERTAIN to rely on: epsilon is small for so few persons")
        return tuple(said)


@dataclass(frozen=True)
class Suggestion:
    """The bounds that were found for one table, with the promise in plain words.

    `query_epsilon` is the epsilon of the later questions whose errors are told. Printing it shows all of it; `toml`
    are the lines alone.
    """

    table: str
    found: tuple[SuggestedBound, ...]
    query_epsilon: Fraction
    privacy: str
    receipt: Receipt | None = None

    @property
    def bounds(self) -> dict[str, Any]:
        """What was found by name: a number for `max_rows` and the like, a pair of limits for a column."""
        return {one.name: (one.lower, one.upper) if one.column else one.upper for one in self.found}

    @property
    def toml(self) -> str:
        """The lines for the owner to accept, each under the remarks about it."""
        from sordino.query.entries import key_text

        text = []
        for header, column in ((f"[tables.{key_text(self.table)}]", False),
                               (f"[tables.{key_text(self.table)}.columns]", True)):  # fmt: skip
            lines = [line for one in self.found if one.column is column for line in _remarked(one)]
            text += [header, *lines, ""] if lines else []
        return "\n".join(text).removesuffix("\n")

    def to_json(self) -> str:
        """As text that `from_json` reads; the same for the same suggestion."""
        facts = {
            "suggestion": 1, "table": self.table, "query_epsilon": str(self.query_epsilon), "privacy": self.privacy,
            "found": [{**vars(one), "lower": _stored(one.lower), "upper": _stored(one.upper)} for one in self.found],
        }  # fmt: skip
        return json.dumps(facts, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, receipt: Receipt | None = None) -> Suggestion:
        """A stored suggestion."""
        facts = json.loads(text)
        found = tuple(
            SuggestedBound(**{**one, "lower": _limit(one["lower"]), "upper": _limit(one["upper"]),
                              "errors": tuple((what, error) for what, error in one["errors"])})
            for one in facts["found"]
        )  # fmt: skip
        return cls(
            facts["table"], found, Fraction(facts["query_epsilon"]), facts["privacy"], receipt
        )

    def with_receipt(self, receipt: Receipt) -> Suggestion:
        """The same with its receipt."""
        return replace(self, receipt=receipt)

    def __str__(self) -> str:
        later = readable(self.query_epsilon)
        head = f"# Suggested for {visible(self.table)}; errors are those of questions at epsilon {later}."
        return f"{head}\n{self.toml}\n\n# {self.privacy}"


def _remarked(one: SuggestedBound) -> list[str]:
    return [*(f"# {visible(word)}" for word in one.words), one.line]


def _stored(limit: Limit | None) -> Any:
    match limit:
        case None:
            return None
        case datetime():
            return {"moment": limit.isoformat()}
        case date():
            return {"date": limit.isoformat()}
        case int():
            return limit
        case Fraction():
            return str(limit)


def _limit(stored: Any) -> Any:
    match stored:
        case {"date": day}:
            return date.fromisoformat(day)
        case {"moment": moment}:
            return datetime.fromisoformat(moment)
        case str():
            return Fraction(stored)
    return stored
