"""delta(epsilon) of many uses of discrete losses as a short Fourier series, from above and from below.

A slight Gaussian release is added, which makes the law of the sum smooth: the series then ends after some hundred
terms, each a power of a transform of one use. So the work hardly depends on the number of uses. Lemma 5 of total.md
bounds what is left out and what rounding does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sordino.accounting.graded import Discrete
from sordino.privacy.loss.law import Floats

__all__ = ["Spectrum", "Uses", "log_largest_payoff"]

_UNIT = 2.0**-53
_SLOPES = np.array([0.1, 0.2, 0.4, 0.8, 1.5, 2.5, 4.0, 5.5, 7.0, 9.0, 14.0, 30.0])
"""Over the deviation of the sum: the slopes of Chernoff's bound for the window."""
_BOTH = np.concatenate([-_SLOPES, _SLOPES])
_MOST_EXPONENT = 600.0
_MOST_WORK = 2.0**26
"""Terms times values, beyond which no series is made."""

_LONG = 6000
_LESS_SHARP = 2.0
"""A series of more terms gets a Gaussian this many times wider: it then takes more of the accuracy, and less time."""

Complex = npt.NDArray[np.complex128]


class Window(NamedTuple):
    """Tilted masses and means of one use, the tilted sum's log moment,
    mean and deviation, and how far from it it gets.
    """

    masses: Floats
    means: Floats
    log_moment: float
    mean: float
    deviation: float
    down: float
    up: float


class Uses:
    """Discrete losses, each used `count` times, that can be tilted."""

    def __init__(self, parts: Sequence[tuple[Discrete, int]]) -> None:
        self.values = np.concatenate([part.values for part, _ in parts])
        with np.errstate(divide="ignore"):
            self._logs = np.log(np.concatenate([part.masses for part, _ in parts]))
        sizes = [len(part.values) for part, _ in parts]
        self.starts = np.cumsum([0, *sizes[:-1]])
        self._which = np.repeat(np.arange(len(parts)), sizes)
        self.counts = np.array([float(count) for _, count in parts])
        self.uses = sum(count for _, count in parts)
        self.reach = sum(count * float(np.abs(part.values).max()) for part, count in parts)
        self.rounding = sum(count * part.rounding for part, count in parts)

    def log_moments(self, tilts: Floats) -> Floats:
        """The log of what each tilt multiplies the sum's mass by."""
        tilted = np.multiply.outer(tilts, self.values)
        tilted += self._logs
        top = np.maximum.reduceat(tilted, self.starts, axis=1)
        tilted -= top[:, self._which]
        sums = np.add.reduceat(np.exp(tilted, out=tilted), self.starts, axis=1)
        found: Floats = ((np.log(sums) + top) * self.counts).sum(axis=1)
        return found

    def tilted(self, tilt: float) -> tuple[Floats, float]:
        """Tilted masses, those of each part summing to one,
        and the log of what tilting multiplies the sum's mass by.
        """
        tilted = self._logs + tilt * self.values
        top = np.maximum.reduceat(tilted, self.starts)
        masses = np.exp(tilted - top[self._which])
        sums = np.add.reduceat(masses, self.starts)
        return masses / sums[self._which], float(((np.log(sums) + top) * self.counts).sum())

    def moments(self, masses: Floats) -> tuple[Floats, float]:
        """The mean of one use of each part with these masses, and the variance of the sum."""
        means = np.add.reduceat(masses * self.values, self.starts)
        squares = np.add.reduceat(masses * (self.values - means[self._which]) ** 2, self.starts)
        return means, float((self.counts * squares).sum())

    def log_error(self, tilt: float) -> float:
        """How far the logs of the sum's probabilities may be off: from sums, and from what was exponentiated."""
        return 2.0**-42 * (1000 + self.uses) + 2.0**-48 * abs(tilt) * self.reach

    def window(self, tilt: float, outside: float, smooth: float = 0.0) -> Window:
        """Where the tilted sum, with a Gaussian of this deviation, is but for this probability on each side."""
        masses, log_moment = self.tilted(tilt)
        means, variance = self.moments(masses)
        mean, deviation = (
            float((self.counts * means).sum()),
            math.sqrt(max(variance + smooth**2, 1e-300)),
        )
        slopes = _BOTH / deviation
        excess = self.log_moments(tilt + slopes) - log_moment - slopes * mean
        reaches = (excess + slopes**2 * smooth**2 / 2 - math.log(outside)) / np.abs(slopes)
        half = len(slopes) // 2
        down, up = (float(side.min()) * (1 + 2.0**-20) for side in (reaches[:half], reaches[half:]))
        return Window(masses, means, log_moment, mean, deviation, down, up)

    def centred(self, means: Floats) -> list[Floats]:
        """The values of each part, less its mean."""
        return np.split(self.values - means[self._which], self.starts[1:])


