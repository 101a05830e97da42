"""Sums of losses: the certified interval holds the truth, is narrow, and obeys the laws of addition."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from flint import acb, arb

import sordino as so
from first_of import first_of
from sordino.accounting import bracket
from sordino.accounting.bracket import delta_bracket, epsilon_bracket
from sordino.accounting.convolve import Sum
from sordino.accounting.grid import OnGrid
from sordino.accounting.pure import epsilon_bounds_response
from sordino.accounting.total import Total
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, working
from sordino.privacy.loss.law import Law

F = Fraction
LAPLACE = so.Laplace(10).loss(1)
GAUSSIAN = so.Gaussian(10).loss(1)
COIN = so.RandomizedResponse(F(3, 4)).loss()
STORED = Path(__file__).parents[1] / "laws" / "stored"


def bounds(loss: so.Loss, delta: Any) -> tuple[float, float]:
    assert isinstance(loss, Total)
    found = loss.epsilon_bounds(delta)
    return found.lower, found.upper


@pytest.mark.parametrize("uses", [200, 1000])
def test_what_lies_beyond_the_window_still_counts(uses: int) -> None:
    """Whatever part of a sum is looked at, the upper end of delta is above that of the whole,
    and the lower end below.
    """
    (law,) = COIN.laws()
    (low, _), (high, chance) = law.atoms
    coins = Sum(((OnGrid(low, high - low, np.array([1 - chance, chance])), uses),))
    for tilt in (0.0, 0.5):
        window = coins.window(tilt)
        assert len(window.values) < uses
        for epsilon in (
            window.values[0] - 1,
            window.values[len(window.values) // 2],
            window.values[-1] + 0.1,
        ):
            true = sum(
                math.comb(uses, n)
                * chance**n
                * (1 - chance) ** (uses - n)
                * -math.expm1(epsilon - loss)
                for n in range(uses + 1)
                if (loss := n * high + (uses - n) * low) > epsilon
            )
            above, below = bracket._delta(window, epsilon, 1), bracket._delta(window, epsilon, -1)
            assert below * (1 - 1e-9) <= true <= above * (1 + 1e-9)


# --- against exact enumeration ---------------------------------------------------------------------------------------


def random_pair(rng: random.Random) -> so.FiniteLoss:
    n = rng.choice([2, 2, 3])

    def law() -> tuple[F, ...]:
        weights = [
            rng.randint(0 if rng.random() < 0.05 else 1, rng.choice([3, 20, 1000]))
            for _ in range(n)
        ]
        weights[0] += not any(weights)
        return tuple(F(w, sum(weights)) for w in weights)

    return so.FiniteLoss(law(), law())


def exact_delta(parts: list[tuple[so.FiniteLoss, int]], epsilon: F) -> arb:
    """The worst over all ways to turn the pairs, outcome by outcome."""
    worst = arb(0)
    for turns in product((False, True), repeat=len(parts)):
        joint: dict[tuple[F, F], int] = {(F(1), F(1)): 1}
        for turn, (loss, count) in zip(turns, parts, strict=True):
            p, q = (loss.q, loss.p) if turn else (loss.p, loss.q)
            for _ in range(count):
                nxt: dict[tuple[F, F], int] = {}
                for (a, b), times in joint.items():
                    for x, y in zip(p, q, strict=True):
                        nxt[a * x, b * y] = nxt.get((a * x, b * y), 0) + times
                joint = nxt
        with working(200):
            factor = ball(epsilon).exp()
            worst = worst.max(
                sum(
                    (n * (ball(a) - factor * ball(b)).max(arb(0)) for (a, b), n in joint.items()),
                    arb(0),
                )
            )
    return worst


def check_against_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    parts = [(random_pair(rng), rng.randint(1, 3)) for _ in range(rng.randint(1, 3))]
    plan = sum(count * loss for loss, count in parts)
    if not isinstance(plan, Total):
        return
    for epsilon in (rng.uniform(-1, 4), 0.0, rng.uniform(0, 1)):
        found = plan.delta_bounds(F(epsilon))
        true = exact_delta(parts, F(epsilon))
        with working(200):
            assert arb(found.lower) <= true * (1 + arb(2) ** -100) + arb(2) ** -1070, (
                parts,
                epsilon,
                found,
            )
            assert arb(found.upper) >= true * (1 - arb(2) ** -100), (parts, epsilon, found)
    delta = 10 ** rng.uniform(-8, -0.3)
    low, high = bounds(plan, F(delta))
    with working(200):
        if math.isfinite(high):
            assert exact_delta(parts, F(high)) <= ball(F(delta))
        if math.isfinite(low):
            assert exact_delta(parts, F(low) - F(1, 10**12)) >= ball(F(delta)) * (1 - arb(2) ** -40)


@pytest.mark.parametrize("block", first_of(2, range(10)))
def test_random_finite_plans_are_bracketed(block: int) -> None:
    for seed in range(15 * block, 15 * block + 15):
        check_against_enumeration(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_finite_plans_are_bracketed(block: int) -> None:
    for seed in range(1000 + 150 * block, 1150 + 150 * block):
        check_against_enumeration(seed)


@pytest.fixture
def only_grids() -> Iterator[None]:
    """Small discrete sums are enumerated; here they must take the road of all others, grids and transforms."""
    with mock.patch.object(bracket, "enumerated", return_value=None):
        yield


@pytest.mark.usefixtures("only_grids")
@pytest.mark.parametrize("block", first_of(2, range(4)))
def test_random_finite_plans_are_bracketed_on_grids_too(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        check_against_enumeration(seed)


@pytest.mark.slow
@pytest.mark.usefixtures("only_grids")
@pytest.mark.parametrize("block", range(10))
def test_many_random_finite_plans_are_bracketed_on_grids_too(block: int) -> None:
    for seed in range(5000 + 30 * block, 5030 + 30 * block):
        check_against_enumeration(seed)


@pytest.mark.usefixtures("only_grids")
@pytest.mark.parametrize("delta", [F(1, 10), F(1, 10**6), F(1, 10**30)])
@pytest.mark.parametrize(
    ("truth", "count"), [(F(3, 4), 50), (F(11, 20), 1000), (F(51, 100), 20_000)]
)
def test_randomized_responses_on_grids_hold_the_exact_binomial_value(
    truth: F, count: int, delta: F
) -> None:
    low, high = bounds(count * so.RandomizedResponse(truth).loss(), delta)
    exact = epsilon_bounds_response(truth, count, delta)
    assert low <= exact[1]
    assert exact[0] <= high <= exact[1] * 1.0001


# --- against integrals -----------------------------------------------------------------------------------------------


def laplace_plus(t: F, other: Any, epsilon: F, kinks: list[F]) -> arb:
    """delta(epsilon) of a Laplace loss plus another with ball-valued delta: an integral over the first's law."""
    with working(160):
        atoms = ball(F(1, 2)) * other(ball(epsilon - t)) + (-ball(t)).exp() / 2 * other(
            ball(epsilon + t)
        )
        points = sorted({-t, t, *(k for k in kinks if -t < k < t)})
        total: arb = atoms
        for a, b in pairwise(points):

            def density(x: acb, _: Any) -> acb:
                value: acb = ((x - acb(ball(t))) / 2).exp() / 4 * other(acb(ball(epsilon)) - x)
                return value

            total += acb.integral(
                density, acb(ball(a)), acb(ball(b)), rel_tol=arb(2) ** -80, abs_tol=arb(2) ** -200
            ).real
        return total


