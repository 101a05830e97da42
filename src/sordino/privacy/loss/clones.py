"""How far the two laws of a shuffled collection can be apart: the law of Theta = |P - Q|/(P + Q) on a grid, from above.

Theorem 3 of local/shuffled.md: the exact weights that leave here belong to a pair that reveals at least as much as the
shuffled reports do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sordino.privacy.loss.law import Floats

__all__ = ["Mixture", "mixture", "rounded_up"]

_DEVIATIONS = 14.5
_OUTSIDE = 2.0**-150
"""What a window of this many deviations misses on one side: e^(-14.5^2/2), rounded up."""

_BLOCK = 2.0**-12
"""Numbers of clones that differ by no more than this share count as the least of them."""

_STEPS = 32
"""Grid steps in one deviation of Theta."""
_LEAST_NODES = 512
_FACTOR_STEP = 0.02
_MOST_FACTORS = 64
_SPLIT = 2.0**-30
_UNIT = 2**200


@dataclass(frozen=True)
class Mixture:
    """Binary responses of different strengths: with probability `weights[i]` one whose
    total variation is `thetas[i]`.
    """

    thetas: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]


@dataclass(frozen=True)
class _Window:
    """Probabilities of the whole numbers from `first` on, scaled to 1; at most `_OUTSIDE` was left out on each side."""

    first: int
    masses: Floats

    @property
    def values(self) -> Floats:
        return self.first + np.arange(len(self.masses), dtype=np.float64)


def mixture(persons: int, odds: Fraction, clone: Fraction, rest: Fraction) -> Mixture:
    """The law of Theta for everybody's reports, shuffled."""
    top = (odds - 1) / (odds + 1)
    # the one who differs is one of the two clones' kinds with this probability
    own = clone * (odds + 1)
    numbers = _clones(persons - 1, 2 * clone, own)
    mean = max(1.0, float(numbers.masses @ numbers.values))
    thetas = _nodes(top, float(odds - 1) * math.sqrt(mean) / (2 * persons))
    weights = np.zeros(len(thetas))
    size = len(numbers.masses)
    if numbers.first > 0:
        weights[-1] += _OUTSIDE
    for low, high, chance in _blocks(numbers):
        if low == 0:
            weights[0] += chance
            continue
        walk = _walk(low)
        factors, shares, used = _factors(persons - high, high, odds, clone, rest)
        size = max(size, used, len(walk.masses))
        ratio = walk.values * 2 + low % 2
        theta = np.multiply.outer(float(odds - 1) / low * factors, ratio).ravel()
        masses = np.multiply.outer(chance * shares, walk.masses).ravel()
        _split(weights, thetas, theta, masses)
        weights[-1] += 3 * _OUTSIDE * chance
    # every probability came from at most `size` steps of a recurrence; see shuffled.md for the bound
    enlarged = [Fraction(x) for x in (weights * (1 + 2.0**-26 + size * 2.0**-42)).tolist()]
    return rounded_up([*map(Fraction, thetas[:-1].tolist()), top], enlarged)


