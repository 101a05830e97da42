"""The transfer theorems: against exact enumeration, against each other, and rounded to the safe side."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sordino.adaptive.noise_of_answers import Certain, NoiseName, Rough
from sordino.adaptive.theorems import THEOREMS, Parameters
from sordino.adaptive.transfer import METHODS, best_noise, guarantee, most_questions, plan
from sordino.errors import InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.loss import GaussianLoss

CONDITIONAL = next(theorem for theorem in THEOREMS if theorem.name == "conditional")


def _hockey_stick(law: np.ndarray, epsilon: float) -> float:
    """The delta of a channel from samples (rows) to transcripts (columns) for samples that differ in one place."""
    places = int(math.log2(len(law)))
    pairs = [(s, s ^ (1 << i)) for s in range(len(law)) for i in range(places)]
    return max(float(np.maximum(law[s] - math.exp(epsilon) * law[t], 0).sum()) for s, t in pairs)


def _alpha(law: np.ndarray, failure: float) -> float:
    """What Theorem 4 says of questions computed from answers: the least alpha, without noise."""
    found = 1.0
    for epsilon in np.linspace(0, 4, 81):
        plus, minus = math.exp(epsilon) + 1, math.expm1(epsilon)
        constant = minus / 2 + 2 * _hockey_stick(law, epsilon) / failure
        square = plus**2 - 2 * minus * constant
        found = min(found, 2 * constant / (plus + math.sqrt(square))) if square > 0 else found
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_gap_of_private_transcripts_is_bounded_in_every_small_world(seed: int) -> None:
    """Two or three bits, a random channel, the worst question for each transcript: enumerated exactly."""
    random = np.random.default_rng(seed)
    places = int(random.integers(2, 4))
    samples, bias = 2**places, random.uniform(0.05, 0.95)
    sums = np.array([bin(s).count("1") for s in range(samples)])
    weights = bias**sums * (1 - bias) ** (places - sums)
    # A channel of transcripts that leans towards the sample's sum, more or less, with ones that give it away.
    law = np.exp(
        random.uniform(0, 2) * random.standard_normal((samples, 6))
        + random.uniform(0, 1) * np.outer(sums, np.arange(6)) / 3
    )
    law /= law.sum(axis=1, keepdims=True)
    joint = weights[:, None] * law
    chance = joint.sum(axis=0)
    # The mean over the sample, given the transcript, of the best question, which is "the bit is 1" or "the bit is 0".
    gap = np.abs((joint * (sums / places)[:, None]).sum(axis=0) / chance - bias)
    for threshold in sorted(gap):
        bad = gap >= threshold - 1e-12
        failure = float(chance[bad].sum())
        assert threshold <= _alpha(law, failure) + 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_smaller_bound_would_be_true(epsilon: float) -> None:
    """One row, 1 with probability 1/(1 + e^(eps/2)), told by randomized response: the gap after a yes is the bound."""
    truth, rare = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon / 2))
    yes = rare * truth + (1 - rare) * (1 - truth)
    gap = rare * truth / yes - rare
    assert gap == pytest.approx(math.tanh(epsilon / 4))
    noise = _Told(epsilon)
    bound = CONDITIONAL.bound(noise, yes, Parameters(1.0, 1.0))
    assert gap <= bound <= gap * (1 + 1e-9)


class _Told:
    """Answers without noise that are epsilon-private, epsilon being `mu`."""

    questions, scale = 1, 0.0

    def __init__(self, mu: float) -> None:
        self.mu = mu

    def delta(self, epsilon: float) -> float:
        return max(0.0, -math.expm1(epsilon - self.mu))

    def quantile(self, tail: float) -> float:
        return 0.0 * tail

    def tail_mean(self, tail: float) -> float:
        return 0.0 * tail


def test_the_formula_solves_its_equation() -> None:
    for mu, failure in itertools.product((0.01, 0.1), (0.05, 0.01)):
        noise = Rough("gaussian", 1 / (1000 * mu), 1000, 1)
        at = CONDITIONAL.best(noise, failure)
        alpha, epsilon = (
            CONDITIONAL.formula(noise, failure, at) - noise.tail_mean(failure),
            at.epsilon(noise),
        )
        left = (math.exp(epsilon) + 1) * alpha - math.expm1(epsilon) * (
            1 + alpha**2 + noise.scale**2
        ) / 2
        assert left == pytest.approx(2 * noise.delta(epsilon) / failure, rel=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [Gaussian(Fraction(1, 100), Fraction(1, 10**9)), Laplace(Fraction(1, 100), Fraction(1, 10**9))],
)
def test_certain_numbers_are_not_below_the_truth(mechanism: Gaussian | Laplace) -> None:
    name: NoiseName = "laplace" if isinstance(mechanism, Laplace) else "gaussian"
    sure, rough = Certain(mechanism, 1000, 50), Rough(name, 0.01, 1000, 50)
    for tail in (1e-9, 1e-3, 0.5, 1.0):
        assert sure.quantile(tail) >= rough.quantile(tail) * (1 - 1e-12)
        assert sure.tail_mean(tail) == pytest.approx(rough.tail_mean(tail), rel=1e-9)
        assert sure.tail_mean(tail) >= sure.quantile(tail)
    if name == "gaussian":
        for epsilon in (0.0, 0.3, 2.0):
            assert sure.delta(epsilon) == pytest.approx(rough.delta(epsilon), rel=1e-6)


def test_the_tail_mean_is_the_least_over_bends() -> None:
    """T(r) = min_b b + E(|nu| - b)^+/r, by numerical integration."""
    x = np.linspace(0, 40, 40_001)
    middle, width = (x[1:] + x[:-1]) / 2, x[1] - x[0]
    for mechanism, density in (
        (Gaussian(1), np.sqrt(2 / np.pi) * np.exp(-(middle**2) / 2)),
        (Laplace(1), np.exp(-middle)),
    ):
        for tail in (0.3, 0.01):
            bends = np.linspace(0, 8, 161)
            least = min(
                b + float((np.maximum(middle - b, 0) * density).sum() * width) / tail for b in bends
            )
            told = Certain(mechanism, 1, 1).tail_mean(tail)
            assert told <= least + 1e-5
            assert told >= least - 2e-3


@pytest.mark.parametrize("theorem", THEOREMS, ids=lambda theorem: theorem.name)
def test_every_choice_of_parameters_is_a_bound_and_the_search_finds_a_good_one(
    theorem: object,
) -> None:
    noise = Rough("gaussian", 0.01, 100_000, 1_000)
    best = theorem.formula(noise, 0.05, theorem.best(noise, 0.05))  # type: ignore[attr-defined]
    for slope, other in itertools.product(np.geomspace(0.2, 20, 17), np.geomspace(1e-5, 10, 17)):
        value = theorem.formula(noise, 0.05, Parameters(float(slope), float(other)))  # type: ignore[attr-defined]
        assert best <= value * 1.001


def test_the_published_statement_of_jung_and_others() -> None:
    """alpha + e^eps - 1 + c + 2d fails with beta'/c + delta/d: the formula is its least over c and d."""
    theorem = next(theorem for theorem in THEOREMS if theorem.name == "posterior")
    noise, failure = Rough("gaussian", 0.02, 50_000, 200), 0.05
    at = theorem.best(noise, failure)
    epsilon, beta = at.epsilon(noise), failure * at.other
    delta = noise.delta(epsilon)
    told = theorem.formula(noise, failure, at) - noise.quantile(beta / 200) - math.expm1(epsilon)
    shares = np.linspace(0.001, 0.999, 9_999)
    c, d = beta / (failure * shares), delta / (failure * (1 - shares))
    assert told == pytest.approx(float((c + 2 * d).min()), rel=1e-6)


