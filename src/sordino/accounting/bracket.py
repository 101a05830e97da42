"""Certified bounds on epsilon(delta) and delta(epsilon) of a sum of losses: the accountant proper.

Theorem 1 of total.md: the true value certainly lies between the ends that `epsilon_bracket` and `delta_bracket` return.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sordino.accounting.convolve import Sum, Window
from sordino.accounting.enumerate import enumerated
from sordino.accounting.grid import ALIGNED, OnGrid, from_above, from_below, reach
from sordino.accounting.many_uses import any_infinite, delta_of_many, epsilon_of_many
from sordino.privacy.loss.law import Floats, Law

__all__ = ["ACCURACY", "Bracket", "delta_bracket", "epsilon_bracket"]

ACCURACY = 1e-3
"""The relative width of epsilon's bracket that is aimed at."""

_MOST_POINTS = 2.0**22
_LARGEST = 1e100
"""Losses that spread wider than this are not put on a grid,
where their squares would overflow: nothing is known of them.
"""
_FAR = 500.0
"""A loss that can be larger has no privacy: it is bounded by its largest value,
and exponentials stay within the floats.
"""
_MOST_EXPONENT = 600.0
"""A probability of e^600 and more is one, however small the error that was multiplied by it."""
_ROUNDS = 6
_SERIES_FROM, _SERIES_FROM_ATOMS, _SERIES_FROM_OTHERS = 100, 1000, 10**6
"""The number of uses from which on a Fourier series is tried first: of sampled losses, with atoms, which make a grid's
work light, and of others, which a grid resolves better as long as its rounding does not tell.
"""
_LONG_GRID = 2.0**16
"""Of fewer uses of sampled losses, too, where a grid would have to be longer than this: rates are small then, and
losses many times their deviation.
"""
_USUAL_DELTA = 1e-6
_UNSURE = 2.0
"""A bracket from a series that is at most this many times as wide as the laws' own errors is as good as any."""
_GRID_UNTIL = 10**7
"""Above this many uses no grid is narrower than the series, even one that misses the accuracy."""
_LEAST_SPREAD, _MOST_SPREAD = 1e-9, 10.0
"""Losses of another size are left to the grid: exponentials of theirs may overflow."""
_BISECTIONS = 60
_SCAN = 13
_BELOW = 2.0
"""How much coarser the grid of the lower end may be: the upper end is the promise."""

_LOOK = 8.0
"""How much coarser a second direction is looked at first, since mostly the first is the worse."""
_SHARE = 2.0**-14
"""The share of delta that cut tails and residuals may take."""

Parts = Sequence[tuple[Law, int]]


