"""A client that reports again and again: it remembers one permanent answer for each value, and what it has revealed.

Its memory is secret: whoever reads it learns the values that were reported.
"""

from __future__ import annotations

import json
from typing import Any, Self

from sordino.errors import InvalidInput
from sordino.local.answers import place
from sordino.local.repeated import Repeated
from sordino.local.report_text import several
from sordino.local.reports import Reports
from sordino.privacy.exact import show
from sordino.privacy.json_form import Field, dump, loaded, nested
from sordino.privacy.loss import Loss

__all__ = ["Client"]


class Client:
    """One person's side of a repeated collection. Keep it between reports: a new one spends anew.

    Privacy: `spent` is the loss so far between any two histories that change at the same times. *When* a value changes
    or returns is not hidden (repeated.md): that shows in the long run, whatever the protocol's epsilons.
    """

    def __init__(self, protocol: Repeated) -> None:
        self.protocol = protocol
        self._answers: dict[int, int | bytes] = {}
        self._reports: dict[int, int] = {}

    def report(self, value: Any) -> int | bytes:
        """The next report, if this is the true value now. Store the state before the report is sent."""
        first = self.protocol.first
        at = place(value, first.categories, first.names)
        if at not in self._answers:
            self._answers[at] = self.protocol.permanent.randomize_one(value)
        fresh = self.protocol.refresh_one(self._answers[at])
        self._reports[at] = self._reports.get(at, 0) + 1
        return fresh

    @property
    def values(self) -> int:
        """How many different values were reported: each spends anew."""
        return len(self._answers)

    @property
    def reports(self) -> int:
        """How many reports were made."""
        return sum(self._reports.values())

    @property
    def spent(self) -> Loss | None:
        """What all reports so far reveal: the sum over the different values, each at most the permanent loss."""
        losses = [self.protocol.loss(reports=count) for count in self._reports.values()]
        if not losses:
            return None
        total: Loss = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total

    def to_json(self) -> str:
        """The state, to be stored by the client and shown to nobody."""
        memory = [[at, _written(answer), self._reports[at]] for at, answer in self._answers.items()]
        fields: dict[str, Field] = {"protocol": nested(self.protocol.to_json()), "memory": memory}
        return dump("local.repeated_client", 1, fields)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The client as it was when `to_json` stored it."""
        hint = "Pass a text made by to_json(); a client that lost its state must not start anew unnoticed."
        try:
            fields = json.loads(text)
            if (fields["kind"], fields["v"]) != ("local.repeated_client", 1):
                raise KeyError
            client = cls(loaded(fields["protocol"], Repeated.from_json))
            if not isinstance(fields["memory"], list):
                raise TypeError
            for at, written, count in fields["memory"]:
                client._restore(
                    at, bytes.fromhex(written) if isinstance(written, str) else written, count
                )
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InvalidInput("the stored client", "it cannot be read", hint) from None
        return client

    def _restore(self, at: Any, answer: Any, count: Any) -> None:
        permanent = self.protocol.permanent
        if not (
            type(at) is int and 0 <= at < permanent.categories and type(count) is int and count >= 1
        ):
            raise InvalidInput(
                show(count),
                "a stored place and count are whole numbers within their range",
                "The state was damaged.",
            )
        if at in self._answers:
            raise InvalidInput(
                f"place {at} twice",
                "a client has one permanent answer for each value",
                "The state was damaged.",
            )
        Reports.of(permanent, [answer])
        self._answers[at], self._reports[at] = answer, count

    def __repr__(self) -> str:
        return f"Client of {self.protocol!r}: {several(self.reports, 'report')} about {several(self.values, 'value')}"


def _written(answer: int | bytes) -> int | str:
    return answer if isinstance(answer, int) else answer.hex()
