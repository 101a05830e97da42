"""Counts, sums, means and variances from noisy Bernstein sums, with intervals that cover. Theorems and proofs:
moments.md.

A bounded number is k of K steps above its lower bound. Its vector of degree 1 is (K-k, k), of degree 2 ((K-k)^2,
2k(K-k), k^2): nonnegative, with sum K^d, so one row moves all sums together by K^d. Degree 0 is a plain count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.combination import Floats, Noise
from sordino.privacy.exact import Number, open_unit
from sordino.query.aggregates.estimates import Estimates, within

__all__ = ["Span", "count", "count_error", "deviation", "deviation_error", "divided", "linear", "linear_error",
           "mean", "mean_error", "mean_known_count", "mean_known_count_error", "outward", "total", "total_error", "variance",
           "variance_error"]  # fmt: skip

Sums = npt.NDArray[Any]
"""Noisy whole numbers, int64 or Python integers, of shape (groups, coordinates)."""

CELLS = 2048
"""Pieces of the line that bounds the reach of a mean's noise from above, from t = 0 to 1."""

_MEAN_SHARE = Fraction(1, 10)
_COUNT_SHARE = Fraction(1, 20)
"""Of the probability that a variance's interval misses, how much goes to its mean and its count: they matter little."""
_ROUNDS = 4


@dataclass(frozen=True)
class Span:
    """What is public of a summed number: bounds, the steps K between them, and the weight `unit` of a whole row."""

    lower: Fraction
    upper: Fraction
    steps: int
    unit: int = 1

    def __post_init__(self) -> None:
        if self.steps < 1 or self.unit < 1 or self.upper < self.lower:
            hint = "Give at least one step between the bounds, and weigh a row by at least 1."
            what = f"steps={self.steps}, unit={self.unit}"
            raise InvalidInput(what, "a span needs ordered bounds and positive steps", hint)

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        return float(self.upper - self.lower)

    def row(self, degree: int) -> int:
        """What one whole row adds to the sum of all coordinates."""
        return int(self.unit * self.steps**degree)

    def count_weights(self, degree: int) -> tuple[Fraction, ...]:
        """The weights that make the number of rows out of the sums."""
        return (Fraction(1, self.row(degree)),) * (degree + 1)

    def total_weights(self, degree: int) -> tuple[Fraction, ...]:
        """The weights that make the sum of the number out of the sums: its bounds, mixed."""
        return tuple(
            (self.lower + (self.upper - self.lower) * Fraction(j, degree)) / self.row(degree)
            for j in range(degree + 1)
        )


def linear(
    sums: Sums,
    weights: tuple[Fraction, ...],
    noise: Noise,
    confidence: Number,
    *,
    noisy: int | None = None,
) -> Estimates:
    """Weighted sums of numbers, the first `noisy` of them (all by default) with noise,
    whose reach is the interval's.
    """
    value = divided(*_numerators(whole_sums(sums, len(weights)), weights))
    error = linear_error(weights[:noisy], noise, confidence)
    return Estimates(value, value - error, value + error)


@lru_cache(maxsize=4096, typed=True)  # questions of one declaration at one price share theirs
def linear_error(weights: tuple[Fraction, ...], noise: Noise, confidence: Number) -> float:
    """The half-width of `linear`."""
    return float(noise.half_width([[float(w) for w in weights]], confidence)[0])


def count(noisy: Sums, span: Span, noise: Noise, confidence: Number) -> Estimates:
    """The number of rows; it may be negative."""
    return linear(noisy, span.count_weights(_degree(noisy)), noise, confidence)


def count_error(span: Span, noise: Noise, confidence: Number, degree: int = 0) -> float:
    """The half-width of `count`."""
    return linear_error(span.count_weights(degree), noise, confidence)


def total(noisy: Sums, span: Span, noise: Noise, confidence: Number) -> Estimates:
    """The sum of the number, from sums of degree 1 or 2."""
    return linear(noisy, span.total_weights(_degree(noisy, 1)), noise, confidence)


def total_error(span: Span, noise: Noise, confidence: Number, degree: int = 1) -> float:
    """The half-width of `total`."""
    return linear_error(span.total_weights(degree), noise, confidence)


