"""Shuffled reports: never below the true law, found by enumeration; close to the formula; and a loss like any other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sordino as so
import sordino.local as local
from local_laws import Law, client_law
from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.local.shuffled import shuffled
from sordino.privacy.loss.binary_count import (
    _blocks,
    _count,
    _offsets,
    _Others,
    _tilts,
    count_mixture,
)
from sordino.privacy.loss.law import CELL_ERROR
from sordino.privacy.loss.shuffled import ShuffledBinaryLoss, ShuffledLoss

EPSILONS = (0, 0.02, 0.1, 0.3, 0.7, 1.0, 1.5)
ODDS = Fraction(5, 2)
ALL = (Fraction(1), Fraction(0))


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    zero = Fraction(0)
    return sum(
        max(0.0, float(p.get(y, zero)) - math.exp(epsilon) * float(q.get(y, zero)))
        for y in p.keys() | q.keys()
    )


def mixed(laws: list[Law]) -> Law:
    """The law of the reports in no order."""
    law: Law = {(): Fraction(1)}
    for one in laws:
        more: dict[Hashable, Fraction] = defaultdict(Fraction)
        for (seen, a), (report, b) in product(law.items(), one.items()):
            more[tuple(sorted((*seen, report)))] += a * b  # type: ignore[misc]
        law = dict(more)
    return law


@pytest.mark.parametrize(
    ("protocol", "others"),
    [
        (local.Direct(3, 2), 5),
        (local.Direct(ODDS, 3), 4),
        (local.Direct(20, 4), 3),
        (local.Unary(ODDS, 2), 3),
        (local.LocalHashing(ODDS, 3, values=2), 2),
        (local.Subset(ODDS, 4, size=2), 2),
        (local.Hadamard(ODDS, 2), 3),
    ],
    ids=repr,
)
def test_the_loss_is_never_below_that_of_the_true_law_whatever_the_others_say(
    protocol: Any, others: int
) -> None:
    laws = [client_law(protocol, x) for x in range(protocol.categories)]
    losses = shuffled(protocol, others + 1), shuffled(protocol.loss(), others + 1)
    for rest in combinations_with_replacement(laws, others):
        background = mixed(list(rest))
        p, q = (mixed_with(background, laws[x]) for x in (0, 1))
        for epsilon in EPSILONS:
            true = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert all(true <= loss.delta(epsilon) + 1e-15 for loss in losses)


def mixed_with(background: Law, one: Law) -> Law:
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    for (seen, a), (report, b) in product(background.items(), one.items()):
        law[tuple(sorted((*seen, report)))] += a * b  # type: ignore[misc]
    return dict(law)


def test_a_claim_of_too_many_clones_would_be_caught() -> None:
    protocol = local.Direct(ODDS, 3)
    laws = [client_law(protocol, x) for x in range(3)]
    background = mixed([laws[2]] * 4)
    p, q = (mixed_with(background, laws[x]) for x in (0, 1))
    wrong = shuffled(protocol, 9)
    assert any(hockey_stick(p, q, e) > wrong.delta(e) for e in EPSILONS)


def three_kinds(n: int, odds: Fraction, clone: Fraction, rest: Fraction, epsilon: float) -> float:
    """delta of Theorem 1's pair, term by term."""
    weight = (1 - clone * (odds + 1)) / rest if rest else Fraction(0)
    left = 1 - 2 * clone - rest
    total = 0.0
    for a in range(n + 1):
        for b in range(a + 1):
            for c in range(n - a - b + 1):
                d = n - a - b - c
                if (c and not rest) or (d and not left) or a + b > n:
                    continue
                ways = math.comb(n, a) * math.comb(n - a, b) * math.comb(n - a - b, c)
                g = float(ways * clone ** (a + b) * rest**c * left**d)
                total += (
                    g
                    * max(
                        0.0,
                        float(odds * a + b + weight * c)
                        - math.exp(epsilon) * float(a + odds * b + weight * c),
                    )
                    / n
                )
    return total


@pytest.mark.parametrize(
    ("odds", "clone", "rest"),
    [
        (Fraction(3), Fraction(1, 4), Fraction(0)),
        (ODDS, Fraction(1, 6), Fraction(1, 6)),
        (ODDS, Fraction(1, 10), Fraction(13, 50)),
        (Fraction(30), Fraction(1, 60), Fraction(29, 60)),
    ],
)
def test_few_persons_are_computed_almost_exactly(
    odds: Fraction, clone: Fraction, rest: Fraction
) -> None:
    for n in (1, 2, 7, 20):
        loss = ShuffledLoss(odds, clone, rest, n)
        for share in (0.0, 0.05, 0.2, 0.6, 0.95):
            epsilon = share * math.log(odds)
            true = three_kinds(n, odds, clone, rest, epsilon)
            assert true * (1 - 1e-12) <= loss.delta(epsilon)
            assert loss.delta(epsilon) <= true * (1 + 1e-3) + 2e-6


