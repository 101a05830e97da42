"""Exact noise that is correlated over steps: what one step adds, the next ones take back in part.

Theorem. All steps together are as private as one Gaussian mechanism for each time that a unit takes part, if its times
are at least `bands` steps apart. Proof: correlated_noise.md.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.gradient_noise import CLIP_STEPS, GradientNoise
from sordino.learn.stream import coefficients
from sordino.learn.torch_extra import torch
from sordino.mechanisms.observer import drawn
from sordino.privacy.exact import four_digits

__all__ = ["CorrelatedNoise", "Shifted", "column"]

_BITS = 12
# clipping norms of noise, so that nothing leaves int64
_SMALLEST, _LARGEST = (
    Fraction(1, 32),
    Fraction(2**11),
)


def column(bands: int) -> list[int]:
    """The first column of the matrix C, in units of 2^-12: that of a stream, cut off."""
    return [weight >> (24 - _BITS) for weight in coefficients(bands, bands)]


@dataclass(frozen=True, eq=False)
class Shifted:
    """What noise is added to: whole * 2^bits + part in each coordinate;
    a unit is 2^-12 steps of the gradients' lattice.
    """

    whole: Any
    part: Any
    bits: int

    def exact(self) -> list[int]:
        """As Python's integers."""
        pairs = zip(self.whole.tolist(), self.part.tolist(), strict=True)
        return [(whole << self.bits) + part for whole, part in pairs]


class CorrelatedNoise:
    """Releases sums of clipped gradients step by step; `sigma` is its noise in lengths of a column of C, times the
    norm.

    What it remembers is secret: the noise of the last `bands` - 1 steps.

    Privacy: (1/sigma)-Gaussian-private for each time that a unit takes part, if these are at least `bands` steps apart.
    """

    def __init__(self, sigma: Fraction, bands: int) -> None:
        self.weights = column(bands)
        square = sum(weight * weight for weight in self.weights)
        length = math.isqrt(square - 1) + 1  # of a column, rounded up
        self.size = sigma * length / 2**_BITS
        """Its standard deviation in clipping norms, before it is correlated."""
        if not _SMALLEST <= self.size <= _LARGEST:
            rule = f"correlated noise is from 1/32 to 2048 clipping norms, and this run needs {four_digits(self.size)}"
            raise InvalidInput(f"bands={bands}", rule, "Pass bands=1, or another epsilon.")
        reach = Fraction(length * CLIP_STEPS)
        self.noise = GradientNoise._for(reach, sigma * reach, 1)
        # by how much each step was off, the newest first
        self._past: deque[Any] = deque(maxlen=bands - 1)
        self._step = 0

    def release(self, sums: Any, step: int) -> Any:
        """The sums of this step with noise, as whole multiples of a power of two of the lattice's steps."""
        self._skip_to(step)
        shifted = self._shifted(sums)
        noisy = drawn(self.noise, "release", shifted, lambda _: self._noisy(shifted))
        self._past.appendleft(noisy - sums)
        self._step = step
        return noisy

    def _skip_to(self, step: int) -> None:
        """Steps that were begun and lost: nothing of them is taken back."""
        for _ in range(min(step - self._step - 1, len(self.weights) - 1)):
            self._past.appendleft(None)
        self._step = step - 1

    @property
    def _fine(self) -> int:
        """The j for which releases are multiples of 2^j steps of the gradients' lattice."""
        return self.noise.coarse_bits - _BITS

    def _shifted(self, sums: Any) -> Shifted:
        """2^12 (sums - W), where W is what earlier errors still weigh; in two parts, none of which leaves int64."""
        j = self._fine
        mask = 2**j - 1
        high, low = (sums >> j) << _BITS, (sums & mask) << _BITS
        for weight, off in zip(self.weights[1:], self._past, strict=False):
            if off is not None:
                high = high.sub_(off >> j, alpha=weight)
                low = low.sub_(off & mask, alpha=weight)
        high += low >> j
        return Shifted(high >> _BITS, ((high & (2**_BITS - 1)) << j) + (low & mask), j + _BITS)

    def _noisy(self, shifted: Shifted) -> Any:
        return (shifted.whole << self._fine) + (self.noise.noisy_tensor(shifted.part) >> _BITS)

    def state(self, like: Any) -> dict[str, Any]:
        """What is remembered, for a checkpoint."""
        rows = [torch.zeros_like(like) if off is None else off for off in self._past]
        return {
            "step": self._step,
            "off": torch.stack(rows).cpu() if rows else torch.zeros(0, dtype=torch.int64),
        }

    def restore(self, state: dict[str, Any], like: Any) -> None:
        """Go on from what was remembered; raises ValueError if it is of another run."""
        off = state["off"]
        if (
            len(off) > len(self.weights) - 1
            or off.dtype != torch.int64
            or off.shape[1:] not in {(), like.shape}
        ):
            raise ValueError("the noise of another model")
        self._past.clear()
        self._past.extend(row.to(like.device) for row in off)
        self._step = int(state["step"])
