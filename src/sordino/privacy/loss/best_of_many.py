"""The loss of running a release a random number of times and telling only the best result: tuning, repeat and select.

The number of runs must be random and stay secret. What is known are Renyi divergences, so the loss is one by moments.
Proofs in best_of_many.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, certified, exact_lower, upper
from sordino.privacy.exact import decimal_reading, open_unit, positive, readable, show
from sordino.privacy.loss.base import Loss
from sordino.privacy.loss.declared import MomentLoss
from sordino.privacy.neighbors import Neighbors

__all__ = ["BestOfManyLoss", "NegativeBinomialRuns", "PoissonRuns"]

_ORDERS = tuple(1 + Fraction(2) ** k for k in range(-2, 13))
"""Orders at which the second divergence of the theorem is tried; every one gives a valid bound."""


@dataclass(frozen=True)
class NegativeBinomialRuns:
    """At least one run, truncated negative binomial: shape 1 is geometric, shape 0 logarithmic, each with stop
    probability.

    The mean is (1/stop - 1)/log(1/stop) for shape 0, else shape (1 - stop)/(stop (1 - stop^shape)).
    """

    stop: Fraction
    shape: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        # a smaller chance to stop means more runs, so the smaller reading is the safe one
        object.__setattr__(
            self, "stop", open_unit("stop", self.stop, "Pass a probability such as 0.01.").lower
        )
        shape = decimal_reading("shape", self.shape)
        if shape <= -1:
            raise InvalidInput(
                f"shape={show(self.shape)}",
                "shape must be above -1",
                "Pass 1 for geometric, 0 for logarithmic.",
            )
        object.__setattr__(self, "shape", shape)

    def mean_ball(self) -> arb:
        """The mean number of runs."""
        g, n = ball(self.stop), ball(self.shape)
        if self.shape == 0:
            return (1 / g - 1) / -g.log()
        return n * (1 - g) / (g * -(n * g.log()).expm1())


@dataclass(frozen=True)
class PoissonRuns:
    """A Poisson number of runs with this mean; after none a fixed result is told."""

    mean: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "mean",
            positive("mean", self.mean, "Pass the mean number of runs, such as 20.").upper,
        )


@dataclass(frozen=True, repr=False)
class BestOfManyLoss(MomentLoss):
    """The loss of the best of a random number of runs of one release, `runs` of the law that is named.

    Privacy: holds if the number of runs is drawn from `runs` independently of the data and stays secret, every run
    draws afresh, and results are compared by a fixed order.

    Source: Papernot and Steinke 2022, Theorems 2 and 6; best_of_many.md.

    Example:
        >>> from sordino import EpsilonDeltaLoss
        >>> runs = NegativeBinomialRuns(Fraction(1, 100))
        >>> BestOfManyLoss(EpsilonDeltaLoss(Fraction(1, 10)), runs).maximum() < 0.3000001
        True
    """

    base: Loss
    runs: NegativeBinomialRuns | PoissonRuns

    def __post_init__(self) -> None:
        if not isinstance(self.base, Loss) or self.base.infinite():
            rule = (
                "the repeated release must have a loss without outcomes that give everything away"
            )
            raise InvalidInput(
                f"base={show(self.base)}",
                rule,
                "Pass the loss of one run, such as Gaussian(5).loss(1).",
            )
        if not isinstance(self.runs, NegativeBinomialRuns | PoissonRuns):
            rule = "a fixed or another random number of runs has no such bound"
            hint = (
                "Pass NegativeBinomialRuns(stop) or PoissonRuns(mean); k fixed runs cost k * loss."
            )
            raise InvalidInput(f"runs={show(self.runs)}", rule, hint)

    @property
    def relation(self) -> Neighbors | None:
        return self.base.relation

    @property
    def orders(self) -> tuple[Fraction, ...]:
        return self.base.orders if isinstance(self.base, MomentLoss) else ()

    def rdp_ball(self, alpha: Fraction) -> arb:
        top = self.maximum()
        # divergences never fall along the order
        found = self._divergence(Fraction(2) if alpha == 1 else alpha)
        return found.min(ball(Fraction(top))) if math.isfinite(top) else found

    def _divergence(self, alpha: Fraction) -> arb:
        own, order = self.base.rdp_ball(alpha), ball(alpha - 1)
        match self.runs:
            case PoissonRuns(mean):
                # Theorem 2: e^epsilon at most 1 + 1/(alpha - 1), epsilon a hair less
                level = exact_lower(certified(lambda: ball(1 / (alpha - 1)).log1p()))
                some = ball(mean) * (order * (own + ball(mean) * self.base.delta_ball(level))).exp()
                return ((-ball(mean)).exp() + some).log() / order
            case NegativeBinomialRuns(stop, shape):
                more = ball(1 + shape)
                return own + more * self._second(stop) + self.runs.mean_ball().log() / order

    def _second(self, stop: Fraction) -> arb:
        """The least of (1 - 1/b) D_b + log(1/stop)/b over orders b, infinity among them."""
        tried = [
            ball(1 - 1 / b) * self.base.rdp_ball(b) - ball(stop).log() / ball(b)
            for b in sorted({*_ORDERS, *self.orders})
        ]
        top = self.base.maximum()
        if math.isfinite(top):
            tried.append(ball(Fraction(top)))
        least = tried[0]
        for value in tried[1:]:
            if value.is_finite():
                least = least.min(value) if least.is_finite() else value
        return least

    def maximum(self) -> float:
        """(2 + shape) times that of one run, or one run's and mean times its total variation."""
        top = self.base.maximum()
        if math.isinf(top):
            return math.inf
        match self.runs:
            case PoissonRuns(mean):
                return upper(
                    certified(
                        lambda: ball(Fraction(top)) + ball(mean) * self.base.delta_ball(Fraction(0))
                    )
                )
            case NegativeBinomialRuns(_, shape):
                return upper(certified(lambda: ball((2 + shape) * Fraction(top))))

    def to_json(self) -> str:
        match self.runs:
            case PoissonRuns(mean):
                fields = {"runs": "poisson", "mean": str(mean)}
            case NegativeBinomialRuns(stop, shape):
                fields = {"runs": "negative_binomial", "stop": str(stop), "shape": str(shape)}
        base = json_form.nested(self.base.to_json())
        return json_form.dump("best_of_many", 1, {"base": base, **fields})

    def __repr__(self) -> str:
        match self.runs:
            case PoissonRuns(mean):
                runs = f"PoissonRuns({readable(mean)})"
            case NegativeBinomialRuns(stop, shape):
                runs = f"NegativeBinomialRuns({readable(stop)}, {readable(shape)})"
        return f"BestOfManyLoss({self.base!r}, {runs})"


def _load(fields: dict[str, Any]) -> BestOfManyLoss:
    base = json_form.loaded(fields.get("base"), Loss.from_json)
    match fields.get("runs"):
        case "poisson":
            return BestOfManyLoss(base, PoissonRuns(json_form.rational(fields, "mean")))
        case "negative_binomial":
            stop, shape = (json_form.rational(fields, name) for name in ("stop", "shape"))
            return BestOfManyLoss(base, NegativeBinomialRuns(stop, shape))
        case other:
            rule = "runs must be poisson or negative_binomial"
            raise InvalidInput(f"runs={show(other)}", rule, "Pass a text made by to_json().")


Loss.kinds["best_of_many", 1] = _load
