"""Sums that one large loss decides, way by way, against outcomes counted one by one and against contour integrals."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

from sordino.accounting import bracket
from sordino.accounting.bracket import epsilon_bracket
from sordino.accounting.graded import Discrete
from sordino.accounting.large_losses import Bound, Series, Sizes, Split
from sordino.accounting.many_uses import delta_of_many
from sordino.accounting.spectrum import Spectrum
from sordino.accounting.total import Total
from sordino.privacy.ball import ball, working
from sordino.privacy.loss import GaussianLoss
from sordino.privacy.loss.subsampled import SubsampledLoss

Plan = tuple[str, str, int, float]


def sampled(scale: str, rate: str) -> SubsampledLoss:
    return SubsampledLoss(GaussianLoss(1 / Fraction(scale)), Fraction(rate))


def contour(plan: Plan, epsilon: float, *, tilt: float, window: float, terms: int) -> float:
    """delta(epsilon) when a person is removed, as an integral along a line, with 100 digits: no tilt needs to be good.

    The integral over outputs and the one along the line are sums over even steps, which for such functions err by less
    than any power of the step; the second repeats what lies a window farther out, where there is nothing.
    """
    scale, rate, count, _ = plan
    with working(330):
        c, r, e = ball(1 / Fraction(scale)), ball(Fraction(rate)), arb(epsilon)
        step, turn = arb(1) / 40, 2 * arb.pi() / arb(window)
        weights, turns = [], []
        for i in range(-14 * 40, 24 * 40):
            y = i * step
            loss = (r * (c * y - c * c / 2).expm1()).log1p()
            density = (-y * y / 2).exp() / (2 * arb.pi()).sqrt()
            weights.append(acb(density * loss.exp() * (tilt * loss).exp() * step))
            turns.append(acb(0, turn * loss).exp())
        total = arb(0)
        for n in range(terms):
            z = acb(tilt, n * turn)
            moment = sum(weights, acb(0))
            term = (moment**count * (-z * e).exp() / (z * (z + 1))).real
            total += term / 2 if n == 0 else term
            weights = [
                (weight * factor).mid() for weight, factor in zip(weights, turns, strict=True)
            ]
        return float(total * turn / arb.pi())


def test_the_contour_itself_finds_a_known_delta() -> None:
    """At rate 1 the losses are Gaussian, with a closed form."""
    found = contour(("10", "1", 100, 0.0), 6.0, tilt=6.0, window=60.0, terms=120)
    assert found == pytest.approx(GaussianLoss(Fraction(1)).delta(Fraction(6)), rel=1e-9)


ONE_DECIDES: Plan = ("2", "1e-3", 10**5, 1e-80)


def test_ends_hold_the_contour_between_them() -> None:
    """The whole sum, tilted as well as can be, is rarer than e^-25 where delta is decided;
    the bracket once was 9 % wide.
    """
    scale, rate, count, delta = ONE_DECIDES
    started = time.process_time()
    found = epsilon_bracket([(sampled(scale, rate).laws()[0], count)], delta)
    assert time.process_time() - started < 5
    assert found.upper - found.lower <= 1e-3 * found.upper
    low, high = (
        contour(ONE_DECIDES, end, tilt=49.5, window=80.0, terms=1200)
        for end in (found.lower, found.upper)
    )
    assert high <= delta <= low
    back = delta_of_many([(sampled(scale, rate).laws()[0], count)], found.lower, 1e-3, -math.inf)
    assert back is not None
    assert back.close
    assert back.lower <= low * (1 + 1e-9)
    assert low * (1 - 1e-9) <= back.upper <= low * 1.1


ERRATIC: list[Plan] = [
    ("1", "1e-5", 10**6, 1e-80),
    ("0.765", "1.4e-6", 1_500_000, 2.9e-48),
    ("1.132", "1.2e-6", 1700, 2.7e-75),
    ("1.051", "1.5e-6", 330_000, 1.3e-19),
    ("0.665", "1.1e-6", 8_200_000, 1.5e-58),
    ("0.79", "7.3e-5", 29_000, 3.1e-73),
    ("1", "2e-5", 10**5, 1e-18),
    ("1", "1e-6", 10**6, 1e-40),
    ("2", "1e-3", 10**5, 1e-70),
    ("2", "1e-3", 10**5, 1e-90),
]


@pytest.mark.parametrize(("scale", "rate", "count", "delta"), ERRATIC)
def test_plans_that_few_large_losses_decide_need_no_grid(
    scale: str, rate: str, count: int, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_grid(*_: object) -> None:
        raise AssertionError("the grid is asked, which takes a minute and stays wide")

    monkeypatch.setattr(bracket, "_refine", no_grid)
    plan = count * sampled(scale, rate)
    assert isinstance(plan, Total)
    found = plan.epsilon_bounds(delta)
    assert 0 < found.upper - found.lower <= 1e-3 * found.upper
    back = plan.delta_bounds(found.upper)
    assert back.lower <= delta * (1 + 1e-6)
    assert back.upper >= delta * 0.9 ** max(1.0, -math.log10(delta))


A, B, LARGE = -0.01, 0.02, 3.0


def law(chance: float) -> Discrete:
    return Discrete(
        np.array([A, B, LARGE]), np.array([0.6 * (1 - chance), 0.4 * (1 - chance), chance])
    )


def counted(chance: float, count: int, epsilon: float) -> float:
    """delta of `count` uses of the law, summed outcome by outcome with many digits."""
    masses = [Fraction(p) for p in law(chance).masses.tolist()]
    with working(500):
        total = arb(0)
        for j in range(count + 1):
            for n in range(count - j + 1):
                loss = j * arb(LARGE) + n * arb(B) + (count - j - n) * arb(A)
                if loss > arb(epsilon):
                    ways = arb.bin_uiui(count, j) * arb.bin_uiui(count - j, n)
                    each = (
                        ball(masses[2]) ** j
                        * ball(masses[1]) ** n
                        * ball(masses[0]) ** (count - j - n)
                    )
                    total += ways * each * (1 - (arb(epsilon) - loss).exp())
        return float(total)


@pytest.mark.parametrize("chance", [1e-6, 1e-12, 1e-20])
@pytest.mark.parametrize("epsilon", [0.8, 3.1, 5.9, 8.8])
def test_ways_add_up_to_the_sum(chance: float, epsilon: float) -> None:
    """So many large losses by series, others bounded, more in union: the exact delta lies between the ends."""
    count = 60
    truth = counted(chance, count, epsilon)
    split = Split.of([(law(chance), count)], [1.0])
    spectra = []
    for large in range(3):
        uses, log_ways = split.exactly((large,))
        for tilt in np.geomspace(
            1, 300, 60
        ).tolist():  # about the one with the mean at epsilon, if there is one
            if float((uses.counts * uses.moments(uses.tilted(tilt)[0])[0]).sum()) > epsilon:
                break
        seen = Spectrum.of(uses, tilt, 0.003, 1e-12, log_ways)
        assert seen is not None
        spectra.append(seen)
    beyond = Bound.of(*split.at_least((3,)), 5.0, epsilon)
    series = Series(spectra, [beyond])
    assert series.delta(epsilon, -1) <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= series.delta(epsilon, 1)
    if 1 < epsilon < 8:
        assert series.delta(epsilon, 1) <= 1.2 * truth
    no_union = Series(spectra[:1], [])
    assert no_union.delta(epsilon, 1) < truth or epsilon == 0.8  # the large ones are needed


def test_which_ways_matter() -> None:
    """At epsilon 2.5 one large loss decides, at 5 two do; without large losses there is nothing to cut."""
    between = Discrete(np.append(law(1e-12).values, 1.0), np.append(law(1e-12).masses, 1e-60))
    for epsilon, decisive in ((2.5, 1), (5.0, 2)):
        cut = Sizes.at_epsilon([(between, 60)], 10.0, epsilon)
        assert cut is not None
        assert (decisive,) in [way.large for way in cut.ways.summed]
        assert all(sum(way.large) > decisive for way in cut.ways.beyond)
        exact = counted(1e-12, 60, epsilon)
        assert math.log(exact) < cut.log_delta < math.log(exact) + 8
        back = Sizes.at_delta([(between, 60)], 10.0, exact, 20.0)
        assert back is not None
        assert epsilon < back.epsilon < 1.3 * epsilon
    small = Discrete(np.array([A, B]), np.array([0.6, 0.4]))
    assert Sizes.at_epsilon([(small, 60)], 10.0, 0.5) is None


def test_a_grid_takes_no_more_memory_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window as wide as the tilted sum reaches once took 20 GB; cut short, it is less certain and still holds."""
    from sordino.accounting import convolve

    monkeypatch.setattr(bracket, "_many", lambda _: False)
    monkeypatch.setattr(convolve, "_MOST_STEPS", 2.0**12)
    sizes = []
    made = convolve._fast_length

    def fast_length(least: int) -> int:
        sizes.append(least)
        return made(least)

    monkeypatch.setattr(convolve, "_fast_length", fast_length)
    found = epsilon_bracket([(sampled("1", "0.01").laws()[0], 1000)], 1e-6)
    assert max(sizes) <= 2 * 2**12 + 3
    assert found.lower <= 2.12455
    assert found.upper >= 2.1244
