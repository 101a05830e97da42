"""The law of a sum of independent grid losses near one place, by tilted fast Fourier transforms with an error bound.

Tilting by e^(tilt x) moves the bulk of the sum to where it is needed, so that a tail of 1e-200 is computed to as many
digits as the middle. Lemma 3 of total.md bounds what rounding, folding and cutting can do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sordino.accounting.grid import OnGrid
from sordino.privacy.loss.law import Floats

__all__ = ["Cumulants", "Sum", "Window"]

_UNIT = 2.0**-53
_DEVIATIONS = 6.0
_SLOPES = np.array([0.2, 0.8, 2.5, 6.0])
_OUTSIDE = 1e-10
_MOST_STEPS = 2.0**21
"""A window gets no more grid points on each side of its middle, however often the sum is elsewhere."""
_MOST_AT_ONCE = 2**18
_FEW = 24


@dataclass(frozen=True)
class Cumulants:
    """Of a tilted sum: the log of what tilting multiplied its mass by, the mean and the variance."""

    log_moment: float
    mean: float
    variance: float


@dataclass(frozen=True)
class Window:
    """The tilted law of a sum on consecutive grid values.

    The tilted probability of `values[i]` is within `error` of `masses[i]`, but for what was folded in from elsewhere:
    at most `above` from beyond the window and `below` from before it. P[sum = x] is the tilted probability times
    exp(log_moment - tilt x).
    """

    values: Floats
    masses: Floats
    tilt: float
    log_moment: float
    error: float
    above: float
    below: float


@dataclass(frozen=True)
class Sum:
    """Independent grid losses of one spacing, each used `count` times."""

    parts: tuple[tuple[OnGrid, int], ...]

    @cached_property
    def _flat(self) -> tuple[Floats, Floats, npt.NDArray[np.intp], Floats]:
        """All log-masses and values in a row, where each part starts, and the counts."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([part.masses for part, _ in self.parts]))
        values = np.concatenate([part.values for part, _ in self.parts])
        starts = np.cumsum([0, *(len(part.masses) for part, _ in self.parts[:-1])])
        return logs, values, starts, np.array([float(count) for _, count in self.parts])

    @property
    def uses(self) -> int:
        """How many losses are added."""
        return sum(count for _, count in self.parts)

    @cached_property
    def reach(self) -> float:
        """No value of the sum is larger in magnitude."""
        return sum(
            count * max(abs(part.origin), abs(float(part.values[-1]))) for part, count in self.parts
        )

    def _tilted(self, tilt: float) -> tuple[Floats, Floats]:
        """Tilted masses, each part's summing to one, and the log of what each was divided by."""
        logs, values, starts, counts = self._flat
        tilted = logs + tilt * values
        if len(counts) == 1:
            highest = tilted.max()
            weights = np.exp(tilted - highest)
            mass = weights.sum()
            return weights / mass, np.array([highest + np.log(mass)])
        sizes = np.diff(np.append(starts, len(values)))
        top = np.maximum.reduceat(tilted, starts)
        masses = np.exp(tilted - np.repeat(top, sizes))
        total = np.add.reduceat(masses, starts)
        return masses / np.repeat(total, sizes), top + np.log(total)

    def log_moment(self, tilt: float) -> float:
        """The log of what tilting multiplies the sum's mass by."""
        logs, values, _, counts = self._flat
        if len(counts) > 1:
            return float(counts @ self._tilted(tilt)[1])
        tilted = logs + tilt * values
        top = float(tilted.max())
        return float(counts[0]) * (top + math.log(float(np.exp(tilted - top).sum())))

    def log_moments(self, tilts: Floats) -> Floats:
        """The same for many tilts: at once if there are few values, which saves more than half of the time."""
        logs, values, _, counts = self._flat
        if len(counts) > 1 or len(tilts) * len(values) > _MOST_AT_ONCE:
            return np.array([self.log_moment(tilt) for tilt in tilts.tolist()])
        tilted = logs + tilts[:, None] * values
        top = tilted.max(axis=1)
        found: Floats = counts[0] * (top + np.log(np.exp(tilted - top[:, None]).sum(axis=1)))
        return found

    def cumulants(self, tilt: float) -> Cumulants:
        """The cumulants of the tilted sum."""
        return self._cumulants(*self._tilted(tilt))

    def _cumulants(self, masses: Floats, logs: Floats) -> Cumulants:
        _, values, starts, counts = self._flat
        if len(counts) == 1:
            mean = float((masses * values).sum())
            variance = float((masses * (values - mean) ** 2).sum())
            return Cumulants(
                float(counts[0] * logs[0]), float(counts[0]) * mean, float(counts[0]) * variance
            )
        means = np.add.reduceat(masses * values, starts)
        sizes = np.diff(np.append(starts, len(values)))
        variances = np.add.reduceat(masses * (values - np.repeat(means, sizes)) ** 2, starts)
        return Cumulants(float(counts @ logs), float(counts @ means), float(counts @ variances))

    def window(self, tilt: float) -> Window:
        """The law of the sum near its tilted mean."""
        spacing = self.parts[0][0].spacing
        masses, logs = self._tilted(tilt)
        at = self._cumulants(masses, logs)
        length = 1 + sum(count * (len(part.masses) - 1) for part, count in self.parts)
        origin = sum(count * part.origin for part, count in self.parts)
        center = min(max((at.mean - origin) / spacing, 0.0), length - 1.0)
        up, above = self._extent(tilt, at, 1.0, (length - 1 - center) * spacing)
        down, below = self._extent(tilt, at, -1.0, center * spacing)
        start = max(0, math.floor(center - down / spacing))
        stop = min(length - 1, math.ceil(center + up / spacing))
        size = _fast_length(stop - start + 1)
        leaves = np.split(masses, self._flat[2][1:])
        circle = np.maximum(
            _circle(
                [(leaf, count) for leaf, (_, count) in zip(leaves, self.parts, strict=True)], size
            ),
            0.0,
        )
        return Window(
            values=origin + spacing * np.arange(start, stop + 1, dtype=np.float64),
            masses=np.roll(circle, -(start % size))[: stop - start + 1],
            tilt=tilt,
            log_moment=at.log_moment,
            error=(self.uses + 4) * (12 * math.log2(size) + 16) * _UNIT,
            above=above,
            below=below,
        )

    def _extent(self, tilt: float, at: Cumulants, side: float, most: float) -> tuple[float, float]:
        """How far from the tilted mean the sum hardly ever gets on one side, and how often it does, by Chernoff."""
        deviation = math.sqrt(max(at.variance, 1e-300))
        widest = _MOST_STEPS * self.parts[0][0].spacing
        reach = min(_DEVIATIONS * deviation, widest)
        if reach >= most:
            return most, 0.0
        slopes = side * _SLOPES / deviation
        excess = (self.log_moments(tilt + slopes) - at.log_moment - slopes * at.mean).tolist()
        while reach < most:
            chance = math.exp(
                min(
                    0.0,
                    min(
                        e - slope * reach
                        for e, slope in zip(excess, np.abs(slopes).tolist(), strict=True)
                    ),
                )
            )
            if chance <= _OUTSIDE or reach == widest:
                return reach, chance
            reach = min(1.25 * reach, widest)
        return most, 0.0


