"""Losses by name that a plan may hold, each against an independent truth:
enumeration, integration, or a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction as F
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from flint import arb
from scipy.special import ndtr

import sordino as so
from first_of import first_of
from sordino.accounting.closed_forms import rdp, zcdp
from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, working
from sordino.privacy.loss import MomentLoss
from sordino.privacy.loss.law import Law

COIN = so.FiniteLoss((F(3, 4), F(1, 4)), (F(1, 4), F(3, 4)))
SKEWED = so.FiniteLoss((F(1, 2), F(3, 8), F(1, 8)), (F(1, 4), F(1, 4), F(1, 2)))
EPSILONS = [F(x) for x in ("-2", "-1/3", "0", "1/100", "1/10", "1/2", "1", "5/2")]
MIXTURE = so.GaussianMixtureLoss((F(0), F(1, 2), F(1)), (F(9, 10), F(6, 100), F(4, 100)))
LAWFUL: list[so.Loss] = [
    so.EpsilonDeltaLoss(F(1, 2)),
    so.EpsilonDeltaLoss(F(1, 2), F(1, 100)),
    so.DiscreteLaplaceLoss(3, F(2)),
    so.DiscreteLaplaceLoss(5000, F(2000)),
    so.DiscreteGaussianLoss(2, F(3)),
    so.SampledFiniteLoss(SKEWED, F(1, 10)),
    so.WithoutReplacementLoss(so.GaussianLoss(F(1)), 10, 100),
    so.WithoutReplacementLoss(so.LaplaceLoss(F(1)), 10, 100),
    so.WithoutReplacementLoss(COIN, 10, 100),
    so.truncated_poisson(so.GaussianLoss(F(1)), F(1, 10), 12, 100),
    so.truncated_poisson(so.LaplaceLoss(F(1)), F(1, 10), 12, 100),
    MIXTURE,
]
MOMENTS: list[so.Loss] = [
    so.ZcdpLoss(F(1, 50)),
    so.RenyiLoss(((F(2), F(1, 10)), (F(8), F(4, 10)), (F(32), F(16, 10)))),
    so.BestOfManyLoss(so.GaussianLoss(F(1, 10)), so.NegativeBinomialRuns(F(1, 20), F(0))),
    so.BestOfManyLoss(so.EpsilonDeltaLoss(F(1, 10)), so.PoissonRuns(F(10))),
]


def hockey(p: Sequence[arb], q: Sequence[arb], epsilon: F) -> arb:
    with working(256):
        factor = ball(epsilon).exp()
        return sum(((a - factor * b).max(arb(0)) for a, b in zip(p, q, strict=True)), arb(0))


def balls(values: Sequence[F]) -> list[arb]:
    with working(256):
        return [ball(x) for x in values]


def never_below(claimed: float, truth: arb) -> bool:
    with working(256):
        return not arb(claimed) < truth


def as_plan(loss: so.Loss) -> Total:
    assert isinstance(loss, Total)
    return loss


@pytest.mark.parametrize("loss", [*LAWFUL, *MOMENTS, MIXTURE + so.EpsilonDeltaLoss(F(1))], ids=repr)
def test_stored_losses_load_as_themselves(loss: so.Loss) -> None:
    again = so.Loss.from_json(loss.to_json())
    assert again == loss
    assert again.delta(F(1, 3)) == loss.delta(F(1, 3))


@pytest.mark.parametrize("loss", [*LAWFUL, *MOMENTS], ids=repr)
def test_views_agree_and_every_loss_adds_and_draws(loss: so.Loss) -> None:
    delta = F(1, 50)
    epsilon = loss.epsilon(delta)
    assert loss.delta(epsilon) <= float(delta) * (1 + 1e-12)
    assert loss.delta(epsilon - 1e-6) > float(delta) * (1 - 1e-3) or epsilon == loss.maximum()
    both = as_plan(loss + so.LaplaceLoss(F(1, 10)))
    bracket = both.epsilon_bounds(delta)
    assert bracket.lower <= bracket.upper
    assert epsilon - 1e-9 <= bracket.upper <= epsilon + 0.1 + 1e-6 or loss.by_moments
    assert 0 <= loss.trade_off(0.2) <= 0.8
    assert (3 * loss).delta(0) >= loss.delta(0) * (1 - 1e-9)
    assert loss.plot() is not None


@pytest.mark.parametrize("loss", LAWFUL, ids=repr)
def test_the_law_has_the_profile(loss: so.Loss) -> None:
    """delta from the law's own probabilities, the worse of its directions, is that of the formula."""

    def delta(law: Law, epsilon: float) -> float:
        p, q = law.cells(np.array([epsilon, math.inf]))
        atoms = sum(w * -math.expm1(epsilon - v) for v, w in law.atoms if v > epsilon)
        return float(p[0] - math.exp(epsilon) * q[0]) + atoms + law.infinite

    for epsilon in (-0.2, 0.0, 0.07, 0.3, 0.9):
        found = max(delta(law, epsilon) for law in loss.laws())
        truth = loss.delta(epsilon)
        assert found >= truth * (1 - 1e-7) - 1e-15
        assert found <= truth * (1 + 1e-7) + 1e-15 + (2e-3 * truth if loss.idealized else 0)