def clones_formula(n: int, e0: float, epsilon: float) -> float:
    """delta of the two binomial mixtures of Feldman, McMillan and Talwar, by SciPy."""
    odds, ratio = math.exp(e0), math.exp(epsilon)
    clone = 2 / (odds + 1)
    far = 13 * math.sqrt(n * clone * (1 - clone)) + 60
    others = np.arange(max(0, int(n * clone - far)), min(n - 1, int(n * clone + far)) + 1)
    first = np.floor((others + 1) * (odds * ratio - 1) / ((odds - 1) * (1 + ratio))) + 1
    tails, at = binom.sf(first - 1, others, 0.5), binom.pmf(first - 1, others, 0.5)
    each = (odds - ratio) * at / (odds + 1) + tails * (1 - ratio)
    return float(binom.pmf(others, n - 1, clone) @ each)


@pytest.mark.parametrize(("e0", "n"), [(1, 1000), (1, 10**6), (6, 10**4)])
def test_many_persons_are_within_a_thousandth_of_the_formula_and_never_below(
    e0: float, n: int
) -> None:
    general = shuffled(so.RandomizedResponse.calibrated(epsilon=e0).loss(), n)
    for delta in (1e-5, 1e-9, 1e-15):
        epsilon = general.epsilon(delta)
        assert clones_formula(n, e0, epsilon) <= delta * (1 + 1e-9)
        assert clones_formula(n, e0, epsilon * (1 - 1e-3)) > delta
    assert clones_formula(n, e0, general.epsilon(1e-30)) <= 1e-30 * (1 + 1e-9)


def test_of_other_losses_size_and_distance_count() -> None:
    """Laplace noise has a smaller distance at the same epsilon."""
    laplace, general = (
        shuffled(loss, 100)
        for loss in (so.LaplaceLoss(Fraction(1)), local.Direct.calibrated(epsilon=1, categories=2))
    )
    assert laplace.maximum() == pytest.approx(1)
    assert laplace.epsilon(1e-6) < general.epsilon(1e-6)


def test_the_number_to_remember() -> None:
    """epsilon 1 for each of a million persons is 0.0029 for the shuffled million, if a report is one bit."""
    loss = shuffled(local.Direct.calibrated(epsilon=1, categories=2), 10**6)
    assert loss.epsilon(1e-6) == pytest.approx(0.002849, rel=2e-3)
    assert loss.maximum() <= 1
    assert loss.delta(1) == 0 < loss.delta(0.999)


def test_more_persons_and_fewer_clones_are_never_worse() -> None:
    deltas = [shuffled(local.Direct(3, 2), n).delta(0.05) for n in (1, 2, 3, 10, 100, 1000)]
    assert deltas == sorted(deltas, reverse=True)
    for n in (10, 300):
        losses = [
            shuffled(local.Direct(3, 2).loss(), n),
            *(shuffled(local.Direct(3, k), n) for k in (3, 20)),
        ]
        for epsilon in (0.01, 0.1, 0.5):
            found = [loss.delta(epsilon) for loss in losses]
            assert all(b <= a * (1 + 1e-3) + 1e-44 for a, b in pairwise(found))


def test_views_agree_with_each_other() -> None:
    loss = shuffled(local.Direct(ODDS, 5), 200)
    for delta in (1e-4, 1e-9):
        epsilon = loss.epsilon(delta)
        assert loss.delta(epsilon) <= delta < loss.delta(epsilon * 0.999)
        assert loss.pair.delta(epsilon) == pytest.approx(loss.delta(epsilon), rel=1e-12)
    assert loss.delta(-0.1) >= 1 - math.exp(-0.1)
    assert loss.delta(-10) <= 1
    assert loss.rdp(1) <= loss.rdp(2) <= 2 * loss.rho()
    assert 1 - 0.1 - loss.delta(0) <= loss.trade_off(0.1) <= 0.9
    assert float(loss.pmf([-0.1, 0.0, 0.1]).sum()) == pytest.approx(1)
    assert so.Loss.from_json(loss.to_json()) == loss
    assert sum(loss.mixture.weights) == 1
    assert loss.mixture.thetas[-1] == Fraction(3, 7)