def test_two_laplaces_match_the_integral() -> None:
    for t, epsilon in ((F(1, 10), F(1, 20)), (F(1, 10), F(3, 20)), (F(1), F(1)), (F(2), F(3))):

        def one(e: Any, t: F = t) -> Any:
            """Laplace's delta with shift t, on the branch that e, which never straddles one, lies in."""
            real = e.real if isinstance(e, acb) else e
            if real.mid() >= ball(t):
                return e * 0
            if real.mid() <= -ball(t):
                return 1 - e.exp()
            return 1 - ((e - (acb(ball(t)) if isinstance(e, acb) else ball(t))) / 2).exp()

        true = laplace_plus(t, one, epsilon, [epsilon - t, epsilon + t])
        found = (2 * so.LaplaceLoss(t)).delta_bounds(epsilon)  # type: ignore[attr-defined]
        assert found.lower <= float(true.mid()) * (1 + 1e-14)
        assert found.upper >= float(true.mid()) * (1 - 1e-14)
        assert found.upper <= found.lower * 1.01


def test_a_laplace_and_a_gaussian_match_the_integral() -> None:
    for t, mu, epsilon in (
        (F(1), F(1), F(1)),
        (F(1, 10), F(1, 5), F(1, 2)),
        (F(3), F(1, 2), F(1, 4)),
    ):

        def normal(e: Any, mu: F = mu) -> Any:
            m = acb(ball(mu)) if isinstance(e, acb) else ball(mu)
            root = (acb(2) if isinstance(e, acb) else arb(2)).sqrt()
            return ((e / m - m / 2) / root).erfc() / 2 - e.exp() * (
                (e / m + m / 2) / root
            ).erfc() / 2

        true = laplace_plus(t, normal, epsilon, [])
        found = (so.LaplaceLoss(t) + so.GaussianLoss(mu)).delta_bounds(epsilon)  # type: ignore[attr-defined]
        assert found.lower <= float(true.mid()) <= found.upper
        assert found.upper <= found.lower * 1.01


