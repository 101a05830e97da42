"""True proportions estimated from randomized answers, with intervals that cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sordino.privacy.exact import Number, float_upper, open_unit

__all__ = ["Estimate", "estimate", "half_width"]


@dataclass(frozen=True)
class Estimate:
    """Estimated true proportions, one for each category, with an interval for each.

    The estimates are unbiased, so that one can fall outside [0, 1]; the intervals never do. Each interval holds at the
    stated confidence by itself, both for those who answered and for the population they were drawn from.
    """

    answers: int
    confidence: float
    proportions: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


def estimate(
    counts: Sequence[int], slope: Fraction, offset: Fraction, confidence: Number
) -> Estimate:
    """slope * share + offset for each share of the answers; its interval is that of Clopper and Pearson, mapped.

    The answers of one category are independent events whose probabilities average to the expected share. Hoeffding
    (1956): such a count has lighter tails than the binomial with the average, so that the binomial interval covers.
    """
    level = float_upper(open_unit("confidence", confidence).upper)
    n = sum(counts)
    ends = [_clopper_pearson(c, n, level) for c in counts]
    a, b = float(slope), float(offset)
    return Estimate(
        answers=n,
        confidence=float(confidence),
        proportions=tuple(float(slope * Fraction(c, n) + offset) for c in counts),
        lower=tuple(_clip(a * low + b) for low, _ in ends),
        upper=tuple(_clip(a * high + b) for _, high in ends),
    )


def half_width(answers: int, slope: Fraction, confidence: Number) -> float:
    """The largest distance between an estimate and an end of its interval, before clipping, over all possible counts.

    The distance to the upper end first grows with the count and then falls; that to the lower end mirrors it.
    """
    level = float_upper(open_unit("confidence", confidence).upper)

    def distance(count: int) -> float:
        return _clopper_pearson(count, answers, level)[1] - count / answers

    low, high = 0, answers
    while high - low > 2:
        a, b = low + (high - low) // 3, high - (high - low) // 3
        if distance(a) < distance(b):
            low = a
        else:
            high = b
    return float(slope) * max(distance(c) for c in range(low, high + 1))


def _clopper_pearson(count: int, of: int, confidence: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    alpha = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, of - count + 1, alpha))
    high = 1.0 if count == of else float(betaincinv(count + 1, of - count, 1 - alpha))
    return low, high


def _clip(x: float) -> float:
    return min(1.0, max(0.0, x))
