"""Releases: what leaves a plan, each whole. Its value in SQL, how far one person moves it, the noise for its share of
the price, and how its noisy numbers become estimates.

A release is made without a share; pricing gives it one, and its mechanism follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, Self, TypeAlias

from sordino.accounting.charge import NOTHING, Charge
from sordino.mechanisms.combination import EXACT, Noise
from sordino.mechanisms.exponential import bounded_range
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.key_selection import KeySelection
from sordino.mechanisms.laplace import Laplace
from sordino.plan.beyond import Measure
from sordino.plan.channels import Channel, Column
from sordino.plan.sensitivity import Contribution, Norm, Quota, Sensitivity, bounding
from sordino.plan.statement import Statement
from sordino.privacy.loss import GaussianLoss, LaplaceLoss, Loss
from sordino.query.aggregates.estimates import Chosen, Estimated
from sordino.query.aggregates.partial import Integers, Partial
from sordino.query.tree import Aggregate

__all__ = ["Beyond", "Drawn", "Family", "Keys", "Release", "Share", "Sums"]

Family = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class Share:
    """What one release may spend: an epsilon, of which Gaussian noise is given by mu,
    and a delta for selecting keys.
    """

    family: Family
    epsilon: Fraction
    mu: Fraction
    delta: Fraction


@dataclass(frozen=True, eq=False)
class _Priced:
    """What all releases have: a name within the plan, one person's reach, the weight of a whole row, and a share."""

    name: str
    who: Contribution
    unit: int
    share: Share | None

    def at(self, share: Share) -> Self:
        """The release with its share."""
        return replace(self, share=share)

    @property
    def spent(self) -> Share:
        """The share; a release without one cannot be made."""
        if self.share is None:
            raise RuntimeError(f"release {self.name} has no price")
        return self.share