def test_the_float_law_is_that_of_the_balls() -> None:
    loss = shuffled(local.Direct(ODDS, 2), 5000)
    (law,) = loss.laws()
    edges = np.linspace(-0.2, 0.2, 41)
    p, q = law.cells(edges)
    for i in range(40):
        a, b = Fraction(edges[i]), Fraction(edges[i + 1])
        assert p[i] == pytest.approx(float(loss.mass_ball(a, b)), rel=CELL_ERROR, abs=1e-300)
    # the middle cells share the outcomes that tell nothing
    mirrored = [i for i in range(40) if i not in (19, 20)]
    assert q[mirrored] == pytest.approx(p[::-1][mirrored], rel=1e-9)


def test_it_adds_up_with_itself_as_the_product_of_pairs_does() -> None:
    loss = shuffled(local.Direct(3, 2), 12)
    kinds = {(a, 12 - a): math.comb(12, a) for a in range(13)}
    p, q = ({k: ways * (3 * k[0] + k[1]) / 12 / 2**13 for k, ways in kinds.items()},
            {k: ways * (k[0] + 3 * k[1]) / 12 / 2**13 for k, ways in kinds.items()})  # fmt: skip
    # twelve clones for certain: less private are only fewer, so this pair is revealed less than the loss says
    for epsilon in (0.1, 0.5, 1.0):
        true = sum(
            max(0.0, p[a] * p[b] - math.exp(epsilon) * q[a] * q[b]) for a, b in product(p, p)
        )
        assert true <= (2 * loss).delta(epsilon)
    mixed_losses = 3 * loss + so.Laplace(10).loss(1) + so.Gaussian(20).loss(1)
    found = mixed_losses.epsilon_bounds(1e-6)  # type: ignore[attr-defined]
    assert found.lower <= found.upper <= found.lower * 1.01
    apart = (
        (3 * loss).epsilon(5e-7)
        + so.Laplace(10).loss(1).epsilon(0)
        + so.Gaussian(20).loss(1).epsilon(5e-7)
    )
    assert found.upper < apart


def test_a_capped_loss_gives_the_rarest_outcomes_away_and_suits_a_filter() -> None:
    loss = shuffled(local.Direct(3, 2), 1000)
    capped = loss.capped(1e-9)
    assert 0 < capped.infinite() <= Fraction(1, 10**9)
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        assert loss.delta(epsilon) <= capped.delta(epsilon) <= loss.delta(epsilon) * 1.02 + 1e-9
    whole, charge = Charge.of(loss), Charge.of(capped)
    assert charge.delta == capped.infinite()
    assert charge.mu_squared is not None
    assert whole.mu_squared is not None
    assert charge.mu_squared < whole.mu_squared / 2
    assert loss.capped(0).infinite() == 0
    assert loss.capped(1).infinite() < 1


@pytest.mark.parametrize("persons", [0, -1, 1.5, True, None, "many", 2**41])
def test_bad_numbers_of_persons(persons: Any) -> None:
    with pytest.raises(InvalidInput):
        shuffled(local.Direct(3, 2), persons)


@pytest.mark.parametrize(
    "report",
    [
        None,
        1,
        "Direct",
        so.Gaussian(1).loss(1),
        so.FiniteLoss(ALL, ALL[::-1]),
        so.FiniteLoss(ALL, ALL),
    ],
)
def test_only_pure_losses_of_one_report_are_shuffled(report: Any) -> None:
    with pytest.raises(InvalidInput):
        shuffled(report, 100)


@pytest.mark.parametrize(
    ("odds", "clone", "rest"),
    [(1, 0.1, 0.1), (3, 0.26, 0), (3, 0, 0.1), (3, 0.25, 0.1), (3, 0.1, 0), (3, 0.1, 0.9)],
)
def test_impossible_parameters(odds: Any, clone: Any, rest: Any) -> None:
    with pytest.raises(InvalidInput):
        ShuffledLoss(odds, clone, rest, 10)


def counts(n: int, odds: Any, ones: int) -> tuple[Any, Any]:
    """The two laws of the count of n binary reports, `ones` of the others' truths being 1; exact for exact odds."""
    lie = 1 / (odds + 1)
    others = [lie - lie + 1]
    for chance in [1 - lie] * ones + [lie] * (n - 1 - ones):
        others = [
            a * (1 - chance) + b * chance for a, b in zip([*others, 0], [0, *others], strict=True)
        ]
    p, q = (
        [a * (1 - c) + b * c for a, b in zip([*others, 0], [0, *others], strict=True)]
        for c in (1 - lie, lie)
    )
    return p, q


