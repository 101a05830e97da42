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
)

__all__ = ["Claim", "Request", "read_request", "whole"]


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
        e = bounds("epsilon", epsilon)
        if e.lower < 0:
            hint = "Pass zero or more, such as 1.0."
            raise InvalidInput(f"epsilon={show(epsilon)}", "epsilon must not be negative", hint)
        d = closed_unit(
            "delta", delta, "Pass a small probability such as 1e-6, or 0 for pure privacy."
        )
        return cls(
            _generous(epsilon, e.upper),
            min(Fraction(1), _generous(delta, d.upper)),
            _plain(epsilon),
            _plain(delta),
        )

    def allows(self, epsilon: float) -> float:
        """The largest delta at this epsilon of any mechanism that keeps the claim."""
        small = math.exp(-min(self.shown_epsilon, 700.0))
        more = max(0.0, 1 - math.exp(min(epsilon - self.shown_epsilon, 0.0)))
        return self.shown_delta + (1 - self.shown_delta) * more / (1 + small)


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
    mechanism: Any,
    epsilon: Any,
    delta: Any,
    confidence: Any,
    samples: Any,
    seconds: Any,
    workers: Any,
    name: Any,
) -> Request:
    """The request, or a refusal."""
    if not callable(mechanism) and not callable(getattr(mechanism, "release", None)):
        hint = "Pass a function of the data, or a Sordino mechanism."
        raise InvalidInput(
            f"mechanism={show(mechanism)}", "a mechanism must be callable or have release()", hint
        )
    claim = Claim.read(epsilon, delta)
    level = open_unit("confidence", confidence, "Pass a number such as 0.999.")
    hint = "It counts all runs of the mechanism; a million is usual."
    runs = whole("samples", samples, _FEWEST, _MOST, hint)
    if workers is not None:
        hint = "Pass 1 to run in this process, 2 for one process for each input, or None."
        whole("workers", workers, 1, 2, hint)
    limit = (
        _FOREVER
        if seconds is None
        else float(positive("seconds", seconds, "Pass None for no limit.").lower)
    )
    alpha = float_lower(1 - bounds("confidence", confidence).upper)
    if alpha <= 0:
        raise InvalidInput(
            f"confidence={show(confidence)}",
            "it is too near to 1",
            "Pass a number such as 0.999999.",
        )
    return Request(
        str(name or named(mechanism)),
        claim,
        float(level.lower),
        alpha,
        runs,
        min(limit, _FOREVER),
    )


def whole(name: str, value: Any, least: int, most: int, hint: str) -> int:
    """A whole number of any type between these ends, or a refusal."""
    real = isinstance(value, int | float | np.integer) and not isinstance(value, bool)
    if not real or not least <= value <= most or value != int(value):
        rule = f"{name} must be a whole number from {least:,} to {most:,}"
        raise InvalidInput(f"{name}={show(value)}", rule, hint)
    return int(value)


def named(mechanism: Any) -> str:
    """What a mechanism is called in a report."""
    found = getattr(mechanism, "__name__", None)
    if not isinstance(found, str):
        return show(mechanism)
    return "mechanism" if found == "<lambda>" else found
