"""Exact Gaussian noise for sums of clipped gradients.

Theorem. Sums of integer vectors that one unit moves by at most `CLIP_STEPS` in L2, plus N(0, (sigma CLIP_STEPS)^2) on
each coordinate, rounded to multiples of 2^j steps, are exactly (1/sigma)-Gaussian-differentially private. Proof:
step.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.learn.torch_extra import torch
from sordino.mechanisms.gaussian import Gaussian
from sordino.privacy.exact import four_digits

__all__ = ["CLIP_STEPS", "MOST_UNITS", "GradientNoise"]

CLIP_STEPS = 2**33
"""The clipping norm in steps of the lattice: one unit moves the sum by at most this, in L2."""

MOST_UNITS = 2**28
"""So many units can be summed in int64 without overflow, with as much room again for the noise."""

_NOISE_BITS = 8
_LARGEST = 2**19
"""A thousand times this much noise, beside the largest sum, is below 2^63."""


class GradientNoise(Gaussian):
    """Normal noise of `sigma` clipping norms, on a lattice that is coarse beside the noise and fine beside a sum.

    The noise has between 2^7 and 2^8 steps of the coarse lattice: then even float32 decides nearly every draw, and
    rounding adds less than a hundred-thousandth to the variance.

    Privacy: (1/sigma)-Gaussian-private for sums that one unit moves by at most `CLIP_STEPS` in L2.
    """

    @classmethod
    def of(cls, sigma: Fraction) -> GradientNoise:
        """The noise of a multiplier: its standard deviation is sigma clipping norms."""
        if sigma > _LARGEST:
            rule = f"sums and noise fit into 64 bits up to {_LARGEST:,} clipping norms"
            hint = "Pass a larger epsilon or delta: nothing can be learned under so much noise."
            raise InvalidInput(f"noise of {four_digits(sigma)} clipping norms", rule, hint)
        return cls._for(Fraction(CLIP_STEPS), sigma * CLIP_STEPS, 1)

    @cached_property
    def _coarse(self) -> int:
        size = self.scale / self.step
        return max(0, (-(-size.numerator // size.denominator) - 1).bit_length() - _NOISE_BITS)

    @property
    def coarse_bits(self) -> int:
        """Results are multiples of 2^j steps; this is j."""
        return self._coarse

    def noisy(self, sums: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The sums with noise."""
        released: npt.NDArray[np.int64] = self.release(sums)
        return released

    def noisy_tensor(self, sums: Any) -> Any:
        """The flat int64 sums with noise, on the device where they are."""
        if sums.device.type == "cuda":
            from sordino.learn.gpu_noise import GpuNoise

            return GpuNoise(self).noisy(sums)
        return torch.as_tensor(self.noisy(sums.numpy()))