# declared promises


def declared_sum(parts: Sequence[tuple[F, F, int]], epsilon: F) -> arb:
    """delta of a product of (epsilon, delta) pairs, outcome by outcome."""
    with working(256):
        outcomes: list[tuple[arb, arb]] = [(arb(1), arb(1))]
        for e, d, count in parts:
            odds, kept = ball(e).exp(), ball(1 - d)
            yes, no = kept * odds / (1 + odds), kept / (1 + odds)
            pair = [(ball(d), arb(0)), (yes, no), (no, yes), (arb(0), ball(d))]
            for _ in range(count):
                outcomes = [(a * p, b * q) for a, b in outcomes for p, q in pair]
    return hockey([a for a, _ in outcomes], [b for _, b in outcomes], epsilon)


@pytest.mark.parametrize("parts", [
    [(F(1), F(1, 10), 1), (F(2), F(1, 5), 1)],
    [(F(1, 10), F(1, 1000), 4), (F(1, 3), F(0), 2)],
    [(F(0), F(1, 20), 3), (F(1, 2), F(1, 100), 2)],
], ids=str)  # fmt: skip
def test_sums_of_declared_promises_are_exact(parts: list[tuple[F, F, int]]) -> None:
    plan = as_plan(so.total((so.EpsilonDeltaLoss(e, d), count) for e, d, count in parts))
    for epsilon in (F(0), F(1, 4), F(1), F(3)):
        truth = declared_sum(parts, epsilon)
        found = plan.delta_bounds(epsilon)
        assert never_below(found.upper, truth)
        assert found.lower <= float(truth) * (1 + 1e-12)
        assert found.upper <= float(truth) * (1 + 1e-9) + 1e-300


def test_declared_deltas_compose_as_independent_chances() -> None:
    many = as_plan(100_000 * so.EpsilonDeltaLoss(F(0), F(1, 10**7)))
    assert many.delta(0) == pytest.approx(1 - (1 - 1e-7) ** 100_000, rel=1e-9)
    assert as_plan(30 * so.EpsilonDeltaLoss(F(1), F(1, 100))).epsilon(F(27, 100)) == pytest.approx(
        23.395, abs=1e-3
    )


@pytest.mark.parametrize("epsilon", ["1/10", "1", "4"])
def test_a_pure_promise_is_randomized_response(epsilon: str) -> None:
    loss, laplace = so.EpsilonDeltaLoss(F(epsilon)), so.LaplaceLoss(F(epsilon))
    assert loss.maximum() == laplace.maximum()
    for e in EPSILONS:
        assert loss.delta(e) >= laplace.delta(e) * (1 - 1e-15)
    with working(256):
        odds = ball(F(epsilon)).exp()
        pair = [odds / (1 + odds), 1 / (1 + odds)]
    for e in EPSILONS:
        assert loss.delta(e) == pytest.approx(float(hockey(pair, pair[::-1], e)), abs=1e-15)


