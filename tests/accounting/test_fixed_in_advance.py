from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction as F
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import sordino as so
from sordino.errors import InvalidInput


def hockey(tops: Iterable[float], width: float, epsilon: float) -> float:
    """delta of the product of two-outcome pairs, each with its own interval of losses, outcome by outcome."""
    tops, total = list(tops), 0.0
    for outcome in product((0, 1), repeat=len(tops)):
        chance, loss = 1.0, 0.0
        for t, low in zip(tops, outcome, strict=True):
            high = (math.exp(-t) - math.exp(-width)) / -math.expm1(-width)
            chance *= 1 - high if low else high
            loss += t - low * width
        total += chance * max(0.0, math.exp(loss) - math.exp(epsilon))
    return total


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("width", ["3/10", "1", "3"])
def test_no_places_of_the_intervals_are_worse(width: str, count: int) -> None:
    w = float(F(width))
    grid = np.linspace(0, w, {1: 301, 2: 25, 3: 13, 4: 7}[count]).tolist()
    for share in ("-3/10", "0", "1/5", "1", "3/2"):
        epsilon = F(share) * F(width)
        claimed = so.delta_if_fixed_in_advance(so.BoundedRangeLoss(F(width)), count, epsilon)
        found = max(
            hockey(tops, w, float(epsilon)) for tops in combinations_with_replacement(grid, count)
        )
        same = max(hockey([t] * count, w, float(epsilon)) for t in np.linspace(0, w, 301).tolist())
        assert max(found, same) <= claimed * (1 + 1e-9) + 1e-15
        assert same >= claimed * (1 - 1e-3) - 1e-15  # and it is attained


def test_the_figure_of_the_repairs_issue() -> None:
    loss = so.BoundedRangeLoss(F(3, 10))
    assert so.delta_if_fixed_in_advance(loss, 20, 3) == pytest.approx(1.5058e-6, rel=1e-4)
    assert so.delta_if_fixed_in_advance(loss, 20, 3) < (20 * loss).delta(3) / 10
    assert so.delta_if_fixed_in_advance(loss, 1, F(1, 10)) == pytest.approx(
        loss.delta(F(1, 10)), rel=1e-12
    )


def test_epsilon_and_delta_agree() -> None:
    loss = so.BoundedRangeLoss(F(3, 10))
    for delta in (F(1, 100), F(1, 10**6), F(1, 10**12)):
        epsilon = so.epsilon_if_fixed_in_advance(loss, 20, delta)
        assert so.delta_if_fixed_in_advance(loss, 20, epsilon) <= float(delta) * (1 + 1e-15)
        assert so.delta_if_fixed_in_advance(loss, 20, epsilon * (1 - 1e-9)) > float(delta)
        assert epsilon <= (20 * loss).epsilon(delta)
    assert so.epsilon_if_fixed_in_advance(loss, 20, 0) == pytest.approx(6.0)


def test_other_losses_are_refused() -> None:
    with pytest.raises(InvalidInput, match="bounded range"):
        so.delta_if_fixed_in_advance(so.LaplaceLoss(F(1)), 2, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at most 300"):
        so.epsilon_if_fixed_in_advance(so.BoundedRangeLoss(F(1)), 301, 1e-6)
