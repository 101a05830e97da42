"""How far apart the counts of shuffled binary reports can be: the worst over the others' truths, on a grid, from above.

Theorem 5 of local/shuffled.md: the exact weights that leave here belong to a pair that reveals at least as much as the
count does, whatever the others' truths are, and hardly more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sordino.privacy.loss.clones import Mixture, rounded_up
from sordino.privacy.loss.law import Floats

__all__ = ["count_mixture"]

Complexes = npt.NDArray[np.complex128]

_FAR = 14.5
_NEGLIGIBLE = 2.0**-150
"""What lies this many deviations off by Bernstein's inequality: e^(-14.5^2/2), rounded up."""

_BLOCKS = 512
_ENDS = 32
"""Numbers of others with truth 1 are taken together in about this many blocks; shorter ones near the upper end."""

_STEPS = 32
"""Outcomes evaluated in one deviation of the count, and ratios in one of the loss."""
_LEAST_NODES = 512
_NEAR = 2.0
_WORST_ERROR = 2.0**-20
_CLEAR = 2.0**-12
"""Probabilities that are not known as closely as this are not used: a curve needs no point in particular."""


@dataclass(frozen=True)
class _Others:
    """Blocks of others: `ones[i]` of `sizes[i]` have truth 1, a report is true with `truth` and false with `lie`."""

    sizes: Floats
    ones: Floats
    truth: float
    lie: float

    @property
    def base(self) -> Floats:
        """The whole part of the mean of their reports."""
        return np.floor(self.ones * self.truth + (self.sizes - self.ones) * self.lie)

    @property
    def deviation(self) -> float:
        """Of the count, or of the largest one: it does not depend on the truths."""
        return math.sqrt(float(self.sizes.max()) * self.truth * self.lie)


@dataclass(frozen=True)
class _Count:
    """Of the count B of the others' reports, by outcome k (rows) and block:
    P[B = k - 1], P[B = k], P[B >= k], errors.
    """

    before: Floats
    before_error: Floats
    at: Floats
    at_error: Floats
    tail: Floats
    """Rounded down."""


def count_mixture(persons: int, odds: Fraction) -> Mixture | None:
    """The law of Theta for the count of everybody's binary reports; None where floats would not tell it closely."""
    top = (odds - 1) / (odds + 1)
    if persons == 1:
        return Mixture((Fraction(0), top), (Fraction(0), Fraction(1)))
    others = _blocks(persons - 1, odds)
    offsets = _offsets(others.deviation)
    parts = [_count(others, *part) for part in _tilts(offsets, others.deviation)]
    if None in parts:
        return None
    profiles = _profiles(others, [part for part in parts if part is not None], odds)
    thetas = [Fraction(x) for x in _theta_grid(odds, others.deviation).tolist()]
    # deltas fall, so this raises them
    ratios = np.array([float((1 + x) / (1 - x)) for x in thetas]) * (1 - 2.0**-50)
    worst = np.zeros(len(ratios))
    for gammas, deltas in zip(*profiles, strict=True):
        worst = np.maximum(worst, _interpolated(ratios, gammas, deltas))
    return _of_profile(thetas, [Fraction(x) for x in worst.tolist()], odds)


def _theta_grid(odds: Fraction, deviation: float) -> Floats:
    """Total variations below the largest: even steps of epsilon where nearly all of it is, wider ones far out."""
    longest, top = math.log(odds), float((odds - 1) / (odds + 1))
    wide = 8 * min(longest, top / max(deviation, 0.5))
    end = math.asinh(longest / wide)
    count = max(_LEAST_NODES, math.ceil(8 * _STEPS * end))
    found: Floats = np.unique(np.tanh(wide / 2 * np.sinh(end / count * np.arange(count))))
    return found[found < top * (1 - 2.0**-50)]


