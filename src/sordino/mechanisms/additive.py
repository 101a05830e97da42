"""Noise added on a lattice: released = step * (value/step + round(Z/step)).

Rounding Z and moving it by an exact lattice point is the same as rounding value + Z, which is post-processing of the
continuous mechanism; so each theorem about value + Z holds word for word for what is released. Noise of more than 2^30
steps is rounded together with the value to multiples of 2^j steps, which is post-processing as well (rounded.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.integers import INT64, narrow, span
from sordino.mechanisms.lattice import Array, Lattice, add
from sordino.mechanisms.observer import drawn
from sordino.mechanisms.rounded import Parts, RoundedNoise, Shape, coarseness
from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, working
from sordino.privacy.exact import Number, decimal_reading, open_unit, readable, show
from sordino.privacy.loss import Loss

__all__ = ["Additive"]

_INT64_SHIFT = 60
Whole: TypeAlias = int | np.integer[Any]


def _positive(name: str, value: Any) -> Fraction:
    exact = decimal_reading(name, value)
    if exact <= 0:
        raise InvalidInput(
            f"{name}={show(value)}", f"{name} must be greater than zero", "Pass a positive number."
        )
    return exact


@dataclass(frozen=True, init=False, repr=False)
class Additive(ABC):
    """What Laplace and Gaussian noise have in common; `scale` and `step` are in the units of the value.

    `calibrated_for` is the sensitivity that `calibrated` was told, for audits; it changes nothing that is released.
    """

    shape: ClassVar[Shape]

    scale: Fraction
    step: Fraction
    calibrated_for: Fraction | None = field(default=None, compare=False)

    def __init__(self, scale: Number, step: Number = 1) -> None:
        object.__setattr__(self, "scale", _positive("scale", scale))
        object.__setattr__(self, "step", _positive("step", step))

    @classmethod
    def _for(cls, sensitivity: Fraction, scale: Fraction, step: Number) -> Self:
        """The mechanism that remembers which sensitivity its scale was computed for."""
        mechanism = cls(scale, step)
        object.__setattr__(mechanism, "calibrated_for", sensitivity)
        return mechanism

    @abstractmethod
    def loss(self, sensitivity: Number) -> Loss:
        """The privacy loss of one release of values that move by at most `sensitivity`."""

    @cached_property
    def _coarse(self) -> int:
        """The j for which results are multiples of 2^j steps; 0 for all ordinary scales."""
        return coarseness(self.scale / self.step)

    @cached_property
    def _noise(self) -> RoundedNoise:
        """In units of 2^j steps."""
        return RoundedNoise(self.shape, self.scale / self.step / 2**self._coarse)

    @cached_property
    def _lattice(self) -> Lattice:
        return Lattice(self.step)

    def release(self, value: Any, *, round_to_lattice: bool = False) -> Any:
        """The value or values with independent noise on each: a number, a list or an array, as it came.

        Integers come back where the step is whole, floats otherwise. An array is int64, or of Python integers if a
        result does not fit.

        Privacy: exactly the guarantee of `loss(sensitivity)`, if neighbouring data move the values by at most
        `sensitivity` on the lattice. With `round_to_lattice` it is the sensitivity of the rounded values, which can be
        larger: see `sordino.rounded_sensitivity`.
        """
        steps = self._lattice.steps(value, round_to_lattice=round_to_lattice)
        return drawn(self, "release", steps, partial(self._noisy, steps))

    def steps(self, source: Bits) -> int:
        """The noise of one release, in steps: for mechanisms that add it and do not show the sum."""
        fine = RoundedNoise(self.shape, self.scale / self.step) if self._coarse else self._noise
        return fine.draw_one(source)

    def _noisy(self, steps: int | list[int] | Array, source: Bits) -> Any:
        if self._coarse:
            return self._lattice.values(self._coarsely(steps, source))
        if isinstance(steps, int):
            return self._lattice.values(steps + self.steps(source))
        count = len(steps) if isinstance(steps, list) else steps.size
        return self._lattice.values(add(steps, self._noise.draw(count, source)))

    def _coarsely(self, steps: int | list[int] | Array, source: Bits) -> int | list[int] | Array:
        """round((steps + noise)/2^j) * 2^j, exactly: of k = 2^j q + r it is 2^j (q + round(noise/2^j + r/2^j))."""
        j = self._coarse
        if isinstance(steps, int):
            return ((steps >> j) + self._noise.draw_one(source, Fraction(steps % 2**j, 2**j))) << j
        many = narrow(steps) if isinstance(steps, list) else steps
        many = many.astype(object) if j > _INT64_SHIFT else many
        noise = self._noise.draw(many.size, source, Parts((many & (2**j - 1)).ravel(), j))
        whole = np.asarray(add(many >> j, noise))
        if whole.dtype == object or span(whole) << j >= INT64:
            whole = whole.astype(object)
        found = whole << j
        return found.tolist() if isinstance(steps, list) else found

    def interval(self, confidence: Number = 0.95) -> int | float:
        """The half-width of the noise: |released - value| is at most this with at least that probability.

        It is the smallest multiple of the step for which this is so; above 2^30 steps, where results are rounded to
        multiples of more, larger by less than a thousand-millionth.
        """
        alpha = 1 - open_unit("confidence", confidence).upper
        size = 128
        while True:
            with working(size):
                magnitude = ball(self.scale / self.step) * self.shape.magnitude_ball(ball(alpha))
                steps = (magnitude + ball(Fraction(2**self._coarse, 2))).floor().unique_fmpz()
            if steps is not None:
                half_width: int | float = self._lattice.values(int(steps))
                return half_width
            size *= 2

    def pmf(self, k: Whole | Array | list[int], value: Whole = 0) -> Any:
        """P[the released integer is k], in steps, when the true one is `value`; to the last bit of a float."""
        return self._law(
            k,
            value,
            lambda k, value: (
                self._noise.pmf_ball(self._offset(k, value)) if self._on(k) else arb(0)
            ),
        )

    def cdf(self, k: Whole | Array | list[int], value: Whole = 0) -> Any:
        """P[the released integer is at most k], in steps, when the true one is `value`."""
        return self._law(
            k, value, lambda k, value: self._noise.tail_ball(-self._offset(k, value) - 1)
        )

    def _on(self, k: int) -> bool:
        """Whether a number of steps can be released."""
        return not k % (1 << self._coarse)

    def _offset(self, k: int, value: int) -> Fraction:
        """How far the last number up to k that can be released is from the value, in units of the noise."""
        return (k >> self._coarse) - Fraction(value, 2**self._coarse)

    def _law(self, k: Any, value: Whole, probability: Any) -> Any:
        if isinstance(k, list | np.ndarray):
            return np.array(
                [self._law(j, value, probability) for j in np.asarray(k, object).ravel()]
            ).reshape(np.shape(k))
        released, true = _whole("k", k), _whole("value", value)
        law: arb = certified(lambda: probability(released, true))
        return float(law.mid())

    def to_json(self) -> str:
        """The exact stored form."""
        return json_form.dump(
            type(self).__name__.lower(), 1, {"scale": self.scale, "step": self.step}
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The mechanism of stored fields."""
        return cls(json_form.rational(fields, "scale"), json_form.rational(fields, "step"))

    def __repr__(self) -> str:
        step = "" if self.step == 1 else f", step={readable(self.step)}"
        return f"{type(self).__name__}(scale={readable(self.scale)}{step})"


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        hint = "Divide by the step first."
        raise InvalidInput(f"{name}={show(value)}", f"{name} must be a whole number of steps", hint)
    return int(value)