@dataclass(frozen=True)
class Bracket:
    """Two ends with the true value in between."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):  # plain numbers, whatever arrays they come from
            object.__setattr__(self, name, float(getattr(self, name)))

    def __and__(self, other: Bracket) -> Bracket:
        return Bracket(max(self.lower, other.lower), min(self.upper, other.upper))


_EVERYTHING = Bracket(-math.inf, math.inf)


def epsilon_bracket(
    parts: Parts, delta: float, accuracy: float = ACCURACY, known: float = -math.inf
) -> Bracket:
    """epsilon(delta) of the sum of independent losses, in one direction of the pair, for 0 < delta < 1.

    Once it is certainly below `known`, what another direction needs, its accuracy does not matter.
    """
    near, far = _apart(parts)
    if far:
        left = delta - _infinite(far, 1)
        rest = (
            epsilon_bracket(near, left, accuracy)
            if near and left > 0
            else Bracket(-math.inf, 0.0 if left > 0 else math.inf)
        )
        return Bracket(_surely(far, delta), rest.upper + _highest(far))
    if _deviation(parts) > _LARGEST:
        return Bracket(-math.inf, math.inf)
    if _infinite(parts, 1) >= delta:
        return Bracket(math.inf if _infinite(parts, -1) > delta else -math.inf, math.inf)
    if (found := enumerated(parts)) is not None:
        window, error, slack = found
        low = _solve(window, (delta - _infinite(parts, -1)) * (1 + error), -1)
        return Bracket(
            low - slack, _solve(window, (delta - _infinite(parts, 1)) / (1 + error), 1) + slack
        )

    best = _EVERYTHING
    if _many(parts) and (ends := epsilon_of_many(parts, delta, accuracy, known)) is not None:
        best = Bracket(ends.lower, ends.upper)
        if ends.close or sum(count for _, count in parts) > _GRID_UNTIL:
            return best
        if best.upper - best.lower <= _UNSURE * _law_errors(parts):
            return best

    def once(spacing: float, tilt: float) -> Bracket:
        above = _grids(parts, delta, spacing, from_above)
        below = _grids(parts, delta, _BELOW * spacing, from_below)
        upper = _solve(
            above.window(tilt), (delta - _infinite(parts, 1, above)) / _scale_error(above, tilt), 1
        )
        chance = delta * _SHARE
        lower = _solve(
            below.window(tilt),
            (delta + chance - _infinite(parts, -1)) * _scale_error(below, tilt),
            -1,
        )
        return Bracket(
            lower - _residual(below, chance) - _value_error(below), upper + _value_error(above)
        )

    def width(b: Bracket) -> float:
        return 0.0 if b.upper <= known else (b.upper - b.lower) / max(abs(b.upper), 1e-9)

    return best & _refine(
        parts, delta, accuracy, once, width, coarser=_LOOK if known > -math.inf else 1.0
    )


def delta_bracket(
    parts: Parts, epsilon: float, accuracy: float = ACCURACY, known: float = -math.inf
) -> Bracket:
    """delta(epsilon) of the sum of independent losses, in one direction of the pair; accuracy is that of epsilon.

    Once it is certainly below `known`, what another direction needs, its accuracy does not matter.
    """
    least = max(0.0, -math.expm1(min(epsilon, 0.0)) * (1 - 2.0**-50))
    if any(law.infinite >= 1 for law, _ in parts):
        return Bracket(1 - 2.0**-40, 1.0)
    near, far = _apart(parts)
    if far:
        beyond = epsilon - _highest(far)
        most = (
            delta_bracket(near, beyond, accuracy).upper
            if near
            else -math.expm1(min(beyond, 0.0)) * (1 + 2.0**-40)
        )
        return Bracket(least, min(1.0, most + _infinite(far, 1)))
    if _deviation(parts) > _LARGEST or epsilon < -40:
        return Bracket(least, 1.0)
    if (found := enumerated(parts)) is not None:
        window, error, slack = found
        lower = _delta(window, epsilon + slack, -1) / (1 + error) + _infinite(parts, -1)
        upper = _delta(window, epsilon - slack, 1) * (1 + error) + _infinite(parts, 1)
        return Bracket(max(lower, least), min(upper, 1.0))
    best = _EVERYTHING
    if _many(parts) and (ends := delta_of_many(parts, epsilon, accuracy, known)) is not None:
        best = Bracket(max(ends.lower, least), min(ends.upper, 1.0))
        if ends.close or sum(count for _, count in parts) > _GRID_UNTIL:
            return best
    guess = _chernoff(parts, epsilon)

    def once(spacing: float, tilt: float) -> Bracket:
        above = _grids(parts, guess, spacing, from_above)
        below = _grids(parts, guess, _BELOW * spacing, from_below)
        window = above.window(tilt)
        upper = _delta(window, epsilon - _value_error(above), 1) * _scale_error(
            above, tilt
        ) + _infinite(parts, 1, above)
        chance = min(upper, 1.0) * _SHARE
        moved = epsilon + _residual(below, chance) + _value_error(below)
        lower = (
            _delta(below.window(tilt), moved, -1) / _scale_error(below, tilt)
            - chance
            + _infinite(parts, -1)
        )
        return Bracket(max(lower, least), min(upper, 1.0))

    def width(b: Bracket) -> float:
        if b.upper <= known:
            return 0.0
        return (
            math.log(b.upper / b.lower) / (1 + tilt_hint * abs(epsilon))
            if b.lower > 0
            else math.inf
        )

    tilt_hint = _best_tilt(
        _grids(parts, guess, _first_spacing(parts, guess, 16 * accuracy), from_above),
        epsilon=epsilon,
    )
    return best & _refine(
        parts, guess, accuracy, once, width, tilt_hint, _LOOK if known > -math.inf else 1.0
    )


def _refine(
    parts: Parts,
    delta: float,
    accuracy: float,
    once: Callable[[float, float], Bracket],
    width: Callable[[Bracket], float],
    tilt: float | None = None,
    coarser: float = 1.0,
) -> Bracket:
    """Halve the spacing, or more, until the bracket is as narrow as wanted or the grid as large as allowed."""
    spacing = coarser * _first_spacing(parts, delta, accuracy)
    if tilt is None:
        tilt = _best_tilt(_grids(parts, delta, 2 * spacing, from_above), delta=delta)
    best, last = _EVERYTHING, math.inf
    for turn in range(_ROUNDS):
        while _points(parts, spacing, delta) > _MOST_POINTS:
            spacing *= 1.3
        best &= once(spacing, tilt)
        now = width(best)
        if (
            now <= accuracy
            or (turn and not now < 0.8 * last)
            or _points(parts, 2 * spacing, delta) > _MOST_POINTS
        ):
            break
        last = now
        spacing *= min(0.5, max(0.02, 0.7 * accuracy / now))
    return best


def _first_spacing(parts: Parts, delta: float, accuracy: float) -> float:
    """A first guess from a rough epsilon; the bracket's width then tells what is needed."""
    scales = [_scale(law) for law, _ in parts]
    rough = _deviation(parts) * math.sqrt(-math.log(delta))
    wanted = min(accuracy * rough / _finer(parts), min(scales) / 4)
    # a tiny loss beside a large one is not resolved
    return max(wanted, _points(parts, 1.0, delta) / _MOST_POINTS)


