"""Ball arithmetic: every number is an interval that certainly holds the true value.

Thin words over python-flint's `arb`. A result leaves as the float at the safe end of its ball, so that a privacy number
is never rounded in the wrong direction.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

from sordino.privacy.exact import float_upper

__all__ = ["at_most", "ball", "certified", "exact_lower", "exact_upper", "holds", "lower", "normal_tail",
           "normal_tail_inverse", "upper", "working"]  # fmt: skip

# flint's precision is one setting for the whole process: hold it while it is ours, and across a fork.
_precision = threading.RLock()
if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(
        before=_precision.acquire,
        after_in_parent=_precision.release,
        after_in_child=_precision.release,
    )

_MOST_BITS = 1 << 16


@contextmanager
def working(bits: int) -> Iterator[None]:
    """Compute with `bits` of precision inside the block."""
    with _precision, ctx.workprec(bits):
        yield


def ball(value: Fraction | int) -> arb:
    """The ball of a rational number: exact for integers, tight at the working precision otherwise."""
    if isinstance(value, int):
        return arb(value)
    return arb(fmpq(value.numerator, value.denominator))


def certified(compute: Callable[[], arb], accuracy: int = 96) -> arb:
    """The value of `compute`, redone with more precision until it is known to `accuracy` bits.

    A value that never gets there (it would have to be zero without being exactly zero) is returned with the ball it
    has, which is wide but still holds the truth.
    """
    bits = 2 * accuracy
    while True:
        with working(bits):
            value = compute()
        if value.is_exact() or value.rel_accuracy_bits() >= accuracy or bits >= _MOST_BITS:
            return value
        bits *= 2


def holds(compare: Callable[[], bool | None]) -> bool:
    """The answer of a comparison that may say None (undecided) until the precision is high enough.

    For questions to which False is the safe answer: "does the guarantee hold?". One that stays undecided is False.
    """
    bits = 128
    while bits <= _MOST_BITS:
        with working(bits):
            answer = compare()
        if answer is not None:
            return answer
        bits *= 2
    return False


def at_most(compute: Callable[[], arb], limit: Fraction) -> bool:
    """Whether the value of `compute` is certainly not above the limit."""

    def compare() -> bool | None:
        gap = compute() - ball(limit)
        return True if gap <= 0 else False if gap > 0 else None

    return holds(compare)


def upper(value: arb) -> float:
    """The smallest float at or above everything in the ball (inf if the ball is unbounded)."""
    if not value.is_finite():
        return -math.inf if value < 0 and not value.is_nan() else math.inf
    with working(max(64, value.bits() + 64)):
        top = value.upper()
    mantissa, exponent = (int(x) for x in top.man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa == 0:
        return 0.0
    if size > 1024:
        return math.inf if mantissa > 0 else -math.nextafter(math.inf, 0.0)
    if size < -1080:
        return math.nextafter(0.0, 1.0) if mantissa > 0 else -0.0
    return float_upper(Fraction(mantissa) * Fraction(2) ** exponent)


def exact_lower(value: arb) -> Fraction:
    """The lower end of a finite ball, as the rational number it is."""
    with working(value.bits() + 64):
        mantissa, exponent = value.lower().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def exact_upper(value: arb) -> Fraction:
    """The upper end of a finite ball, as the rational number it is."""
    with working(value.bits() + 64):
        mirrored = -value
    return -exact_lower(mirrored)


def lower(value: arb) -> float:
    """The largest float at or below everything in the ball."""
    with working(value.bits() + 64):
        mirrored = -value
    return -upper(mirrored)


def normal_tail(x: arb) -> arb:
    """P[N(0, 1) > x], accurate in both tails."""
    return (x / arb(2).sqrt()).erfc() / 2


def normal_tail_inverse(p: arb) -> arb:
    """The x with P[N(0, 1) > x] = p, for p in (0, 1)."""
    return arb(2).sqrt() * (2 * p).erfcinv()
