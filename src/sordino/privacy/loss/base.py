"""The privacy loss L = log dP/dQ of a mechanism's worst neighbouring pair, and its views.

A loss is certain about two things: its worst pair (P, Q), proven beside each mechanism, and the direction in which each
view is rounded. Every view is computed in ball arithmetic and returned as the float at its safe end: upwards for delta,
epsilon, rho, mu and all divergences, downwards for the trade-off curve.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import at_most, certified, lower, upper
from sordino.privacy.exact import (
    Number,
    bounds,
    closed_unit,
    float_lower,
    float_upper,
    least_reading,
    show,
)
from sordino.privacy.float_search import smallest_float
from sordino.privacy.loss.law import Law
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.notebook import card
from sordino.privacy.picture import Picture, drawn

__all__ = ["Loss", "OutputPair"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OutputPair:
    """The two output curves of the worst pair, as points to draw;
    `discrete` when they are probabilities, not densities.
    """

    outcomes: tuple[float | str, ...]
    under_p: tuple[float, ...]
    under_q: tuple[float, ...]
    discrete: bool


class Loss(ABC):
    """The privacy loss of one release, with every definition of privacy as a view."""

    kinds: ClassVar[dict[tuple[str, int], Callable[[dict[str, Any]], Loss]]] = {}

    @abstractmethod
    def delta_ball(self, epsilon: Fraction) -> arb:
        """The hockey-stick divergence sup_E P(E) - e^epsilon Q(E), over both directions, at the working precision."""

    @abstractmethod
    def rdp_ball(self, alpha: Fraction) -> arb:
        """The Renyi divergence of order alpha >= 1 (1: Kullback-Leibler), over both directions."""

    @abstractmethod
    def trade_off_ball(self, alpha: Fraction) -> arb:
        """The smallest type II error of a test of P against Q with type I error alpha in (0,
        1), over both directions.
        """

    def cdf_ball(self, value: Fraction) -> arb:
        """P[L <= value] for L under P."""
        raise NotImplementedError

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        """P[low < L <= high] for L under P."""
        raise NotImplementedError

    @abstractmethod
    def maximum(self) -> float:
        """The largest loss: pure differential privacy's epsilon, the multiplicative distance; inf if there is none."""

    @abstractmethod
    def rho(self) -> float:
        """The smallest rho with Renyi divergence <= rho * alpha for every alpha > 1: zero-concentrated privacy."""

    @abstractmethod
    def mu(self) -> float:
        """The smallest mu such that telling P from Q is at least as hard as telling N(0, 1) from N(mu, 1)."""

    def exact_maximum(self) -> Fraction | None:
        """`maximum` as a rational that is not below it; None where there is none."""
        return _rational(self.maximum())

    def exact_rho(self) -> Fraction | None:
        """`rho` as such a rational."""
        return _rational(self.rho())

    def exact_mu_squared(self) -> Fraction | None:
        """The square of `mu` as such a rational."""
        mu = _rational(self.mu())
        return None if mu is None else mu**2

    def without_certainty(self) -> Loss:
        """The loss given that no outcome gives the neighbour away, where that is known: else the loss itself."""
        return self

    def infinite(self) -> Fraction:
        """P[L = inf]: the probability of an outcome that gives the neighbour away, over both directions."""
        return Fraction(0)

    @abstractmethod
    def outputs(self) -> OutputPair | None:
        """The two output curves of the worst pair, where there are only two."""

    @abstractmethod
    def laws(self) -> tuple[Law, ...]:
        """The law of the loss in floats: one if both directions of the pair have the same, else one for each."""

    @property
    def relation(self) -> Neighbors | None:
        """The relation of neighbours that the loss is for;
        None where its shift was already taken for the one in use.
        """
        return None

    @property
    def idealized(self) -> bool:
        """Whether `laws` bound the releases but belong to none of them, so that lower ends need `attained_laws`."""
        return False

    @property
    def by_moments(self) -> bool:
        """Whether only Renyi divergences are known, so that there is no law to add."""
        return False

    def attained_laws(self) -> tuple[Law, ...]:
        """Laws of releases that have this loss, which sums are at least as revealing as:
        `laws` where those are of one.
        """
        return self.laws()

    @abstractmethod
    def to_json(self) -> str:
        """The exact stored form."""

    def __add__(self, other: Loss) -> Loss:
        """Both releases: composition is addition."""
        from sordino.accounting.total import total

        return total([(self, 1), (other, 1)]) if isinstance(other, Loss) else NotImplemented

    def __radd__(self, other: object) -> Loss:
        return self if other == 0 else NotImplemented  # so that sum() works

    def __mul__(self, count: int) -> Loss:
        """So many releases."""
        from sordino.accounting.total import total

        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            hint = "Multiply by how often the release is made."
            raise InvalidInput(
                f"count={show(count)}", "a loss is multiplied by a whole number of at least 1", hint
            )
        return total([(self, int(count))])

    __rmul__ = __mul__

    @staticmethod
    def from_json(text: str) -> Loss:
        """The loss that `to_json` stored."""
        import sordino.accounting.total  # noqa: F401  (makes stored totals known)

        build, fields = json_form.load(text, Loss.kinds)
        loss: Loss = build(fields)
        return loss

    def delta(self, epsilon: Number) -> float:
        """The smallest delta, rounded up, such that the release is (epsilon, delta)-differentially private.

        Negative epsilon is meaningful: delta(epsilon) >= 1 - e^epsilon there. Never 0 by underflow.
        """
        if isinstance(epsilon, float) and math.isinf(epsilon):
            return 1.0 if epsilon < 0 else float_upper(self.infinite())
        exact = bounds("epsilon", epsilon).lower
        return min(1.0, upper(certified(lambda: self.delta_ball(exact))))

    def epsilon(self, delta: Number) -> float:
        """The smallest epsilon, rounded up, such that the release is (epsilon, delta)-differentially private.

        It is negative where delta exceeds the total variation distance, and -inf at delta = 1.
        """
        exact = closed_unit("delta", delta).lower
        if exact == 0:
            return self.maximum()
        if exact == 1:
            return -math.inf
        return math.inf if exact < self.infinite() else self._epsilon(exact)

    def _epsilon(self, delta: Fraction) -> float:
        """The smallest float that certainly satisfies 0 < delta < 1, by bisection."""
        high = self._epsilon_guess(delta)
        if math.isinf(high):
            return math.inf
        while not self.satisfies(least_reading(high), delta):
            high *= 2
        return smallest_float(
            lambda epsilon: self.satisfies(least_reading(epsilon), delta), -(2.0**20), high
        )

    def _epsilon_guess(self, delta: Fraction) -> float:  # noqa: ARG002
        """A positive epsilon near or above the one that satisfies delta, for the search to start from."""
        return 1.0

    def satisfies(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether the release is certainly (epsilon, delta)-differentially private."""
        return at_most(lambda: self.delta_ball(epsilon), delta)

    def total_variation(self) -> float:
        """The total-variation stability: how much likelier any event can become, delta(0)."""
        return self.delta(0)

    def rdp(self, alpha: Number) -> float:
        """The Renyi divergence of order alpha, rounded up; alpha = 1 is Kullback-Leibler, alpha = inf the maximum."""
        if self.infinite() or (isinstance(alpha, float) and alpha == math.inf):
            return self.maximum()
        exact = bounds("alpha", alpha).upper
        if exact < 1:
            hint = "Pass a number from 1 to math.inf."
            raise InvalidInput(f"alpha={show(alpha)}", "the Renyi order must be at least 1", hint)
        return upper(certified(lambda: self.rdp_ball(exact)))

    def trade_off(self, alpha: Number) -> float:
        """The smallest type II error, rounded down, of any test with type I error alpha
        that tells the neighbours apart.
        """
        exact = closed_unit("alpha", alpha).upper
        if exact in (0, 1):
            return float_lower(1 - self.infinite()) if exact == 0 else 0.0
        return max(0.0, lower(certified(lambda: self.trade_off_ball(exact))))

    def pmf(self, grid: Sequence[Number] | Floats) -> Floats:
        """The law of the loss, rounded up to the points of an increasing grid: one more entry than the grid has points.

        Entry i is P[grid[i-1] < L <= grid[i]], the first takes all below it, the last all above the grid; each is
        rounded up, so that a delta computed from them is never too small.
        """
        points = [
            bounds("grid", x).lower
            for x in (grid.tolist() if isinstance(grid, np.ndarray) else grid)
        ]
        if not points or any(b <= a for a, b in pairwise(points)):
            raise InvalidInput(
                f"grid={show(grid)}",
                "a grid must hold increasing numbers",
                "Pass np.linspace(-2, 2, 401).",
            )
        masses = [certified(lambda: self.cdf_ball(points[0]))]
        masses += [certified(partial(self.mass_ball, a, b)) for a, b in pairwise(points)]
        masses.append(certified(lambda: 1 - self.cdf_ball(points[-1])))
        return np.array([upper(m) for m in masses])

    def _repr_html_(self) -> str:
        views = {
            "pure epsilon": self.maximum(),
            "epsilon at delta 1e-6": self.epsilon(1e-6),
            "total variation": self.total_variation(),
            "rho": self.rho(),
            "mu": self.mu(),
        }
        return card(
            repr(self),
            {name: f"{value:.4g}" for name, value in views.items()},
            notes=["Rounded up. .plot() draws it."],
        )

    def plot(self, path: str | Path | None = None) -> Picture:
        """A picture of the two output curves, the law of the loss, delta(epsilon) and the trade-off curve.

        With `path` it is also saved, as PNG, SVG, HTML or JSON by the ending. Needs the extra `plot`.
        """
        from sordino.privacy.loss.plot import picture

        return drawn(lambda: picture(self), path)


def _rational(view: float) -> Fraction | None:
    return Fraction(view) if math.isfinite(view) else None
