"""Arithmetic of aggregates: one estimate with one interval, of numbers that came with different noise.

What is linear in noisy numbers has the reach of that weighted sum of noise; a quotient of two such has Fieller's set;
all else is interval arithmetic of such pieces, each with its part of the probability to miss. Theorem and proof:
arithmetic.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sordino.errors import InvalidInput
from sordino.mechanisms.combination import MOST, Family, Floats, reach
from sordino.plan.releases import Drawn, Sums
from sordino.privacy.exact import float_upper
from sordino.query.aggregates.estimates import Estimated, Estimates
from sordino.query.aggregates.moments import divided, outward
from sordino.query.tree import Aggregate, Call, Expression, Literal, aggregates_in

__all__ = ["error", "estimated", "pieces"]

Find = Callable[[Aggregate], Sums | Drawn]
"""The release that answers an aggregate."""


@dataclass(frozen=True)
class _Linear:
    """A constant and a weighted sum of the released numbers: weights by release,
    public numbers behind the noisy ones.
    """

    constant: Fraction = Fraction(0)
    weights: Mapping[str, tuple[Fraction, ...]] = field(default_factory=dict)
    whole: bool = True

    def plus(self, other: _Linear, sign: int = 1) -> _Linear:
        """The sum, or the difference."""
        weights = dict(self.weights)
        for name, theirs in other.weights.items():
            ours = weights.get(name, (Fraction(0),) * len(theirs))
            weights[name] = tuple(a + sign * b for a, b in zip(ours, theirs, strict=True))
        return _Linear(self.constant + sign * other.constant, weights, self.whole and other.whole)

    def times(self, factor: Fraction) -> _Linear:
        """A multiple."""
        weights = {name: tuple(factor * w for w in own) for name, own in self.weights.items()}
        return _Linear(factor * self.constant, weights, self.whole and factor.denominator == 1)


def _linear(value: Expression, find: Find) -> _Linear | None:
    """The value as a weighted sum of released numbers; None if it is none."""
    match value:
        case Literal(constant):
            return _Linear(Fraction(constant), whole=Fraction(constant).denominator == 1)  # type: ignore[arg-type]
        case Aggregate():
            release = find(value)
            if isinstance(release, Drawn):
                return None
            function = release.channel.answers[value]
            weights = release.partial.weights(function, release.unit)
            return (
                None
                if weights is None
                else _Linear(
                    Fraction(0), {release.name: weights}, release.partial.is_whole(function)
                )
            )
        case Call(function, parts):
            first, *others = (_linear(part, find) for part in parts)
            if first is None or None in others:
                return None
            return _combined(function, first, *(other for other in others if other is not None))
    raise AssertionError(value)


_ZERO = _Linear()


def _combined(function: str, first: _Linear, second: _Linear = _ZERO) -> _Linear | None:
    match function:
        case "neg":
            return first.times(Fraction(-1))
        case "+" | "-":
            return first.plus(second, 1 if function == "+" else -1)
        case "*" if not first.weights:
            return second.times(first.constant)
        case "*" if not second.weights:
            return first.times(second.constant)
        case "/" if not second.weights and second.constant:
            return first.times(1 / second.constant)
    return None


def pieces(value: Expression, find: Find) -> int:
    """How many intervals are combined, each of which may miss."""
    linear = _linear(value, find)
    if linear is not None:
        return 1 if linear.weights else 0
    if not isinstance(value, Call) or _quotient(value, find) is not None:
        return 1
    return sum(pieces(part, find) for part in value.arguments)


def _quotient(value: Expression, find: Find) -> tuple[_Linear, _Linear] | None:
    """Top and bottom of a quotient of linear values, if it is one."""
    if not isinstance(value, Call) or value.function != "/":
        return None
    top, bottom = (_linear(part, find) for part in value.arguments)
    return None if top is None or bottom is None or not bottom.weights else (top, bottom)


@dataclass(frozen=True)
class _Noisy:
    """The released numbers of all groups, and the confidence of each piece."""

    find: Find
    releases: Mapping[str, Sums]
    values: Mapping[str, Any]
    confidence: Fraction
    groups: int

    def estimates(self, value: Expression) -> Estimates:
        """The value with its interval."""
        linear = _linear(value, self.find)
        if linear is not None:
            centre, reached = self._sum(linear), self._reach(linear)
            return Estimates(centre, centre - reached, centre + reached)
        quotient = _quotient(value, self.find)
        if quotient is not None:
            return self._fieller(*quotient)
        match value:
            case Aggregate():
                release = self.find(value)
                found = release.estimated(value, self.values[release.name], float(self.confidence))
                if isinstance(found, Estimated):
                    return found.estimates
            case Call(function, parts):
                return _intervals(function, *(self.estimates(part) for part in parts))
        raise AssertionError(value)

    def _sum(self, linear: _Linear) -> Floats:
        """The weighted sums of the released numbers, exact up to the last rounding."""
        every = [linear.constant, *(w for own in linear.weights.values() for w in own)]
        common = math.lcm(*(w.denominator for w in every))
        top = np.full(self.groups, int(linear.constant * common), object)
        for name, own in linear.weights.items():
            for j, weight in enumerate(own):
                top = top + self.values[name][:, j] * int(weight * common)
        return divided(top, np.full(self.groups, common, object))

    def _reach(self, linear: _Linear) -> float:
        """How far the same weighted sum of the noise reaches."""
        noisy = [name for name in linear.weights if self.releases[name].mechanism is not None]
        if len(noisy) == 1:
            release = self.releases[noisy[0]]
            weights = _doubles(linear.weights[noisy[0]][: release.partial.width])
            if sum(1 for w in weights if w) <= MOST:
                return float(release.noise.half_width([weights], self.confidence)[0])
        return float(self._norm(linear, _ZERO)(np.ones(1), np.zeros(1))[0])

    def _norm(self, top: _Linear, bottom: _Linear) -> Callable[[Floats, Floats], Floats]:
        """A bound of the noise in x top + y bottom, by x and y: a norm of their weights, hence convex."""
        pairs: list[tuple[float, float]] = []
        scales, rounding = [], []
        family: Family | None = None
        for name in sorted(top.weights.keys() | bottom.weights.keys()):
            release = self.releases[name]
            if release.mechanism is not None:
                width, family = release.partial.width, release.spent.family
                zero = (Fraction(0),) * width
                own = (linear.weights.get(name, zero)[:width] for linear in (top, bottom))
                pairs += zip(*map(_doubles, own), strict=True)
                scales += [float_upper(release.mechanism.scale)] * width
                rounding += [release.noise.rounding] * width
        if family is None:
            return lambda x, _: np.zeros(len(x))
        known, weights, size = (
            family,
            np.array(pairs).T,
            MOST if family == "laplace" else len(scales),
        )
        starts = range(0, len(scales), size)
        confidence = 1 - (1 - self.confidence) / len(starts)

        def norm(x: Floats, y: Floats) -> Floats:
            c = np.stack([x, y], axis=1) @ weights
            parts = [
                reach(known, (c * scales)[:, start : start + size], confidence) for start in starts
            ]
            # rounding moves each noise by so much at most; a hair for the rounding of floats
            return np.asarray(
                (np.sum(parts, axis=0) + np.abs(c) @ np.array(rounding)) * (1 + 1e-12), np.float64
            )

        return norm

    def _fieller(self, top: _Linear, bottom: _Linear) -> Estimates:
        """All r for which top - r bottom can be noise alone; everything where the bottom can be zero."""
        a, b, norm = self._sum(top), self._sum(bottom), self._norm(top, bottom)
        a, b = np.where(b < 0, -a, a), np.abs(b)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(b > 0, a / b, np.nan)
        slope = float(norm(np.zeros(1), np.ones(1))[0])
        if not slope and not norm(np.ones(1), np.zeros(1))[0]:
            return Estimates(value, value, value)
        known = b > slope
        centre, n, spare = (
            np.where(known, value, 0.0),
            np.where(known, b, 1.0),
            np.where(known, b - slope, 1.0),
        )
        one, far = np.ones(len(n)), np.full(len(n), np.inf)
        high = outward(centre, far, n, spare, lambda r: norm(one, -r))
        low = -outward(-centre, far, n, spare, lambda r: norm(one, r))
        return Estimates(value, np.where(known, low, -np.inf), np.where(known, high, np.inf))


def _doubles(weights: Iterable[Fraction]) -> list[float]:
    """The weights as doubles; a question that multiplies by more than these hold is refused while it is planned."""
    try:
        return [float(weight) for weight in weights]
    except OverflowError:
        rule = "numbers are multiplied by more than a double can hold (1.8e308)"
        hint = "Multiply by less, or compute with the answer."
        raise InvalidInput("arithmetic of aggregates", rule, hint) from None


def _intervals(function: str, first: Estimates, second: Estimates | None = None) -> Estimates:
    """Interval arithmetic; a quotient by what can be zero can be anything."""
    if second is None:
        return Estimates(-first.value, -first.high, -first.low)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        match function:
            case "+":
                return Estimates(
                    first.value + second.value, first.low + second.low, first.high + second.high
                )
            case "-":
                return Estimates(
                    first.value - second.value, first.low - second.high, first.high - second.low
                )
            case "*":
                return _spanned(
                    first.value * second.value,
                    [_product(x, y) for x in _ends(first) for y in _ends(second)],
                )
        zero = (second.low <= 0) & (second.high >= 0)
        value = np.where(second.value == 0, np.nan, first.value / second.value)
        found = _spanned(
            value,
            [np.where(zero, 0.0, _product(x, 1 / y)) for x in _ends(first) for y in _ends(second)],
        )
    return Estimates(value, np.where(zero, -np.inf, found.low), np.where(zero, np.inf, found.high))


def _ends(one: Estimates) -> tuple[Floats, Floats]:
    return one.low, one.high


def _product(x: Floats, y: Floats) -> Floats:
    """Where one side is zero the product is, too, also with what has no bound."""
    return np.where((x == 0) | (y == 0), 0.0, x * y)


def _spanned(value: Floats, ends: list[Floats]) -> Estimates:
    return Estimates(value, np.minimum.reduce(ends), np.maximum.reduce(ends))


def estimated(
    value: Expression, find: Find, values: Mapping[str, Any], confidence: Fraction, groups: int
) -> Estimated:
    """The answer column of arithmetic of aggregates, from what was released, by the names of releases."""
    found = [find(aggregate) for aggregate in aggregates_in(value)]
    sums = {release.name: release for release in found if isinstance(release, Sums)}
    each = 1 - (1 - confidence) / max(1, pieces(value, find))
    linear = _linear(value, find)
    estimates = Estimates(*(np.empty(0),) * 3)
    if groups:
        estimates = _Noisy(find, sums, values, each, groups).estimates(value)
    return Estimated(estimates, linear is not None and linear.whole)


def error(value: Expression, find: Find, confidence: Fraction) -> float | None:
    """The half-width to expect where it does not depend on data; else None."""
    linear = _linear(value, find)
    if linear is None:
        return None
    sums = {
        release.name: release
        for release in map(find, aggregates_in(value))
        if isinstance(release, Sums)
    }
    return _Noisy(find, sums, {}, confidence, 0)._reach(linear)