def mean(noisy: Sums, span: Span, noise: Noise, confidence: Number) -> Estimates:
    """The mean of the number, from sums of degree 1 or 2, with Fieller's confidence set: it covers for every count.

    Where nothing is left to tell, the interval is all of the bounds. NULL where a public table has no rows.
    """
    degree = _degree(noisy, 1)
    sums = whole_sums(noisy, degree + 1)
    value = _share_of_bounds(sums, span)
    low, high = (_scaled(span, x) for x in _mean_set(sums, noise, confidence))
    empty = np.isnan(value)
    if noise.family is None:
        return Estimates(value, value, value)
    value = np.where(empty, (low + high) / 2, value)
    return Estimates(np.clip(value, low, high), low, high)


def mean_known_count(
    noisy: Sums, rows: int, span: Span, noise: Noise, confidence: Number
) -> Estimates:
    """The mean where the number of rows is public and only the sum of the steps k is noisy, of shape (groups, 1)."""
    if rows < 1:
        null = np.full(len(noisy), math.nan)
        return Estimates(null, null, null)
    share = linear(noisy, (Fraction(1, rows * span.row(1)),), noise, confidence)
    inside = within(share, 0.0, 1.0)
    return inside.mapped(lambda t: _scaled(span, t))


def mean_known_count_error(span: Span, rows: int, noise: Noise, confidence: Number) -> float:
    """The half-width of `mean_known_count`, before it is cut by the bounds."""
    return span.width * linear_error((Fraction(1, max(rows, 1) * span.row(1)),), noise, confidence)


def variance(
    noisy: Sums, span: Span, noise: Noise, confidence: Number, *, sample: bool = False
) -> Estimates:
    """The variance of the number, from sums of degree 2; with `sample`, times n/(n-1) for n rows, at least two.

    The interval covers the variance of the rows themselves for every count. Where nothing is left to tell, it holds all
    that numbers within the bounds can have.
    """
    if _degree(noisy) != 2:
        what = f"sums of shape {np.shape(noisy)}"
        raise InvalidInput(what, "a variance needs sums of degree 2", "Pass three coordinates.")
    sums = whole_sums(noisy, 3)
    value, rows = _plug_in(sums, span, sample=sample)
    if noise.family is None:
        return Estimates(*(value * span.width**2,) * 3)
    alpha = 1 - open_unit("confidence", confidence).upper
    mean_alpha, count_alpha = alpha * _MEAN_SHARE, alpha * _COUNT_SHARE if sample else Fraction(0)
    low, high = _variance_set(
        sums.astype(np.float64), noise, 1 - mean_alpha, 1 - (alpha - mean_alpha - count_alpha)
    )
    if sample:
        error = count_error(span, noise, 1 - count_alpha, 2)
        low, high = low * bessel(rows + error), high * bessel(rows - error)
    value = np.clip(np.where(np.isnan(value), (low + high) / 2, value), low, high)
    return Estimates(value, low, high).mapped(lambda v: v * span.width**2)


def deviation(
    noisy: Sums, span: Span, noise: Noise, confidence: Number, *, sample: bool = False
) -> Estimates:
    """The standard deviation: the square root of `variance` and of its interval."""
    return variance(noisy, span, noise, confidence, sample=sample).mapped(np.sqrt)


@lru_cache(maxsize=4096, typed=True)
def mean_error(
    span: Span,
    noise: Noise,
    rows: float,
    confidence: Number,
    *,
    position: float | None = None,
    degree: int = 1,
) -> float:
    """The half-width of `mean` for this many rows whose mean lies at `position` (0 is the lower bound, 1 the upper
    one).

    It is for noise that happens to be zero; without a position, the largest over five of them.
    """
    expected = [_typical(span, rows, degree, t, 0.0) for t in _positions(position)]
    return float(mean(np.array(expected, object), span, noise, confidence).half_width.max())


def variance_error(
    span: Span,
    noise: Noise,
    rows: float,
    confidence: Number,
    *,
    position: float | None = None,
    sample: bool = False,
) -> float:
    """The half-width of `variance` for this many rows: uniform over the bounds, or of equal values at `position`."""
    expected = _spreads(span, rows, position)
    return float(variance(expected, span, noise, confidence, sample=sample).half_width.max())


def deviation_error(
    span: Span,
    noise: Noise,
    rows: float,
    confidence: Number,
    *,
    position: float | None = None,
    sample: bool = False,
) -> float:
    """The half-width of `deviation` under the same assumptions."""
    expected = _spreads(span, rows, position)
    return float(deviation(expected, span, noise, confidence, sample=sample).half_width.max())


def _positions(position: float | None) -> tuple[float, ...]:
    return (0.0, 0.25, 0.5, 0.75, 1.0) if position is None else (position,)


