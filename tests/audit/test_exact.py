"""Exact audits: claims that are a hair too small are false, exact claims hold, and our laws and losses agree."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from flint import arb

import sordino as so
from sordino.audit.computed.exact import exact
from sordino.audit.computed.law import Coin, law
from sordino.audit.computed.noise_pair import NoisePair
from sordino.audit.computed.truth import exceeds
from sordino.audit.reporting.report import Verdict
from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.additive import Additive
from sordino.mechanisms.rounded import RoundedNoise
from sordino.privacy.ball import certified, lower
from sordino.privacy.loss import LaplaceLoss

HALF = Fraction(1, 2)
PERCENT = Fraction(99, 100)


def verdict(*subject: Any, **claim: Any) -> str:
    return exact(*subject, **claim).verdict.name


def pair(mechanism: Additive, sensitivity: Fraction | int) -> NoisePair:
    noise = RoundedNoise(mechanism.shape, mechanism.scale / mechanism.step)
    return NoisePair(noise, math.floor(Fraction(sensitivity) / mechanism.step), mechanism.step)


NOISE = [
    (so.Laplace(1), 1),
    (so.Laplace(Fraction(1, 5)), 1),
    (so.Laplace(Fraction(7, 3)), 2),
    (so.Laplace(2, step=Fraction(1, 4)), 1),
    (so.Laplace(20), 3),
    (so.Gaussian(1), 1),
    (so.Gaussian(Fraction(1, 3)), 1),
    (so.Gaussian(Fraction(7, 3)), 2),
    (so.Gaussian(2, step=Fraction(1, 8)), 1),
    (so.Gaussian(15), 1),
]
noises = pytest.mark.parametrize(("mechanism", "sensitivity"), NOISE, ids=repr)
EPSILONS = [Fraction(0), Fraction(1, 10), HALF, Fraction(1), Fraction(2), Fraction(5)]


@noises
def test_the_loss_covers_the_law_and_the_sum_over_outputs_equals_the_threshold(
    mechanism: Additive, sensitivity: int
) -> None:
    """Three computations: a formula of the loss, threshold events, and a plain sum over all outputs."""
    found, loss = pair(mechanism, sensitivity), mechanism.loss(sensitivity)
    for epsilon in EPSILONS:
        threshold = certified(lambda e=epsilon: found.delta_ball(e))  # type: ignore[misc]
        assert lower(threshold) <= loss.delta(epsilon)
        summed = found.summed(epsilon)
        assert summed is not None
        assert summed[0].overlaps(threshold) or abs(summed[0] - threshold) < arb(2) ** -100
        assert summed[0].rad() < arb(2) ** -70


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_law_sum_and_loss_agree_at_many_parameters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = (so.Laplace, so.Gaussian)[seed % 2]
    step = Fraction(1, int(rng.integers(1, 9)))
    mechanism = kind(step * Fraction(int(rng.integers(1, 200)), 10), step)
    sensitivity = step * int(rng.integers(1, 12))
    found, loss = pair(mechanism, sensitivity), mechanism.loss(sensitivity)
    for epsilon in (Fraction(int(rng.integers(0, 400)), 100) for _ in range(5)):
        threshold = certified(lambda e=epsilon: found.delta_ball(e))  # type: ignore[misc]
        summed = found.summed(epsilon)
        assert summed is not None
        assert abs(summed[0] - threshold) < arb(2) ** -70
        assert lower(threshold) <= loss.delta(epsilon)
    assert found.epsilon_bounds(Fraction(1, 10**6))[0] <= max(0.0, loss.epsilon(Fraction(1, 10**6)))


@noises
def test_the_smallest_epsilon_inverts_the_smallest_delta(
    mechanism: Additive, sensitivity: int
) -> None:
    found, loss = pair(mechanism, sensitivity), mechanism.loss(sensitivity)
    for delta in (
        Fraction(1, 10),
        Fraction(1, 1000),
        Fraction(1, 10**6),
        Fraction(1, 10**30),
        Fraction(1, 10**320),
    ):
        low, high = found.epsilon_bounds(delta)
        assert 0 <= low <= high <= low + 8 * math.ulp(low)
        assert low <= max(0.0, loss.epsilon(delta))
        if low > 0:
            assert exceeds(lambda e=Fraction(low) * PERCENT: found.delta_ball(e), delta) is True  # type: ignore[misc]
        assert (
            exceeds(lambda e=Fraction(high) + Fraction(1, 10**9): found.delta_ball(e), delta)  # type: ignore[misc]
            is False
        )


@pytest.mark.parametrize("step", [1, Fraction(1, 2), Fraction(1, 2**20)])
@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, Fraction(22, 7), 1000])
def test_pure_epsilon_of_rounded_laplace_noise_is_exactly_sensitivity_over_scale(
    scale: Fraction, step: Fraction
) -> None:
    mechanism = so.Laplace(scale, step)
    truth = 2 / Fraction(scale)
    report = exact(mechanism, epsilon=truth, sensitivity=2)
    assert report.passed
    assert report.confidence is None
    assert (
        report.epsilon_lower <= truth <= Fraction(report.epsilon_lower) * (1 + Fraction(1, 10**14))
    )
    assert verdict(mechanism, epsilon=truth * PERCENT, sensitivity=2) == "VIOLATED"
    assert (
        verdict(mechanism, epsilon=truth * (1 - Fraction(1, 10**30)), sensitivity=2) == "VIOLATED"
    )


def test_rounded_gaussian_noise_has_no_pure_epsilon() -> None:
    report = exact(so.Gaussian(5), epsilon=40)
    assert report.verdict is Verdict.VIOLATED
    assert report.epsilon_lower == math.inf
    assert "no epsilon is enough" in report.summary


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-9), (3.0, 1e-6)])
def test_calibrated_noise_keeps_its_claim_and_a_percent_less_does_not(
    epsilon: float, delta: float
) -> None:
    fine = so.Gaussian.calibrated(sensitivity=1, epsilon=epsilon, delta=delta, step=2**-10)
    assert verdict(fine, epsilon=epsilon, delta=delta) == "HOLDS"
    assert verdict(fine, epsilon=0.99 * epsilon, delta=delta) == "VIOLATED"
    assert verdict(fine, epsilon=epsilon, delta=0.99 * delta) == "VIOLATED"
    laplace = so.Laplace.calibrated(sensitivity=1, epsilon=epsilon)
    assert verdict(laplace, epsilon=epsilon) == "HOLDS"
    assert verdict(laplace, epsilon=0.99 * epsilon) == "VIOLATED"


def test_noise_of_a_smaller_scale_than_calibrated_is_found() -> None:
    right = so.Laplace.calibrated(sensitivity=1, epsilon=1)
    assert verdict(so.Laplace(right.scale * Fraction(9, 10)), epsilon=1) == "VIOLATED"


def test_values_that_cannot_move_on_the_lattice_reveal_nothing() -> None:
    report = exact(so.Laplace(1), epsilon=0, sensitivity=0.5)
    assert report.passed
    assert report.epsilon_lower == 0
    assert "whole steps" in report.notes[0]


@pytest.mark.parametrize(
    ("truth", "categories"), [(Fraction(3, 4), 2), (HALF, 3), (Fraction(9, 10), 5), (HALF, 1000)]
)
def test_randomized_response(truth: Fraction, categories: int) -> None:
    mechanism = so.RandomizedResponse(truth, categories)
    needed = mechanism.loss().maximum()
    report = exact(mechanism, epsilon=needed)
    assert report.passed
    assert needed * (1 - 1e-15) <= report.epsilon_lower <= needed
    assert verdict(mechanism, epsilon=0.99 * needed) == "VIOLATED"
    tv = Fraction(mechanism.loss().total_variation())
    assert verdict(mechanism, epsilon=0, delta=tv) == "HOLDS"
    assert verdict(mechanism, epsilon=0, delta=tv * PERCENT) == "VIOLATED"


def test_named_categories_are_named() -> None:
    report = exact(so.RandomizedResponse(Fraction(4, 5), ["yes", "no", "maybe"]), epsilon=1)
    assert (
        report.witness
        == "the output is 'yes': probability 0.8 under the truth 'yes', 0.1 under the truth 'no'"
    )


@pytest.mark.parametrize("odds", range(2, 60))
def test_a_true_epsilon_rounded_to_a_float_is_not_refuted(odds: int) -> None:
    """log(odds) is irrational; half of its floats are below it. One unit in the last place is forgiven, two are not."""
    mechanism = so.RandomizedResponse(Fraction(odds, odds + 1))
    typed = math.log(odds)
    assert verdict(mechanism, epsilon=typed) == "HOLDS"
    below = typed
    for _ in range(3):
        below = math.nextafter(below, 0)
    assert verdict(mechanism, epsilon=below) == "VIOLATED"


def test_exact_numbers_are_taken_at_their_word() -> None:
    mechanism = so.RandomizedResponse(Fraction(3, 4))
    assert verdict(mechanism, epsilon=Decimal("1.0986122886681096913952452369225")) == "VIOLATED"
    assert verdict(mechanism, epsilon=Decimal("1.0986122886681096913952452369226")) == "HOLDS"
    tiny = {"a": 1 - Fraction(1, 10**400), "b": Fraction(1, 10**400)}
    assert verdict(tiny, {"a": 1}, epsilon=1, delta=0.0) == "VIOLATED"
    assert verdict(tiny, {"a": 1}, epsilon=1, delta=1e-300) == "HOLDS"


def test_two_laws_of_a_coin() -> None:
    def respond(answer: bool, coin: Coin) -> bool:
        return answer if coin.event(HALF) else coin.event(HALF)

    p, q = law(respond, True), law(respond, False)
    report = exact(p, q, epsilon=1, name="two coins")
    assert report.name == "two coins"
    assert report.verdict is Verdict.VIOLATED
    assert (
        report.epsilon_lower
        == exact(so.RandomizedResponse(Fraction(3, 4)), epsilon=1).epsilon_lower
    )
    assert ("total variation distance", "0.5") in report.facts
    assert verdict(p, q, epsilon=Fraction(11, 10)) == "HOLDS"


def test_noisy_max_with_geometric_noise_has_the_epsilon_of_its_noise() -> None:
    """Adding one to the larger of two counts: the true epsilon is log 2 for ratio 1/2, up to the cut at `reach`."""
    ratio, reach = Fraction(1, 2), 8

    def noisy_max(counts: tuple[int, int], coin: Coin) -> int:
        noisy = [count + coin.geometric(ratio, reach) for count in counts]
        return 0 if noisy[0] > noisy[1] else 1

    p, q = law(noisy_max, (3, 3)), law(noisy_max, (4, 3))
    mass = [HALF ** (k + 1) for k in range(reach)] + [HALF**reach]
    # b > a, for a below the cut
    second_wins = sum((mass[a] * HALF ** (a + 1) for a in range(reach)), Fraction(0))
    assert q == {0: 1 - second_wins, 1: second_wins}
    assert p == {0: second_wins, 1: 1 - second_wins}
    odds = (1 - second_wins) / second_wins
    report = exact(p, q, epsilon=math.log(odds))
    assert report.passed
    assert math.isclose(report.epsilon_lower, math.log(odds), rel_tol=1e-14)
    assert report.epsilon_lower < math.log(2) + 2 ** -(reach - 2)


def test_an_output_on_one_side_only_is_named() -> None:
    report = exact({"a": 1}, {"a": 0.5, "leak": 0.5}, epsilon=9)
    assert report.epsilon_lower == math.inf
    assert "'leak'" in report.witness
    assert report.delta_lower == 0.5
    assert verdict({"a": 1}, {"a": 0.5, "leak": 0.5}, epsilon=9, delta=0.5) == "HOLDS"


def test_both_directions_count() -> None:
    p, q = [Fraction(1, 100), Fraction(99, 100)], [HALF, HALF]
    assert exact(p, q, epsilon=1).epsilon_lower == exact(q, p, epsilon=1).epsilon_lower > 3.9


@pytest.mark.parametrize("delta", [0, Fraction(1, 1000), Fraction(1, 10), HALF, 1])
def test_the_smallest_epsilon_of_finite_laws_equals_that_of_the_finite_loss(
    delta: Fraction,
) -> None:
    p = (Fraction(1, 10), Fraction(2, 10), Fraction(3, 10), Fraction(4, 10))
    q = (Fraction(4, 10), Fraction(1, 10), Fraction(2, 10), Fraction(3, 10))
    promised = max(0.0, so.FiniteLoss(p, q).epsilon(delta))
    found = exact(p, q, epsilon=1, delta=delta).epsilon_lower
    assert found <= promised <= found * (1 + 1e-14)


def test_key_selection() -> None:
    for l1, delta in ((1, Fraction(1, 10**5)), (4, Fraction(1, 100))):
        selection = so.KeySelection(Fraction(1), delta, l1, l1)
        report = exact(selection, epsilon=1, delta=delta)
        assert report.passed
        assert report.epsilon_lower > 0.999
        assert verdict(selection, epsilon=PERCENT, delta=delta) == "VIOLATED"
        assert verdict(selection, epsilon=1, delta=delta * PERCENT) == "VIOLATED"
        assert exact(selection, epsilon=1).epsilon_lower == math.inf
    with pytest.raises(InvalidInput, match="l1 = linf"):
        exact(so.KeySelection(Fraction(1), HALF, 2, 1), epsilon=1)
    with pytest.raises(TooLarge):
        exact(so.KeySelection(Fraction(1, 10**6), Fraction(1, 10**9), 1, 1), epsilon=1)


def test_losses_are_taken_as_true() -> None:
    loss = so.Laplace(1).loss(1)
    assert verdict(loss, epsilon=1) == "HOLDS"
    assert verdict(loss, epsilon=PERCENT) == "VIOLATED"
    assert 0.999999 < exact(loss, epsilon=1).epsilon_lower <= 1
    assert exact(so.Gaussian(1).loss(1), epsilon=1).epsilon_lower == math.inf
    coins = 10 * so.RandomizedResponse(Fraction(3, 4)).loss()
    needed = coins.epsilon(1e-6)
    assert verdict(coins, epsilon=1.02 * needed, delta=1e-6) == "HOLDS"
    assert verdict(coins, epsilon=0.98 * needed, delta=1e-6) == "VIOLATED"


def test_a_claim_within_the_bracket_of_a_sum_is_undecided() -> None:
    total = 20 * so.Laplace(3).loss(1)
    assert isinstance(total, so.Total)
    inside = total.delta_bounds(2)
    assert inside.lower < inside.upper
    report = exact(total, epsilon=2, delta=Fraction(inside.lower + inside.upper) / 2)
    assert report.verdict is Verdict.UNDECIDED
    assert not report.passed


def test_a_loss_that_promises_too_much_is_never_passed() -> None:
    """A mistake in the loss, planted: the claim is generous, but law and loss contradict each other."""
    with mock.patch.object(
        so.Laplace, "loss", lambda self, s: LaplaceLoss(Fraction(s) / self.scale * Fraction(8, 10))
    ):
        report = exact(so.Laplace(1), epsilon=0.9, delta=0.5)
    assert report.verdict is Verdict.UNDECIDED
    assert "one of the two is wrong" in report.summary


def test_a_report_has_everything() -> None:
    for report in (
        exact(so.Laplace(2), epsilon=0.4),
        exact(so.RandomizedResponse(0.75), epsilon=1),
        exact({"a": 1}, {"a": 1}, epsilon=0),
        exact(so.Gaussian(2).loss(1), epsilon=1, delta=0.01),
        exact(so.KeySelection(Fraction(1), Fraction(1, 100), 1, 1), epsilon=1, delta=0.01),
    ):
        assert report.method == "exact law"
        assert all((report.summary, report.relation, report.version, report.created))
        assert report.figures[-1].title == "Privacy profile"
        for figure in report.figures:
            for series in figure.series:
                assert len(series.x) == len(series.y) > 0
                assert all(map(math.isfinite, (*series.x, *series.y)))
        assert [name for name, _ in report.facts][2] == "total variation distance"


@pytest.mark.parametrize("wrong", [-1, -1e-9, math.nan, math.inf, "1", None, True])
def test_bad_epsilons_and_deltas_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        exact(so.Laplace(1), epsilon=wrong)
    with pytest.raises(InvalidInput, match="delta"):
        exact(so.Laplace(1), epsilon=1, delta=wrong)
    with pytest.raises(InvalidInput):
        exact(so.Laplace(1), epsilon=1, sensitivity=wrong)


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ({"a": 0.5}, {"a": 1}),
        ({"a": 1.5, "b": -0.5}, {"a": 1}),
        ({"a": math.nan}, {"a": 1}),
        ({"a": 1}, [1]),
        ([1], [0.5, 0.5]),
        ({}, {}),
        ({"a": 1}, None),
        (None, None),
        ("law", {"a": 1}),
        (so.Laplace(1), {"a": 1}),
        (lambda x: x, None),
        ({"a": 1}, so.Laplace(1)),
    ],
)
def test_what_is_no_law_is_refused(p: Any, q: Any) -> None:
    with pytest.raises(InvalidInput):
        exact(p, q, epsilon=1)