def _blocks(others: int, odds: Fraction) -> _Others:
    """Numbers of ones m to m + d are taken together by giving away d of the others, which leaves m ones."""
    sizes, ones, below = [], [], others  # all numbers above `below` are covered
    while below >= 0:
        more = min(below, others // _BLOCKS, (others - below) // _ENDS)
        sizes.append(others - more)
        ones.append(below - more)
        below -= more + 1
    return _Others(
        np.array(sizes, float),
        np.array(ones, float),
        float(odds / (odds + 1)),
        float(1 / (odds + 1)),
    )


def _offsets(deviation: float) -> Floats:
    """Outcomes to look at, counted from the base: all near it, else some in each deviation."""
    far = math.ceil(_FAR * deviation + _FAR**2 / 3) + 4
    return np.concatenate(
        [np.arange(-_NEAR, _NEAR + 1), np.arange(_NEAR + 1, far, max(1, int(deviation / _STEPS)))]
    )


def _tilts(offsets: Floats, deviation: float) -> list[tuple[Floats, int]]:
    """The offsets in groups of one deviation, each with the place that tilting makes the middle."""
    width = math.ceil(deviation)
    groups = np.maximum(offsets, 0) // width
    return [(offsets[groups == g], int(g) * width + width // 2) for g in np.unique(groups)]


def _count(others: _Others, offsets: Floats, middle: int) -> _Count | None:
    """Probabilities by the inverse of a Fourier series on a circle beyond 1, where the tilted mean is the middle."""
    size, ones, base, t, f = others.sizes, others.ones, others.base, others.truth, others.lie
    x = _radius_beyond_one(others, np.minimum(base + middle, size - 0.5))
    # the tilted chances of a report 1
    high, low = (
        t * (1 + x) / (1 + t * x),
        f * (1 + x) / (1 + f * x),
    )
    spread = ones * high * (1 - high) + (size - ones) * low * (1 - low)
    mean = ones * high + (size - ones) * low
    ends = base + offsets[0] - 1, np.minimum(base + offsets[-1], size + 1)
    reach = max(float(np.abs(end - mean).max()) for end in ends)
    points = math.ceil(reach + _FAR * math.sqrt(float(spread.max())) + _FAR**2 / 3) + 2
    last = 1 - (_FAR**2 / 2) / float(spread.min()) if spread.min() > 0 else -1.0
    kept = (
        points // 2
        if last <= -1
        else min(points // 2, math.ceil(math.acos(last) / (2 * math.pi) * points))
    )
    theta: Floats = 2 * math.pi / points * np.arange(kept + 1, dtype=np.float64)[:, None]
    weight = np.full((kept + 1, 1), 2.0 / points)
    weight[0] = 1 / points
    if 2 * kept == points:
        weight[-1] = 1 / points
    center = base + middle
    log_x = np.log1p(x)
    scale = np.exp(ones * np.log1p(t * x) + (size - ones) * np.log1p(f * x) - center * log_x)
    logs = np.asarray(_log_series(high, ones, theta)) + np.asarray(
        _log_series(low, size - ones, theta)
    )
    series = weight * np.exp(logs - 1j * center * theta)
    kernel = (
        (1 + x)
        * np.exp(1j * theta)
        / (x + (1 + x) * (1j * np.sin(theta) - 2 * np.sin(theta / 2) ** 2))
    )
    error = 2.0**-47 * (
        2 * float(size.max()) * (float(theta[-1, 0]) + float(log_x.max())) + points + 512
    )
    if error > _WORST_ERROR:
        return None

    steps = (offsets - middle)[:, None]
    powers = scale * np.exp(-steps * log_x)
    turns = np.exp(-1j * steps * theta.T)
    wrapped = np.exp(-points * log_x)  # what every lower outcome counts in the tail's series
    sums, tails = np.abs(series).sum(axis=0), np.abs(series * kernel).sum(axis=0)
    at = powers * _real_product(turns, series)
    before = powers * (1 + x) * _real_product(turns, series * np.exp(1j * theta))
    tail = powers * (1 - wrapped) * _real_product(turns, series * kernel)
    at_error = powers * (error * sums + 2 * _NEGLIGIBLE)
    tail_error = powers * (error * tails + 2 * points * _NEGLIGIBLE) + wrapped * (1 + error)
    k = base + offsets[:, None]
    inside, inside_before = (k >= 0) & (k <= size), (k >= 1) & (k <= size + 1)
    return _Count(
        np.where(inside_before, np.maximum(before, 0), 0.0), np.where(inside_before, (1 + x) * at_error, 0.0),
        np.where(inside, np.maximum(at, 0), 0.0), np.where(inside, at_error, 0.0),
        np.where(inside, np.maximum(tail - tail_error, 0) / (1 - wrapped) * (1 - error), 0.0),
    )  # fmt: skip


def _real_product(left: Complexes, right: Complexes) -> Floats:
    """The real part of a matrix product, without the threads of a library, which cost more than they save here."""
    real, imaginary = (
        np.einsum("ij,kj->ik", np.ascontiguousarray(a), np.ascontiguousarray(b.T))
        for a, b in ((left.real, right.real), (left.imag, right.imag))
    )
    found: Floats = real - imaginary
    return found


def _radius_beyond_one(others: _Others, mean: Floats) -> Floats:
    """x > 0 such that the circle of radius 1 + x tilts the count to about this mean."""
    odds = others.truth / others.lie
    middle = others.ones * odds + (others.sizes - others.ones) / odds - mean * (odds + 1 / odds)
    root = np.sqrt(middle**2 + 4 * (others.sizes - mean) * mean)
    radius = np.where(
        middle > 0, 2 * mean / (middle + root), (root - middle) / (2 * (others.sizes - mean))
    )
    found: Floats = np.maximum(radius - 1, 1 / (8 * max(1.0, others.deviation)))
    return found


def _log_series(chance: Floats, count: Floats, theta: Floats) -> Complexes:
    """count log(1 - chance + chance e^(i theta)), accurate for small theta."""
    less = 2 * np.sin(theta / 2) ** 2
    real, imaginary = 1 - chance * less, chance * np.sin(theta)
    lost = np.minimum(2 * chance * (1 - chance) * less, 0.5)
    near_zero = np.log(np.maximum(np.hypot(real, imaginary), 2.0**-1000))
    found: Complexes = count * (
        np.where(lost < 0.5, np.log1p(-lost) / 2, near_zero) + 1j * np.arctan2(imaginary, real)
    )
    return found


def _profiles(
    others: _Others, parts: list[_Count], odds: Fraction
) -> tuple[list[Floats], list[Floats]]:
    """For each block points (gamma, delta), rising in gamma, that are not below the curve of H_gamma(P | Q)."""
    before, before_error, at, at_error, tail = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("before", "before_error", "at", "at_error", "tail")
    )
    e, f = float(odds), others.lie
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.maximum(before - before_error, 0) / (at + at_error)
        most = (before + before_error) / np.maximum(at - at_error, 0)
        gammas = np.where(np.isfinite(most), (e * most + 1) / (most + e), e) * (1 + 2.0**-48)
        excess = (e - 1) * (least - 1) / (least + e)
        bulk = (
            f
            * (e - 1)
            * (e + 1)
            * (before + before_error)
            / ((before + before_error) / (at + at_error) + e)
        )
    reached = (
        (at > 0)
        & (before > 0)
        & (gammas >= 1)
        & (before_error <= _CLEAR * before)
        & (at_error <= _CLEAR * at)
    )
    deltas = np.where(
        reached,
        bulk * (1 + 2.0**-46) - np.where(excess > 0, excess * tail, excess) * (1 - 2.0**-46),
        0.0,
    )
    near = (at + at_error)[: int(2 * _NEAR + 1)]  # the mode is less than 1 from the mean
    even = float(odds - 1) * f * near.max(axis=0) * (1 + 2.0**-46)  # delta at gamma = 1
    return (
        [
            np.concatenate([[1.0], g[ok], [e * (1 + 2.0**-48)]])
            for g, ok in zip(gammas.T, reached.T, strict=True)
        ],
        [
            np.concatenate([[x], d[ok], [0.0]])
            for x, d, ok in zip(even, deltas.T, reached.T, strict=True)
        ],
    )


def _interpolated(at: Floats, gammas: Floats, deltas: Floats) -> Floats:
    """A falling convex curve from points that are not below it, from above."""
    gammas, deltas = np.maximum.accumulate(gammas), np.maximum(np.minimum.accumulate(deltas), 0.0)
    right = np.clip(np.searchsorted(gammas, at, side="right"), 1, len(gammas) - 1)
    left = right - 1
    gap = np.maximum(gammas[right] - gammas[left], 5e-324)
    up = np.clip((at - gammas[left]) / gap, 0.0, 1.0)
    down = np.clip((gammas[right] - at) / gap, 0.0, 1.0)
    found: Floats = (deltas[left] * down + deltas[right] * up) * (1 + 2.0**-48)
    return found


def _of_profile(thetas: list[Fraction], deltas: list[Fraction], odds: Fraction) -> Mixture:
    """The mixture whose delta is the largest convex curve that is nowhere above these, on both sides of gamma = 1."""
    above = [((1 + t) / (1 - t), d) for t, d in zip(thetas, deltas, strict=True)] + [
        (odds, Fraction(0))
    ]
    below = [(1 / g, 1 - 1 / g + d / g) for g, d in above[:0:-1]]
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in below + above:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(hull)] + [Fraction(0)]
    kinks = zip(hull[1:], pairwise(slopes), strict=True)
    weights = {x: (after - before) * (x + 1) for (x, _), (before, after) in kinks}
    top = (odds - 1) / (odds + 1)
    return rounded_up(
        [*thetas, top], [Fraction(0), *(weights.get(g, Fraction(0)) for g, _ in above[1:])]
    )