def _finer(parts: Parts) -> int:
    """How much finer than accuracy asks: measured,
    so that the upper end is about as tight as a grid of 1e-4 makes it.
    """
    uses = sum(count for _, count in parts)
    aligned = len(parts) == 1 and bool(parts[0][0].atoms)  # then the error is of second order
    return (3 if uses < 500 else 10) if aligned else 9


def _scale(law: Law) -> float:
    return max([0.7 * abs(value) for value, _ in law.atoms] or [law.spread])


def _deviation(parts: Parts) -> float:
    """Roughly the standard deviation of the sum."""
    return math.hypot(*(math.sqrt(count) * _scale(law) for law, count in parts))


def _points(parts: Parts, spacing: float, delta: float) -> float:
    """How many grid points the laws and the window of their sum take."""
    tail = delta * _SHARE / sum(count for _, count in parts)
    laws = sum(high - low for low, high in (reach(law, tail) for law, _ in parts))
    return (laws + 16 * _deviation(parts)) / spacing


def _grids(
    parts: Parts, delta: float, spacing: float, put: Callable[[Law, float, float, float], OnGrid]
) -> Sum:
    """Every law on a grid of one spacing that puts the atoms of the most used law on grid points."""
    tail = delta * _SHARE / sum(count for _, count in parts)
    spans = [
        (count, law.atoms[-1][0] - law.atoms[0][0]) for law, count in parts if len(law.atoms) > 1
    ]
    span = max(spans)[1] if spans else 0.0
    step = span / (2 * math.ceil(span / (2 * spacing))) if span > spacing else spacing
    return Sum(
        tuple(
            (put(law, step, law.atoms[-1][0] if law.atoms else 0.0, tail), count)
            for law, count in parts
        )
    )


def _apart(parts: Parts) -> tuple[Parts, Parts]:
    """The laws that are put on a grid, and those whose largest value is so large that it is taken for the only one."""
    near = [(law, count) for law, count in parts if not _FAR < _top(law) < math.inf]
    return near, [(law, count) for law, count in parts if _FAR < _top(law) < math.inf]


def _top(law: Law) -> float:
    return max([law.high, *(value for value, _ in law.atoms)])


def _highest(parts: Parts) -> float:
    """No finite value of the sum is larger."""
    return sum(count * _top(law) for law, count in parts) * (1 + 2.0**-45)


