"""Intervals cover as often as they say, by exact enumeration and by simulation; consistency never makes it worse."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import gammaln

import sordino.local as local
from first_of import first_of
from sordino.errors import InvalidInput
from sordino.local.estimates import nearest_shares
from sordino.local.intervals import SupportLaw, normal_quantile
from tape import Tape, replay

Floats = npt.NDArray[np.float64]

PROTOCOLS: list[Any] = [
    local.Direct.calibrated(epsilon=1, categories=2),
    local.Direct.calibrated(epsilon=3, categories=2),
    local.Direct.calibrated(epsilon=6, categories=4),
    local.Direct.calibrated(epsilon=1, categories=1000),
    local.Unary.calibrated(epsilon=1, categories=16),
    local.AffineSubset.calibrated(epsilon=3, categories=256),
    local.Hadamard.calibrated(epsilon=0.5, categories=16),
]


def _binomial(n: int, p: float) -> Floats:
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.asarray(np.exp(ways + k * np.log(p) + (n - k) * np.log1p(-p)))


def _coverage(law: SupportLaw, confidence: float, truths: int) -> list[tuple[float, float]]:
    """(coverage, variance of the count) at many true shares, exactly."""
    n, p, q = law.answers, float(law.own), float(law.other)
    lower, upper = law.ends(np.arange(n + 1), confidence)
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert ((0 <= lower) & (lower < upper) & (upper <= 1)).all()
    found = []
    for m in np.unique(np.linspace(0, n, truths).astype(int)).tolist():
        s = m / n
        law_of_count = (
            _binomial(n, q + s * (p - q))
            if law.population
            else np.convolve(_binomial(m, p), _binomial(n - m, q))
        )
        covered = float(law_of_count[(lower <= s) & (s <= upper)].sum())
        found.append((covered, float(law.variance(np.array(s)))))
    return found


@pytest.mark.parametrize("confidence", first_of(1, [0.95, 0.8, 0.99]))
@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize(
    ("sizes", "truths"),
    first_of(1, [((1, 5, 20, 100), 9), ((400,), 9), ((50, 1000), 21)]),
    ids=str,
)
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_exact_coverage(
    protocol: Any, population: bool, confidence: float, sizes: tuple[int, ...], truths: int
) -> None:
    """Never more than 1 % below; within 1 % as soon as an atom is below 1 % at the ends."""
    z = normal_quantile(confidence)
    fine = max(36, (100 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)) ** 2)
    for n in sizes:
        for covered, variance in _coverage(
            SupportLaw(n, protocol.own, protocol.other, population), confidence, truths
        ):
            assert covered >= confidence - 0.01
            assert variance < fine or covered <= confidence + 0.01


@pytest.mark.parametrize("epsilon", [36, 37, 38, 60, 100])
def test_the_intervals_of_nearly_plain_answers(epsilon: int) -> None:
    """Nobody lies but once in e^epsilon: who answered is known to one person, a population as from true answers."""
    counts = np.array([1000, 0])
    direct = local.Direct.calibrated(epsilon=epsilon, categories=2)
    found = direct.estimate_from_counts(1000, counts)
    assert (found.lower >= [0.999, 0]).all()
    assert (found.upper <= [1, 0.001]).all()
    assert ((found.lower <= [1, 0]) & (found.upper >= [1, 0])).all()
    whole = direct.estimate_from_counts(1000, counts, population=True)
    assert whole.lower.tolist() == pytest.approx([0.05 ** (1 / 1000), 0], abs=2e-3)
    half = direct.estimate_from_counts(1000, np.array([500, 500]))
    assert (half.upper - half.lower < 0.0021).all()
    mean = local.OneBitMean.calibrated(epsilon=epsilon, low=0, high=10).estimate_from_counts(
        1000, np.array([1000])
    )
    assert mean.lower > 9.9


@pytest.mark.parametrize("confidence", first_of(1, [1 - 1e-6, 0.999, 1 - 1e-9]))
@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize(
    ("own", "other", "n"),
    [
        (0.88, 0.12, 4),
        (0.784, 0.0144, 20),
        (0.5, 4.5e-5, 200),
        (0.5, 3.4e-4, 150),
        (0.33, 0.0447, 5),
        (0.6, 0.3, 250),
    ],
)
def test_rare_errors_are_as_rare_as_stated(
    own: float, other: float, n: int, population: bool, confidence: float
) -> None:
    """High confidences, few answers, large epsilons: at most half as often again as allowed, by exact enumeration."""
    law = SupportLaw(n, Fraction(own), Fraction(other), population)
    lower, upper = law.ends(np.arange(n + 1), confidence)
    for having in sorted({*range(min(n, 6)), n // 7, n // 2, n - 1, n}):
        s = having / n
        two = np.convolve(_binomial(having, own), _binomial(n - having, other))
        chances = _binomial(n, other + s * (own - other)) if population else two
        assert chances[(lower > s) | (s > upper)].sum() <= 1.5 * (1 - confidence) + 1e-12


def test_an_end_is_where_the_test_turns_and_nowhere_before() -> None:
    """Where atoms begin to count for half there was a second crossing: every share beyond an end must be rejected."""
    for n, own, other in ((148, 0.5, 0.3775), (147, 0.8808, 0.1192)):
        law = SupportLaw(n, Fraction(own), Fraction(other), population=True)
        counts = np.arange(n + 1)
        lower, upper = law.ends(counts, 0.95)
        for share in np.linspace(0, 1, 401):
            chances = _binomial(n, other + share * (own - other))
            missed = chances[(lower > share) | (share > upper)].sum()
            assert missed <= 0.06


def test_narrower_intervals_would_be_noticed() -> None:
    law = SupportLaw(1500, Fraction(3, 4), Fraction(1, 4), population=False)
    assert min(c for c, _ in _coverage(law, 0.93, 21)) < 0.94


SIMULATED: list[tuple[Any, int]] = [
    (local.Direct.calibrated(epsilon=1, categories=3), 2000),
    (local.LocalHashing.calibrated(epsilon=1, categories=20), 3000),
    (local.AffineSubset.calibrated(epsilon=2, categories=30), 3000),
    (local.Unary.calibrated(epsilon=1, categories=10), 2000),
]


def _missed(protocol: Any, persons: int, runs: int, seed: int) -> tuple[Floats, Floats]:
    """How often the intervals of a large, a small and an absent share miss, and the truth."""
    true = np.repeat([0, 1], [int(persons * 0.7), persons - int(persons * 0.7)])
    true[:20] = 1
    shares = np.bincount(true, minlength=protocol.categories) / persons
    misses = np.zeros(3)
    with replay(Tape(seed)):
        for _ in range(runs):
            found = protocol.randomize(true).estimate()
            misses += ((found.lower > shares) | (found.upper < shares))[:3]
    return misses, shares


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "persons"), SIMULATED, ids=str)
def test_coverage_in_2000_simulations(protocol: Any, persons: int) -> None:
    misses, _ = _missed(protocol, persons, 2000, seed=4)
    assert (abs(misses - 100) <= 20).all()


@pytest.mark.parametrize(("protocol", "persons"), SIMULATED[:2], ids=str)
def test_coverage_in_few_simulations(protocol: Any, persons: int) -> None:
    misses, _ = _missed(protocol, persons, 60, seed=8)
    assert (misses < 60 * (0.05 + 6 * np.sqrt(0.05 * 0.95 / 60))).all()


def test_shares_counts_and_errors() -> None:
    coin = local.Direct(3, ["yes", "no"])
    found = coin.estimate_from_counts(1000, np.array([600, 400]))
    assert found.shares.tolist() == pytest.approx([0.7, 0.3])
    assert found.counts.tolist() == pytest.approx([700, 300])
    assert found.standard_errors[0] == pytest.approx(float(coin.variance(1000, 0.7)) ** 0.5)
    assert found.upper[0] - found.lower[0] == pytest.approx(
        2 * 1.96 * found.standard_errors[0], rel=0.01
    )
    wider = coin.estimate_from_counts(1000, np.array([600, 400]), population=True)
    assert wider.lower[0] < found.lower[0] < found.upper[0] < wider.upper[0]
    assert "yes" in str(found)
    assert "those who answered" in str(found)
    assert found.to_arrow().column("category").to_pylist() == ["yes", "no"]
    many = local.Direct(3, 50).estimate_from_counts(50, np.ones(50, np.int64))
    assert "38 more" in str(many)
    assert many.to_arrow().num_rows == 50


def test_estimates_outside_the_simplex_are_brought_back_and_intervals_stay() -> None:
    found = local.Unary(3, 4).estimate_from_counts(100, np.array([70, 20, 20, 20]))
    assert found.shares.min() < 0
    fixed = found.consistent()
    assert fixed.shares.min() == 0
    assert fixed.shares.sum() == pytest.approx(1)
    assert (fixed.lower == found.lower).all()
    assert (fixed.standard_errors == found.standard_errors).all()


def test_the_projection_is_the_nearest_point_and_never_farther_from_any_truth() -> None:
    rng = np.random.default_rng(3)
    for k in (2, 3, 10, 300):
        for _ in range(50):
            estimate = rng.normal(1 / k, rng.choice([0.01, 0.3, 2]), k)
            near = nearest_shares(estimate)
            assert near.min() >= 0
            assert near.sum() == pytest.approx(1)
            truth = rng.dirichlet(np.full(k, 0.3))
            assert ((near - truth) ** 2).sum() <= ((estimate - truth) ** 2).sum() + 1e-12
            # at the nearest point of a convex set no other point of it lies at an acute angle
            assert (estimate - near) @ (truth - near) <= 1e-9


def test_means_with_intervals() -> None:
    protocol = local.OneBitMean.calibrated(epsilon=1, low=0, high=100)
    misses = 0
    with replay(Tape(6)):
        for _ in range(80):
            found = protocol.estimate(protocol.randomize(np.full(2000, 30)))
            misses += not found.lower <= 30 <= found.upper
    assert misses < 80 * (0.05 + 6 * (0.05 * 0.95 / 80) ** 0.5)
    assert found.standard_error == pytest.approx(
        float(protocol.variance(2000, Fraction(3, 10))) ** 0.5, rel=0.02
    )
    assert "2000 reports" in str(found)
    low = protocol.estimate_from_counts(10, np.array([0]))
    assert low.lower == 0 < low.upper < 100


@pytest.mark.slow
@pytest.mark.parametrize("persons", [500, 5000])
def test_coverage_of_means_in_2000_simulations(persons: int) -> None:
    protocol = local.OneBitMean.calibrated(epsilon=1, low=0, high=1)
    population = np.random.default_rng(0)
    misses = 0
    with replay(Tape(2)):
        for _ in range(2000):
            found = protocol.estimate(protocol.randomize(population.beta(2, 6, persons)))
            misses += not found.lower <= 0.25 <= found.upper
    assert abs(misses - 100) <= 20


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, "0.95", None, float("nan")])
def test_bad_confidence_is_refused(confidence: Any) -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        local.Direct(3, 2).randomize([0, 1]).estimate(confidence)


def test_the_interval_of_a_mean_holds_what_the_grid_took_away() -> None:
    """Numbers of 0.4 on a grid of whole steps are all read as 0."""
    coarse = local.OneBitMean(3, 0, 1, steps=1)
    with replay(Tape(9)):
        found = coarse.randomize(np.full(200_000, 0.4)).estimate()
    assert found.lower <= 0.4 <= found.upper
    assert found.upper < 0.51


def test_results_show_themselves() -> None:
    shares = local.Direct(3, ["yes", "no"]).randomize(["yes"]).estimate()
    mean = local.OneBitMean(3, 0, 1).randomize([1]).estimate()
    for found in (shares, mean):
        assert repr(found) == str(found)
        assert "1 report" in repr(found)
        assert "1 reports" not in repr(found)
    assert (
        repr(local.Direct(3, 2).randomize([0, 1]).tally())
        == "Tally of 2 reports of Direct(odds=3, categories=2)"
    )


def test_columns_stay_straight_under_long_names() -> None:
    names = ["a", "b" * 30, "c" * 40, "d" * 41, "e\nf"]
    found = local.Direct(3, names).randomize(names).estimate()
    lines = str(found).splitlines()[1:]
    assert len(lines) == 5
    assert len({line.index("[") for line in lines}) == 1
    assert "c" * 40 in str(found)
    assert "d" * 37 + "..." in str(found)


@pytest.mark.parametrize("population", [1_000_000, 1, 0, "yes", None])
def test_the_size_of_a_population_is_not_asked_for(population: Any) -> None:
    protocol, numbers = local.Direct(3, 2), local.OneBitMean(3, 0, 1)
    reports = protocol.randomize([0, 1])
    for call in (
        reports.estimate,
        reports.tally().estimate,
        partial(protocol.estimate, reports),
        partial(protocol.estimate_from_counts, 2, np.array([1, 1])),
        numbers.randomize([1]).estimate,
        partial(protocol.persons_needed, 0.01),
        partial(local.persons_needed, 1, 3, 0.01),
    ):
        with pytest.raises(InvalidInput, match="True or False"):
            call(population=population)
