"""Losses that are known by delta(epsilon): the trade-off curve and probabilities follow from it and from `laws`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy.ball import ball
from sordino.privacy.exact import Number, closed_unit, float_lower, float_upper, show
from sordino.privacy.loss.base import Floats, Loss, OutputPair

__all__ = ["ProfileLoss", "trade_off_from"]

_POINTS = 65


def trade_off_from(profile: Iterable[tuple[float, float]], level: Fraction) -> float:
    """A lower bound on the type II error at a level in (0, 1), from points (epsilon, delta), epsilon at least 0.

    1 - delta - e^epsilon level and its mirror image are below the curve, since both directions are (epsilon,
    delta)-private.
    """
    best, a = 0.0, float_upper(level)
    for epsilon, delta in profile:
        best = max(best, 1 - delta - math.exp(epsilon) * a, math.exp(-epsilon) * (1 - delta - a))
    return max(0.0, best - 2.0**-48)


class ProfileLoss(Loss):
    """A loss whose trade-off curve is bounded from below by lines of its delta(epsilon)."""

    @cached_property
    def _profile(self) -> list[tuple[float, float]]:
        certain = float_upper(self.infinite())
        far = self.epsilon(certain + (1 - certain) * 1e-9)
        grid = np.linspace(0, min(far, 700.0) if math.isfinite(far) else 1.0, _POINTS).tolist()
        return [(e, self.delta(e)) for e in grid]

    def trade_off(self, alpha: Number) -> float:
        level = closed_unit("alpha", alpha).upper
        if level in (0, 1):
            return float_lower(1 - self.infinite()) if level == 0 else 0.0
        return trade_off_from(self._profile, level)

    def trade_off_ball(self, alpha: Fraction) -> arb:
        return arb(self.trade_off(alpha)).union(1 - ball(alpha))

    def pmf(self, grid: Sequence[Number] | Floats) -> Floats:
        points = np.array([float(x) for x in grid])
        if not len(points) or (np.diff(points) <= 0).any():
            raise InvalidInput(
                f"grid={show(grid)}",
                "a grid must hold increasing numbers",
                "Pass np.linspace(-2, 2, 401).",
            )
        law = self.laws()[0]
        edges = np.concatenate([[-math.inf], points, [math.inf]])
        masses = law.cells(edges)[0]
        for value, probability in law.atoms:
            masses[np.searchsorted(points, value, side="left")] += probability
        masses[-1] += law.infinite
        return np.minimum(masses * (1 + 2 * law.error), 1.0)

    def outputs(self) -> OutputPair | None:
        return None
