"""Heavy hitters: the exact law of a report, fast counting against slow, what is found, and how often it is wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest

import local_laws
import sordino.local as local
from local_laws import Law, batch_law, client_law
from sordino.errors import InvalidInput
from sordino.local import heavy_hitters
from sordino.local.heavy_hitters import HeavyHitters
from sordino.local.prefixes import (
    Levels,
    best_levels,
    extended,
    folded,
    least_share,
    supports_of_prefixes,
)
from sordino.local.protocol import protocol_from_json
from tape import Script, Tape, replay

Values = npt.NDArray[np.uint64]

TINY = [
    HeavyHitters(3, 3, 1, 2, Levels((1, 3), 2)),
    HeavyHitters(Fraction(5, 2), 2, 1, 4, Levels((1, 2), 2)),
    HeavyHitters(3, 2, 2, 2, Levels((2,), 2)),
]


def laws(protocol: HeavyHitters, law: Any) -> list[Law]:
    with mock.patch.object(local_laws, "_MODULES", (*local_laws._MODULES, heavy_hitters)):
        return [law(protocol, x) for x in range(2**protocol.length)]


@pytest.mark.parametrize("protocol", TINY, ids=repr)
def test_a_report_is_private_and_its_loss_is_that_of_the_worst_pair(protocol: HeavyHitters) -> None:
    found = laws(protocol, client_law)
    assert found == laws(protocol, batch_law)
    loss = protocol.loss()
    worst = 0
    for p, q in combinations(found, 2):
        assert p.keys() == q.keys()
        assert max(p[y] / q[y] for y in p) == max(q[y] / p[y] for y in p) <= protocol.odds
        apart = sum((abs(p[y] - q[y]) for y in p), Fraction(0)) / 2
        stated = sum((abs(a - b) for a, b in zip(loss.p, loss.q, strict=True)), Fraction(0)) / 2
        assert apart <= stated
        worst += apart == stated
    assert worst


@pytest.mark.parametrize(
    ("length", "values", "step"),
    [(5, 2, 2), (12, 4, 0), (20, 8, 4), (48, 16, 3), (50, 4, 4), (64, 64, 3)],
)
def test_counting_by_words_is_counting_one_by_one(length: int, values: int, step: int) -> None:
    oracle = local.LocalHashing(3, 2 ** min(length, 48), values)
    with replay(Tape(length)):
        column = oracle.randomize(np.arange(700) % oracle.categories).column
    generator = np.random.default_rng(length)
    parents = generator.integers(0, 2 ** (length - step), 5, np.uint64, endpoint=False)
    expected = oracle.supports_for(column, folded(extended(parents, step)))
    with mock.patch("sordino.local.prefixes._TABLE_BYTES", 4096):
        assert (
            supports_of_prefixes(oracle, column, length, parents, step).tolist()
            == expected.tolist()
        )


def test_folding_is_linear_and_keeps_short_values() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 2**64 - 1, (2, 100), np.uint64, endpoint=True)
    assert (folded(a ^ b) == (folded(a) ^ folded(b))).all()
    assert (folded(a >> np.uint64(16)) == (a >> np.uint64(16)).astype(np.int64)).all()


def zipf(
    persons: int, length: int, seed: int, exponent: float = 1.3
) -> tuple[list[int], npt.NDArray[np.float64], Values]:
    """Values drawn at random, in order of frequency; their shares among the persons; the persons' values."""
    generator = np.random.default_rng(seed)
    names = generator.integers(0, 2**length - 1, 50_000, np.uint64, endpoint=True)
    weights = 1 / np.arange(1, len(names) + 1) ** exponent
    drawn = generator.choice(len(names), persons, p=weights / weights.sum())
    return names.tolist(), np.bincount(drawn, minlength=len(names)) / persons, names[drawn]


@pytest.mark.parametrize(("length", "epsilon"), [(24, 3), (64, 4)])
def test_frequent_values_are_found_and_their_intervals_hold(length: int, epsilon: int) -> None:
    names, shares, values = zipf(60_000, length, seed=length)
    protocol = HeavyHitters.calibrated(epsilon=epsilon, bits=length, persons=len(values), most=8)
    with replay(Tape(3)):
        found = protocol.find(protocol.randomize(values))
    frequent = [
        name
        for name, share in zip(names, shares, strict=True)
        if share > protocol.least_share(len(values))
    ]
    assert len(frequent) >= 3
    assert set(frequent) <= set(found.values)
    for value, low, high in zip(found.values, found.lower, found.upper, strict=True):
        assert (
            low
            <= shares[
                names.index(value)  # type: ignore[arg-type]
            ]
            <= high
        )


