"""The plug: what every local protocol offers, and how a stored one is read back.

A protocol is a frozen set of exact parameters. Clients call `randomize` or `randomize_one`; the collector counts
reports and estimates. Nothing but reports ever leaves a client.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Protocol as Plug

import numpy as np
import numpy.typing as npt

from sordino.privacy import json_form
from sordino.privacy.exact import Number
from sordino.privacy.loss import FiniteLoss

if TYPE_CHECKING:
    from sordino.local.reports import Reports

__all__ = ["Column", "Counts", "Protocol", "kinds", "protocol_from_json"]

Column: TypeAlias = npt.NDArray[Any]
"""Reports as they are kept: whole numbers (int64), or packed bits, one row of bytes for each person."""

Counts: TypeAlias = npt.NDArray[np.int64]


class Protocol(Plug):
    """One way to randomize an answer before it is collected."""

    @property
    def odds(self) -> Fraction:
        """e^epsilon: how much likelier a report may be under one truth than under another."""

    @property
    def bits(self) -> int:
        """How many bits one report needs."""

    @property
    def limit(self) -> int:
        """Reports are whole numbers below this; 0 if they are rows of packed bits."""

    @property
    def width(self) -> int:
        """How many bytes a row of packed bits has; 0 if reports are whole numbers."""

    @property
    def cells(self) -> int:
        """How many different reports there are, if counting each is the way to count; else 0."""

    def loss(self) -> FiniteLoss:
        """The privacy loss of one report."""

    def randomize(self, values: Any) -> Reports:
        """One report for each person."""

    def randomize_one(self, value: Any) -> int | bytes:
        """The report of one person, in plain Python."""

    def check(self, column: Column) -> None:
        """Refuse a column with anything that is not a report of this protocol."""

    def supports(self, column: Column) -> Counts:
        """How many reports speak for each category (for a number: how many are 1)."""

    def supports_of_cells(self, cells: Counts) -> Counts:
        """The same from the number of times that each possible report was given."""

    def variance(self, persons: int, share: Number = 0) -> Fraction:
        """The exact variance of an estimate, given the true answers."""

    def estimate_from_counts(self, answers: int, counts: Counts, confidence: Number, *, population: bool = False) -> Any:
        """Estimates and intervals from the supports among so many reports."""

    def to_json(self) -> str:
        """The exact stored form, which travels with every collection of reports."""


kinds: dict[tuple[str, int], Callable[[dict[str, Any]], Protocol]] = {}
"""Readers of stored protocols by kind and version; each member adds itself."""


def protocol_from_json(text: str) -> Protocol:
    """The protocol that `to_json` stored."""
    build, fields = json_form.load(text, kinds)
    protocol: Protocol = build(fields)
    return protocol
