"""The Gaussian mechanism.

Theorem. Adding independent N(0, scale^2) noise to each coordinate of a function with L2 sensitivity s is
(s/scale)-Gaussian-differentially private, and (epsilon, delta)-private exactly where Balle and Wang's formula says so.
Proof in gaussian.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal, Self

from sordino.errors import InvalidInput
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.rounded import NORMAL, Shape
from sordino.privacy.ball import ball, certified, upper
from sordino.privacy.exact import Bounds, Number, open_unit, positive, show
from sordino.privacy.loss import GaussianLoss, largest_mu

__all__ = ["Gaussian"]


class Gaussian(Additive):
    """Normal noise of a given standard deviation on a public lattice.

    Privacy: mu-Gaussian-private with mu = sensitivity/scale for values within L2 distance `sensitivity`, in any
    dimension.

    Example:
        >>> g = Gaussian.calibrated(sensitivity=1, epsilon=1, delta=1e-6)
        >>> round(float(g.scale), 6)
        4.224679
        >>> g.loss(sensitivity=1).delta(epsilon=1) <= 1e-6
        True
    """

    shape: ClassVar[Shape] = NORMAL

    @classmethod
    def calibrated(
        cls,
        *,
        sensitivity: Number,
        epsilon: Number,
        delta: Number,
        step: Number = 1,
        method: Literal["exact", "classic"] = "exact",
    ) -> Self:
        """The least noise that is (epsilon, delta)-differentially private, for any epsilon > 0.

        `method="classic"` is the lecture notes' scale^2 = 2 s^2 log(2/delta)/epsilon^2, proven for epsilon <= 1 and
        delta <= 1/2 only; it is there for comparison and always adds more noise.

        Privacy: (epsilon, delta)-differentially private for values within L2 distance `sensitivity`; the scale is
        rounded up until ball arithmetic certifies it. Source: Balle and Wang (2018), Theorem 8.
        """
        s = positive(
            "sensitivity",
            sensitivity,
            "It is how far one person can move the values, in L2 distance.",
        )
        e = positive("epsilon", epsilon)
        d = open_unit(
            "delta", delta, "Pass a small probability such as 1e-6; for delta=0 use Laplace."
        )
        if method == "exact":
            return cls._for(s.upper, s.upper / largest_mu(e.lower, d.lower), step)
        if method == "classic":
            return cls._for(s.upper, s.upper * _classic_ratio(e, d), step)
        hint = 'Pass "exact" (the least noise) or "classic" (the lecture notes).'
        raise InvalidInput(f"method={show(method)}", "there are two methods of calibration", hint)

    def loss(self, sensitivity: Number) -> GaussianLoss:
        """The privacy loss of one release of values within L2 distance `sensitivity`."""
        return GaussianLoss(positive("sensitivity", sensitivity).upper / self.scale)


def _classic_ratio(epsilon: Bounds, delta: Bounds) -> Fraction:
    """sqrt(2 log(2/delta))/epsilon, rounded up."""
    hint = 'Use method="exact", which holds for every epsilon and delta and adds less noise.'
    if epsilon.upper > 1:
        raise InvalidInput(
            f"epsilon={float(epsilon.upper)!r}", "the classic proof ends at epsilon = 1", hint
        )
    if delta.upper > Fraction(1, 2):
        raise InvalidInput(
            f"delta={float(delta.upper)!r}", "the classic proof ends at delta = 1/2", hint
        )
    return (
        Fraction(upper(certified(lambda: (2 * ball(2 / delta.lower).log()).sqrt()))) / epsilon.lower
    )