def test_a_plan_with_moments_is_certified_through_divergences() -> None:
    """A Gaussian release is zero-concentrated, so its plan's truth must stay below what the promise gives."""
    gaussian, noise = so.GaussianLoss(F(1, 5)), so.LaplaceLoss(F(1, 2))
    promise, curve = (
        so.ZcdpLoss(F(1, 50)),
        so.RenyiLoss(tuple((F(a), F(a, 50)) for a in (2, 4, 8, 16, 32, 64))),
    )
    for known in (promise, curve):
        truth, plan = as_plan(10 * gaussian + 3 * noise), as_plan(10 * known + 3 * noise)
        for delta in (1e-3, 1e-6, 1e-12):
            found = plan.epsilon_bounds(delta)
            assert truth.epsilon_bounds(delta).lower <= found.upper
            assert found.lower <= math.log1p(-delta)
            assert plan.delta(found.upper) <= delta * (1 + 1e-9)
        assert found.upper <= rdp([(gaussian, 10), (noise, 3)], 1e-12) * (
            1.001 if known is promise else 1.2
        )
    assert (10 * promise).epsilon(1e-6) == pytest.approx(zcdp([(gaussian, 10)], 1e-6), rel=1e-12)
    assert as_plan(10 * promise).rho() == pytest.approx(0.2, rel=1e-12)


def test_a_declared_delta_beside_moments_takes_its_chance_first() -> None:
    pure, with_delta = (
        as_plan(so.ZcdpLoss(F(1, 50)) + so.EpsilonDeltaLoss(F(1, 2), d)) for d in (F(0), F(1, 1000))
    )
    assert with_delta.epsilon(F(1, 2000)) == math.inf
    for epsilon in (F(1, 2), F(1)):
        expected = 0.001 + 0.999 * pure.delta(epsilon)
        assert with_delta.delta(epsilon) == pytest.approx(expected, rel=1e-9)
    assert with_delta.epsilon(F(1, 100)) == pytest.approx(pure.epsilon(F(9, 999)), rel=1e-9)


@pytest.mark.parametrize("alpha", ["3/2", "2", "3", "6", "8", "20", "31"])
def test_a_curve_between_its_orders_bounds_every_release_that_has_it(alpha: str) -> None:
    for truth in (so.GaussianLoss(F(1, 2)), so.LaplaceLoss(F(1)), COIN):
        curve = so.RenyiLoss(tuple((F(a), F(truth.rdp(F(a)))) for a in (2, 8, 32)))
        assert curve.rdp(F(alpha)) >= truth.rdp(F(alpha)) * (1 - 1e-14)
    assert curve.rdp(33) == math.inf


# integer noise


@pytest.mark.parametrize("scale", first_of(2, ["1/3", "2", "5/2"]))
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("kind", [so.DiscreteLaplaceLoss, so.DiscreteGaussianLoss])
def test_integer_noise_is_enumerated(kind: type, shift: int, scale: str) -> None:
    loss, t = kind(shift, F(scale)), F(scale)

    def mass(x: int) -> arb:
        return ball(
            -F(abs(x)) / t if kind is so.DiscreteLaplaceLoss else -F(x * x) / (2 * t * t)
        ).exp()

    with working(256):
        weights = {x: mass(x) for x in range(-500, 501)}
        whole = sum(weights.values(), arb(0))
        p, q = ([weights[y - s] / whole for y in range(-400, 401)] for s in (shift, 0))
    for epsilon in (*EPSILONS, F(shift) / t, F(shift, 2) / t):
        truth = hockey(p, q, epsilon)
        assert never_below(loss.delta(epsilon) + 1e-60, truth)
        assert loss.delta(epsilon) == pytest.approx(float(truth), rel=1e-14, abs=1e-60)
    two = as_plan(2 * loss)
    with working(256):
        pairs = [
            (a * c, b * d)
            for a, b in zip(p[340:460], q[340:460], strict=True)
            for c, d in zip(p[340:460], q[340:460], strict=True)
        ]
    for epsilon in (F(1, 4), F(1)):
        truth = hockey([a for a, _ in pairs], [b for _, b in pairs], epsilon)
        assert two.delta(epsilon) >= float(truth) * (1 - 1e-12) - 1e-60
        assert two.delta(epsilon) <= float(truth) * 1.02 + 1e-9
    for alpha in (F(1), F(2), F(7, 2)):
        with working(256):
            terms = [(a, (a / b).log()) for a, b in zip(p, q, strict=True)]
            moment = sum((a * (ball(alpha - 1) * log).exp() for a, log in terms), arb(0))
            exact = (
                sum((a * log for a, log in terms), arb(0))
                if alpha == 1
                else moment.log() / ball(alpha - 1)
            )
        assert loss.rdp(alpha) >= float(exact) * (1 - 1e-12)
        assert kind is so.DiscreteGaussianLoss or loss.rdp(alpha) == pytest.approx(
            float(exact), rel=1e-12
        )


# samples


