"""What one release takes from each meter of a filter, in exact rationals: pure epsilon, mu^2, rho, and a delta."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, TypeAlias

from sordino.errors import InvalidInput
from sordino.privacy.exact import Number, bounds, readable, show

if TYPE_CHECKING:
    from sordino.privacy.loss import Loss

__all__ = ["NOTHING", "Amount", "Amounts", "Charge", "expect_charge"]

Amount: TypeAlias = Fraction | None


@dataclass(frozen=True, repr=False)
class Amounts:
    """One amount for each currency, None where there is none, and a delta."""

    pure: Amount = None
    mu_squared: Amount = None
    rho: Amount = None
    delta: Fraction = Fraction(0)

    @property
    def meters(self) -> tuple[Amount, Amount, Amount]:
        """The amounts of the three currencies."""
        return self.pure, self.mu_squared, self.rho

    def __repr__(self) -> str:
        known = ((field.name, getattr(self, field.name)) for field in fields(Amounts))
        return f"{type(self).__name__}({', '.join(f'{name}={readable(x)}' for name, x in known if x is not None)})"


@dataclass(frozen=True, repr=False)
class Charge(Amounts):
    """What one release costs in every currency, exactly; None where no bound is known.

    It claims: for every pair of neighbours the two laws of the release are mixtures (1 - delta) p + delta r and
    (1 - delta) q + delta s, where p and q are pure-DP, sqrt(mu_squared)-GDP and rho-zCDP, and r and s may be anything.

    Example:
        >>> from sordino import GaussianLoss
        >>> Charge.of(GaussianLoss(Fraction(1, 2)), count=3)
        Charge(mu_squared=0.75, rho=0.375, delta=0)
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name != "delta":
                continue
            read = value if type(value) is Fraction else bounds(field.name, value).upper
            if read.numerator < 0:
                rule = f"a charge's {field.name} must be at least zero"
                raise InvalidInput(f"{field.name}={show(value)}", rule, "Nothing is ever refunded.")
            object.__setattr__(self, field.name, read)

    @classmethod
    def of(cls, loss: Loss, count: int = 1) -> Charge:
        """The charge of `count` releases with this loss: exact where the loss is, else rounded up.

        An outcome that gives the neighbour away is taken out as `delta` if the loss is a `FiniteLoss`; in other losses
        it is refused. Privacy: filters.md, Theorem 5.
        """
        from sordino.accounting.derived_charge import of_loss

        return of_loss(loss) * count

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> Charge:
        """The charge of a release of which only (epsilon, delta)-privacy is known. Privacy: filters.md, Theorem 4."""
        from sordino.accounting.derived_charge import of_guarantee

        return of_guarantee(epsilon, delta)

    def __add__(self, other: Charge) -> Charge:
        expect_charge(other)

        def plus(a: Amount, b: Amount) -> Amount:
            return None if a is None or b is None else a + b

        pure, mu_squared = plus(self.pure, other.pure), plus(self.mu_squared, other.mu_squared)
        return Charge(pure, mu_squared, plus(self.rho, other.rho), self.delta + other.delta)

    def __mul__(self, count: int) -> Charge:
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise InvalidInput(
                f"count={show(count)}", "a count must be a whole number, at least 1", "Pass an int."
            )
        pure, mu_squared, rho = (None if x is None else int(count) * x for x in self.meters)
        return Charge(pure, mu_squared, rho, int(count) * self.delta)

    __rmul__ = __mul__


NOTHING = Charge(Fraction(0), Fraction(0), Fraction(0))
"""The charge of no release at all, from which sums start."""


def expect_charge(charge: object) -> None:
    """Refuse what is not a charge."""
    if not isinstance(charge, Charge):
        raise InvalidInput(
            show(charge), "a filter takes a Charge", "Pass Charge.of(mechanism.loss(sensitivity))."
        )
