"""The noise under a sampled release, Normal or Laplace: what SubsampledLoss needs of it, in balls and in floats.

Lemmas are those of subsampled.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import acb, arb, ctx

from sordino.privacy.ball import ball, certified, exact_lower, normal_tail, normal_tail_inverse
from sordino.privacy.loss.law import Floats

__all__ = ["LaplaceNoise", "Noise", "NormalNoise", "near", "nearest_log", "unmix"]

_NARROW = 0.02
"""Below this a normal cell's series is as exact as floats are, above it so is the difference of two tails."""


class Piece(NamedTuple):
    """A stretch of the output axis, where the log densities of Z + c and Z + d over that of Z are `over_z`.

    `log_product(y, a, b)` is the log of the density of Z times those ratios to the powers a and b, with y in one place
    only.
    """

    ends: tuple[arb, arb]
    over_z: tuple[Callable[[acb], acb], Callable[[acb], acb]]
    log_product: Callable[[acb, Fraction, Fraction], acb]


def integrate(alpha: Fraction, rate: Fraction, pieces: Sequence[Piece], size: arb) -> arb:
    """The integral over y of p (p/q)^(alpha - 1), or for alpha = 1 of p log(p/q), if it is not much smaller than
    `size`.

    A mixture is written as its larger part times one plus a ratio, changed where the two are equal: for complex y too
    the ratio then is at most 1 in size, and its log far from a cut.
    """
    r, keep = ball(rate), ball(1 - rate)
    even = (keep / r).log()

    def over_larger_part(log_ratio: acb, sampled: bool, analytic: bool) -> acb:
        smaller = acb(even) - log_ratio if sampled else log_ratio - acb(even)
        return acb((r if sampled else keep).log()) + (1 + smaller.exp()).log(analytic=analytic)

    def one(piece: Piece, a: arb, b: arb) -> arb:
        middle, (over_c, over_d) = acb((a + b) / 2), piece.over_z
        c_larger, d_larger = (bool(over(middle).real > even) for over in piece.over_z)

        def f(y: acb, analytic: bool) -> acb:
            log_c, log_d = over_c(y), over_d(y)
            rest_p, rest_q = (
                over_larger_part(log_c, c_larger, analytic),
                over_larger_part(log_d, d_larger, analytic),
            )
            scale = piece.log_product(y, alpha * c_larger, (1 - alpha) * d_larger)
            if alpha == 1:
                return (scale + rest_p).exp() * (
                    log_c * c_larger + rest_p - log_d * d_larger - rest_q
                )
            return (scale + acb(ball(alpha)) * rest_p - acb(ball(alpha - 1)) * rest_q).exp()

        return acb.integral(f, a, b, abs_tol=size * arb(2) ** -ctx.prec).real

    total = arb(0)
    for piece in pieces:
        a, b = piece.ends
        cuts = [a, b]
        for over in piece.over_z:
            start, end = over(acb(a)).real, over(acb(b)).real
            if start < even < end or end < even < start:
                cuts.append((a + (b - a) * (even - start) / (end - start)).mid())
        total += sum((one(piece, *pair) for pair in pairwise(sorted(cuts, key=float))), arb(0))
    return total