def sampled_laws(
    release: Callable[[tuple[int, ...]], Sequence[F]],
    data: tuple[int, ...],
    weights: dict[tuple[int, ...], F],
) -> list[F]:
    """The law of a release on a random subset, given as positions with their probabilities."""
    result = [F(0)] * len(release(()))
    for chosen, weight in weights.items():
        for i, x in enumerate(release(tuple(data[j] for j in chosen))):
            result[i] += weight * x
    return result


def poisson(count: int, rate: F) -> dict[tuple[int, ...], F]:
    subsets = (c for size in range(count + 1) for c in combinations(range(count), size))
    return {c: rate ** len(c) * (1 - rate) ** (count - len(c)) for c in subsets}


def parity(sample: tuple[int, ...]) -> tuple[F, ...]:
    """A coin that tells the parity of the sample's sum three times of four: its worst pair is COIN."""
    return COIN.p if sum(sample) % 2 else COIN.q


def test_a_finite_release_on_a_poisson_sample() -> None:
    loss, rate, worst = so.SampledFiniteLoss(COIN, F(1, 5)), F(1, 5), [F(0)] * len(EPSILONS)
    for others in product((0, 1), repeat=2):
        with_one = balls(sampled_laws(parity, (1, *others), poisson(3, rate)))
        without = balls(sampled_laws(parity, others, poisson(2, rate)))
        for i, epsilon in enumerate(EPSILONS):
            for truth in (hockey(with_one, without, epsilon), hockey(without, with_one, epsilon)):
                assert never_below(loss.delta(epsilon), truth)
                worst[i] = max(worst[i], F(float(truth)))
    for epsilon, largest in zip(EPSILONS, worst, strict=True):
        assert loss.delta(epsilon) == pytest.approx(float(largest), abs=1e-15)


def test_a_release_on_a_sample_of_fixed_size() -> None:
    loss, worst = so.WithoutReplacementLoss(COIN, 2, 4), [0.0] * len(EPSILONS)
    weights: dict[tuple[int, ...], F] = {c: F(1, 6) for c in combinations(range(4), 2)}
    laws = {data: balls(sampled_laws(parity, data, weights)) for data in product((0, 1), repeat=4)}
    for one, other in product(laws, laws):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            for i, epsilon in enumerate(EPSILONS):
                truth = hockey(laws[one], laws[other], epsilon)
                assert never_below(loss.delta(epsilon), truth)
                worst[i] = max(worst[i], float(truth))
    for epsilon, largest in zip(EPSILONS, worst, strict=True):
        assert loss.delta(epsilon) == pytest.approx(largest, abs=1e-15)


@pytest.mark.parametrize("base", [so.GaussianLoss(F(1)), so.LaplaceLoss(F(1)), COIN], ids=repr)
def test_samples_of_fixed_size_by_the_formula(base: so.GaussianLoss) -> None:
    loss, rate = so.WithoutReplacementLoss(base, 10, 100), 0.1
    for epsilon in (0.0, 0.02, 0.1, 0.4):
        expected = rate * base.delta(math.log1p(math.expm1(epsilon) / rate))
        assert loss.delta(epsilon) == pytest.approx(expected, rel=1e-11, abs=1e-300)
        assert loss.delta(-epsilon) == pytest.approx(
            -math.expm1(-epsilon) + math.exp(-epsilon) * expected, rel=1e-11
        )
    assert so.WithoutReplacementLoss(base, 5, 5).delta(0.3) == pytest.approx(
        base.delta(0.3), rel=1e-12
    )


def normal_mixture(parts: Sequence[tuple[float, float]], y: np.ndarray) -> np.ndarray:
    """Probabilities of the cells between edges y of a mixture of N(centre, 1)."""
    return np.diff(sum((w * ndtr(y - centre) for w, centre in parts), np.zeros(len(y))))


