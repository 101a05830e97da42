"""The series for many uses against truths that share nothing with it:
binomials, closed forms, integrals, balls, grids.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import acb, arb
from scipy.integrate import quad
from scipy.special import ndtr

from first_of import first_of
from sordino.accounting import bracket
from sordino.accounting.graded import Discrete, Graded
from sordino.accounting.many_uses import delta_of_many, epsilon_of_many
from sordino.accounting.spectrum import Spectrum, Uses, _density_weight, _transform
from sordino.accounting.total import Total
from sordino.privacy.ball import ball, working
from sordino.privacy.loss import DiscreteLaplaceLoss, FiniteLoss, GaussianLoss, LaplaceLoss, Loss
from sordino.privacy.loss.law import Law
from sordino.privacy.loss.subsampled import SubsampledLoss
from sordino.privacy.neighbors import Neighbors

NONE = -math.inf


def sampled(scale: str, rate: str, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> SubsampledLoss:
    return SubsampledLoss(GaussianLoss(1 / Fraction(scale)), Fraction(rate), neighbors)


def responses(size: float, count: int, epsilon: float) -> float:
    """delta of `count` binary randomized responses of loss +-size, summed outcome by outcome with many digits."""
    with working(400):
        e = arb(size)
        p = 1 / (1 + (-e).exp())
        total = arb(0)
        for n in range(count + 1):
            loss = (2 * n - count) * e
            if loss > arb(epsilon):
                total += (
                    arb.bin_uiui(count, n)
                    * p**n
                    * (1 - p) ** (count - n)
                    * (1 - (arb(epsilon) - loss).exp())
                )
        return float(total)


@pytest.mark.parametrize("count", [1, 30, 400, 3000])
@pytest.mark.parametrize("deviations", [0.5, 3.0, 7.0, 12.0])
def test_a_series_holds_the_sum_of_responses_between_its_ends(
    count: int, deviations: float
) -> None:
    size = 0.05
    p = 1 / (1 + math.exp(-size))
    uses = Uses([(Discrete(np.array([-size, size]), np.array([1 - p, p])), count)])
    epsilon = count * size * (2 * p - 1) + deviations * size * math.sqrt(count)
    tilt = max(0.5, deviations / (size * math.sqrt(count)))
    truth = responses(size, count, epsilon)
    scaled = math.sqrt(count) * size
    widths = []
    for smooth in (0.1 * scaled, 0.02 * scaled, 0.004 * scaled):
        seen = Spectrum.of(uses, tilt, smooth, 1e-11)
        assert seen is not None
        low, high = seen.delta(epsilon, -1), seen.delta(epsilon, 1)
        assert low <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= high
        widths.append(high - low)
    if count >= 400 and deviations <= 7:
        assert widths[-1] < 0.05 * truth
        assert widths[-1] < widths[0]


@pytest.mark.parametrize(
    ("shift", "count"), [("1/10", 100), ("1/100", 10_000), ("1/1000", 10**6), ("1/2", 200)]
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-40])
def test_many_gaussians_are_one(shift: str, count: int, delta: float) -> None:
    mu = Fraction(shift)
    root = GaussianLoss(mu * math.isqrt(count)) if math.isqrt(count) ** 2 == count else None
    truth = (root or GaussianLoss(Fraction(math.sqrt(float(mu) ** 2 * count)))).epsilon(delta)
    parts = [(GaussianLoss(mu).laws()[0], count)]
    found = epsilon_of_many(parts, delta, 1e-3, NONE)
    assert found is not None
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper
    assert found.upper - found.lower < 4e-3 * truth
    back = delta_of_many(parts, truth, 1e-3, NONE)
    assert back is not None
    assert back.lower <= delta * (1 + 1e-9)
    assert delta * (1 - 1e-9) <= back.upper


@pytest.mark.parametrize("smooth", [1e-4, 0.01, 0.25])
def test_what_a_slight_gaussian_adds_is_at_most_its_weight_times_the_density(smooth: float) -> None:
    """delta(t) with it, less (1 - e^-t)+, is at most kappa smooth^2 times the density of S + Gaussian, everywhere."""
    x = np.linspace(-12, 12, 4001)
    t = smooth * x
    mean = smooth**2 / 2
    with_it = ndtr((t + mean) / smooth) - np.exp(-t) * ndtr((t - mean) / smooth)
    density = np.exp(-(((t + mean) / smooth) ** 2) / 2) / (smooth * math.sqrt(2 * math.pi))
    excess = with_it - np.maximum(-np.expm1(-t), 0)
    assert (excess <= _density_weight(smooth) * density + 1e-15).all()
    middle = np.abs(x) < 0.01  # and where it counts most it is no more than needed
    assert (excess[middle] >= 0.8 * _density_weight(smooth) * density[middle] - 1e-12).all()


@pytest.mark.parametrize("count", [1, 100, 10**4, 10**6])
def test_transforms_are_wrong_by_an_eighth_of_what_is_said(count: int) -> None:
    random = np.random.default_rng(count)
    values = np.sort(random.standard_t(3, 200)) * 0.3 / math.sqrt(count)
    masses = random.random(200)
    masses /= masses.sum()
    uses = Uses([(Discrete(values, masses), count)])
    means, _ = uses.moments(masses)
    turn, smooth = 0.7, 0.01
    found, errors = _transform(uses, masses, means, turn, 60, smooth)
    centred = uses.centred(means)[0]
    with working(200):
        for n in range(0, len(found), 3):
            angle = ball(Fraction(turn) * n)
            one = acb(1)  # a rounding of the sum of the masses is put at the mean
            for p, x in zip(masses, centred, strict=True):
                one += ball(Fraction(p)) * ((acb(0, 1) * angle * ball(Fraction(x))).exp() - 1)
            exact = one**count * acb((-((angle * ball(Fraction(smooth))) ** 2) / 2).exp())
            assert float(abs(acb(found[n].real, found[n].imag) - exact)) <= errors[n] / 8


# three that differ in everything come first
LAWS = [
    sampled(s, r)
    for s, r in (
        *(("0.7", "1e-5"), ("2", "1e-3"), ("10", "0.3")),
        *(
            ("0.7", "1e-3"),
            ("0.7", "0.3"),
            ("2", "1e-5"),
            ("2", "0.3"),
            ("10", "1e-5"),
            ("10", "1e-3"),
        ),
    )
]


@pytest.mark.parametrize(
    "loss",
    [
        sampled("1", "1e-4", Neighbors.REPLACE),
        *first_of(3, LAWS),
    ],
    ids=repr,
)
def test_contrasts_are_wrong_by_an_eighth_of_what_is_said(loss: SubsampledLoss) -> None:
    for side, law in enumerate(loss.laws()):
        cells = Graded.of(law, 3.0 / law.spread, 1e-60, 10**4, 1e-4 * law.spread).edges
        edges = cells[:: max(1, len(cells) // 40)]
        p, q, excess, excess_error = law.contrasted(edges)
        turn = -1 if side else 1
        with working(400):
            for i, (a, b) in enumerate(pairwise(edges.tolist())):
                low, high = (loss._split(Fraction(turn * x)) for x in (a, b))
                if side:
                    low, high = high, low
                mine, other = low.above_p - high.above_p, low.above_q - high.above_q
                if side:
                    mine, other = other, mine
                if mine < 1e-250:
                    continue
                assert float(abs(arb(p[i]) - mine) / mine) <= law.error / 8
                assert float(abs(arb(q[i]) - other) / other) <= law.error / 8
                assert float(abs(arb(excess[i]) - (mine - other))) <= excess_error[i] / 8 + 1e-300


def two_steps(loss: SubsampledLoss, epsilon: float) -> float:
    """delta of two removals: the exact delta of one, integrated over the other's output."""
    c, r = float(loss.base.shift), float(loss.rate)

    def one(e: float) -> float:
        if math.exp(e) <= 1 - r:
            return -math.expm1(e)
        y = math.log((math.expm1(e) + r) / r) / c + c / 2
        return float((1 - r) * ndtr(-y) + r * ndtr(c - y) - math.exp(e) * ndtr(-y))

    def integrand(y: float) -> float:
        p = ((1 - r) * math.exp(-y * y / 2) + r * math.exp(-((y - c) ** 2) / 2)) / math.sqrt(
            2 * math.pi
        )
        return p * one(epsilon - math.log1p(r * math.expm1(c * y - c * c / 2)))

    cuts = np.linspace(-9, 12, 43)
    return float(sum(quad(integrand, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(cuts)))


@pytest.mark.parametrize(("scale", "rate"), [("1", "0.1"), ("2", "0.01"), ("0.8", "0.001")])
def test_two_steps_are_an_integral(scale: str, rate: str) -> None:
    loss = sampled(scale, rate)
    for epsilon in (0.3, 1.0):
        truth = two_steps(loss, epsilon)
        if truth < 1e-13:
            continue
        found = delta_of_many([(loss.laws()[0], 2)], epsilon, 1e-3, NONE)
        assert found is not None
        assert found.lower <= truth * (1 + 1e-6)
        assert truth * (1 - 1e-6) <= found.upper
        assert found.upper / found.lower < 1.05


PLANS: list[tuple[list[tuple[SubsampledLoss | GaussianLoss | LaplaceLoss, int]], float]] = [
    ([(sampled("5", "0.001"), 10_000)], 1e-6),
    ([(sampled("10", "0.01"), 100_000)], 1e-6),
    ([(sampled("2", "0.01"), 10_000)], 1e-12),
    ([(sampled("1", "0.005"), 1000)], 1e-40),
    ([(sampled("1.5", "0.01", Neighbors.REPLACE), 2000)], 1e-7),
    ([(sampled("1", "0.3"), 300)], 1e-9),
    ([(SubsampledLoss(LaplaceLoss(Fraction(1)), Fraction("0.01")), 3000)], 1e-6),
    ([(sampled("3", "0.003"), 1000), (GaussianLoss(Fraction(1, 10)), 1)], 1e-6),
    ([(sampled("3", "0.003"), 1000), (sampled("1", "0.01"), 100)], 1e-9),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_the_series_and_the_grid_agree(
    plan: tuple[list[tuple[SubsampledLoss, int]], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, delta = plan
    for side in (0, 1):
        laws: list[tuple[Law, int]] = [
            (loss.laws()[side % len(loss.laws())], count) for loss, count in losses
        ]
        series = epsilon_of_many(laws, delta, 1e-3, NONE)
        assert series is not None
        assert series.close
        with monkeypatch.context() as patched:
            patched.setattr(bracket, "_many", lambda _: False)
            grid = bracket.epsilon_bracket(laws, delta)
        assert series.lower <= grid.upper
        assert grid.lower <= series.upper
        assert 0 < series.upper - series.lower <= 1e-3 * series.upper
        middle = (max(series.lower, grid.lower) + min(series.upper, grid.upper)) / 2
        back = delta_of_many(laws, middle, 1e-3, NONE)
        assert back is not None
        assert back.lower <= delta * (1 + 0.02 * max(1.0, -math.log10(delta)))
        assert back.upper >= delta * 0.9


TRAINING = [
    ("1", "1e-4", 10**6, 1e-6, 0.532407, 0.53257),
    ("0.7", "1e-5", 10**5, 1e-9, 0.09603, 0.09611),
    ("0.8", "0.001", 20_000, 1e-6, 1.28590, 1.28619),
    ("1", "3e-5", 3000, 1e-60, 6.16273, 6.1650),
    ("1", "1e-5", 10**6, 1e-40, 2.37012, 2.3715),
    ("0.7", "3e-5", 10**5, 1e-80, 19.489, 19.507),
    ("10", "1e-5", 300_000, 1e-7, 0.00176028, 0.0017608),
    ("1", "1e-6", 10**8, 1e-6, 0.0450834, 0.0451),
    ("4", "1e-4", 10**9, 1e-6, 3.8134, 3.8145),
    ("4", "1e-5", 10**10, 1e-6, 1.0785, 1.0793),
    ("1", "1e-4", 10**4, 1e-110, 13.934, 13.939),
    ("0.8", "1e-4", 10**5, 1e-10, 0.5468, 0.54706),
]


@pytest.mark.parametrize(
    "loss",
    [
        *LAWS,
        GaussianLoss(Fraction(1, 7)),
        SubsampledLoss(LaplaceLoss(Fraction(1)), Fraction("0.01")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("error", [2.0**-33, 1e-4])
def test_cells_have_mass_one_and_no_tail_on_the_wrong_side(loss: Loss, error: float) -> None:
    """Enlarged masses would make 10^8 uses likelier than certain; what they have too much leaves at the bottom."""
    for law in (replace(law, error=error) for law in loss.laws()):
        cells = Graded.of(law, 1.0 / law.spread, 1e-20, 10**4, 1e-2 * law.spread)
        above, below = cells.from_above(), cells.from_below()
        assert above.masses.sum() + above.infinite <= 1 + 1e-12
        assert below.masses.sum() + below.infinite == pytest.approx(1, abs=1e-12)
        p = law.cells(np.concatenate([[-math.inf], cells.edges, [math.inf]]))[0]
        tails = np.cumsum(p[::-1])[::-1]
        for i in range(0, len(cells.edges), 7):
            edge = float(cells.edges[i])
            true = float(tails[i + 1]) + sum(chance for value, chance in law.atoms if value >= edge)
            assert (
                above.masses[above.values >= edge].sum() + above.infinite
                >= min(1.0, true * (1 + error)) - 1e-15
            )
            higher = float(below.masses[below.values > edge].sum()) + below.infinite
            assert higher <= true * (1 - error) + 1e-15 or i == 0


@pytest.mark.parametrize(("scale", "rate", "count", "delta", "least", "most"), TRAINING)
def test_training_with_small_rates_is_narrow(
    scale: str, rate: str, count: int, delta: float, least: float, most: float
) -> None:
    plan = count * sampled(scale, rate)
    assert isinstance(plan, Total)
    found = plan.epsilon_bounds(delta)
    assert least <= found.upper <= most
    assert found.lower <= most
    assert found.upper - found.lower <= 1e-3 * found.upper


@pytest.mark.parametrize(
    ("scale", "rate", "count"), [("4", "1e-4", 10**9), ("4", "1e-5", 10**10), ("1", "1e-6", 10**9)]
)
def test_very_many_uses_of_small_rates_are_nearly_one_gaussian(
    scale: str, rate: str, count: int
) -> None:
    """The central limit: a shift of rate sqrt(count (e^(1/scale^2) - 1)),
    met to a thousandth (Dong, Roth and Su 2022).
    """
    shift = float(rate) * math.sqrt(count * math.expm1(1 / float(scale) ** 2))
    found = (count * sampled(scale, rate)).epsilon_bounds(1e-6)  # type: ignore[attr-defined]
    limit = GaussianLoss(Fraction(shift)).epsilon(1e-6)
    assert found.lower * (1 - 1e-3) <= limit <= found.upper * (1 + 1e-3)
    assert found.upper - found.lower <= 1e-3 * found.upper


def response(epsilon: str) -> FiniteLoss:
    """Two answers whose odds differ by about e^epsilon."""
    more = Fraction(1, 2) + Fraction(epsilon) / 4
    return FiniteLoss((more, 1 - more), (1 - more, more))


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        (LaplaceLoss(Fraction("1e-4")), 10**8),
        (LaplaceLoss(Fraction("1e-5")), 10**9),
        (response("1e-4"), 10**8),
        (response("1e-5"), 10**9),
        (DiscreteLaplaceLoss(1, Fraction(10**4)), 2 * 10**7),
    ],
    ids=repr,
)
@pytest.mark.parametrize("delta", [1e-6, 1e-15])
def test_more_than_ten_million_uses_of_other_losses_are_narrow(
    loss: Loss, count: int, delta: float
) -> None:
    """The central limit, met to a thousandth: each loss is within a ten-thousandth of +-maximum."""
    plan = count * loss
    assert isinstance(plan, Total)
    found = plan.epsilon_bounds(delta)
    assert 0 < found.upper - found.lower <= 1e-3 * found.upper
    limit = GaussianLoss(Fraction(loss.maximum() * math.sqrt(count))).epsilon(delta)
    assert found.lower * (1 - 1e-3) <= limit <= found.upper * (1 + 1e-3)
