"""What every protocol must obey, checked on its exact law: privacy, unbiasedness, variance, one client and many."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sordino.local as local
from local_laws import Law, Walk, batch_law, client_law, polynomial_product, speaks_for
from sordino.privacy.ball import at_most, ball
from sordino.privacy.exact import bounds

ODDS = Fraction(5, 2)
SMALL: list[Any] = [
    local.Direct(3, 2),
    local.Direct(ODDS, 5),
    local.Unary(3, 2),
    local.Unary(ODDS, 4),
    local.LocalHashing(ODDS, 4, values=2),
    local.LocalHashing(ODDS, 3, values=3),
    local.LocalHashing(ODDS, 5, values=3),
    local.LocalHashing(ODDS, 6, values=4),
    local.Subset(ODDS, 5, size=2),
    local.Subset(3, 4, size=1),
    local.Subset(3, 7, size=1),
    local.AffineSubset(ODDS, 4, size=2),
    local.AffineSubset(3, 5, size=2),
    local.AffineSubset(3, 6, size=3),
    local.AffineSubset(ODDS, 8, size=3),
    local.Hadamard(ODDS, 2),
    local.Hadamard(ODDS, 4),
]
NUMBERS = [local.OneBitMean(ODDS, 0, 3, steps=6), local.OneBitMean(3, -1, 1, steps=4)]


def _laws(protocol: Any) -> list[Law]:
    return [client_law(protocol, x) for x in range(protocol.categories)]


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_the_batch_has_the_law_of_the_client(protocol: Any) -> None:
    for x in range(protocol.categories):
        assert batch_law(protocol, x) == client_law(protocol, x)


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_no_report_is_more_than_odds_times_likelier_under_another_truth(protocol: Any) -> None:
    for p, q in permutations(_laws(protocol), 2):
        assert p.keys() == q.keys()
        assert max(p[y] / q[y] for y in p) == protocol.odds


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_the_stated_loss_is_the_law_of_the_ratio(protocol: Any) -> None:
    loss = protocol.loss()
    stated = {a / b: a for a, b in zip(loss.p, loss.q, strict=True) if a}
    for p, q in permutations(_laws(protocol), 2):
        found: dict[Fraction, Fraction] = defaultdict(Fraction)
        for y in p:
            found[p[y] / q[y]] += p[y]
        assert found == stated


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_estimates_are_unbiased_and_have_the_stated_variance(protocol: Any) -> None:
    supports = {y: speaks_for(protocol, y) for law in _laws(protocol) for y in law}
    slope = 1 / (protocol.own - protocol.other)
    laws = _laws(protocol)
    for truths in product(range(protocol.categories), repeat=2):
        for j in range(protocol.categories):
            moments = [Fraction(0), Fraction(0)]
            chances = [sum(w for y, w in laws[x].items() if supports[y][j]) for x in truths]
            for speak in product((0, 1), repeat=2):
                weight = Fraction(1)
                for s, chance in zip(speak, chances, strict=True):
                    weight *= chance if s else 1 - chance
                estimate = slope * (Fraction(sum(speak), 2) - protocol.other)
                moments[0] += weight * estimate
                moments[1] += weight * estimate**2
            share = Fraction(truths.count(j), 2)
            assert moments[0] == share
            assert moments[1] - share**2 == protocol.variance(2, share)


@pytest.mark.parametrize("protocol", SMALL, ids=repr)
def test_summed_variance_is_that_of_the_whole_vector_of_estimates(protocol: Any) -> None:
    k = protocol.categories
    shares = [Fraction(1, 2), Fraction(1, 2), *[Fraction(0)] * (k - 2)]
    assert sum(protocol.variance(7, s) for s in shares) == protocol.total_variance(7)


@pytest.mark.parametrize("protocol", NUMBERS, ids=repr)
def test_one_bit_is_private_unbiased_and_has_the_stated_variance(
    protocol: local.OneBitMean,
) -> None:
    span = protocol.high - protocol.low
    numbers = [protocol.low + span * Fraction(i, protocol.steps) for i in range(protocol.steps + 1)]
    laws = [client_law(protocol, x) for x in numbers]
    for x, law in zip(numbers, laws, strict=True):
        assert batch_law(protocol, float(x)) == law
        slope = span / (protocol.own - protocol.other)
        values = {y: protocol.low + slope * (int(y == 1) - protocol.other) for y in law}
        assert sum(w * values[y] for y, w in law.items()) == x
        variance = sum(w * (values[y] - x) ** 2 for y, w in law.items())
        assert variance == protocol.variance(1, (x - protocol.low) / span)
    ratios = [p[y] / q[y] for p, q in permutations(laws, 2) for y in p]
    assert max(ratios) == protocol.odds
    assert {protocol.loss().p[0] / protocol.loss().q[0]} == {protocol.odds}


KINDS: list[Any] = [
    local.Direct,
    local.Unary,
    local.LocalHashing,
    local.Subset,
    local.AffineSubset,
    local.Hadamard,
]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.5, 1, Fraction(1, 3), 3, 12, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_calibration_never_exceeds_epsilon_and_wastes_nothing(kind: Any, epsilon: Any) -> None:
    protocol = kind.calibrated(epsilon=epsilon, categories=40)
    largest = max(a / b for a, b in zip(protocol.loss().p, protocol.loss().q, strict=True))
    assert largest == protocol.odds
    assert at_most(lambda: ball(largest).log(), bounds("epsilon", epsilon).lower)
    assert protocol.loss().maximum() >= float(epsilon) * (1 - 1e-12)
    assert 0 < protocol.other < protocol.own < 1


@pytest.mark.parametrize("kind", KINDS)
def test_losses_compose_with_all_others(kind: Any) -> None:
    loss = kind.calibrated(epsilon=1, categories=10).loss()
    assert (loss + loss).epsilon(delta=0) == pytest.approx(2, rel=1e-9)
    assert (10 * loss).epsilon(delta=1e-6) < 10


@pytest.mark.parametrize("epsilon", [0.3, 1, 2.5])
def test_calibrated_sizes_are_the_best_of_all(epsilon: float) -> None:
    for k in (2, 5, 8, 15, 17, 40):
        odds = local.Direct.calibrated(epsilon=epsilon, categories=k).odds
        best = local.Subset.calibrated(epsilon=epsilon, categories=k)
        assert best.total_variance(1) == min(
            local.Subset(odds, k, size=w).total_variance(1) for w in range(1, k)
        )
        affine = local.AffineSubset.calibrated(epsilon=epsilon, categories=k)
        sizes = range(1, affine.points)
        assert affine.total_variance(1) == min(
            local.AffineSubset(odds, k, size=w).total_variance(1) for w in sizes
        )
        hashing = local.LocalHashing.calibrated(epsilon=epsilon, categories=k)
        orders = (g for g in range(2, 30) if g in (4, 8, 16) or all(g % i for i in range(2, g)))
        assert hashing.total_variance(1) == min(
            local.LocalHashing(odds, k, values=g).total_variance(1) for g in orders if g <= 2 * k
        )


def test_no_protocol_beats_subset_selection() -> None:
    """Strict optimality of the design with the best constant size, at finite n and k."""
    for epsilon, k in product((0.5, 1, 3), (4, 16, 256, 4096)):
        least = local.Subset.calibrated(epsilon=epsilon, categories=k).total_variance(1)
        for kind in KINDS:
            assert kind.calibrated(epsilon=epsilon, categories=k).total_variance(1) >= least
        assert (
            local.AffineSubset.calibrated(epsilon=epsilon, categories=k).total_variance(1) == least
        )


@pytest.mark.parametrize(
    ("k", "points", "bits"), [(4, 4, 4), (5, 5, 5), (16, 16, 8), (256, 256, 16), (4096, 4096, 24)]
)
def test_with_as_many_points_as_categories_affine_subsets_are_as_good_as_all(
    k: int, points: int, bits: int
) -> None:
    for epsilon in (0.5, 1, 3):
        subset = local.Subset.calibrated(epsilon=epsilon, categories=k)
        affine = local.AffineSubset.calibrated(epsilon=epsilon, categories=k)
        assert (affine.points, affine.bits) == (points, bits)
        assert (affine.size, affine.own, affine.other) == (subset.size, subset.own, subset.other)


def test_points_to_spare_cost_little() -> None:
    for (epsilon, factor), (k, points) in product(
        [(0.5, 3), (1, 3), (3, 12)],
        [(100, 101), (114, 127), (1000, 1009), (1328, 1361), (65522, 65536)],
    ):
        least = local.Subset.calibrated(epsilon=epsilon, categories=k).total_variance(1)
        affine = local.AffineSubset.calibrated(epsilon=epsilon, categories=k)
        assert affine.points == points
        assert 0 < affine.total_variance(1) / least - 1 < Fraction(factor * (points - k), k**2)


def test_known_variances() -> None:
    e = Fraction(3)
    assert local.Direct(e, 2).variance(100) == Fraction(3, 400)
    assert local.Unary(e, 9).variance(1) == 4 * e / (e - 1) ** 2
    assert local.Hadamard(e, 9).variance(1) == (e + 1) ** 2 / (e - 1) ** 2
    wide = local.LocalHashing(e, 4**8, values=4).variance(1)
    assert float(wide) == pytest.approx(float((e + 3) ** 2 / (3 * (e - 1) ** 2)), rel=1e-4)


def test_many_reports_of_the_batch_have_supports_as_the_formula_says() -> None:
    """A larger batch: each report of 5 persons at once, naive supports by the definition."""
    protocol = local.AffineSubset(ODDS, 6, size=3)
    column = protocol.randomize(np.arange(5)).column
    naive = [sum((int(y) // 7 * x + int(y) % 7) % 7 < 3 for y in column) for x in range(6)]
    assert protocol.supports(column).tolist() == naive
    protocol = local.AffineSubset(ODDS, 15, size=5)
    column = protocol.randomize(np.arange(15)).column
    naive = [
        sum(polynomial_product(int(y) // 16, x, 16) ^ int(y) % 16 < 5 for y in column)
        for x in range(15)
    ]
    assert protocol.supports(column).tolist() == naive


def test_the_client_shown_in_the_proofs_has_the_law_of_ours() -> None:
    text = (Path(local.__file__).parent / "protocols.md").read_text()
    walk, found = Walk(), dict[int, Fraction]()
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    names["randbelow"] = walk.below
    while True:
        report = names["report"](4, 3, 2, (5, 2))
        found[report] = found.get(report, Fraction(0)) + walk.weight
        if not walk.advance():
            break
    assert found == client_law(local.LocalHashing(ODDS, 5, values=3), 4)