def _circle(leaves: list[tuple[Floats, int]], size: int) -> Floats:
    """The sum modulo `size`: many small leaves are first added in pairs, then all are multiplied as transforms."""
    while len(leaves) > _FEW:
        small = [masses for masses, count in leaves if count == 1 and len(masses) < size]
        if len(small) < 2:
            break
        small.sort(key=len)
        rest = [leaf for leaf in leaves if leaf[1] != 1 or len(leaf[0]) >= size]
        rest += [(_add(a, b), 1) for a, b in zip(small[::2], small[1::2], strict=False)]
        leaves = rest + ([(small[-1], 1)] if len(small) % 2 else [])
    product = np.ones(size // 2 + 1, complex)
    for masses, count in leaves:
        transform = np.fft.rfft(_fold(masses, size))
        product *= transform if count == 1 else transform**count
    return np.fft.irfft(product, size)


def _add(a: Floats, b: Floats) -> Floats:
    length = len(a) + len(b) - 1
    if min(len(a), len(b)) < 32:
        return np.convolve(a, b)
    size = _fast_length(length)
    return np.maximum(np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:length], 0.0)


def _fold(masses: Floats, size: int) -> Floats:
    rows = -(-len(masses) // size)
    folded: Floats = np.pad(masses, (0, rows * size - len(masses))).reshape(rows, size).sum(axis=0)
    return folded


def _fast_length(least: int) -> int:
    """The smallest even 5-smooth length of at least this."""
    best = 1 << max(1, (least - 1).bit_length())
    for five in range(4):
        for three in range(6):
            base = 5**five * 3**three
            if base < best:
                best = min(best, base << max(1, (-(-least // base) - 1).bit_length()))
    return best
