"""The end of a ledger at some moment, to be kept elsewhere: whoever holds it can tell an older or rewritten copy."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sordino.errors import InvalidInput
from sordino.ledger.chain import Link, canonical
from sordino.privacy.exact import show

__all__ = ["Anchor"]


@dataclass(frozen=True)
class Anchor:
    """Which ledger, how many entries it had, and the hash of the last.

    Example:
        >>> Anchor.from_json(Anchor("a" * 64, 3, "b" * 64).to_json()).count
        3
    """

    ledger: str
    count: int
    hash: str

    @property
    def link(self) -> Link:
        """The end of the chain."""
        return Link(self.count, self.hash)

    def to_json(self) -> str:
        """One line that fits into a mail or a minute book."""
        return canonical(
            {
                "kind": "sordino-anchor",
                "v": 1,
                "ledger": self.ledger,
                "count": self.count,
                "hash": self.hash,
            }
        )

    @staticmethod
    def from_json(text: str) -> Anchor:
        """The anchor that `to_json` wrote."""
        try:
            fields = json.loads(text)
            known = fields["kind"] == "sordino-anchor" and fields["v"] == 1
            anchor = Anchor(fields["ledger"], fields["count"], fields["hash"])
        except (ValueError, KeyError, TypeError, RecursionError):
            known = False
        hexadecimal = set("0123456789abcdef")
        if (
            not known
            or not (isinstance(anchor.count, int) and anchor.count > 0)
            or not all(
                isinstance(h, str) and len(h) == 64 and set(h) <= hexadecimal
                for h in (anchor.ledger, anchor.hash)
            )
        ):
            raise InvalidInput(
                show(text), "this is not an anchor", "Pass what `sordino ledger anchor` wrote."
            )
        return anchor