def test_a_poisson_sample_cut_to_size() -> None:
    """Every data set of up to four persons with values -1, 0 or 1,
    its truncated sums enumerated, its noise integrated.
    """
    rate, most, y = F(3, 10), 2, np.linspace(-14, 14, 20001)
    loss = so.truncated_poisson(so.GaussianLoss(F(1)), rate, most, persons=4)

    def law(data: tuple[int, ...]) -> np.ndarray:
        parts = []
        for chosen, weight in poisson(len(data), rate).items():
            cuts = list(combinations(chosen, most)) if len(chosen) > most else [chosen]
            parts += [(float(weight) / len(cuts), float(sum(data[i] for i in cut))) for cut in cuts]
        return normal_mixture(parts, y)

    for others in product((-1, 0, 1), repeat=3):
        without = law(others)
        for value in (-1, 1):
            with_one = law((value, *others))
            for epsilon in (-0.2, 0.0, 0.1, 0.5, 1.0, 2.0):
                for a, b in ((with_one, without), (without, with_one)):
                    truth = float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
                    assert truth <= loss.delta(epsilon) + 1e-12
    plain = so.SubsampledLoss(so.GaussianLoss(F(1)), rate)
    assert so.truncated_poisson(so.GaussianLoss(F(1)), rate, most, persons=2).delta(
        0.5
    ) == plain.delta(0.5)
    chance = sum(w for c, w in poisson(3, rate).items() if len(c) >= most)
    wider = so.SubsampledLoss(so.GaussianLoss(F(2)), rate)
    expected = float(1 - chance) * plain.delta(0.5) + float(chance) * wider.delta(0.5)
    assert loss.delta(0.5) == pytest.approx(expected, rel=1e-9)


def test_a_release_by_a_public_coin() -> None:
    loss = so.MixedLoss(((F(1, 3), COIN), (F(2, 3), so.LaplaceLoss(F(1, 2)))))
    for e in EPSILONS:
        assert loss.delta(e) == pytest.approx(
            COIN.delta(e) / 3 + so.LaplaceLoss(F(1, 2)).delta(e) * 2 / 3, rel=1e-12
        )
    told = so.FiniteLoss(
        (F(1, 4), F(1, 12), F(1, 2), F(1, 6)), (F(1, 12), F(1, 4), F(1, 6), F(1, 2))
    )
    assert (5 * so.MixedLoss(((F(1, 3), COIN), (F(2, 3), COIN)))).epsilon(1e-3) == pytest.approx(
        (5 * told).epsilon(1e-3)
    )


# mixtures of Gaussians


@pytest.mark.parametrize(("shift", "rate"), first_of(2, [
    ("1/3", "1/100"), ("3", "1/2"), ("1", "1/100"), ("1", "1/2"), ("1/3", "1/2"), ("3", "1/100"),
]))  # fmt: skip
def test_a_mixture_of_two_is_a_sampled_gaussian(shift: str, rate: str) -> None:
    r = F(rate)
    mixture, sampled = (
        so.GaussianMixtureLoss((F(0), F(shift)), (1 - r, r)),
        so.SubsampledLoss(so.GaussianLoss(F(shift)), r),
    )
    for epsilon in EPSILONS:
        assert mixture.delta(epsilon) == pytest.approx(sampled.delta(epsilon), rel=1e-13)
    for count in (2, 300):
        ours, truth = (
            as_plan(count * mixture).epsilon_bounds(1e-6),
            as_plan(count * sampled).epsilon_bounds(1e-6),
        )
        assert ours.upper >= truth.lower
        assert ours.lower <= truth.upper
        assert ours.upper <= truth.upper * 1.003
        assert ours.lower >= truth.lower * 0.99


def test_a_mixture_of_three_is_integrated() -> None:
    y = np.linspace(-12, 13, 200_001)
    p, q = (
        normal_mixture([(0.9, 0.0), (0.06, 0.5), (0.04, 1.0)], y),
        normal_mixture([(1.0, 0.0)], y),
    )
    for epsilon in EPSILONS:
        truth = max(
            float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p))
        )
        assert MIXTURE.delta(epsilon) == pytest.approx(truth, rel=1e-6, abs=1e-12)


# the best of many


def selected(law: Sequence[F], chances: Callable[[arb], arb]) -> list[arb]:
    """The law of the largest of a random number of draws,
    by the generating function of that number; first that of none.
    """
    with working(256):
        below = [chances(ball(sum(law[:i], F(0)))) for i in range(len(law) + 1)]
        return [below[0], *(b - a for a, b in pairwise(below))]