@pytest.mark.parametrize("mu", [F(1, 1000), F(1, 10), F(1), F(5)])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-10, 1e-50, 1e-200])
def test_the_numeric_path_agrees_with_the_gaussian_formula(mu: F, delta: float) -> None:
    """Gaussians are added analytically; forced through the grid they must still bracket their exact epsilon."""
    exact = so.GaussianLoss(mu).epsilon(delta)
    (law,) = so.GaussianLoss(mu).laws()
    found = epsilon_bracket([(law, 1)], delta)
    slack = 1e-12 * abs(exact)
    assert found.lower - slack <= exact <= found.upper + slack
    assert found.upper - found.lower <= 2e-3 * abs(exact)
    small = delta_bracket([(law, 1)], exact)
    assert small.lower * (1 - 1e-9) <= delta <= small.upper * (1 + 1e-9)


@pytest.mark.parametrize("count", [3, 50])
def test_many_small_gaussians_through_the_grid_are_one_large_one(count: int) -> None:
    (law,) = so.GaussianLoss(F(1, 7)).laws()
    exact = so.GaussianLoss(F(1, 7) * F(math.sqrt(count))).epsilon(1e-8)
    found = epsilon_bracket([(law, count)], 1e-8)
    assert found.lower <= exact <= found.upper
    assert found.upper <= found.lower * 1.002


# --- published values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "least", "most"),
    [
        (10, 0.99897, 0.99899),
        (100, 4.69264, 4.69267),
        (1000, 18.9500, 18.9503),
        (10_000, 94.212, 94.236),
    ],
)
def test_laplace_counts_of_the_research_notes(count: int, least: float, most: float) -> None:
    """Their references bracket the truth; ours must overlap them and be within a thousandth above."""
    low, high = bounds(count * LAPLACE, 1e-6)
    assert low <= most
    assert high >= least
    assert high <= low * 1.001


def test_gaussian_counts_of_the_research_notes() -> None:
    for count, true in (
        (10, 1.367571475084),
        (100, 4.886554117462),
        (1000, 19.423656474031),
        (10_000, 96.717271963868),
    ):
        low, high = bounds(count * GAUSSIAN, 1e-6)
        assert low <= true + 1e-9
        assert high == pytest.approx(true, rel=1e-9)
        assert high - low < 1e-9 * high


# --- laws of addition ------------------------------------------------------------------------------------------------

EACH = [
    LAPLACE,
    GAUSSIAN,
    COIN,
    so.LaplaceLoss(F(3)),
    so.RandomizedResponse(F(1, 2), categories=3).loss(),
]


@pytest.mark.parametrize("loss", EACH, ids=repr)
def test_n_times_a_loss_is_its_n_fold_sum(loss: so.Loss) -> None:
    """A peer drops the count for randomized response; here that would fail."""
    seven = 7 * loss
    assert seven == sum([loss] * 7) == loss * 7 == 3 * loss + 4 * loss == (2 * loss) * 3 + loss
    assert seven.epsilon(1e-6) > 2 * loss.epsilon(1e-6) or isinstance(loss, so.GaussianLoss)
    assert seven.maximum() == pytest.approx(7 * loss.maximum()) or math.isinf(loss.maximum())
    assert seven.rho() == pytest.approx(7 * loss.rho())
    assert seven.mu() == pytest.approx(math.sqrt(7) * loss.mu())
    assert seven.rdp(2) == pytest.approx(7 * loss.rdp(2))
    assert 1 * loss == loss


def test_order_does_not_matter() -> None:
    a, b, c = EACH[:3]
    assert a + b + c == c + b + a == (b + c) + a
    assert hash(a + b + c) == hash(c + a + b)


def test_a_zero_loss_changes_nothing() -> None:
    zero = so.FiniteLoss((F(1, 3), F(2, 3)), (F(1, 3), F(2, 3)))
    plan = 20 * LAPLACE
    with_zero = plan + 5 * zero
    assert with_zero.epsilon(1e-6) == plan.epsilon(1e-6)
    assert with_zero.delta(1) == plan.delta(1)
    nothing = 3 * zero
    assert nothing.epsilon(0.1) <= 0
    assert nothing.delta(0) == 0
    assert nothing.maximum() == 0