@dataclass(frozen=True)
class NormalNoise:
    """Normal noise Z in units of its scale, and the formulas of a pair that depend on its kind."""

    shift: Fraction

    @property
    def outputs_per_loss(self) -> Fraction:
        """How far y moves when the loss of the unsampled release grows by one."""
        return 1 / self.shift

    def tail(self, x: arb) -> arb:
        """P[Z > x]."""
        return normal_tail(x)

    def tail_inverse(self, alpha: Fraction) -> arb:
        """The x with P[Z > x] = alpha."""
        return normal_tail_inverse(ball(alpha))

    def density(self, x: arb) -> arb:
        """The density of Z at x."""
        return (-(x**2) / 2).exp() / (2 * arb.pi()).sqrt()

    def moment(self, k: int) -> arb:
        """The k-th moment, under Z, of the density of Z + shift over that of Z."""
        return ball(self.shift**2 * k * (k - 1) / 2).exp()

    def mirrored_place(self, loss: arb, rate: arb) -> arb:
        """The y at which the loss of a replaced record is `loss` >= 0."""
        odds = (1 - rate) / rate * ball(self.shift**2 / 2).exp()
        return (loss / 2 + (odds * (loss / 2).sinh()).asinh()) / ball(self.shift)

    def integral(self, alpha: Fraction, rate: Fraction, other: Fraction) -> arb:
        """The integral over y of p (p/q)^(alpha - 1), or for alpha = 1 of p log(p/q)."""
        c, peak = ball(self.shift), ball(alpha * self.shift)
        rarity = float(alpha) * (abs(math.log(rate)) + abs(math.log(1 - rate)))
        # tails beyond it are too small to matter
        reach = math.ceil(math.sqrt(1.4 * (ctx.prec + 20) + 2 * rarity)) + c
        size = (
            ball(rate) ** ball(alpha) * ball(alpha * (alpha - 1) * self.shift**2 / 2).exp()
        ).max(arb(1))

        def over_z(centre: Fraction) -> Callable[[acb], acb]:
            return lambda y: acb(ball(centre)) * y - acb(ball(centre**2 / 2))

        def log_product(y: acb, a: Fraction, b: Fraction) -> acb:
            middle = a * self.shift + b * other
            rest = (
                ball((middle**2 - a * self.shift**2 - b * other**2) / 2) - (2 * arb.pi()).log() / 2
            )
            return acb(rest) - (y - acb(ball(middle))) ** 2 / 2

        over = over_z(self.shift), over_z(other)
        between = [reach, peak - reach] if reach < peak - reach else []
        ends = [-reach, arb(0), *between, peak, peak + reach]
        body = integrate(
            alpha, rate, [Piece(pair, over, log_product) for pair in pairwise(ends)], size
        )
        return body + self._left_out(alpha, rate, other, reach, peak + reach)

    def _left_out(
        self, alpha: Fraction, rate: Fraction, other: Fraction, left: arb, right: arb
    ) -> arb:
        """A ball of the integral's two ends, below -left <= -shift and above `right` (subsampled.md, The integral)."""
        r, c, d, order = ball(rate), ball(self.shift), ball(other), ball(alpha)
        if alpha > 1:
            power = (order * (order - 1) * c**2 / 2).exp() * self.tail(right - order * c)
            ceiling = (1 - r) * self.tail(right) + r * power
            above = ceiling * (1 - r) ** (1 - order) if other else ceiling
            return arb(0).union(self.tail(left) + above)
        floor = sum(
            (
                (1 - r) * self.tail(x) + r * self.tail(x + s * d)
                for x, s in ((left, 1), (right, -1))
            ),
            arb(0),
        )
        beyond = self.density(right - c) + c * self.tail(right - c)
        ceiling = r * ((c - d) * beyond - (c**2 - d**2) / 2 * self.tail(right - c))
        return (-floor).union(ceiling)

    def mirrored_stretch(self, loss: Floats, rate: Fraction) -> Floats:
        """`mirrored_place` in floats, over `outputs_per_loss`."""
        log_odds = self._log_odds(rate)
        half = loss / 2
        far = np.log(-np.expm1(-loss)) + half + log_odds  # log of twice the argument of asinh
        return half + np.where(
            far > 100,
            far,
            np.arcsinh(np.sinh(np.minimum(half, 300)) * math.exp(min(log_odds, 300))),
        )

    def mirrored_width(self, loss: Floats, step: Floats, rate: Fraction) -> Floats:
        """How much `mirrored_stretch` grows from `loss` >= 0 to `loss + step`, without cancellation."""
        # asinh(k) grows by log1p of (w2 - w1)/w1, w = k + sqrt(k^2 + 1); all is scaled by exp(-loss/2) over the odds
        one = np.exp(-loss / 2 - self._log_odds(rate))
        k1 = -np.expm1(-loss) / 2
        growth = np.sinh(step / 4) * (np.exp(step / 4) + np.exp(-loss - step / 4))
        k2 = k1 + growth
        s1, s2 = np.hypot(one, k1), np.hypot(one, k2)
        grown: Floats = np.log1p(growth * (1 + (k1 + k2) / (s1 + s2)) / (k1 + s1))
        return step / 2 + grown

    def _log_odds(self, rate: Fraction) -> float:
        return near(certified(lambda: ball(1 / rate - 1).log() + ball(self.shift**2 / 2)))[0]

    def cells(self, x: Floats, end: Floats, width: Floats) -> Floats:
        """P[x < Z <= end] in floats, for widths known better than the ends."""
        from scipy.special import ndtr

        m = x + width / 2
        series = 1 + (m**2 - 1 + (m**4 - 6 * m**2 + 3) * width**2 / 80) * width**2 / 24
        narrow: Floats = np.exp(-(m**2) / 2) * width * series / math.sqrt(2 * math.pi)
        wide: Floats = np.where(x < 0, ndtr(end) - ndtr(x), ndtr(-x) - ndtr(-end))
        return np.where(width * (1 + np.abs(m)) < _NARROW, narrow, wide)


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise Z in units of its scale; what its methods are is said at `NormalNoise`."""

    shift: Fraction

    @property
    def outputs_per_loss(self) -> Fraction:
        return Fraction(1, 2)

    def tail(self, x: arb) -> arb:
        zero = arb(0)  # one formula for both sides of it, so that a ball may lie on both
        return ((-x.max(zero)).exp() - x.min(zero).expm1()) / 2

    def tail_inverse(self, alpha: Fraction) -> arb:
        return -ball(2 * alpha).log() if 2 * alpha <= 1 else ball(2 * (1 - alpha)).log()

    def density(self, x: arb) -> arb:
        return (-abs(x)).exp() / 2

    def moment(self, k: int) -> arb:
        return (k * ball((k - 1) * self.shift).exp() + (k - 1) * ball(-k * self.shift).exp()) / (
            2 * k - 1
        )

    def mirrored_place(self, loss: arb, rate: arb) -> arb:
        return (loss.expm1() * (rate + (1 - rate) * ball(self.shift).exp()) / rate).log1p() / 2

    def integral(self, alpha: Fraction, rate: Fraction, other: Fraction) -> arb:
        c, d, log_2, order = ball(self.shift), ball(other), arb(2).log(), ball(alpha)

        def at_end(log_z: arb, *over_z: arb) -> arb:
            """The integral from an end of the pieces outward, where both mixtures are multiples of the noise."""
            log_p, log_q = ((ball(rate) * x.expm1()).log1p() for x in over_z)
            if alpha == 1:
                return (log_z - log_2 + log_p).exp() * (log_p - log_q)
            return (log_z - log_2 + order * log_p - (order - 1) * log_q).exp()

        top, bottom = at_end(-c, c, d), at_end(d, -c, -d)

        def right_product(y: acb, a: Fraction, b: Fraction) -> acb:
            return acb(ball(2 * a - 1)) * y + acb(ball(b * other - a * self.shift) - log_2)

        def left_product(y: acb, a: Fraction, b: Fraction) -> acb:
            return acb(ball(1 - 2 * b)) * y + acb(ball(b * other - a * self.shift) - log_2)

        right = Piece((arb(0), c), (lambda y: 2 * y - c, lambda _: acb(d)), right_product)
        left = Piece((d, arb(0)), (lambda _: acb(-c), lambda y: d - 2 * y), left_product)
        return (
            top
            + bottom
            + integrate(alpha, rate, [right, left] if other else [right], top.max(arb(1)))
        )

    def mirrored_stretch(self, loss: Floats, rate: Fraction) -> Floats:
        return unmix(loss, self._mirrored_rate(rate)[0])

    def mirrored_width(self, loss: Floats, step: Floats, rate: Fraction) -> Floats:
        log_rate, log_keep = self._mirrored_rate(rate)
        return np.log1p(
            np.expm1(step) / (math.exp(log_rate) - math.exp(log_keep) * np.expm1(-loss))
        )

    def _mirrored_rate(self, rate: Fraction) -> tuple[float, float]:
        """The log of the rate, and of 1 - rate, at which the unsampled loss has the same
        place as this one has mirrored.
        """

        def share(part: Fraction, moved: Fraction) -> float:
            return near(certified(lambda: (ball(part) * ball(moved).exp() / total()).log()))[0]

        def total() -> arb:
            return ball(rate) * ball(-self.shift).exp() + ball(1 - rate)

        return share(rate, -self.shift), share(1 - rate, Fraction(0))

    def cells(self, x: Floats, end: Floats, width: Floats) -> Floats:
        part = -np.expm1(-width) / 2
        both = -(np.expm1(x) + np.expm1(-end)) / 2
        return np.where(x >= 0, np.exp(-x) * part, np.where(end <= 0, np.exp(end) * part, both))


Noise: TypeAlias = NormalNoise | LaplaceNoise


def near(value: arb) -> tuple[float, float]:
    """The float nearest to a number, and the float nearest to what is left."""
    if not value.is_finite():
        return (math.inf if value > 0 else -math.inf), 0.0
    exact = exact_lower(value)
    first = float(exact)
    return first, float(exact - Fraction(first))


def nearest_log(value: Fraction) -> float:
    """The float nearest to a logarithm."""
    return near(certified(lambda: ball(value).log()))[0]


def unmix(loss: Floats, log_rate: float) -> Floats:
    """log1p(expm1(loss)/rate): the loss of the unsampled release where a sampled one has `loss`; exact relatively."""
    log_ratio = np.where(loss > 0, loss + np.log(-np.expm1(-loss)) - log_rate, -math.inf)
    ratio = np.expm1(np.minimum(loss, 30)) / math.exp(log_rate)
    return np.where(log_ratio > 20, np.logaddexp(0, log_ratio), np.log1p(ratio))