@dataclass(frozen=True, eq=False)
class Sums(_Priced):
    """Noisy partial sums of each group; those that are no sums over persons have a statement of their own."""

    channel: Channel
    statement: Statement | None = None

    @property
    def partial(self) -> Partial:
        """What is summed, as it suits the noise."""
        return (
            self.channel.partial
            if self.share is None
            else self.channel.partial.suited(self.share.family)
        )

    @property
    def norm(self) -> Norm:
        """That in which persons are bounded: the noise's own."""
        return "l2" if self.share and self.share.family == "gaussian" else "l1"

    @property
    def quota(self) -> Quota:
        """How much of one person counts."""
        return self.who.expect_quota(self.partial.bounding, self.norm)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How far one person moves the vectors of all groups together."""
        return bounding(self.partial, self.who, self.unit, self.norm)

    @property
    def public(self) -> bool:
        """Whether neighbours never differ in it."""
        return self.sensitivity.nothing

    @cached_property
    def mechanism(self) -> Laplace | Gaussian | None:
        """The noise on each number; None where it is public."""
        if self.public:
            return None
        share, reach = self.spent, self.sensitivity
        return (
            Laplace((reach.l1 or 0) / share.epsilon)
            if share.family == "laplace"
            else Gaussian(reach.l2 / share.mu)
        )

    @property
    def noise(self) -> Noise:
        """The same, for intervals."""
        mechanism = self.mechanism
        return EXACT if mechanism is None else Noise(self.spent.family, mechanism.scale)

    @property
    def rows_of_noise(self) -> float:
        """How many rows move the sums as far as the noise does; none where no row moves them."""
        row = self.unit * self.partial.reach.l1
        return float(self.noise.scale) / row if row else 0.0

    @property
    def loss(self) -> Loss | None:
        """What it tells at most about one person; None where it is public."""
        if self.public:
            return None
        return (
            LaplaceLoss(self.spent.epsilon)
            if self.spent.family == "laplace"
            else GaussianLoss(self.spent.mu)
        )

    @property
    def charge(self) -> Charge:
        """What it costs."""
        return NOTHING if self.loss is None else _charge(self.loss)

    @property
    def answers(self) -> Iterable[Aggregate]:
        """The aggregates that it answers."""
        return self.channel.answers

    def estimated(self, aggregate: Aggregate, noisy: Integers, confidence: float) -> Estimated:
        """One aggregate of the noisy vectors, public numbers behind them."""
        return self.partial.estimated(
            self.channel.answers[aggregate], noisy, self.unit, self.noise, confidence
        )

    def error(self, aggregate: Aggregate, confidence: float, rows: float | None) -> float | None:
        """The half-width to expect; None where it depends on data and no number of rows is assumed."""
        return self.partial.error(
            self.channel.answers[aggregate], self.unit, self.noise, confidence, rows
        )


@dataclass(frozen=True, eq=False)
class Drawn(_Priced):
    """Values drawn for each group, from the weights of all values in it, which its own statement finds."""

    column: Column
    statement: Statement
    pieces: int = 1
    """In how many parts the probability to miss is divided: draws have their intervals before arithmetic needs them."""

    @property
    def moved(self) -> int:
        """The most weight that one person moves, in all groups together."""
        return 0 if self.who.public else self.who.persons * self.quota.total * self.unit

    @property
    def quota(self) -> Quota:
        """How much of one person counts."""
        return self.who.expect_quota("scale", "l1")

    @property
    def public(self) -> bool:
        """Whether neighbours never differ in it."""
        return not self.moved

    @property
    def epsilon(self) -> Fraction:
        """What all draws cost together."""
        return Fraction(0) if self.public else self.spent.epsilon

    @property
    def charge(self) -> Charge:
        """What it costs."""
        return NOTHING if self.public else Charge(self.epsilon, *bounded_range(self.epsilon))

    @property
    def answers(self) -> Iterable[Aggregate]:
        """The aggregates that it answers."""
        return self.column.answers

    def estimated(
        self, aggregate: Aggregate, drawn: list[tuple[Any, ...]], _confidence: float
    ) -> Estimated | Chosen:
        """One aggregate of what was drawn, the confidence being part of the draws."""
        return self.column.draws.estimated(aggregate, drawn)

    def confidence(self, asked: Fraction) -> Fraction:
        """That of each interval that is drawn."""
        return 1 - (1 - asked) / self.pieces

    def error(self, _aggregate: Aggregate, _confidence: float, _rows: float | None) -> None:
        """It depends on data."""


@dataclass(frozen=True, eq=False)
class Keys(_Priced):
    """The keys of groups that are not public: shown where enough persons have them."""

    answers: tuple[Aggregate, ...] = ()

    @property
    def l1(self) -> int:
        """The most weight that one person moves, in all groups together."""
        return self.who.persons * self.quota.total * self.unit

    @property
    def quota(self) -> Quota:
        """One person counts once in all groups together, divided among them: key_selection.md tells why."""
        return Quota(1, 1, None, scaled=not self.who.by_row)

    @property
    def linf(self) -> int:
        """The most weight that one person moves in one group."""
        return self.unit

    @property
    def public(self) -> bool:
        """Whether the table protects nobody, so that all keys are shown."""
        return self.who.public

    @cached_property
    def mechanism(self) -> KeySelection | None:
        """The selection; None where all keys are shown."""
        return (
            None
            if self.public
            else _selection(self.spent.epsilon, self.spent.delta, self.l1, self.linf)
        )

    @property
    def charge(self) -> Charge:
        """What it costs."""
        selection = self.mechanism
        return (
            NOTHING if selection is None else Charge.approximate(selection.epsilon, selection.delta)
        )


@dataclass(frozen=True, eq=False)
class Beyond(_Priced):
    """What lies beyond the bounds of persons, over the whole answer: a few noisy numbers."""

    measure: Measure
    answers: tuple[Aggregate, ...] = ()

    @property
    def public(self) -> bool:
        """Never: it is asked of protected tables only."""
        return False

    @property
    def l1(self) -> int:
        """The most that one person moves, in all numbers together."""
        return self.who.persons * self.measure.l1

    @cached_property
    def mechanism(self) -> Laplace:
        """The noise on each number."""
        return Laplace(self.l1 / self.spent.epsilon)

    @property
    def noise(self) -> Noise:
        """The same, for intervals."""
        return Noise("laplace", self.mechanism.scale)

    @property
    def charge(self) -> Charge:
        """What it costs."""
        return _charge(LaplaceLoss(self.spent.epsilon))


Release: TypeAlias = Sums | Drawn | Keys | Beyond


@lru_cache(maxsize=1024)
def _charge(loss: Loss) -> Charge:
    return Charge.of(loss)


@lru_cache(maxsize=1024)
def _selection(epsilon: Fraction, delta: Fraction, l1: int, linf: int) -> KeySelection:
    return KeySelection.calibrated(epsilon=epsilon, delta=delta, l1=l1, linf=linf)