@pytest.mark.parametrize("runs", [
    so.NegativeBinomialRuns(F(1, 10)), so.NegativeBinomialRuns(F(1, 10), F(0)), so.NegativeBinomialRuns(F(1, 3), F(2)),
    so.NegativeBinomialRuns(F(1, 5), F(-1, 2)), so.PoissonRuns(F(5)), so.PoissonRuns(F(1, 2)),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("base", [COIN, SKEWED], ids=["coin", "skewed"])
def test_the_best_of_many_is_enumerated(
    base: so.FiniteLoss, runs: so.NegativeBinomialRuns | so.PoissonRuns
) -> None:
    loss = so.BestOfManyLoss(base, runs)

    def chances(x: arb) -> arb:
        if isinstance(runs, so.PoissonRuns):
            return (ball(runs.mean) * (x - 1)).exp()
        g, n = ball(runs.stop), ball(runs.shape)
        inner = 1 - (1 - g) * x
        if runs.shape == 0:
            return inner.log() / g.log()
        return ((-n * inner.log()).exp() - 1) / ((-n * g.log()).exp() - 1)

    for turn in (base, so.FiniteLoss(base.p[::-1], base.q[::-1]), so.FiniteLoss(base.q, base.p)):
        p, q = selected(turn.p, chances), selected(turn.q, chances)
        for alpha in (F(3, 2), F(2), F(5), F(40)):
            with working(256):
                moment = sum(
                    (
                        a * (ball(alpha - 1) * (a / b).log()).exp()
                        for a, b in zip(p, q, strict=True)
                        if a > 0
                    ),
                    arb(0),
                )
                exact = moment.log() / ball(alpha - 1)
            assert loss.rdp(alpha) >= float(exact)
        with working(256):
            largest = max(float((a / b).log()) for a, b in zip(p, q, strict=True) if a > 0)
        assert largest <= loss.maximum() * (1 + 1e-12)
        for epsilon in (F(1, 2), F(2)):
            assert never_below(loss.delta(epsilon), hockey(p, q, epsilon))


def test_the_mean_number_of_runs() -> None:
    stop = 0.1
    with working(128):
        assert float(so.NegativeBinomialRuns(F(1, 10)).mean_ball()) == pytest.approx(10)
        logarithmic = sum(k * (1 - stop) ** k / (k * math.log(1 / stop)) for k in range(1, 2000))
        assert float(so.NegativeBinomialRuns(F(1, 10), F(0)).mean_ball()) == pytest.approx(
            logarithmic
        )


# groups


def test_a_group_through_noise_moves_as_far_as_its_persons_together() -> None:
    plan = (
        3 * so.GaussianLoss(F(1, 5))
        + so.LaplaceLoss(F(1, 2))
        + so.ZcdpLoss(F(1, 100))
        + so.DiscreteLaplaceLoss(1, F(4))
    )
    wider = (
        3 * so.GaussianLoss(F(2, 5))
        + so.LaplaceLoss(F(1))
        + so.ZcdpLoss(F(4, 100))
        + so.DiscreteLaplaceLoss(2, F(4))
    )
    assert so.group(plan, 2) == wider
    assert so.group(plan, 1) == plan
    assert so.group(so.BoundedRangeLoss(F(1)), 3) == so.BoundedRangeLoss(F(3))


@pytest.mark.parametrize("size", [2, 3])
def test_a_group_through_a_finite_release(size: int) -> None:
    """Reports of a value 0 to 3 whose probabilities halve with the distance: each step is one neighbour."""
    weights = [[F(1, 2 ** abs(x - y)) for y in range(4)] for x in range(4)]
    laws = [[w / sum(row) for w in row] for row in weights]
    steps = [so.FiniteLoss(tuple(a), tuple(b)) for a, b in pairwise(laws)]
    pure = so.EpsilonDeltaLoss(F(max(s.maximum() for s in steps)))
    for i in range(4 - size):
        p, q = balls(laws[i]), balls(laws[i + size])
        for epsilon in EPSILONS:
            assert never_below(so.group(pure, size).delta(epsilon), hockey(p, q, epsilon))
    # one middle step is COIN-like: a walk over a chain of which every step is the same symmetric pair
    chained = so.group(COIN, size)
    assert chained.maximum() == pytest.approx(size * math.log(3), rel=1e-14)
    for alpha in (0.01, 0.1, 0.3, 0.6):
        level = alpha
        for _ in range(size):
            level = 1 - COIN.trade_off(level)
        assert chained.trade_off(alpha) == pytest.approx(1 - level, abs=1e-12)


def test_a_group_of_a_declared_delta() -> None:
    loss = so.EpsilonDeltaLoss(F(1), F(1, 1000))
    found = so.group(loss, 3)
    assert isinstance(found, so.EpsilonDeltaLoss)
    assert found.most == 3
    assert float(found.failure) == pytest.approx(0.001 * (1 + math.e + math.e**2), rel=1e-12)
    odds = F(math.e)  # the same pair as a finite one, whose group is exact
    yes, no = F(999, 1000) * odds / (1 + odds), F(999, 1000) / (1 + odds)
    exact = so.group(so.FiniteLoss((F(1, 1000), yes, no, F(0)), (F(0), no, yes, F(1, 1000))), 3)
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        assert exact.delta(epsilon) <= found.delta(epsilon) * (1 + 1e-9)
    assert exact.delta(3) == pytest.approx(found.delta(3), rel=1e-9)


def test_a_group_of_a_curve() -> None:
    curve = so.RenyiLoss(tuple((F(a), F(a, 50)) for a in (4, 8, 16)))
    assert so.group(curve, 2) == so.RenyiLoss(tuple((F(a, 2), 3 * F(a, 50)) for a in (4, 8, 16)))
    gaussian = so.GaussianLoss(F(2, 5))
    for order in (2, 4, 8):
        assert so.group(curve, 2).rdp(order) >= gaussian.rdp(order)


# refusals


@pytest.mark.parametrize(("make", "words"), [
    (lambda: so.EpsilonDeltaLoss(F(-1)), "epsilon must be at least 0"),
    (lambda: so.EpsilonDeltaLoss(F(1), F(1)), "below 1"),
    (lambda: so.ZcdpLoss(F(0)), "greater than zero"),
    (lambda: so.RenyiLoss(()), "orders must rise"),
    (lambda: so.RenyiLoss(((F(1), F(1, 2)),)), "above 1"),
    (lambda: so.RenyiLoss((2, 3)), "pairs"),  # type: ignore[arg-type]
    (lambda: so.DiscreteLaplaceLoss(F(1, 2), F(1)), "whole number"),  # type: ignore[arg-type]
    (lambda: so.DiscreteGaussianLoss(1, F(10**5)), "ZcdpLoss"),
    (lambda: so.SampledFiniteLoss(so.LaplaceLoss(F(1)), F(1, 2)), "SubsampledLoss"),  # type: ignore[arg-type]
    (lambda: so.SubsampledLoss(COIN, F(1, 2)), "SampledFiniteLoss"),  # type: ignore[arg-type]
    (lambda: so.WithoutReplacementLoss(SKEWED, 1, 2), "symmetric"),
    (lambda: so.WithoutReplacementLoss(COIN, 3, 2), "no more persons"),
    (lambda: so.MixedLoss(((F(1, 2), COIN),)), "sum to exactly 1"),
    (lambda: so.MixedLoss(((F(1), SKEWED),)), "symmetric"),
    (lambda: so.MixedLoss(((F(1), so.ZcdpLoss(F(1))),)), "law of its own"),
    (lambda: so.truncated_poisson(so.GaussianLoss(F(1)), F(1, 10), 0, 10), "at least 1"),
    (lambda: so.GaussianMixtureLoss((F(0), F(1)), (F(1, 2), F(1, 4))), "sum to exactly 1"),
    (lambda: so.GaussianMixtureLoss((F(0),), (F(1),)), "above 0"),
    (lambda: so.BestOfManyLoss(so.EpsilonDeltaLoss(F(1), F(1, 10)), so.PoissonRuns(F(3))), "give everything away"),
    (lambda: so.BestOfManyLoss(COIN, 10), "k fixed runs"),  # type: ignore[arg-type]
    (lambda: so.group(so.SubsampledLoss(so.GaussianLoss(F(1)), F(1, 10)), 2), "Convert its promise"),
    (lambda: so.group(COIN, 0), "at least 1 person"),
    (lambda: so.ZcdpLoss(F(1)).pmf([0, 1]), "has no law"),
    (lambda: (so.ZcdpLoss(F(1)) + COIN).pmf([0, 1]), "has no law"),
    (lambda: so.SampledFiniteLoss(COIN, F(1, 2)) + so.WithoutReplacementLoss(COIN, 1, 2), "one relation"),
])  # fmt: skip
def test_what_has_no_theorem_is_refused_in_words(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_promises_are_charged_as_promises() -> None:
    assert so.Charge.of(so.EpsilonDeltaLoss(F(1), F(1, 1000))) == so.Charge.approximate(
        F(1), F(1, 1000)
    )
    assert so.Charge.of(so.ZcdpLoss(F(1, 2))).rho == F(1, 2)
    assert isinstance(so.ZcdpLoss(F(1)), MomentLoss)
