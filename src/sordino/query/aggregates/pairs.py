"""Covariance, correlation and regression from noisy Bernstein sums of two numbers, with intervals. Proofs: pairs.md.

Two bounded numbers of a row are k of K and l of L steps above their lower bounds. The vector of the row is the product
of their Bernstein vectors of degree 1 (4 coordinates) or 2 (9): nonnegative, with the sum (K L)^degree. Coordinate i,
j, with i for x and j for y, is at place i (degree + 1) + j. Here s = k/K stands for x and t = l/L for y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.combination import Floats, Noise
from sordino.privacy.exact import Number, open_unit
from sordino.query.aggregates.estimates import Estimates
from sordino.query.aggregates.moments import Span, Sums, bessel, divided, outward, whole_sums

__all__ = ["Plane", "correlation", "covariance", "intercept", "r_squared", "slope", "typical"]

_SHARE = Fraction(1, 50)
"""Of the probability that an interval misses, how much goes to each auxiliary number:
they enter by their squares only.
"""


@dataclass(frozen=True)
class Plane:
    """What is public of the two numbers; `unit` is the weight of a whole row."""

    x: Span
    y: Span
    unit: int = 1

    def row(self, degree: int) -> int:
        """What one whole row adds to the sum of all coordinates."""
        return int(self.unit * (self.x.steps * self.y.steps) ** degree)


def covariance(
    noisy: Sums, plane: Plane, noise: Noise, confidence: Number, *, sample: bool = False
) -> Estimates:
    """The covariance, from sums of degree 1 or 2; with `sample`, times n/(n-1) for n rows, at least two.

    Where nothing is left to tell, the interval holds all that numbers within the bounds can have.
    """
    p = _Centred(noisy, noise, confidence, 2 + sample, (4, 9))
    rows = p.all / plane.row(p.degree)
    value = p.xy
    if sample:
        value = np.where(rows > 1, value * rows / np.where(rows > 1, rows - 1, 1.0), math.nan)
    if noise.family is None:
        return _scaled(Estimates(value, value, value), 0.0, plane.x.width * plane.y.width)
    low, high = _ends(
        np.clip(p.xy, -0.25, 0.25), 0.25, p.n, p.n - p.ones,
        lambda v, sign: (sign * p.n * p.turn + p.q(p.corner_st - v[:, None])).max(axis=0),
    )  # fmt: skip
    low, high = np.where(p.known, low, -0.25), np.where(p.known, high, 0.25)
    if sample:
        error = p.side_ones / plane.row(p.degree)
        most, least = bessel(rows - error), bessel(rows + error)
        low, high = low * np.where(low < 0, most, least), high * np.where(high > 0, most, least)
    value = np.clip(np.where(np.isnan(value), (low + high) / 2, value), low, high)
    return _scaled(Estimates(value, low, high), 0.0, plane.x.width * plane.y.width)


def correlation(noisy: Sums, noise: Noise, confidence: Number) -> Estimates:
    """The correlation of the two numbers, from sums of degree 2; NULL where a noisy variance is not positive."""
    p = _Centred(noisy, noise, confidence, 3)
    varied = (p.all > 0) & (p.xx > 0) & (p.yy > 0)
    size = np.sqrt(np.where(varied, p.xx, 1.0)) * np.sqrt(np.where(varied, p.yy, 1.0))
    value = np.where(varied, np.clip(p.xy / size, -1.0, 1.0), math.nan)
    if noise.family is None:
        return Estimates(value, value, value)
    up, down = p.ratio_of_variances(), p.swapped().ratio_of_variances()
    known = varied & np.isfinite(up) & np.isfinite(down)
    ratio = np.where(known, p.yy / np.where(varied, p.xx, 1.0), 1.0)
    scale = np.sqrt(ratio)
    # how far the ratio of the deviations may be from the noisy one, as a factor either way
    off = np.sqrt(np.where(known, np.maximum(up / ratio, down * ratio), 1.0))
    ends = np.stack((scale / off, scale * off))[:, None, :, None]
    both = (ends * p.corner_ss + p.corner_tt / ends).reshape(2 * len(p.turn), *p.ss.shape) / 2
    st, turn = np.concatenate([p.corner_st, p.corner_st]), np.concatenate([p.turn, p.turn])
    bend = off * (scale * p.ru**2 + p.rw**2 / scale) / 2
    apart = off + 1 / off - 2
    steep = bend * p.ones + apart / (2 * scale) * (p.q(p.corner_tt).max(axis=0) + p.rw**2 * p.ones)
    against = p.n * (bend + size * apart / 2)
    spare = p.n * size - p.q(both).max(axis=0) - steep - against
    known &= spare > 0

    def reach(r: Floats, sign: int) -> Floats:
        corners = (sign * p.n * turn + p.q(st - r[:, None] * both)).max(axis=0)
        return np.asarray(
            corners + np.abs(r) * steep + np.maximum(-sign * r, 0.0) * against, np.float64
        )

    weight, spare = np.where(known, p.n * size, 1.0), np.where(known, spare, 1.0)
    low, high = _ends(np.where(known, value, 0.0), 1.0, weight, spare, reach)
    return Estimates(value, np.where(known, low, -1.0), np.where(known, high, 1.0))


def r_squared(noisy: Sums, noise: Noise, confidence: Number) -> Estimates:
    """The share of the variance of y that a line explains: the square of the correlation.

    It is 1 where y is constant.
    """
    r = correlation(noisy, noise, confidence)
    value = r.value**2
    if noise.family is None:
        p = _Centred(noisy, noise, confidence, 0)
        value = np.where((p.yy == 0) & (p.xx > 0), 1.0, value)
        return Estimates(value, value, value)
    squares = r.low**2, r.high**2
    return Estimates(
        value, np.where(r.low * r.high <= 0, 0.0, np.minimum(*squares)), np.maximum(*squares)
    )


def slope(noisy: Sums, plane: Plane, noise: Noise, confidence: Number) -> Estimates:
    """The slope of the line through y over x, from sums of degree 2.

    NULL, with an interval without ends, where the variance of x cannot be told from zero.
    """
    p = _Centred(noisy, noise, confidence, 2)
    value = p.slope
    low, high = (value, value) if noise.family is None else p.slopes(p.main)
    value = np.where(np.isfinite(low), value, math.nan)
    return _scaled(Estimates(value, low, high), 0.0, plane.y.width / plane.x.width)


def intercept(noisy: Sums, plane: Plane, noise: Noise, confidence: Number) -> Estimates:
    """Where the line through y over x meets x = 0, from sums of degree 2; NULL as the slope is."""
    p = _Centred(noisy, noise, confidence, 4)
    away = p.u + float(plane.x.lower) / plane.x.width
    value = p.w - p.slope * away
    if noise.family is None:
        return _scaled(Estimates(value, value, value), float(plane.y.lower), plane.y.width)
    low, high = p.slopes(p.side)
    doubt = (p.q(p.corner_ss - p.xx[:, None], p.side).max(axis=0) + p.ru**2 * p.n) / p.spare
    known = np.isfinite(low) & (p.xx > doubt)
    variance, least = np.where(known, p.xx, 1.0), np.where(known, p.xx - doubt, 1.0)
    b, low, high, doubt = (np.where(known, x, 0.0) for x in (p.slope, low, high, doubt))
    off = np.maximum(high - b, b - low)
    lever, lever_off = away / variance, (np.abs(away) * doubt / variance + p.ru) / least
    most = np.abs(lever) + lever_off
    centre_off = p.rw + (np.abs(b) + off) * p.ru
    slopes, levers = (
        np.stack((low, low, high, high)),
        lever + np.array([[-1], [1], [-1], [1]]) * lever_off,
    )
    residual, line = (c - slopes[..., None] * d for c, d in ((p.t, p.s), (p.st, p.ss)))
    error = (
        p.q(residual - levers[..., None] * line).max(axis=0)
        + most * p.ru * p.q(residual).max(axis=0)
        + centre_off * ((1 + most * p.ru) * p.ones + most * p.q(p.s))
    ) / p.n + most * p.ru * centre_off
    # Two bounds hold at once: one with the doubts of slope and lever, and one where the doubt of the lever divides.
    part, distance = (
        1 - lever_off / np.maximum(np.abs(lever), 1e-300),
        np.maximum(np.abs(away), 1e-300),
    )
    divided = (error + variance * lever_off * centre_off / distance) / np.where(part > 0, part, 1.0)
    error = np.minimum(error + variance * lever_off * off, np.where(part > 0, divided, math.inf))
    middle, error = np.where(known, value, 0.0), np.where(known, error, math.inf)
    found = Estimates(np.where(known, value, math.nan), middle - error, middle + error)
    return _scaled(found, float(plane.y.lower), plane.y.width)


def typical(plane: Plane, rows: float, degree: int) -> Sums:
    """Exact sums of this many rows, spread evenly and independently over the bounds."""
    shares = (Fraction(1, degree + 1),) * (degree + 1)  # the mean of each Bernstein polynomial
    return np.array(
        [[round(Fraction(rows) * plane.row(degree) * a * b) for a in shares for b in shares]],
        object,
    )


class _Centred:
    """Plug-in moments of noisy sums, and the coefficients of functions centred at them; `events` count auxiliary
    numbers.

    n is the sum of all coordinates; u, w the means of s and t; xx, xy, yy their (co)variances. Where n is too small to
    tell anything, `known` is false, and n is a large number in its place.
    """

    def __init__(
        self,
        noisy: Sums,
        noise: Noise,
        confidence: Number,
        events: int,
        widths: tuple[int, ...] = (9,),
    ) -> None:
        if np.ndim(noisy) != 2 or np.shape(noisy)[1] not in widths:
            rule, hint = (
                "a covariance needs sums of degree 1 or 2, all else of degree 2",
                "Pass 4 or 9 coordinates.",
            )
            raise InvalidInput(f"sums of shape {np.shape(noisy)}", rule, hint)
        self.noise = noise
        self.degree = 1 if np.shape(noisy)[1] == 4 else 2
        width = self.degree + 1
        sums = whole_sums(noisy, width**2).reshape(-1, width, width)
        alpha = 1 - open_unit("confidence", confidence).upper
        self.side, self.main = 1 - alpha * _SHARE, 1 - alpha * (1 - events * _SHARE)
        place = np.arange(width)
        # of s^2, where the degree is 2; s^2 has no coefficients of degree 1
        square = place // self.degree * self.degree**2
        n = sums.sum(axis=(1, 2))
        by_x, by_y = sums.sum(axis=2), sums.sum(axis=1)
        x, y = by_x @ place, by_y @ place
        self.all = n.astype(np.float64)

        def moment(top: Sums, power: int) -> Floats:
            return np.nan_to_num(divided(top, np.where(n > 0, (self.degree * n) ** power, 0)))

        empty = self.all <= 0
        self.u, self.w = moment(x, 1), moment(y, 1)
        self.xx, self.yy = (
            moment(n * (by_x @ square) - x * x, 2),
            moment(n * (by_y @ square) - y * y, 2),
        )
        self.xy = np.where(empty, math.nan, moment(n * ((sums @ place) @ place) - x * y, 2))
        self._region(place / self.degree)

    def _region(self, nodes: Floats) -> None:
        ones = np.ones((1, len(nodes) ** 2))
        self.ones, self.side_ones = (
            float(self.q(ones, level)[0]) for level in (self.main, self.side)
        )
        self.known = self.all > self.side_ones
        self.n = np.where(self.known, self.all, 2 * self.side_ones + 1)
        self.spare = self.n - self.side_ones
        if not self.known.all():
            self.u, self.w = (np.where(self.known, mean, 0.5) for mean in (self.u, self.w))
        self.s, self.t, self.st, self.ss, self.tt = self._at(nodes, self.u, self.w)
        self.ru, self.rw = (self.q(c, self.side) / self.spare for c in (self.s, self.t))
        u = self.u + np.array([[-1], [-1], [1], [1]]) * self.ru
        w = self.w + np.array([[-1], [1], [-1], [1]]) * self.rw
        self.turn = (u - self.u) * (w - self.w)
        _, _, self.corner_st, self.corner_ss, self.corner_tt = self._at(nodes, u, w)

    @staticmethod
    def _at(nodes: Floats, u: Floats, w: Floats) -> tuple[Floats, ...]:
        """The coefficients of s-u, t-w, their product and, for degree 2, their squares."""
        one = np.ones((*u.shape, len(nodes)))
        s, t = nodes - u[..., None], nodes - w[..., None]
        squares = (_square(u), _square(w)) if len(nodes) == 3 else (s, t)
        return (
            _product(s, one),
            _product(one, t),
            _product(s, t),
            _product(squares[0], one),
            _product(one, squares[1]),
        )

    def q(self, coefficients: Floats, level: Fraction | None = None) -> Floats:
        """How far the noise of a function's sum reaches."""
        return self.noise.norm(coefficients, self.main if level is None else level)

    def swapped(self) -> _Centred:
        """The same with s and t exchanged, for `ratio_of_variances`."""
        other = object.__new__(_Centred)
        other.__dict__.update(self.__dict__)
        other.ru, other.rw, other.xx, other.yy = self.rw, self.ru, self.yy, self.xx
        other.ss, other.tt, other.corner_ss, other.corner_tt = (
            self.tt,
            self.ss,
            self.corner_tt,
            self.corner_ss,
        )
        return other

    @property
    def slope(self) -> Floats:
        """The plug-in slope; NaN where x has no variance."""
        varied = (self.all > 0) & (self.xx > 0)
        return np.where(varied, self.xy / np.where(varied, self.xx, 1.0), math.nan)

    def slopes(self, level: Fraction) -> tuple[Floats, Floats]:
        """The ends of what the slope can be, but for 1 - level and the means' shares;
        infinite where it can be anything.
        """
        known, spare = self._divisor(level)
        ones = self.side_ones if level == self.side else self.ones

        def reach(b: Floats, sign: int) -> Floats:
            main = sign * self.n * self.turn + self.q(
                self.corner_st - b[:, None] * self.corner_ss, level
            )
            bend = np.where(sign * b > 0, ones, self.n) * self.ru**2
            return np.asarray(main.max(axis=0) + np.abs(b) * bend, np.float64)

        centre = np.where(known, self.slope, 0.0)
        low, high = _ends(centre, math.inf, np.where(known, self.n * self.xx, 1.0), spare, reach)
        return np.where(known, low, -math.inf), np.where(known, high, math.inf)

    def ratio_of_variances(self) -> Floats:
        """The most that the variance of t over that of s can be, but for the shares of it and of the means."""
        known, spare = self._divisor(self.side)
        centre = np.where(known, self.yy / np.where(known, self.xx, 1.0), 0.0)

        def reach(ratio: Floats) -> Floats:
            main = self.q(self.corner_tt - ratio[:, None] * self.corner_ss, self.side).max(axis=0)
            return np.asarray(
                main + self.n * self.rw**2 + np.abs(ratio) * self.side_ones * self.ru**2, np.float64
            )

        most = outward(
            centre,
            np.full(len(centre), math.inf),
            np.where(known, self.n * self.xx, 1.0),
            spare,
            reach,
        )
        return np.where(known, most, math.inf)

    def _divisor(self, level: Fraction) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Whether the variance of s is surely above zero,
        and what is left of n times it after all that may lessen it.
        """
        spare = self.n * self.xx - self.q(self.corner_ss, level).max(axis=0) - self.ru**2 * self.n
        known = self.known & (spare > 0)
        return known, np.where(known, spare, 1.0)


def _ends(
    centre: Floats, limit: float, n: Floats, spare: Floats, reach: Callable[[Floats, int], Floats]
) -> tuple[Floats, Floats]:
    """The ends of {x : n |x - centre| <= reach(x, sign of x - centre)} within +-limit, or a little beyond them."""
    end = np.full(len(centre), limit)
    return -outward(-centre, end, n, spare, lambda x: reach(-x, -1)), outward(
        centre, end, n, spare, lambda x: reach(x, 1)
    )


def _product(a: Floats, b: Floats) -> Floats:
    """The coefficients of the product of a function of s and a function of t."""
    product: Floats = a[..., :, None] * b[..., None, :]
    return product.reshape(*a.shape[:-1], a.shape[-1] * b.shape[-1])


def _square(u: Floats) -> Floats:
    """The Bernstein coefficients of (s - u)^2."""
    return np.stack((u**2, -u * (1 - u), (1 - u) ** 2), axis=-1)


def _scaled(estimates: Estimates, offset: float, factor: float) -> Estimates:
    """From units of the bounds to the answer's own; refused, in the rehearsal before the charge, where floats end."""
    if not 1e-300 < factor < 1e300:
        rule = (
            "the bounds of the two numbers allow results that are too large or too small for floats"
        )
        hint = "Multiply one of them by a constant, for results of ordinary size."
        raise InvalidInput(f"a scale of {factor:g}", rule, hint)
    return estimates.mapped(lambda x: offset + factor * x)