def _binomial(count: int, chance: Fraction) -> _Window:
    """Bernstein's inequality gives the window, a recurrence from the mode the probabilities, their sum the scale."""
    mean = count * chance
    far = _DEVIATIONS * math.sqrt(mean * (1 - chance)) + _DEVIATIONS**2 / 3 + 1
    first, last = (
        max(0, math.floor(mean - Fraction(far))),
        min(count, math.ceil(mean + Fraction(far))),
    )
    mode = min(max(math.floor((count + 1) * chance), first), last)
    k = np.arange(first, last, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = (
            np.log((count - k) / (k + 1) * float(chance / (1 - chance)))
            if chance < 1
            else np.zeros(0)
        )
    up, down = np.cumsum(steps[mode - first :]), -np.cumsum(steps[: mode - first][::-1])[::-1]
    masses = np.exp(np.concatenate([down, [0.0], up]))
    return _Window(first, masses / masses.sum())


def _clones(others: int, chance: Fraction, own: Fraction) -> _Window:
    """How many reports are of the two kinds that matter, the one who differs included with probability `own`."""
    base = _binomial(others, chance)
    masses = np.zeros(len(base.masses) + 1)
    masses[:-1] += float(1 - own) * base.masses
    masses[1:] += float(own) * base.masses
    return _Window(base.first, masses)


def _blocks(numbers: _Window) -> Iterator[tuple[int, int, float]]:
    """Neighbouring numbers taken together: the least, the largest, and their probability."""
    start, end = 0, len(numbers.masses)
    while start < end:
        low = numbers.first + start
        stop = min(end, start + 1 + int(low * _BLOCK))
        yield low, numbers.first + stop - 1, float(numbers.masses[start:stop].sum())
        start = stop


def _walk(steps: int) -> _Window:
    """The distance from the start after this many fair steps to either side: 2 i + (steps mod 2), by i."""
    odd = steps % 2
    last = min(steps // 2, math.ceil(_DEVIATIONS * math.sqrt(steps) / 2))
    heads = (steps + odd) // 2 + np.arange(last, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((steps - heads) / (heads + 1)))])
    masses = np.exp(logs)
    masses[0] /= 1 if odd else 2  # both sides meet at 0
    return _Window(0, masses / masses.sum())


def _factors(
    others: int, clones: int, odds: Fraction, clone: Fraction, rest: Fraction
) -> tuple[Floats, Floats, int]:
    """clones/D of Theta = (odds - 1)|S|/D: a few values, a split of all that keeps the mean; and the window's size."""
    weakest = 1 / float(odds + 1)
    if rest == 0:
        return np.array([weakest]), np.ones(1), 1
    kept = _binomial(others, rest / (1 - 2 * clone))
    sizes = float(odds + 1) + float(2 * (1 - clone * (odds + 1)) / rest) / clones * kept.values
    values, masses = 1 / sizes, kept.masses * sizes
    masses /= masses.sum()
    low, high = float(values[-1]), float(values[0])
    count = 1 + min(_MOST_FACTORS, math.ceil((high / low - 1) / _FACTOR_STEP))
    if len(values) <= _MOST_FACTORS or count < 2:
        return np.append(values, weakest), np.append(masses, _OUTSIDE), len(masses)
    nodes, shares = np.linspace(low, high, count), np.zeros(count)
    _split(shares, nodes, values, masses)
    return np.append(nodes, weakest), np.append(shares, _OUTSIDE), len(kept.masses)


def _nodes(top: Fraction, deviation: float) -> Floats:
    """A grid for Theta: even steps near 0, where nearly all of it is, and wider ones up to its largest value."""
    wide = 8 * min(float(top), deviation)
    end = math.asinh(float(top) / wide)
    count = max(_LEAST_NODES, math.ceil(8 * _STEPS * end))
    nodes: Floats = wide * np.sinh(end / count * np.arange(count + 1))
    nodes[-1] = float(top)
    return nodes


def _split(weights: Floats, nodes: Floats, values: Floats, masses: Floats) -> None:
    """Share each mass between its two neighbours on the grid so that the mean stays, or rises by a hair."""
    at = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
    up = np.clip((values - nodes[at]) / (nodes[at + 1] - nodes[at]) + _SPLIT, 0.0, 1.0)
    weights[:-1] += np.bincount(at, masses * (1 - up), len(nodes) - 1)
    weights[1:] += np.bincount(at, masses * up, len(nodes) - 1)


def rounded_up(thetas: Sequence[Fraction], weights: Sequence[Fraction]) -> Mixture:
    """Weights rounded up from the largest theta on, until they make one: what is missing is taken from the smallest."""
    left, exact = _UNIT, []
    for weight in reversed(weights):
        taken = min(left, math.ceil(weight * _UNIT))
        exact.append(Fraction(taken, _UNIT))
        left -= taken
    exact[-1] += Fraction(left, _UNIT)
    return Mixture(tuple(thetas), tuple(exact[::-1]))