def worst_count(n: int, odds: Fraction, ratio: Fraction) -> Fraction:
    """The largest delta at log(ratio) over the others' truths, both directions, in exact numbers."""
    pairs = [
        pair for ones in range(n) for p, q in [counts(n, odds, ones)] for pair in ((p, q), (q, p))
    ]
    return max(
        sum((max(a - ratio * b, Fraction(0)) for a, b in zip(*pair, strict=True)), Fraction(0))
        for pair in pairs
    )


def test_others_who_all_agree_are_not_the_worst_for_binary_responses() -> None:
    """Three persons, truthful three times of four: which others are worst depends on epsilon,
    so no single law is exact.
    """

    def delta(ones: int, epsilon: float) -> float:
        p, q = (np.array(side, float) for side in counts(3, 3.0, ones))
        factor = math.exp(epsilon)
        return max(float(np.maximum(a - factor * b, 0).sum()) for a, b in ((p, q), (q, p)))

    assert delta(1, 0.01) > delta(0, 0.01)
    assert delta(0, 0.8) > delta(1, 0.8)


@pytest.mark.parametrize(
    "odds", [Fraction(11, 10), Fraction(3), Fraction(20), Fraction(1000)], ids=str
)
@pytest.mark.parametrize("n", [1, 2, 3, 6, 13])
def test_few_binary_reports_have_the_exact_worst_over_the_others_truths(
    n: int, odds: Fraction
) -> None:
    mixture = ShuffledBinaryLoss(odds, n).mixture
    assert sum(mixture.weights) == 1
    assert min(mixture.weights) >= 0
    for share in (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 0.95):
        ratio = Fraction(float(odds) ** share).limit_denominator(10**6)
        true = worst_count(n, odds, ratio)
        found = sum(
            (
                w * max(1 + t - ratio * (1 - t), Fraction(0)) / 2
                for t, w in zip(mixture.thetas, mixture.weights, strict=True)
            ),
            Fraction(0),
        )
        assert true <= found <= true * (1 + Fraction(1, 1000))


def exact_delta(n: int, odds: float, ones: int, epsilon: float) -> float:
    """delta at one number of ones, from SciPy's binomial laws: the count of the ones and that of the zeros, added."""
    lie, ratio = 1 / (odds + 1), math.exp(epsilon)
    laws = (
        binom.pmf(np.arange(ones + 1), ones, 1 - lie),
        binom.pmf(np.arange(n - ones), n - 1 - ones, lie),
    )
    others = np.convolve(*(law[law > 1e-80] for law in laws))
    first = sum(int(np.argmax(law > 1e-80)) for law in laws)
    tail = np.append(np.cumsum(others[::-1])[::-1], 0.0)
    # the outcome that counts is one above: k = first, first + 1, ...
    before = np.append(0.0, others)
    assert first + len(others) <= n
    return float(np.max((1 - lie - ratio * lie) * before - (ratio - 1) * tail))