def test_adding_never_helps_and_more_noise_never_hurts() -> None:
    plan = 10 * LAPLACE
    for more in EACH:
        assert (plan + more).epsilon(1e-6) >= plan.epsilon(1e-6) * (1 - 1e-3)
    epsilons = [(10 * so.LaplaceLoss(F(n, 100)) + GAUSSIAN).epsilon(1e-6) for n in range(5, 12)]
    assert epsilons == sorted(epsilons)
    by_delta = [plan.epsilon(d) for d in (0.5, 0.1, 1e-3, 1e-6, 1e-12, 0)]
    assert by_delta == sorted(by_delta)
    deltas = [plan.delta(e) for e in np.linspace(-1, 1.1, 15).tolist()]
    assert deltas == sorted(deltas, reverse=True)


def test_views_undo_each_other() -> None:
    plan = 30 * LAPLACE + 2 * GAUSSIAN + COIN
    for delta in (1e-3, 1e-6, 1e-12):
        assert plan.delta(plan.epsilon(delta)) <= delta * 1.01
    assert plan.total_variation() == plan.delta(0)
    assert plan.delta(math.inf) == 0
    assert plan.delta(-math.inf) == 1


def test_the_trade_off_curve_is_below_every_single_one() -> None:
    plan = 5 * LAPLACE + GAUSSIAN
    for alpha in (0, 0.01, 0.1, 0.5, 0.9, 1):
        assert (
            plan.trade_off(alpha)
            <= min(LAPLACE.trade_off(alpha), GAUSSIAN.trade_off(alpha)) + 1e-12
        )
    alone = so.GaussianLoss(F(1, 10) * 2)
    assert (4 * GAUSSIAN).trade_off(0.1) == pytest.approx(alone.trade_off(0.1), abs=2e-3)
    assert (4 * GAUSSIAN).trade_off(0.1) <= alone.trade_off(0.1) + 1e-12


def test_certainty_adds_up() -> None:
    leak = so.FiniteLoss((F(999, 1000), F(1, 1000)), (F(1), F(0)))
    plan = 10 * leak
    assert plan.infinite() == 1 - F(999, 1000) ** 10
    assert plan.epsilon(1e-3) == math.inf
    assert plan.epsilon(0.02) <= 0.01
    assert plan.delta(5) >= float(plan.infinite()) * (1 - 1e-12)


def test_the_law_of_the_sum_is_drawn_where_it_is() -> None:
    plan = 100 * LAPLACE + GAUSSIAN
    grid = np.linspace(-8, 8, 161)
    masses = plan.pmf(grid)
    assert masses.sum() == pytest.approx(1, abs=1e-6)
    assert float(masses[1:-1] @ grid[1:]) == pytest.approx(
        100 * LAPLACE.rdp(1) + GAUSSIAN.rdp(1), abs=0.1
    )
    with pytest.raises(InvalidInput, match="grid"):
        plan.pmf([2, 1])


# --- storage, report, refusals ---------------------------------------------------------------------------------------

PLAN = 100 * LAPLACE + 3 * GAUSSIAN + 5 * COIN


def test_totals_are_stored_and_old_files_keep_their_meaning() -> None:
    assert so.Loss.from_json(PLAN.to_json()) == PLAN
    assert so.Loss.from_json((STORED / "total.json").read_text()) == PLAN
    fields = json.loads(PLAN.to_json())
    for broken in (
        {**fields, "parts": 3},
        {**fields, "parts": []},
        {"kind": "total", "v": 1},
        {**fields, "parts": [{"count": "0"}]},
    ):
        with pytest.raises(InvalidInput):
            so.Loss.from_json(json.dumps(broken))


def test_the_report_sets_methods_side_by_side(tmp_path: Path) -> None:
    report = PLAN.report((1e-5, 1e-6))  # type: ignore[attr-defined]
    text = str(report)
    assert "certified sum" in text
    assert "zcdp" in text
    for values in report.closed_forms.values():
        for value, found in zip(values, report.brackets, strict=True):
            assert value >= found.lower
    report.plot(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 5000
    with pytest.raises(InvalidInput, match="delta"):
        PLAN.report(())  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None])
def test_bad_counts_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="count"):
        bad * LAPLACE


