"""Normal noise with a scale of its own for each number: what a workload's contrasts are released with.

Theorem. Adding independent N(0, s_j^2) to whole numbers of which neighbours differ by d_j is mu-Gaussian-private with
mu^2 = sum of (d_j/s_j)^2, and so is its rounding. Proof in scaled_gaussian.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.integers import fits_int64, narrow
from sordino.mechanisms.inverse_normal import half_normal
from sordino.mechanisms.lattice import add
from sordino.mechanisms.observer import drawn
from sordino.mechanisms.rounded import DOUBT, FLOOR, NORMAL, Parts, RoundedNoise

__all__ = ["ScaledGaussian"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[Any]

_SLACK = 2.0**-50
_FINE = 30
_DIGITS = 300
_SMALLEST, _LARGEST = 2.0**-20, 2.0**500


@dataclass(frozen=True, eq=False, repr=False)
class ScaledGaussian:
    """Independent Normal noise on whole numbers; the standard deviation of each is the float in `scales`, exactly.

    `declared` is the mu^2 that whoever chose the scales promises, for audits; it changes nothing that is released.

    Example:
        >>> ScaledGaussian(np.array([1e-6, 1e-6])).release(np.array([3, -4]))
        array([ 3, -4])
    """

    scales: Floats
    declared: Fraction | None = None

    def __post_init__(self) -> None:
        scales = np.asarray(self.scales, np.float64).ravel()
        if not (
            np.isfinite(scales).all() and (scales >= _SMALLEST).all() and (scales <= _LARGEST).all()
        ):
            rule = "standard deviations lie between 2^-20 and 2^500 steps"
            raise InvalidInput(
                "scales", rule, "Choose a less extreme epsilon, or less extreme weights."
            )
        scales.flags.writeable = False
        object.__setattr__(self, "scales", scales)

    def release(self, values: Whole) -> Whole:
        """The whole numbers with noise, as int64, or as Python integers where one does not fit.

        A scale above 2^30 rounds value and noise together to multiples of 2^j (rounded.md), which is post-processing.
        Privacy: sum of (d_j/s_j)^2 where neighbours differ by d_j.
        """
        steps = np.asarray(values).ravel()
        if steps.shape != self.scales.shape or steps.dtype.kind not in "iO":
            raise InvalidInput(
                f"{steps.size} values",
                f"there are {self.scales.size} scales",
                "Pass a whole number for each.",
            )
        return drawn(self, "release", steps, partial(self._noisy, steps))

    def mu_squared(self, apart: Whole) -> Fraction:
        """What the release costs where neighbours differ by these whole numbers, each part rounded up to 2^-300."""
        total = 0
        for i in np.flatnonzero(apart).tolist():
            scale = Fraction(float(self.scales[i]))
            total += -(
                -(int(apart[i]) ** 2 * scale.denominator**2 << _DIGITS) // scale.numerator**2
            )
        return Fraction(total, 2**_DIGITS)

    def _noisy(self, steps: Whole, source: Bits) -> Whole:
        coarse = np.maximum(np.frexp(self.scales)[1] - _FINE, 0)
        if not coarse.any():
            return np.asarray(add(steps, _rounded(self.scales, source)))
        found = np.empty(steps.shape, object)
        for j in np.unique(coarse).tolist():
            here = coarse == j
            own = steps[here].astype(object)
            parts = Parts(own & (2**j - 1), j) if j else None
            found[here] = (
                (own >> j) + _rounded(self.scales[here] * 2.0**-j, source, parts).astype(object)
            ) << j
        return narrow(found.tolist())

    def __repr__(self) -> str:
        return f"ScaledGaussian({self.scales.size} scales)"


def _rounded(scales: Floats, source: Bits, parts: Parts | None = None) -> Whole:
    """One draw of round(scale * Z + part) for each scale, all at most 2^30: by the two paths of `RoundedNoise`.

    Floats decide where the whole interval of the uniform rounds to one number; ball arithmetic the others.
    """
    out = np.empty(scales.size, np.int64)
    large: dict[int, int] = {}
    room = np.empty((3, min(CHUNK, scales.size)))
    for start in range(0, scales.size, CHUNK):
        block = slice(start, min(start + CHUNK, scales.size))
        words = source.words(block.stop - start)
        own = None if parts is None else parts.floats[block]
        doubtful = _decided(words, scales[block], out[block], room[:, : words.size], own)
        for i in doubtful.tolist():
            exact = RoundedNoise(NORMAL, Fraction(float(scales[start + i])))
            value = exact._refine(
                int(words[i]), source, Fraction(0) if parts is None else parts.exact(start + i)
            )
            if fits_int64(value):
                out[start + i] = value
            else:
                large[start + i] = value
    if not large:
        return out
    wide = out.astype(object)
    wide[list(large)] = list(large.values())
    return wide


def _decided(
    words: npt.NDArray[np.int64],
    scales: Floats,
    out: npt.NDArray[np.int64],
    room: Floats,
    parts: Floats | None,
) -> npt.NDArray[np.intp]:
    """Write what floats can decide, and return the places of what they cannot (rounded.md, Lemma 2, for each scale)."""
    v, top, bottom = room
    np.abs(words.astype(np.float64), out=v)
    v *= 2.0**-63
    below = v < FLOOR
    np.maximum(v, FLOOR, out=v)
    np.log(v, out=v)
    np.negative(v, out=v)
    y = half_normal(v, top, bottom)
    y *= scales
    np.copysign(y, words, out=y)
    if parts is not None:
        y += parts
    nearest = np.rint(y, out=bottom)
    y -= nearest
    np.abs(y, out=y)
    doubtful = below | (y > 0.5 - scales * DOUBT - _SLACK)
    np.copyto(out, nearest, casting="unsafe")
    return np.flatnonzero(doubtful)