@dataclass(frozen=True)
class Spectrum:
    """The tilted law of sum + slight Gaussian release, as the Fourier coefficients of its density on a window.

    Its coefficient at n turns per window, about `reference`, is within `errors[n]` of `coefficients[n]`. Beyond the
    window, which starts `first` below and ends `last` above the reference, it has at most probability `outside` on
    each side. `scale` is log E[e^(tilt (sum + Gaussian))], which rounding can have moved by `scale_error`, and the sum
    by `value_error`; `smooth` is the shift of the Gaussian. All of it counts e^log_ways times.
    """

    reference: float
    first: float
    last: float
    tilt: float
    smooth: float
    scale: float
    scale_error: float
    coefficients: Complex
    errors: Floats
    outside: float
    value_error: float

    @staticmethod
    def of(
        uses: Uses, tilt: float, smooth: float, outside: float, log_ways: float = 0.0
    ) -> Spectrum | None:
        """None if it would take too many terms, or rounding would leave nothing of them."""
        # beyond this many of its scales the Gaussian's transform is as small
        quiet = math.sqrt(-2 * math.log(outside))
        masses, means, log_moment, mean, deviation, down, up = uses.window(tilt, outside, smooth)
        if quiet * (down + up) > _LONG * 2 * math.pi * smooth:
            smooth *= _LESS_SHARP
            masses, means, log_moment, mean, deviation, down, up = uses.window(
                tilt, outside, smooth
            )
        terms = math.ceil(quiet * (down + up) / (2 * math.pi * smooth))
        unsure = 2 * uses.log_error(tilt + _SLOPES[-1] / deviation)
        if not terms * len(uses.values) < _MOST_WORK or unsure > 1:
            return None
        coefficients, errors = _transform(
            uses, masses, means, 2 * math.pi / (down + up), terms, smooth
        )
        square = smooth**2
        return Spectrum(
            reference=mean + (tilt + 0.5) * square,  # tilted, the Gaussian has this mean
            first=down,
            last=up,
            tilt=tilt,
            smooth=smooth,
            scale=log_ways + log_moment + tilt * (tilt + 1) * square / 2,
            scale_error=uses.log_error(tilt),
            coefficients=coefficients,
            errors=errors,
            outside=outside * (1 + 2 * unsure),
            value_error=uses.rounding
            + 2.0**-48 * (float(uses.counts @ np.abs(means)) + (tilt + 0.5) * square),
        )

    @cached_property
    def _series(self) -> tuple[Floats, Complex, Complex, float]:
        """Frequencies, the payoff's transforms without its cut, 1/(tilt + 1 + i frequency), and what is left out."""
        length, n = self.first + self.last, len(self.coefficients)
        frequencies = np.asarray((2 * math.pi / length) * np.arange(n), dtype=np.float64)
        slow = np.asarray(1 / (self.tilt + 1j * frequencies), dtype=np.complex128)
        fast = np.asarray(1 / (self.tilt + 1 + 1j * frequencies), dtype=np.complex128)
        most = 1 / (self.tilt * (self.tilt + 1)) + _density_weight(self.smooth)  # of any transform
        x = float(frequencies[-1]) * self.smooth
        left = math.exp(-(x**2) / 2) / (math.pi * self.smooth * x) * most
        return frequencies, slow, fast, left

    def delta(self, epsilon: float, side: int) -> float:
        """E[(1 - e^(epsilon - sum))+] without the Gaussian, at its upper (+1) or lower (-1) end."""
        place = epsilon - self.reference
        if not -self.first < place < self.last:
            if side < 0:
                return 0.0
            often = 1.0 if place < 0 else self.outside
            return often * math.exp(log_largest_payoff(self.tilt)) * self._scaled(epsilon, 1)
        frequencies, slow, fast, left = self._series
        length, top = self.first + self.last, self.last - place
        cut = np.exp((-self.tilt - 1j * frequencies) * top)
        weights = slow * fast - cut * (slow - math.exp(-top) * fast)
        if side < 0:
            weights = weights - _density_weight(self.smooth)
        terms = weights * self.coefficients * np.exp(-1j * frequencies * place)
        terms[0] /= 2
        size = np.abs(weights)
        roughly = (len(terms) + 64 + 8 * frequencies * (abs(place) + top)) * _UNIT
        wrong = float((size * (self.errors + roughly * np.abs(self.coefficients))).sum())
        inside = 2 / length * float(terms.real.sum())
        inside += side * (2 / length * wrong + left)
        if side < 0:
            inside -= 2 * self.outside * math.exp(log_largest_payoff(self.tilt))
        else:  # what the sum beyond the window adds at most
            near = self.tilt * math.expm1(min(top, 50.0)) < 1
            inside = max(0.0, inside) + self.outside * math.exp(
                log_largest_payoff(self.tilt) if near else -self.tilt * top
            )
        return max(0.0, inside) * self._scaled(epsilon, side)

    def _scaled(self, epsilon: float, side: int) -> float:
        return math.exp(
            min(_MOST_EXPONENT, self.scale + side * self.scale_error - self.tilt * epsilon)
        )