def test_other_refusals() -> None:
    with pytest.raises(TypeError):
        LAPLACE + 1  # type: ignore[operator]
    for bad in (-0.1, 1, 1.1, math.nan, "x"):
        with pytest.raises(InvalidInput, match="delta"):
            PLAN.epsilon(bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="epsilon"):
        PLAN.delta(math.nan)
    assert PLAN.epsilon(0) == math.inf  # no pure bound is an answer, not an error


def test_laws_of_the_float_kind_are_all_covered() -> None:
    for loss, k in product(EACH, (1, 2)):
        assert all(isinstance(law, Law) for law in loss.laws()), k


# --- subsampled ------------------------------------------------------------------------------------------------------

GAUSSIAN_ONE = so.Gaussian(1).loss(1)
STEP = so.SubsampledLoss(GAUSSIAN_ONE, F(1, 100))


def test_a_thousand_sampled_steps_of_the_research_notes() -> None:
    """Peers bracket the truth by 2.1195 and 2.124516 at delta 1e-6."""
    low, high = bounds(1000 * STEP, 1e-6)
    assert 2.1195 < low <= 2.124516
    assert 2.1240 < high <= 2.1247
    assert high <= low * 1.001


@pytest.mark.parametrize("neighbors", list(so.Neighbors))
def test_two_sampled_steps_match_a_double_integral(neighbors: so.Neighbors) -> None:
    """Both directions, by plain quadrature over the two outputs."""
    rate, shift = 0.2, 1.5
    loss = so.SubsampledLoss(so.GaussianLoss(F(3, 2)), F(1, 5), neighbors)
    y = np.linspace(-9, 10, 3001)
    width = y[1] - y[0]

    def normal(center: float) -> Any:
        return np.exp(-((y - center) ** 2) / 2) / math.sqrt(2 * math.pi) * width

    other = -shift if neighbors is so.Neighbors.REPLACE else 0.0
    p = (1 - rate) * normal(0) + rate * normal(shift)
    q = (1 - rate) * normal(0) + rate * normal(other)
    for epsilon in (0.1, 0.5, 1.5):
        both = [
            float(
                np.maximum(
                    np.multiply.outer(a, a) - math.exp(epsilon) * np.multiply.outer(b, b), 0
                ).sum()
            )
            for a, b in ((p, q), (q, p))
        ]
        found = (2 * loss).delta_bounds(epsilon)  # type: ignore[attr-defined]
        assert found.lower * (1 - 1e-4) <= max(both) <= found.upper * (1 + 1e-4)
        assert found.upper <= found.lower * 1.02


def test_sampling_everybody_is_not_sampling() -> None:
    assert (50 * so.SubsampledLoss(GAUSSIAN_ONE, F(1))).epsilon(1e-6) == pytest.approx(
        (50 * GAUSSIAN_ONE).epsilon(1e-6), rel=1e-3
    )
    assert (50 * STEP).epsilon(1e-6) < (50 * GAUSSIAN_ONE).epsilon(1e-6) / 10


def test_sampled_losses_are_stored_and_add_to_others() -> None:
    plan = 10 * STEP + LAPLACE
    assert so.Loss.from_json(plan.to_json()) == plan
    assert so.Loss.from_json((STORED / "loss_subsampled.json").read_text()) == STEP
    assert plan.epsilon(1e-6) > LAPLACE.epsilon(1e-6)
    sampled = 100 * so.SubsampledLoss(so.LaplaceLoss(F(1)), F(1, 50))
    low, high = bounds(sampled, 1e-6)
    assert low < high <= sampled.maximum() < 100
    assert high <= low * 1.001


def test_a_finite_pair_may_be_turned_round() -> None:
    """Which of its sides has the person is not known, so both must cost the same beside a sampled loss."""
    a = so.FiniteLoss((F(9, 10), F(1, 10)), (F(99, 100), F(1, 100)))
    b = so.FiniteLoss(a.q, a.p)
    sampled = 3 * so.SubsampledLoss(so.GaussianLoss(F(2)), F(1, 10))
    one, other = (bounds(sampled + 3 * pair, 1e-4) for pair in (a, b))
    assert one[0] <= other[1]
    assert other[0] <= one[1]
    assert max(one[1], other[1]) <= 1.001 * min(one[0], other[0])
    many = sum(
        (so.FiniteLoss((F(1, n), 1 - F(1, n)), (F(1, 2), F(1, 2))) for n in range(3, 12)),
        start=LAPLACE,
    )
    with pytest.raises(InvalidInput, match="asymmetric"):
        many.epsilon(1e-6)