def _spreads(span: Span, rows: float, position: float | None) -> Sums:
    one = (
        _typical(span, rows, 2, 0.5, 1 / 12)
        if position is None
        else _typical(span, rows, 2, position, 0.0)
    )
    return np.array([one], object)


def _typical(span: Span, rows: float, degree: int, t: float, v: float) -> list[int]:
    """Exact sums of `rows` rows with mean t and variance v, in units of the width."""
    second = t * t + v
    shares = (
        (1.0,)
        if degree == 0
        else (1 - t, t)
        if degree == 1
        else (1 - 2 * t + second, 2 * (t - second), second)
    )
    return [round(Fraction(rows) * Fraction(s) * span.row(degree)) for s in shares]


def _degree(noisy: Sums, least: int = 0) -> int:
    degree = np.shape(noisy)[-1] - 1 if np.ndim(noisy) == 2 else -1
    if not least <= degree <= 2:
        hint = "Pass one row per group with the coordinates of degree 0, 1 or 2."
        raise InvalidInput(
            f"sums of shape {np.shape(noisy)}", f"the degree must lie between {least} and 2", hint
        )
    return degree


def whole_sums(noisy: Sums, coordinates: int) -> Sums:
    sums = np.asarray(noisy)
    if sums.ndim != 2 or sums.shape[1] != coordinates or sums.dtype.kind not in "iuO":
        hint = "Pass whole numbers, one row per group."
        what = f"sums of shape {sums.shape} and type {sums.dtype}"
        raise InvalidInput(what, f"{coordinates} coordinates are needed", hint)
    return sums.astype(object)


def _numerators(sums: Sums, weights: tuple[Fraction, ...]) -> tuple[Sums, Sums]:
    """Exact weighted sums, as whole numerators over one common denominator."""
    common = math.lcm(*(w.denominator for w in weights))
    top = sum(
        (sums[:, j] * int(w * common) for j, w in enumerate(weights)), np.zeros(len(sums), object)
    )
    return np.asarray(top, object), np.full(len(sums), common, object)


def divided(top: Sums, bottom: Sums) -> Floats:
    """The nearest floats of exact quotients; NaN where the bottom is not positive."""
    fine = np.asarray(bottom > 0, bool)
    out = np.full(len(top), math.nan)
    out[fine] = (top[fine] / bottom[fine]).astype(np.float64)
    return out


def _scaled(span: Span, t: Floats) -> Floats:
    """From [0, 1] to the bounds, which are met exactly."""
    value = float(span.lower) + span.width * t
    return np.clip(np.where(t >= 1, float(span.upper), value), float(span.lower), float(span.upper))


def _share_of_bounds(sums: Sums, span: Span) -> Floats:
    """The mean that the sums show by themselves, negative parts taken as zero; NaN where no rows are seen."""
    below, above = (np.maximum(x, 0) for x in _sides(sums))
    common = math.lcm(span.lower.denominator, span.upper.denominator)
    top = below * int(span.lower * common) + above * int(span.upper * common)
    return divided(top, (below + above) * common)


def _sides(sums: Sums) -> tuple[Sums, Sums]:
    """Twice the sums of 1-t and of t over the rows, in steps, exactly: the degree-1 vector out of any degree."""
    if sums.shape[1] == 2:
        return 2 * sums[:, 0], 2 * sums[:, 1]
    return 2 * sums[:, 0] + sums[:, 1], 2 * sums[:, 2] + sums[:, 1]


def _mean_set(sums: Sums, noise: Noise, confidence: Number) -> tuple[Floats, Floats]:
    """The ends of {t in [0, 1] : |(1-t) above - t below| <= q(t)}, negative parts taken as zero."""
    below, above = (np.maximum(x.astype(np.float64) / 2, 0.0) for x in _sides(sums))
    if noise.family is None:
        with np.errstate(invalid="ignore"):
            t = np.where(below + above > 0, above / (below + above), math.nan)
        return t, t
    line = _mean_line(noise, confidence, sums.shape[1])
    return _first(below, above, line), 1 - _first(above, below, line[::-1])


@lru_cache(maxsize=64)
def _mean_line(noise: Noise, confidence: Number, coordinates: int) -> Floats:
    """q at equally spaced t.

    It is a norm of coefficients linear in t, hence convex, so that its chords lie above it.
    """
    t = np.linspace(0, 1, CELLS + 1)
    coefficients = (-t, 1 - t) if coordinates == 2 else (-t, 0.5 - t, 1 - t)
    return noise.norm(np.stack(coefficients, axis=-1), confidence)