def _surely(parts: Parts, delta: float) -> float:
    """An epsilon that these laws need at delta even if only their largest values counted;
    -inf where that is too rare.
    """
    tops = [
        (law.atoms[-1][1] if law.atoms and law.atoms[-1][0] == _top(law) else 0.0, count)
        for law, count in parts
    ]
    mass = math.prod(p**count for p, count in tops) * (1 - 2.0**-20)
    return (
        _highest(parts) * (1 - 2.0**-40) + math.log1p(-delta / mass) if mass > delta else -math.inf
    )


def _many(parts: Parts) -> bool:
    """Whether there are so many uses of losses, none extreme, that a Fourier series is shorter than a grid."""
    if not all(_LEAST_SPREAD < _scale(law) < _MOST_SPREAD for law, _ in parts):
        return False
    uses = sum(count for _, count in parts)
    if not any(law.contrast is not None for law, _ in parts):
        return uses >= _SERIES_FROM_OTHERS
    if any(law.atoms for law, _ in parts):
        return uses >= _SERIES_FROM_ATOMS
    if uses >= _SERIES_FROM:
        return True
    spacing = _first_spacing(parts, _USUAL_DELTA, ACCURACY)
    return _points(parts, spacing, _USUAL_DELTA) > _LONG_GRID


def _law_errors(parts: Parts) -> float:
    """About how far the sum's value is unknown, since the laws are known to so many digits: no grid is narrower."""
    edges = np.array([-math.inf, 0.0, math.inf])
    return sum(4 * count * float(law.contrasted(edges).excess_error.sum()) for law, count in parts)


def _infinite(parts: Parts, side: int, grids: Sum | None = None) -> float:
    """P[sum = inf], from above (with what the grids cut off) or from below."""
    if grids is not None:
        return any_infinite([(part.infinite, count) for part, count in grids.parts], side)
    return any_infinite([(law.infinite, count) for law, count in parts], side)


def _value_error(grids: Sum) -> float:
    """How far rounding can have moved a value of the sum."""
    return 2.0**-45 * grids.reach + ALIGNED * grids.parts[0][0].spacing * grids.uses


def _scale_error(grids: Sum, tilt: float) -> float:
    """The factor by which rounding can have scaled the sum's probabilities:
    in its sums, and in what was exponentiated.
    """
    return math.exp(
        min(_MOST_EXPONENT, 2.0**-42 * (1000 + grids.uses) + 2.0**-48 * tilt * grids.reach)
    )


def _payoff(tilt: float) -> float:
    """log of the largest e^(-tilt y) (1 - e^-y) over y > 0."""
    return tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt) if tilt > 0 else 0.0


def _best_tilt(grids: Sum, *, delta: float | None = None, epsilon: float = 0.0) -> float:
    """The tilt of the best Chernoff bound on epsilon at this delta, or on delta at this epsilon.

    Every tilt gives a valid bracket; this one an accurate one.
    """

    def bounds(tilts: Floats) -> Floats:
        chernoff = grids.log_moments(tilts) + tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts)
        return chernoff - tilts * epsilon if delta is None else (chernoff - math.log(delta)) / tilts

    scale = math.sqrt(max(grids.cumulants(0.0).variance, 1e-300))
    a, b = math.log(0.01 / scale), math.log(60 / scale)
    if delta is not None:
        middle = math.log(math.sqrt(-2 * math.log(delta)) / scale)
        a, b = middle - 5, middle + 3
    # cut tails can give the bound more than one valley, so the lowest of some places is where one is closed in on
    for _ in range(2):
        tilts = np.exp(np.linspace(a, b, _SCAN))
        lowest = int(bounds(tilts).argmin())
        a, b = (math.log(tilts[min(max(i, 0), _SCAN - 1)]) for i in (lowest - 1, lowest + 1))
    return float(tilts[lowest])


def _chernoff(parts: Parts, epsilon: float) -> float:
    """A rough delta, to size grids by."""
    guess = 1e-3
    for _ in range(3):
        grids = _grids(parts, guess, _first_spacing(parts, guess, 0.05), from_above)
        tilt = _best_tilt(grids, epsilon=epsilon)
        log_delta = grids.log_moment(tilt) + _payoff(tilt) - tilt * epsilon
        guess = math.exp(max(-650.0, min(math.log(0.3), log_delta - 3)))
    return guess


