"""The Laplace mechanism.

Theorem. Adding independent Laplace(scale) noise to each coordinate of a function with L1 sensitivity s is
(s/scale)-differentially private. Proof, and the exact loss, in laplace.md.
"""

from __future__ import annotations

from typing import ClassVar, Self

from sordino.mechanisms.additive import Additive
from sordino.mechanisms.rounded import LAPLACE, Shape
from sordino.privacy.exact import Number, positive
from sordino.privacy.loss import LaplaceLoss

__all__ = ["Laplace"]


class Laplace(Additive):
    """Laplace noise of a given scale on a public lattice.

    Privacy: (sensitivity/scale)-differentially private for values within L1 distance `sensitivity`, in any dimension.

    Example:
        >>> m = Laplace.calibrated(sensitivity=1, epsilon=0.5)
        >>> m
        Laplace(scale=2)
        >>> isinstance(m.release(42), int)
        True
        >>> m.interval(0.95)
        6
    """

    shape: ClassVar[Shape] = LAPLACE

    @classmethod
    def calibrated(cls, *, sensitivity: Number, epsilon: Number, step: Number = 1) -> Self:
        """The least noise that is epsilon-differentially private: scale = sensitivity/epsilon, rounded up.

        Privacy: epsilon-differentially private for values within L1 distance `sensitivity`, whether a float is read as
        its binary value or as the decimal that was typed.
        """
        hint = "It is how far one person can move the values, in L1 distance."
        s = positive("sensitivity", sensitivity, hint).upper
        return cls._for(s, s / positive("epsilon", epsilon).lower, step)

    def loss(self, sensitivity: Number) -> LaplaceLoss:
        """The privacy loss of one release of values within L1 distance `sensitivity`."""
        return LaplaceLoss(positive("sensitivity", sensitivity).upper / self.scale)