@pytest.mark.parametrize(("odds", "n"), [(3, 700), (3, 3000), (20, 3000), (1.05, 10_000)])
def test_many_binary_reports_are_near_the_worst_law_and_never_below_any(
    odds: float, n: int
) -> None:
    loss = ShuffledBinaryLoss(Fraction(odds), n)
    for delta in (1e-3, 1e-6, 1e-12):
        epsilon = loss.epsilon(delta)
        if epsilon <= 0:
            continue
        for ones in (0, 1, n // 3, n // 2, n - 40, n - 2, n - 1):
            assert exact_delta(n, odds, ones, epsilon) <= delta * (1 + 1e-9)
        assert (
            max(exact_delta(n, odds, ones, epsilon * (1 - 3e-3)) for ones in (n - 40, n - 2, n - 1))
            > delta
        )


@pytest.mark.parametrize("n", [600, 10**4, 10**6, 10**9])
def test_binary_reports_reveal_less_than_the_clones_say(n: int) -> None:
    """By a fifth at odds 3: the noise of all reports hides a person,
    not only that of reports which ignore their truth.
    """
    binary, clones = (
        local.shuffled(local.Direct(3, 2), n),
        local.shuffled(local.Direct(3, 2).loss(), n),
    )
    for delta in (1e-6, 1e-12):
        if clones.epsilon(delta) > 0:
            assert 0.75 < binary.epsilon(delta) / clones.epsilon(delta) < 0.91


def test_more_binary_reports_are_never_worse() -> None:
    """Also where numbers of ones begin to be taken together."""
    epsilons = [
        ShuffledBinaryLoss(Fraction(3), n).epsilon(1e-6) for n in (2, 3, 50, 512, 514, 1100, 5000)
    ]
    assert epsilons == sorted(epsilons, reverse=True)


def test_binary_reports_that_floats_cannot_count_have_the_general_loss() -> None:
    loss = ShuffledBinaryLoss(Fraction(10**9), 2**40)
    assert count_mixture(2**40, Fraction(10**9)) is None
    assert (
        loss.mixture
        == ShuffledLoss(Fraction(10**9), 1 / Fraction(10**9 + 1), Fraction(0), 2**40).mixture
    )


def test_a_bit_for_a_number_is_a_binary_report() -> None:
    """The chance of a 1 lies between those of the two truths, and delta is convex in every person's chance."""
    numbers = local.OneBitMean(3, 0, 100)
    assert (
        shuffled(numbers, 100)
        == shuffled(local.Direct(3, 2), 100)
        == ShuffledBinaryLoss(Fraction(3), 100)
    )
    n, loss = 5, ShuffledBinaryLoss(Fraction(3), 5)
    assert so.Loss.from_json(loss.to_json()) == loss
    rng = np.random.default_rng(7)
    for _ in range(50):
        chances = rng.uniform(0.25, 0.75, n + 1)
        others = np.array([1.0])
        for c in chances[2:]:
            others = np.convolve(others, [1 - c, c])
        p, q = (np.convolve(others, [1 - c, c]) for c in chances[:2])
        for epsilon in (0.0, 0.1, 0.5):
            assert float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) <= loss.delta(epsilon)


def test_sums_of_binary_losses_bound_products_of_counts_with_different_others() -> None:
    """One pair has the worst curve of all counts, so it also bounds rounds in which the others change their truths."""
    loss = ShuffledBinaryLoss(Fraction(3), 4)
    laws = [tuple(np.array(side, float) for side in counts(4, 3.0, ones)) for ones in range(4)]
    both = laws + [(q, p) for p, q in laws]
    limits = {epsilon: (2 * loss).delta(epsilon) for epsilon in (0.0, 0.4, 1.7)}
    for (p1, q1), (p2, q2) in product(both, both):
        for epsilon in limits:
            true = float(
                np.maximum(np.outer(p1, p2) - math.exp(epsilon) * np.outer(q1, q2), 0).sum()
            )
            assert true <= limits[epsilon]


@pytest.mark.parametrize("odds", [1, 0.5, -3])
def test_binary_reports_need_odds_above_one(odds: Any) -> None:
    with pytest.raises(InvalidInput):
        ShuffledBinaryLoss(odds, 10)


@pytest.mark.parametrize("others", [1, 7, 511, 512, 3000, 10**6])
def test_every_number_of_ones_is_in_a_block_that_gave_enough_others_away(others: int) -> None:
    blocks = _blocks(others, Fraction(3))
    covered = np.zeros(others + 1, int)
    for size, ones in zip(
        blocks.sizes.astype(int).tolist(), blocks.ones.astype(int).tolist(), strict=True
    ):
        assert 0 <= ones <= size <= others
        covered[ones : ones + others - size + 1] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("odds", [1.2, 3.0, 50.0])
def test_probabilities_of_a_count_are_bracketed(odds: float) -> None:
    """Others who agree report a binomial count: SciPy knows its probabilities and tails."""
    n, lie = 3000, 1 / (odds + 1)
    others = _Others(np.array([n, n], float), np.array([0, n], float), 1 - lie, lie)
    for offsets, middle in _tilts(_offsets(others.deviation), others.deviation):
        found = _count(others, offsets, middle)
        assert found is not None
        for block, chance in enumerate((lie, 1 - lie)):
            k = others.base[block] + offsets
            law = binom(n, chance)
            for probability, error, at in (
                (found.at, found.at_error, k),
                (found.before, found.before_error, k - 1),
            ):
                assert (
                    np.abs(probability[:, block] - law.pmf(at))
                    <= error[:, block] + 1e-10 * law.pmf(at)
                ).all()
            true = law.sf(k - 1)
            near = true > 1e-40
            assert (found.tail[:, block] <= true * (1 + 1e-10)).all()
            assert (found.tail[:, block][near] >= true[near] * (1 - 1e-6)).all()
