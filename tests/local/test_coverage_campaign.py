"""Every interval of the local room covers its truth as often as it says: exactly within 1 %, and 2,000 collections
agree.

A perfect interval leaves 95 % ± 1 % in one of 25 series of 2,000 collections, so that the exact coverage is the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import gammaln

import sordino.local as local
from sordino.local.intervals import SupportLaw
from sordino.local.reports import Reports
from tape import Tape, replay

RUNS, AT_ONCE, PERSONS = 2000, 500, 3000
CATEGORIES, SEEN = 16, 4

PROTOCOLS: list[Any] = [
    kind.calibrated(epsilon=epsilon, categories=CATEGORIES)
    for kind in (
        local.Direct,
        local.Unary,
        local.LocalHashing,
        local.Subset,
        local.AffineSubset,
        local.Hadamard,
    )
    for epsilon in (0.5, 2)
]
REPEATED = [
    local.Repeated.calibrated(permanent=3, first=1, categories=CATEGORIES, kind=kind)
    for kind in ("direct", "unary")
]

Bools = npt.NDArray[np.bool_]


def _truth() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Answers of which half, a fifth and a tenth are alike; the fourth category is nobody's."""
    true = np.repeat([0, 1, 2, 4, 5, 6, 7], [1500, 600, 300, 200, 200, 100, 100])
    return true, np.bincount(true, minlength=CATEGORIES) / PERSONS


def _split(reports: Reports) -> Iterator[Reports]:
    for start in range(0, len(reports), PERSONS):
        yield Reports(reports.protocol, reports.column[start : start + PERSONS])


def _covered(
    protocol: Any, counts: list[Any], shares: npt.NDArray[np.float64], *, population: bool = False
) -> Bools:
    table = np.array(counts)[:, :SEEN]
    found = protocol.estimate_from_counts(PERSONS, table.ravel(), population=population)
    truth = np.tile(shares[:SEEN], len(table))
    return np.asarray(((found.lower <= truth) & (truth <= found.upper)).reshape(-1, SEEN))


def _exact(protocol: Any, share: float, *, population: bool = False) -> float:
    """The coverage by the law of the count: one binomial, or the sum of two."""
    p, q, having = float(protocol.own), float(protocol.other), round(share * PERSONS)
    law = SupportLaw(PERSONS, protocol.own, protocol.other, population)
    lower, upper = law.ends(np.arange(PERSONS + 1), 0.95)
    parts = [(PERSONS, q + share * (p - q))] if population else [(having, p), (PERSONS - having, q)]
    chances = np.ones(1)
    for trials, chance in parts:
        k = np.arange(trials + 1)
        ways = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
        chances = np.convolve(
            chances, np.exp(ways + k * np.log(chance) + (trials - k) * np.log1p(-chance))
        )
    return float(chances[(lower <= share) & (share <= upper)].sum())


def _near(covered: Bools, exact: list[float]) -> None:
    """The exact coverage is within 1 % of nominal, and the simulated one agrees with it."""
    print("COV", covered.mean(axis=0), "exact", np.round(exact, 4), flush=True)
    assert max(abs(one - 0.95) for one in exact) <= 0.01
    assert (abs(covered.mean(axis=0) - exact) <= 6 * np.sqrt(0.05 * 0.95 / len(covered))).all()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_shares_of_those_who_answered(protocol: Any) -> None:
    true, shares = _truth()
    counts: list[Any] = []
    with replay(Tape(11)):
        while len(counts) < RUNS:
            reports = protocol.randomize(np.tile(true, AT_ONCE))
            counts += [part.tally().counts for part in _split(reports)]
    _near(_covered(protocol, counts, shares), [_exact(protocol, s) for s in shares[:SEEN]])


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS[::2], ids=repr)
def test_shares_of_the_population(protocol: Any) -> None:
    _, shares = _truth()
    people = np.random.default_rng(5)
    counts: list[Any] = []
    with replay(Tape(12)):
        while len(counts) < RUNS:
            reports = protocol.randomize(people.choice(CATEGORIES, AT_ONCE * PERSONS, p=shares))
            counts += [part.tally().counts for part in _split(reports)]
    exact = [_exact(protocol, s, population=True) for s in shares[:SEEN]]
    _near(_covered(protocol, counts, shares, population=True), exact)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", REPEATED, ids=lambda one: type(one.first).__name__)
def test_shares_of_the_second_round_of_a_repeated_collection(protocol: local.Repeated) -> None:
    true, shares = _truth()
    counts: list[Any] = []
    with replay(Tape(13)):
        while len(counts) < RUNS:
            memory = protocol.memoise(np.tile(true, AT_ONCE))
            protocol.refresh(memory)
            counts += [part.tally().counts for part in _split(protocol.refresh(memory))]
    _near(
        _covered(protocol.first, counts, shares), [_exact(protocol.first, s) for s in shares[:SEEN]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_means_of_the_population(epsilon: float) -> None:
    protocol = local.OneBitMean.calibrated(epsilon=epsilon, low=0, high=1)
    people = np.random.default_rng(6)
    covered: list[list[bool]] = []
    with replay(Tape(14)):
        while len(covered) < RUNS:
            for part in _split(protocol.randomize(people.beta(2, 6, AT_ONCE * PERSONS))):
                found = part.estimate()
                covered.append([found.lower <= 0.25 <= found.upper])
    _near(np.array(covered), [_exact(protocol, 0.25, population=True)])


@pytest.mark.slow
@pytest.mark.parametrize(("length", "most"), [(16, 4), (24, 8)])
def test_heavy_hitters_all_together(length: int, most: int) -> None:
    """With room for as many values as there are, and for more: then values that nobody has are candidates too."""
    shares = {7: 0.4, 900: 0.3, 31_000: 0.2, 65_000: 0.1}
    search = local.HeavyHitters.calibrated(epsilon=3, bits=length, persons=2 * PERSONS, most=most)
    people = np.random.default_rng(7)
    covered = []
    with replay(Tape(15)):
        for _ in range(RUNS):
            true = people.choice(list(shares), 2 * PERSONS, p=list(shares.values()))
            found = search.find(search.randomize(true))
            truth = np.array([shares.get(int(value), 0.0) for value in found.values])
            covered.append(bool(((found.lower <= truth) & (truth <= found.upper)).all()))
    print("COV all together", np.mean(covered), flush=True)
    assert abs(np.mean(covered) - 0.95) <= 0.01
