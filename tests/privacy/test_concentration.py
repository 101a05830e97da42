"""rho of finite pairs, against the naive formula in balls of 200 bits:
never below the truth, nor a millionth above it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import sordino as so
import sordino.local as local
from sordino.accounting.charge import Charge
from sordino.privacy.ball import ball, working
from sordino.privacy.loss import concentration

F = Fraction
Side = tuple[Fraction, ...]


def renyi_over_order(sides: list[tuple[arb, arb]], x: float) -> arb:
    """log(sum of p^x q^(1-x)) / (x (x-1)), as the definition says."""
    order = arb(x)
    return sum((a**order * b ** (1 - order) for a, b in sides), arb(0)).log() / (
        order * (order - 1)
    )


def reference(loss: so.FiniteLoss) -> float:
    """The largest value on a fine grid of orders, zoomed in at the best: at most the truth, and very near to it."""
    most = 0.0
    mirrored = sorted(zip(loss.p, loss.q, strict=True)) == sorted(zip(loss.q, loss.p, strict=True))
    for p, q in ((loss.p, loss.q), (loss.q, loss.p))[: 1 if mirrored else 2]:
        with working(200):
            sides = [(ball(a), ball(b)) for a, b in zip(p, q, strict=True)]
            orders = 1 + np.geomspace(1e-7, 4 * loss.maximum() / loss.rdp(1) + 4, 70)
            for _ in range(7):
                values = [float(renyi_over_order(sides, x).mid()) for x in orders.tolist()]
                at = int(np.argmax(values))
                most = max(most, *values)
                orders = 1 + np.geomspace(
                    orders[max(at - 1, 0)] - 1, orders[min(at + 1, len(orders) - 1)] - 1, 12
                )
    return most


def scaled(weights: Any) -> Side:
    whole = [F(x) for x in weights]
    return tuple(x / sum(whole) for x in whole)


def drawn(seed: int) -> so.FiniteLoss:
    """A pair of another kind for each seed: any, close, with rare outcomes, of wild ratios."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 3, 5, 12]))
    weights = rng.uniform(size=size) + 1e-3
    match seed % 4:
        case 0:
            other = rng.uniform(size=size) + 1e-3
        case 1:
            other = weights * np.exp(rng.uniform(-1, 1, size) * 10 ** rng.uniform(-9, -1))
        case 2:
            weights = 10 ** rng.uniform(-30, 0, size)
            other = weights * np.exp(rng.uniform(-1, 1, size))
        case _:
            weights, other = 10 ** rng.uniform(-20, 0, (2, size))
    return so.FiniteLoss(scaled(weights.tolist()), scaled(other.tolist()))


def check(loss: so.FiniteLoss) -> None:
    truth = reference(loss)
    assert truth * (1 - 1e-14) <= loss.rho() <= truth * (1 + 1.1e-6)


@pytest.mark.parametrize("p", [F(1, 2), F(2, 3), F(99, 100), 1 - F(1, 10**12)])
@pytest.mark.parametrize("q", [F(1, 3), F(1, 10), F(1, 10**9), F(1, 10**40)])
def test_rho_of_binary_pairs(p: Fraction, q: Fraction) -> None:
    check(so.FiniteLoss((p, 1 - p), (q, 1 - q)))


@pytest.mark.parametrize("seed", range(24))
def test_rho_of_any_pair(seed: int) -> None:
    check(drawn(seed))


def common(loss: so.FiniteLoss) -> so.FiniteLoss:
    both = [(a, b) for a, b in zip(loss.p, loss.q, strict=True) if a and b]
    p, q = (scaled(side) for side in zip(*both, strict=True))
    return so.FiniteLoss(p, q)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The orders at which a cumulant function was evaluated."""
    orders: list[float] = []
    plain = concentration._Cumulant.at

    def counting(self: concentration._Cumulant, x: float) -> concentration._Jet:
        orders.append(x)
        return plain(self, x)

    monkeypatch.setattr(concentration._Cumulant, "at", counting)
    return orders


def test_rho_of_a_lopsided_pair_takes_few_evaluations(evaluated: list[float]) -> None:
    """Once took 66,648, then some hundred by chords alone."""
    check(so.FiniteLoss((F(1, 2), F(1, 2)), (F(1, 3), F(2, 3))))
    assert 4 < len(evaluated) < 60


@pytest.mark.parametrize(
    ("protocol", "persons"), [(local.Direct(3, 2), 1000), (local.Direct(3, 16), 40_000)], ids=repr
)
def test_rho_of_capped_shuffled_reports(
    protocol: Any, persons: int, evaluated: list[float]
) -> None:
    """Once took 2000 evaluations of 300 logarithms each: the divergence over its order is flat there."""
    capped = so.local.shuffled(protocol, persons=persons).capped(1e-7)
    loss = common(capped)
    truth, rho = reference(loss), loss.rho()
    assert truth * (1 - 1e-14) <= rho <= truth * (1 + 1.1e-6)
    assert 4 < len(evaluated) < 300
    assert Charge.of(capped).rho == F(rho)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_on_a_piece_holds_for_every_order_in_it(seed: int) -> None:
    loss = drawn(seed)
    masses = {a / b: a for a, b in zip(loss.p, loss.q, strict=True)}
    rng = np.random.default_rng(seed)
    with working(300):
        sides = [(ball(a), ball(b)) for a, b in zip(loss.p, loss.q, strict=True)]
        cumulant = concentration._Cumulant(masses)
        for width in 10 ** rng.uniform(-4, 3, 12):
            for low in (1.0, 1 + float(10 ** rng.uniform(-6, 2))):
                high = low + float(width)
                bound = concentration._most_on(
                    low, high, cumulant.at(low), cumulant.at(high), cumulant.range
                )
                inside = np.linspace(low, high, 14)[1:-1].tolist()
                assert all(renyi_over_order(sides, x) <= bound * (1 + 2.0**-50) for x in inside)


@pytest.mark.parametrize(
    "law",
    [
        [(-1, 1), (1, 1)],
        [(-1, 1), (0, 40), (1, 1)],
        [(-1, 1), (1, 10**6)],
        [(-1, 1), (-0.2, 4), (0.7, 2), (1, 3)],
    ],
    ids=str,
)
def test_cumulants_of_a_variable_of_range_r(law: list[tuple[float, float]]) -> None:
    """What the bound stands on: the third at most R times, the fourth at most R^2 times the second."""
    x, weights = np.array(law).T
    for tilt in np.linspace(-8, 8, 65):
        p = weights * np.exp(tilt * x)
        p /= p.sum()
        centred = x - p @ x
        second, third, fourth = (float(p @ centred**k) for k in (2, 3, 4))
        assert abs(third) <= 2 * second * (1 + 1e-12)
        assert fourth - 3 * second**2 <= 4 * second * (1 + 1e-12)


@pytest.mark.parametrize("digits", [9, 100, 155, 162, 300])
def test_tiny_losses_and_rare_outcomes(digits: int) -> None:
    d = F(1, 10**digits)
    tiny = so.FiniteLoss((F(1, 2) + d, F(1, 2) - d), (F(1, 2), F(1, 2))).rho()
    assert 2 * d**2 <= F(tiny) <= max(2 * d**2 * (1 + F(1, 10**5)), F(5e-324))
    rare = so.FiniteLoss((1 - 2 * d, 2 * d), (1 - d, d)).rho()
    # where 2^x d is 1; the divergence over the order is largest at about 2x
    x = digits * math.log2(10)
    assert math.log(2) / (4 * x) < rare < math.log(2) / (4 * x) * 1.03