def _first(below: Floats, above: Floats, line: Floats) -> Floats:
    """The smallest t with (1-t) above - t below <= line(t): the line is convex,
    so that it is crossed once or not at all.
    """
    left = np.zeros(len(above), np.int64)
    right = np.full(len(above), CELLS, np.int64)

    def excess(node: npt.NDArray[np.int64]) -> Floats:
        t = node / CELLS
        return np.asarray((1 - t) * above - t * below - line[node], np.float64)

    while np.any(right - left > 1):
        middle = (left + right) // 2
        outside = excess(middle) > 0
        left, right = np.where(outside, middle, left), np.where(outside, right, middle)
    here, there = excess(left), excess(right)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = (left + here / (here - there)) / CELLS
    # A hair for the rounding of floats.
    return np.where(excess(np.zeros_like(left)) > 0, np.clip(t * (1 - 1e-12), 0.0, 1.0), 0.0)


def _plug_in(sums: Sums, span: Span, *, sample: bool) -> tuple[Floats, Floats]:
    """(B0 B2 - B1^2/4)/(B0+B1+B2)^2, clipped to [0, 1/4], with n/(n-1) if asked; NaN without rows; and the rows."""
    n = sums.sum(axis=1)
    raw = divided(4 * sums[:, 0] * sums[:, 2] - sums[:, 1] ** 2, np.where(n > 0, 4 * n**2, 0))
    rows = divided(n, np.full(len(n), span.row(2), object))
    value = np.clip(raw, 0.0, 0.25)
    if sample:
        value = np.where(rows > 1, value * rows / np.where(rows > 1, rows - 1, 1.0), math.nan)
    return value, rows


def bessel(rows: Floats) -> Floats:
    """n/(n-1), for at least two rows: with fewer, there is no sample variance to cover."""
    n = np.maximum(rows, 2.0)
    return np.asarray(n / (n - 1), np.float64)


def _variance_set(
    sums: Floats, noise: Noise, mean_confidence: Fraction, confidence: Fraction
) -> tuple[Floats, Floats]:
    """The ends of what the variance can be, in units of the squared width: Theorem 4 of moments.md."""
    n = sums.sum(axis=1)
    first, second = sums[:, 1] / 2 + sums[:, 2], sums[:, 2]
    ones = float(noise.norm([[1.0, 1.0, 1.0]], confidence)[0])
    known = n > ones
    n = np.where(known, n, 1.0)
    t = first / n
    v = second / n - t**2
    spare = np.where(known, n - ones, 1.0)
    ends = _mean_set(sums.astype(object), noise, mean_confidence)

    def q(at: Floats, value: Floats) -> Floats:
        c = (at**2 - value, -at * (1 - at) - value, (1 - at) ** 2 - value)
        return noise.norm(np.stack(c, axis=-1), confidence)

    high = np.zeros(len(n))
    for end in ends:
        centre = np.clip(v + (end - t) ** 2, 0.0, 0.25)
        high = np.maximum(
            high, outward(centre, np.full(len(n), 0.25), n, spare, lambda x, end=end: q(end, x))
        )
    inner = np.clip(t, *ends)
    slope = noise.norm(np.stack((inner, inner - 0.5, inner - 1), axis=-1), confidence)
    widest = np.maximum(inner - ends[0], ends[1] - inner)
    near = np.minimum(slope / spare, widest)
    drop = near * (2 * slope - spare * near) / n
    centre = np.clip(v + (inner - t) ** 2 - drop, 0.0, 0.25)
    low = -outward(-centre, np.zeros(len(n)), n, spare, lambda x: q(inner, -x))
    return np.where(known, low, 0.0), np.where(known, high, 0.25)


def outward(centre: Floats, end: Floats, n: Floats, spare: Floats, q: Any) -> Floats:
    """The largest x in [centre, end] with n (x - centre) <= q(x), or a little more; q is convex with slopes up to n -
    spare.

    Each chord of q from the centre to a point that is certainly outside gives a nearer one.
    """
    here = q(centre)
    x = np.minimum(centre + here / spare, end)
    for _ in range(_ROUNDS):
        gap = x - centre
        rise = np.where(gap > 0, (q(x) - here) / np.where(gap > 0, gap, 1.0), 0.0)
        x = np.clip(
            np.where(n > rise, centre + here / (n - np.minimum(rise, n - spare)), x), centre, x
        )
    return np.asarray(x, np.float64)