def test_lists_with_a_value_that_nobody_has_are_rare() -> None:
    """At confidence 0.8 at most one list in five; and not far fewer, so that the test would notice twice as many."""
    protocol = HeavyHitters.calibrated(epsilon=1, bits=8, persons=500, most=4)
    values, runs, false = np.full(500, 5), 250, 0
    with replay(Tape(8)):
        for _ in range(runs):
            false += any(
                value != 5
                for value in protocol.find(protocol.randomize(values), confidence=0.8).values
            )
    assert 0.05 * runs < false < 0.2 * runs + 3 * (0.16 * runs) ** 0.5


def test_texts_are_found() -> None:
    words = ["sordino", "viola", "cello", "", "b\u00e4ume"]
    values = np.random.default_rng(1).choice(words, 20_000, p=[0.4, 0.3, 0.15, 0.1, 0.05]).tolist()
    protocol = HeavyHitters.calibrated(epsilon=4, bits=56, persons=len(values), most=8, text=True)
    with replay(Tape(1)):
        found = protocol.find(protocol.randomize(values))
        assert protocol.randomize_one(b"viola") < protocol.limit
    assert list(found.values[:4]) == words[:4]
    assert found.to_arrow().column("value").to_pylist() == list(found.values)
    assert "sordino" in str(found)


def test_reports_travel_with_their_protocol(tmp_path: Path) -> None:
    protocol = HeavyHitters.calibrated(epsilon=4, bits=16, persons=2000, most=2)
    with replay(Tape(2)):
        reports = protocol.randomize([7] * 2000)
    reports.to_parquet(tmp_path / "reports.parquet")
    again = local.Reports.from_parquet(tmp_path / "reports.parquet")
    assert again.protocol == protocol == protocol_from_json(protocol.to_json())
    assert protocol.find(again).values == (7,)
    other = HeavyHitters.calibrated(epsilon=3, bits=16, persons=2000, most=2)
    for refused in (
        lambda: other.find(reports),
        lambda: reports + other.randomize([1]),
        reports.tally,
    ):
        with pytest.raises(InvalidInput):
            refused()
    with pytest.raises(InvalidInput, match="searched, not counted"):
        local.tally_parquet(tmp_path / "reports.parquet")


def test_more_persons_see_smaller_shares_and_the_plan_is_the_best_of_its_kind() -> None:
    protocol = HeavyHitters.calibrated(epsilon=1, bits=32, persons=10**6)
    assert protocol.least_share(4 * 10**6) == pytest.approx(protocol.least_share(10**6) / 2)
    assert protocol.variance(10**6) * 4 == protocol.variance(250_000)
    best = least_share(protocol.levels, protocol.odds, protocol.values, 10**6, 32)
    for lengths in ((8, 16, 24, 32), (2, *range(4, 33, 2)), (16, 24, 32)):
        assert best <= least_share(Levels(lengths, 128), protocol.odds, protocol.values, 10**6, 32)
    assert best_levels(protocol.odds, protocol.values, 64, 10**12, 4096).lengths[-1] == 64


@pytest.mark.parametrize("persons", [1, 10**12])
@pytest.mark.parametrize("most", [1, 4096])
def test_no_level_compares_more_than_memory_holds(persons: int, most: int) -> None:
    assert (
        HeavyHitters.calibrated(epsilon=1, bits=64, persons=persons, most=most).levels.widest
        <= 2**26
    )
    with pytest.raises(InvalidInput, match="compares at most"):
        HeavyHitters(3, 64, most, 4, Levels((64,), 2 * most))


@pytest.mark.parametrize(
    "values",
    [
        [-1],
        [2**16],
        [0.5],
        ["a"],
        [None],
        [True],
        [],
        5,
        None,
        "ab",
        np.array([[1]]),
        np.array([2**16]),
        np.array([-1]),
    ],
)
def test_bad_values_are_refused_and_nothing_is_drawn(values: Any) -> None:
    script = Script([])
    with replay(script), pytest.raises(InvalidInput):
        HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000).randomize(values)
    assert script.asked == 0


