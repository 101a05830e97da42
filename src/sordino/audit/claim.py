"""A claim of privacy as its claimant may have meant it, and what is asked of an audit of it.

A float stands for any number that rounds to it. log(3) has no exact float, so a claim of `math.log(3)` is not refuted
by a digit that floats cannot hold: it counts as one unit in the last place more. Zero, whole numbers, Fractions and
Decimals are exactly what they say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sordino.errors import InvalidInput
from sordino.privacy.exact import (
    bounds,
    closed_unit,
    float_lower,
    float_upper,
    open_unit,
    positive,
    show,
    whole,
)

__all__ = ["Claim", "Request", "not_negative", "read_request"]


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta) at its most generous reading, and as floats for the report."""

    epsilon: Fraction
    delta: Fraction
    shown_epsilon: float
    shown_delta: float

    @classmethod
    def read(cls, epsilon: Any, delta: Any) -> Self:
        """The claim, or a refusal of numbers that are none."""
        e = not_negative("epsilon", epsilon, "Pass zero or more, such as 1.0.")
        hint = "Pass a small probability such as 1e-6, or 0 for pure privacy."
        d = closed_unit("delta", delta, hint).upper
        generous_delta = min(Fraction(1), _generous(delta, d))
        return cls(_generous(epsilon, e), generous_delta, _plain(epsilon), _plain(delta))

    def allows(self, epsilon: float) -> float:
        """The largest delta at this epsilon of any mechanism that keeps the claim."""
        small = math.exp(-min(self.shown_epsilon, 700.0))
        more = max(0.0, 1 - math.exp(min(epsilon - self.shown_epsilon, 0.0)))
        return self.shown_delta + (1 - self.shown_delta) * more / (1 + small)


def not_negative(name: str, value: Any, hint: str) -> Fraction:
    """The larger reading of a number that is at least zero, or a refusal."""
    read = bounds(name, value)
    if read.lower < 0:
        raise InvalidInput(f"{name}={show(value)}", f"{name} must not be negative", hint)
    return read.upper


def _generous(given: Any, upper: Fraction) -> Fraction:
    if isinstance(given, float | np.floating) and given != 0:
        return max(upper, Fraction(math.nextafter(float(given), math.inf)))
    return upper


def _plain(given: Any) -> float:
    return float(given) if isinstance(given, float | np.floating) else float_upper(Fraction(given))


_FEWEST = 100
_MOST = 10**10
_FOREVER = 1e9


@dataclass(frozen=True)
class Request:
    """`alpha` is the chance that the certified numbers may fail; `seconds` is huge where no limit was given."""

    name: str
    claim: Claim
    confidence: float
    alpha: float
    samples: int
    seconds: float

    @property
    def limited(self) -> bool:
        """Whether there is a time limit."""
        return self.seconds < _FOREVER


def read_request(
    mechanism: Any, epsilon: Any, delta: Any, confidence: Any, samples: Any, seconds: Any, workers: Any, name: Any
) -> Request:  # fmt: skip
    """The request, or a refusal."""
    if not callable(mechanism) and not callable(getattr(mechanism, "release", None)):
        rule = "a mechanism must be callable or have release()"
        hint = "Pass a function of the data, or a Sordino mechanism."
        raise InvalidInput(f"mechanism={show(mechanism)}", rule, hint)
    claim = Claim.read(epsilon, delta)
    level = open_unit("confidence", confidence, "Pass a number such as 0.999.")
    hint = "It counts all runs of the mechanism; a million is usual."
    runs = whole("samples", samples, _FEWEST, _MOST, hint)
    if workers is not None:
        hint = "Pass 1 to run in this process, 2 for one process for each input, or None."
        whole("workers", workers, 1, 2, hint)
    limit = _FOREVER
    if seconds is not None:
        limit = min(limit, float(positive("seconds", seconds, "Pass None for no limit.").lower))
    alpha = float_lower(1 - bounds("confidence", confidence).upper)
    if alpha <= 0:
        hint = "Pass a number such as 0.999999."
        raise InvalidInput(f"confidence={show(confidence)}", "it is too near to 1", hint)
    shown = str(name or named(mechanism))
    return Request(shown, claim, float(level.lower), alpha, runs, limit)


def named(mechanism: Any) -> str:
    """What a mechanism is called in a report."""
    found = getattr(mechanism, "__name__", None)
    if not isinstance(found, str):
        return show(mechanism)
    return "mechanism" if found == "<lambda>" else found