def _density_weight(smooth: float) -> float:
    """The factor kappa of Lemma 5, by the Mills ratio at -smooth/2."""
    mills = math.sqrt(math.pi / 2) * math.exp(smooth**2 / 8) * math.erfc(-smooth / math.sqrt(8))
    return smooth**2 * (1 + smooth / 2 * mills) * (1 + 2.0**-40)


def log_largest_payoff(tilt: float) -> float:
    """The log of the largest e^(-tilt y) (1 - e^-y) over y > 0."""
    return tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def _transform(
    uses: Uses, masses: Floats, means: Floats, turn: float, terms: int, smooth: float
) -> tuple[Complex, Floats]:
    """E[e^(i n turn (sum - mean))] e^(-(n turn smooth)^2/2) for n up to `terms`, and how wrong it may be.

    Frequencies are products of coarse and fine ones; what is summed for one use is e^(..) - 1, which is small.
    """
    fine = math.isqrt(terms) + 1
    coarse = terms // fine + 1
    frequencies = turn * np.arange(coarse * fine)
    logs = -((smooth * frequencies) ** 2) / 2 + 0j
    most = -((smooth * frequencies) ** 2) / 2
    relative = 64 * _UNIT * (1 - most)
    for own, values, count in zip(
        np.split(masses, uses.starts[1:]), uses.centred(means), uses.counts.tolist(), strict=True
    ):
        a = _turned(np.multiply.outer(turn * fine * np.arange(coarse), values))
        b = _turned(np.multiply.outer(turn * np.arange(fine), values))
        weighted = a * own
        by_a, by_b = weighted.sum(axis=1), (b * own).sum(axis=1)
        # no matrix product, whose threads cost more
        both = np.array([(b * row).sum(axis=1) for row in weighted])
        moved = (both + by_a[:, None] + by_b).ravel()
        size_a, size_b = np.abs(weighted).sum(axis=1), (np.abs(b) * own).sum(axis=1)
        size = (size_a[:, None] + size_b + 2 * np.minimum(size_a[:, None], size_b)).ravel()
        far = float((own * np.abs(values)).sum())
        error = _UNIT * ((4 * len(values) + 64) * size + 16 * frequencies * far)
        near = np.abs(moved) < 0.5
        z = 1 + moved
        modulus = np.abs(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_modulus = np.where(
                near,
                np.log1p(2 * moved.real + moved.real**2 + moved.imag**2) / 2,
                np.log(np.maximum(modulus, 1e-300)),
            )
        slack = 16 * _UNIT * (np.abs(moved) + np.abs(log_modulus))
        upper = modulus + error
        logs += count * (log_modulus + 1j * np.arctan2(z.imag, z.real))
        most += count * (
            np.where(near, log_modulus + 2 * error, np.log(np.maximum(upper, 1e-300))) + slack
        )
        relative += count * (error / upper + slack)
    coefficients = np.exp(np.where(logs.real > -_MOST_EXPONENT, logs, -_MOST_EXPONENT))
    errors = np.exp(np.minimum(most, 300.0)) * np.minimum(
        2.0, relative * (1 + relative)
    ) + math.exp(-_MOST_EXPONENT + 1)
    return coefficients, errors


def _turned(angles: Floats) -> Complex:
    """e^(i angle) - 1, to relative accuracy."""
    found = np.empty(angles.shape, complex)
    half = np.sin(angles / 2)
    found.real = -2 * half * half
    found.imag = np.sin(angles)
    return found