def _residual(grids: Sum, chance: float) -> float:
    """How far below the grid sum the true sum is at most, but for this chance: certainly, or by Bernstein."""
    certain = sum(count * part.worst for part, count in grids.parts)
    variance = sum(count * part.variance for part, count in grids.parts)
    logarithm = -math.log(chance) if chance > 0 else math.inf
    third = max(part.worst for part, _ in grids.parts) * logarithm / 3
    return min(certain, third + math.sqrt(third**2 + 2 * variance * logarithm))


def _delta(window: Window, epsilon: float, side: int) -> float:
    """The window's E[(1 - e^(epsilon - sum))+], at its upper (+1) or lower (-1) end."""
    over = int(np.searchsorted(window.values, epsilon, side="right"))
    y = window.values[over:] - epsilon
    masses = np.maximum(window.masses[over:] + side * window.error, 0.0)
    scale = window.log_moment - window.tilt * epsilon
    inside = float(
        (masses * np.exp(np.minimum(_MOST_EXPONENT, scale - window.tilt * y)) * -np.expm1(-y)).sum()
    )
    # what lies beyond the window counts; what lies before it only for an epsilon that does, too
    if side > 0:
        stray = window.above + (window.below if epsilon < window.values[0] else 0.0)
    else:  # what was folded in does not
        stray = -(window.above + window.below)
    if stray:
        size = math.exp(min(_MOST_EXPONENT, math.log(abs(stray)) + _payoff(window.tilt) + scale))
        inside += math.copysign(size, stray)
    return max(0.0, inside)


def _solve(window: Window, target: float, side: int) -> float:
    """An epsilon at which the window's delta is certainly at most (side +1) or at least (side -1) the target."""
    if target <= 0:
        return math.inf
    x, tilt = window.values, window.tilt
    middle = float(x[np.argmax(window.masses)])
    # far below, where it is cut off, delta is not small
    weights = np.exp(np.minimum(300.0, -tilt * (x - middle)))
    a = np.cumsum((window.masses * weights)[::-1])[::-1]
    b = np.cumsum((window.masses * weights * np.exp(np.minimum(300.0, middle - x)))[::-1])[::-1]
    wanted = math.exp(max(-700.0, min(700.0, math.log(target) - window.log_moment + tilt * middle)))
    # delta at x[i], but for rounding
    after = np.append(a[1:] - np.exp(np.minimum(600.0, x[:-1] - middle)) * b[1:], 0.0)
    j = int(np.argmax(after <= wanted))
    gap = a[j] - wanted
    epsilon = middle + math.log(gap / b[j]) if gap > 0 and b[j] > 0 else float(x[0])
    least = 2.0**-36 * (1 + abs(epsilon))
    slope = math.exp(min(700.0, epsilon - middle + window.log_moment - tilt * middle)) * float(b[j])
    for _ in range(4):
        off = (_delta(window, epsilon, side) - target) * side
        if off <= 0:
            return epsilon
        epsilon += side * (least + (1.5 * off / slope if slope > 0 else 0.0))
        least *= 32
    return _bisected(window, target, side)


def _bisected(window: Window, target: float, side: int) -> float:
    """The same without a proposal: delta's end, which falls from below its largest value on, is bisected."""
    x = window.values
    peak = int(np.argmax(window.masses))
    good, bad = (float(x[-1]), float(x[0])) if side > 0 else (float(x[0]), float(x[-1]))
    if side < 0:  # far before the bulk nothing is certain from below; start where something is
        starts = x[np.linspace(0, peak, 17).astype(int)].tolist()
        good = max((e for e in starts if _delta(window, e, -1) >= target), default=-math.inf)
    if not math.isfinite(good) or (_delta(window, good, side) - target) * side > 0:
        return side * math.inf
    for _ in range(_BISECTIONS):
        middle = (good + bad) / 2
        if abs(good - bad) <= 2.0**-30 * (abs(good) + abs(bad)) or middle in (good, bad):
            break
        if (_delta(window, middle, side) - target) * side <= 0:
            good = middle
        else:
            bad = middle
    return good