@pytest.mark.parametrize("values", [["abc"], ["a\0"], [5], [None], "ab", [b"abc"]])
def test_bad_texts_are_refused(values: Any) -> None:
    with pytest.raises(InvalidInput):
        HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000, text=True).randomize(values)


@pytest.mark.parametrize(
    "arguments",
    [
        {"epsilon": 0},
        {"bits": 0},
        {"bits": 65},
        {"bits": 12, "text": True},
        {"persons": 0},
        {"most": 0},
        {"most": True},
        {"most": 5000},
    ],
    ids=repr,
)
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        HeavyHitters.calibrated(**{"epsilon": 1, "bits": 16, "persons": 1000, **arguments})


def test_damaged_and_few_reports_are_refused() -> None:
    protocol = HeavyHitters.calibrated(epsilon=1, bits=16, persons=1000)
    for report in (-1, protocol.limit, 0):
        with pytest.raises(InvalidInput):
            local.Reports.of(protocol, [report])
    with pytest.raises(InvalidInput):
        protocol.find(protocol.randomize([1]))
    for most in (0, True, 10**6):
        with pytest.raises(InvalidInput):
            protocol.find(protocol.randomize([1] * 100), most=most)
    for levels in (Levels((8, 8, 16), 64), Levels((8,), 64), Levels((8, 16), 1)):
        with pytest.raises(InvalidInput):
            HeavyHitters(3, 16, 2, 4, levels)
    with pytest.raises(InvalidInput):
        HeavyHitters(3, 16, 2, 3, Levels((8, 16), 64))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_a_million_persons_over_four_billion_values(epsilon: int) -> None:
    names, shares, values = zipf(10**6, 32, seed=epsilon)
    protocol = HeavyHitters.calibrated(epsilon=epsilon, bits=32, persons=len(values))
    with replay(Tape(epsilon)):
        found = protocol.find(protocol.randomize(values))
    frequent = [
        name
        for name, share in zip(names, shares, strict=True)
        if share > protocol.least_share(len(values))
    ]
    assert len(set(frequent) & set(found.values)) >= 0.9 * len(frequent)
    assert set(found.values) <= set(names)


def test_intervals_of_one_value_picked_from_many_alike_hold_for_the_population() -> None:
    """With hardly any noise the candidate is the value that was drawn most often into the search: the draw that
    confirms must not be thought to be the rest of it. Sixty values alike, of which one is a candidate.
    """
    protocol = HeavyHitters.calibrated(epsilon=9, bits=6, persons=3000, most=1)
    people, runs, missed, listed = np.random.default_rng(2), 300, 0, 0
    with replay(Tape(6)):
        for _ in range(runs):
            found = protocol.find(protocol.randomize(people.integers(0, 60, 3000)), confidence=0.8)
            listed += len(found)
            missed += bool(((found.lower > 1 / 60) | (found.upper < 1 / 60)).any())
    assert listed > 0.9 * runs
    assert 0.2 * runs - 4 * (0.16 * runs) ** 0.5 < missed < 0.2 * runs + 4 * (0.16 * runs) ** 0.5


def test_no_share_is_above_one() -> None:
    search = HeavyHitters.calibrated(epsilon=1, bits=32, persons=1000)
    assert search.least_share(1) == 1
    assert search.least_share(10**7) < 0.1


def test_what_was_found_stands_in_columns() -> None:
    numbers = np.array([0.5, 0.25])
    found = local.Found(10, 1, 0.95, ("a", "b" * 41), numbers, numbers, numbers, numbers)
    assert repr(found) == str(found)
    head, *lines = str(found).splitlines()
    assert head.startswith("2 values found in 10 reports")
    assert len({line.index("[") for line in lines}) == 1
    assert lines[1].startswith("  " + "b" * 37 + "... ")
    assert str(local.Found(1, 1, 0.95, ("a",), *[numbers[:1]] * 4)).startswith(
        "1 value found in 1 report;"
    )


@pytest.mark.parametrize("reports", [["violin"], [1, 2], None, "violin"])
def test_only_reports_are_searched(reports: Any) -> None:
    with pytest.raises(InvalidInput, match="randomized first"):
        HeavyHitters.calibrated(epsilon=1, bits=48, persons=1000, text=True).find(reports)