def test_the_plan_orders_the_methods_as_the_theory_does() -> None:
    found = plan(100_000, 1_000)
    assert {way.method for way in found.ways} == set(METHODS)
    error = {way.method: way.population for way in found.ways if way.noise in ("none", "gaussian")}
    assert (
        error["union"]
        < error["conditional"]
        < error["posterior"]
        < error["stability"]
        < error["splitting"]
    )
    assert found.best.method == "conditional"
    assert found.best.population < 0.45 * error["posterior"]
    assert plan(100_000, 3).best.method == "splitting"
    assert "* conditional" in str(found)
    assert "not for questions that depend on answers" in str(found)


def test_the_best_scale_is_the_best() -> None:
    best = best_noise(50_000, 500)
    error = guarantee(best, 50_000, 500).population
    for factor in (Fraction(4, 5), Fraction(5, 4)):
        assert guarantee(Gaussian(best.scale * factor, best.step), 50_000, 500).population > error


def test_more_rows_fewer_questions_less_confidence_are_never_worse() -> None:
    noise = Gaussian(Fraction(1, 100), Fraction(1, 2**40))
    base = guarantee(noise, 50_000, 500, 0.95)
    for other in (
        guarantee(noise, 60_000, 500, 0.95),
        guarantee(noise, 50_000, 400, 0.95),
        guarantee(noise, 50_000, 500, 0.9),
    ):
        assert other.population < base.population
        assert other.sample <= base.sample  # type: ignore[operator]


