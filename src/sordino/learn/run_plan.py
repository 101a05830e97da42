"""What a training run will do and what it costs, made together so that they cannot disagree. No data are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from sordino.accounting.calibrate import smallest_scale
from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.privacy.exact import (
    Number,
    decimal_reading,
    four_digits,
    open_unit,
    positive,
    readable,
    show,
)
from sordino.privacy.loss import GaussianLoss, Loss, SubsampledLoss
from sordino.privacy.neighbors import Neighbors

__all__ = ["RunPlan"]

_MOST_STEPS = 10**8
_MOST_BANDS = 4096
_UNITS = {Neighbors.ADD_REMOVE: "adding or removing", Neighbors.REPLACE: "replacing"}


@dataclass(frozen=True)
class RunPlan:
    """Noisy steps on Poisson samples: how many, at which rate, with which noise (`sigma`, in clipping norms).

    With `bands` the noise is correlated over so many steps, in which a unit takes part once at most; sigma is then in
    the length by which one unit moves them all (correlated_noise.md).

    Example:
        >>> plan = RunPlan.within(epsilon=2, delta=1e-6, rate=Fraction(1, 100), steps=100)
        >>> print(plan)
        100 steps at rate 0.01: sigma 0.8019, epsilon 2 at delta 1e-06
    """

    steps: int
    rate: Fraction
    sigma: Fraction
    delta: Fraction
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    unit: str = "example"
    bands: int = 1

    def __post_init__(self) -> None:
        if (
            isinstance(self.steps, bool)
            or not isinstance(self.steps, int)
            or not 1 <= self.steps <= _MOST_STEPS
        ):
            rule = f"a run takes at least one step, and at most {_MOST_STEPS:,}"
            raise InvalidInput(f"steps={show(self.steps)}", rule, "Pass steps=1_000 or the like.")
        rate, sigma = decimal_reading("rate", self.rate), decimal_reading("sigma", self.sigma)
        if not 0 < rate <= 1:
            rule = "the rate is the chance of a unit to be in a batch, above 0 and at most 1"
            raise InvalidInput(f"rate={show(self.rate)}", rule, "Pass batch_size / size, or less.")
        if sigma <= 0:
            rule = "without noise there is no privacy"
            raise InvalidInput(
                f"sigma={show(self.sigma)}",
                rule,
                "Leave sigma out: it is found from epsilon and delta.",
            )
        if (
            isinstance(self.bands, bool)
            or not isinstance(self.bands, int)
            or not 1 <= self.bands <= min(self.steps, _MOST_BANDS)
        ):
            rule = f"noise can be correlated over 1 to {min(self.steps, _MOST_BANDS)} steps of this run"
            raise InvalidInput(
                f"bands={show(self.bands)}", rule, "Pass bands=8 or the like, or leave it out."
            )
        if rate * self.bands > 1:
            most = math.floor(1 / rate)
            rule = f"a unit is in at most one of these steps, so that {most} is the most at rate {readable(rate)}"
            raise InvalidInput(f"bands={self.bands}", rule, "Pass fewer bands, or smaller batches.")
        for name, value in (
            ("rate", rate),
            ("sigma", sigma),
            ("delta", open_unit("delta", self.delta).lower),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "neighbors", Neighbors(self.neighbors))

    @staticmethod
    def within(
        *,
        epsilon: Number,
        delta: Number,
        rate: Number,
        steps: int,
        neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
        unit: str = "example",
        bands: int = 1,
    ) -> RunPlan:
        """The plan with the least noise that is (epsilon, delta)-differentially private, certified."""
        positive("epsilon", epsilon)
        first = RunPlan(steps, decimal_reading("rate", rate), Fraction(1), open_unit("delta", delta).lower,
                        Neighbors(neighbors), unit, bands)  # fmt: skip
        ever = (
            1.0
            if first.chance == 1
            else -math.expm1(first.turns * math.log1p(-float(first.chance)))
        )
        if ever <= first.delta * (1 + Fraction(1, 10**6)):
            rule = f"a unit is in any batch with a chance of {ever:.3g} only, so that no noise at all would keep the promise"
            raise InvalidInput(
                f"delta={show(delta)}", rule, "Pass a delta far below one over the number of units."
            )
        return first.with_sigma(
            smallest_scale(lambda sigma: first.with_sigma(sigma).loss, epsilon=epsilon, delta=delta)
        )

    def with_sigma(self, sigma: Fraction) -> RunPlan:
        """The same run with other noise."""
        return replace(self, sigma=sigma)

    @property
    def chance(self) -> Fraction:
        """The chance of a unit to take part in a step when it is its turn."""
        return self.rate * self.bands

    @property
    def turns(self) -> int:
        """How often it can be a unit's turn."""
        return -(-self.steps // self.bands)

    @cached_property
    def loss(self) -> Loss:
        """The privacy loss of the run: what step.md and correlated_noise.md prove of a turn,
        as often as there are turns.
        """
        if self.chance == 1:
            moved = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
            return self.turns * GaussianLoss(moved / self.sigma)
        return self.turns * SubsampledLoss(
            GaussianLoss(1 / self.sigma), self.chance, self.neighbors
        )

    @cached_property
    def epsilon(self) -> float:
        """The epsilon of the run at its delta, rounded up."""
        return self.loss.epsilon(self.delta)

    @cached_property
    def charge(self) -> Charge:
        """What a ledger is asked for: the mu where nothing is sampled, else (epsilon, delta)."""
        return (
            Charge.of(self.loss)
            if self.chance == 1
            else Charge.approximate(self.epsilon, self.delta)
        )

    @property
    def promise(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"({four_digits(self.epsilon)}, {readable(self.delta)})-differentially private for "
            f"{_UNITS[self.neighbors]} one {self.unit}"
        )

    @property
    def exact(self) -> str:
        """All that its loss depends on, to the last digit: what is shown is rounded."""
        return (
            f"{self.steps} steps, rate {self.rate}, sigma {self.sigma}, delta {self.delta}, bands {self.bands}, "
            f"{self.neighbors.value}, {self.unit}"
        )

    def __str__(self) -> str:
        over = f", noise correlated over {self.bands}" if self.bands > 1 else ""
        return (
            f"{self.steps:,} steps at rate {four_digits(self.rate)}{over}: sigma {four_digits(self.sigma)}, "
            f"epsilon {four_digits(self.epsilon)} at delta {readable(self.delta)}"
        )
