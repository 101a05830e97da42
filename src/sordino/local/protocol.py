"""The plug: what every local protocol offers, and how a stored one is read back.

A protocol is a frozen set of exact parameters. Clients call `randomize` or `randomize_one`; the collector counts
reports and estimates. Nothing but reports ever leaves a client. Its privacy parameter, the odds, says how much
likelier a report may be under one truth than another; a client's draws are exact, in whole numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Protocol as Plug

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import Bits
from sordino.privacy import json_form
from sordino.privacy.ball import ball, exact_lower, working
from sordino.privacy.exact import Number, decimal_reading, positive, show
from sordino.privacy.loss import FiniteLoss

if TYPE_CHECKING:
    from sordino.local.reports import Reports

__all__ = [
    "Column",
    "Counts",
    "Protocol",
    "below",
    "chance",
    "checked_odds",
    "epsilons",
    "kinds",
    "odds_below",
    "protocol_from_json",
]

_LARGEST, _LEAST = 100, Fraction(1, 10**12)


def odds_below(epsilon: Number) -> Fraction:
    """A rational number just below e^epsilon, and above 1.

    Rounded down to 64 bits of e^epsilon - 1, and one unit more, so that balls of 96 bits see that its logarithm is
    smaller.
    """
    read = positive("epsilon", epsilon)
    e = read.lower
    if e > _LARGEST:
        rule = f"epsilon must be at most {_LARGEST}: beyond it nothing is hidden"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass a number such as 1.")
    if read.upper < _LEAST:
        rule = "epsilon must be at least 10^-12: below it no number of persons tells anything"
        raise InvalidInput(f"epsilon={show(epsilon)}", rule, "Pass a number such as 1.")
    size = 64 + max(0, e.denominator.bit_length() - e.numerator.bit_length())
    with working(3 * size + 256):
        numerator = exact_lower(ball(e).exp() * 2**size)
    return Fraction(math.floor(numerator) - 1, 2**size)


def checked_odds(odds: Number) -> Fraction:
    """Odds as an exact number, which must be above 1."""
    exact = decimal_reading("odds", odds)
    if exact <= 1:
        rule = "odds are e^epsilon, so they must be above 1"
        raise InvalidInput(
            f"odds={show(odds)}",
            rule,
            "Use .calibrated(epsilon=...), or pass odds=3 for epsilon ln 3.",
        )
    return exact


def epsilons(one: Fraction, two: Fraction) -> tuple[str, str]:
    """The logarithms of two odds, for the eye: in as few digits as tell them apart, at most 12."""
    a, b = _logarithm(one), _logarithm(two)
    texts = [(f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in (4, 6, 9, 12)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _logarithm(odds: Fraction) -> float:
    return (
        math.log1p(float(odds - 1))
        if odds < 2
        else math.log(odds.numerator) - math.log(odds.denominator)
    )


def below(limit: int, source: Bits) -> int:
    """A uniform whole number in [0, limit): as many bits as the largest has, redrawn until they fit."""
    size = (limit - 1).bit_length()
    while True:
        drawn = 0
        for _ in range(0, size, 64):
            drawn = drawn << 64 | source.word()
        drawn >>= -size % 64
        if drawn < limit:
            return drawn


def chance(probability: Fraction, source: Bits) -> bool:
    """An event of exactly this probability."""
    return below(probability.denominator, source) < probability.numerator


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

    def estimate_from_counts(
        self, answers: int, counts: Counts, confidence: Number, *, population: bool = False
    ) -> Any:
        """Estimates and intervals from the supports among this many reports."""

    def to_json(self) -> str:
        """The exact stored form, which travels with every collection of reports."""


kinds: dict[tuple[str, int], Callable[[dict[str, Any]], Protocol]] = {}
"""Readers of stored protocols by kind and version; each member adds itself."""


def protocol_from_json(text: str) -> Protocol:
    """The protocol that `to_json` stored."""
    build, fields = json_form.load(text, kinds)
    protocol: Protocol = build(fields)
    return protocol