def test_how_many_questions_rows_bear() -> None:
    found = most_questions(20_000, 0.1)
    for name in ("splitting", "conditional"):
        k = found[name]
        within = [
            min(
                way.population
                for way in plan(20_000, n, noises=("gaussian",)).ways
                if way.method == name
            )
            for n in (k, k + 1)
        ]
        assert within[0] <= 0.1 < within[1]
    assert most_questions(10, 0.01) == dict.fromkeys(METHODS, 0)


def test_laplace_is_certified_by_the_exact_sum_not_by_the_rough_one() -> None:
    """Few answers: the Gaussian look of their sum is far off, the bound must not use it."""
    mechanism = Laplace(Fraction(1, 100), Fraction(1, 2**40))
    pure = Fraction(1, 100) * 100 * 2  # two answers about 100 rows: epsilon 1 each
    error = guarantee(mechanism, 100, 2).population
    assert error <= 1.0
    assert Certain(mechanism, 100, 2).delta(float(pure)) == 0.0
    assert Rough("laplace", 0.01, 100, 2).delta(float(pure)) > 0.1


def test_very_many_laplace_answers_are_taken_for_gaussian_ones_that_are_no_more_private() -> None:
    """Just above the bend the curve lies above that of the exact sum, by little; far above it needs no exact sum."""
    mechanism = Laplace(Fraction(1, 1000), Fraction(1, 2**60))
    exact, above = Certain(mechanism, 10**6, 10**6), Certain(mechanism, 10**6, 10**6 + 1)
    for epsilon in (0.0, 1.0, 3.0):
        assert exact.delta(epsilon) <= above.delta(epsilon)
    assert above.delta(0.0) < 1.26 * exact.delta(0.0)
    far = Certain(Laplace(Fraction(1, 10**5), Fraction(1, 2**80)), 2**42, 10**9)
    assert isinstance(far.loss, GaussianLoss)
    assert 0 < plan(2**42, 10**9).best.population < 0.0004


def test_confidence_as_high_as_is_allowed_is_answered() -> None:
    sure = guarantee(
        Gaussian(Fraction(1, 1000), Fraction(1, 2**50)), 10**7, 10**9, 1 - Fraction(1, 10**120)
    )
    assert 0 < sure.sample <= sure.population <= 1  # type: ignore[operator]


@pytest.mark.parametrize(
    "bad",
    [
        lambda: plan(0, 10),
        lambda: plan(10, 0),
        lambda: plan(10, True),
        lambda: plan(10, 10, 1.0),
        lambda: plan(10, 10, 1 - Fraction(1, 10**400)),
        lambda: guarantee(Gaussian(1), 10, 10, 1 - Fraction(1, 10**130)),
        lambda: plan(10, 10, noises=("cauchy",)),  # type: ignore[arg-type]
        lambda: guarantee(Gaussian(1), 10, 10, method="magic"),
        lambda: most_questions(10, 0),
        lambda: best_noise(10, 10, noise="none"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput):
        bad()  # type: ignore[operator]


@pytest.mark.parametrize(
    "scale",
    [Fraction(1, 10**12), Fraction(1, 10), Fraction(1000), Fraction(10**400), Fraction(1, 10**400)],
)
@pytest.mark.parametrize("method", [theorem.name for theorem in THEOREMS])
def test_useless_noise_promises_nothing_and_fails_nowhere(scale: Fraction, method: str) -> None:
    for mechanism in (Gaussian(scale, Fraction(1, 2**50)), Laplace(scale, Fraction(1, 2**50))):
        found = guarantee(mechanism, 1_000, 100, method=method)
        assert 0 < found.population <= 1
        assert scale == Fraction(1, 10) or found.population == 1


@pytest.mark.parametrize("method", [theorem.name for theorem in THEOREMS])
@pytest.mark.parametrize("questions", [1, 30, 1_000])
def test_a_promise_covers_the_noise_of_all_answers(method: str, questions: int) -> None:
    """Constant questions have no error but the noise:
    the largest of all must stay within the promise, 95 % of the time.
    """
    noise = Laplace(Fraction(1, 50), step=Fraction(1, 10**12))
    largest = -0.02 * math.log(-math.expm1(math.log(0.95) / questions))
    found = guarantee(noise, 10**9, questions, method=method)
    assert largest <= found.population < 1
    assert found.sample is not None
    assert largest <= found.sample < 1


def test_one_row_of_a_coin_is_half_off_on_either_side() -> None:
    """At any confidence an exact answer from one toss of a fair coin is off by 1/2, always."""
    for confidence in (0.05, 0.1, 0.5, 0.95):
        ways = {way.method: way.population for way in plan(1, 1, confidence).ways}
        assert min(ways["union"], ways["splitting"]) >= 0.5
