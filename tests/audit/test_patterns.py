"""Patterns of neighbouring inputs: all are neighbours, all differ, and they stay inside the domain."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import sordino as so
from sordino.audit.inputs.neighbors import Pair, check
from sordino.audit.inputs.patterns import patterns
from sordino.audit.inputs.rows import form, read_rows
from sordino.errors import InvalidInput

RELATIONS = ["number", "answers", "histogram", "add_remove", "replace"]
RANGES = [None, (0, 1), (0, 110), (0.0, 0.5), (-3.5, 7), (2**70, 2**70 + 10)]
KINDS: list[list[Any]] = [
    ["yes", "no"],
    ["a", "b", "c", "d", "e", "f", "g"],
    [("x", 1), ("y", 2)],
    [0, 1, 2],
]


def key(pair: Pair) -> Any:
    return tuple(read_rows(side) or form(side) for side in (pair.d1, pair.d2))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("domain", [*RANGES, *KINDS], ids=str)
def test_all_pairs_are_different_neighbours_with_names(
    relation: str, length: int, domain: Any
) -> None:
    if isinstance(domain, list) and relation not in ("add_remove", "replace"):
        with pytest.raises(InvalidInput, match="about numbers"):
            patterns(relation, length, domain)
        return
    if relation == "histogram" and domain in ((0.0, 0.5), (2**70, 2**70 + 10)):
        with pytest.raises(InvalidInput, match="no room"):
            patterns(relation, length, domain)
        return
    pairs = patterns(relation, length, domain)
    assert 1 <= len(pairs) <= 16
    for pair in pairs:
        found = check(pair.d1, pair.d2, relation)
        assert found.ok, (pair, found.problem)
    assert len({pair.name for pair in pairs}) == len(pairs)
    assert len({key(pair) for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("relation", ["answers", "histogram", "add_remove", "replace"])
def test_there_are_enough_without_a_domain(relation: str) -> None:
    assert 8 <= len(patterns(relation, 5)) <= 16


@pytest.mark.parametrize("domain", [(0, 110), (0.0, 0.5), (-3.5, 7)])
@pytest.mark.parametrize("relation", RELATIONS)
def test_pairs_stay_inside_the_domain(relation: str, domain: tuple[float, float]) -> None:
    if relation == "histogram" and domain == (0.0, 0.5):
        return
    for pair in patterns(relation, 5, domain):
        for value in (*np.ravel(pair.d1), *np.ravel(pair.d2)):
            assert domain[0] <= value <= domain[1], pair


def test_the_eight_classic_shapes_are_there() -> None:
    names = {pair.name: (pair.d1.tolist(), pair.d2.tolist()) for pair in patterns("answers", 4)}
    ones = [1, 1, 1, 1]
    assert names["one above"] == (ones, [2, 1, 1, 1])
    assert names["one below"] == (ones, [0, 1, 1, 1])
    assert names["one above, the rest below"] == (ones, [2, 0, 0, 0])
    assert names["one below, the rest above"] == (ones, [0, 2, 2, 2])
    assert names["half above, half below"] == (ones, [2, 2, 0, 0])
    assert names["all above"] == (ones, [2, 2, 2, 2])
    assert names["all below"] == (ones, [0, 0, 0, 0])
    assert names["x shape"] == ([1, 1, 0, 0], [0, 0, 1, 1])


def test_rows_that_real_data_may_hold_are_tried_unless_a_domain_excludes_them() -> None:
    def odd(pairs: tuple[Pair, ...]) -> set[str]:
        values = itertools.chain.from_iterable(pair.d2.tolist() for pair in pairs)
        return {"nan" if math.isnan(x) else str(x) for x in values if not 0 <= x <= 1}

    for relation in ("add_remove", "replace"):
        assert odd(patterns(relation, 5)) == {"nan", "inf", "-inf", "1000000000.0", "-1000000000.0"}
        assert odd(patterns(relation, 5, (0, 1))) == set()


def test_empty_data_and_a_new_category_are_tried() -> None:
    assert any(len(pair.d1) == 0 for pair in patterns("add_remove", 3))
    assert any(len(pair.d1) == 0 for pair in patterns("add_remove", 3, ["a", "b"]))
    assert any(
        "b" not in pair.d1 and "b" in pair.d2 for pair in patterns("add_remove", 3, ["a", "b"])
    )
    assert any("b" not in pair.d1 and "b" in pair.d2 for pair in patterns("replace", 3, ["a", "b"]))


def test_without_a_relation_pairs_are_of_single_values() -> None:
    assert patterns() == patterns("number")
    assert [(pair.d1, pair.d2) for pair in patterns(domain=["a", "b", "c"])] == [
        ("a", "b"),
        ("a", "c"),
    ]
    assert all(check(pair.d1, pair.d2).ok for pair in (*patterns(), *patterns(domain=["a", "b"])))
    assert patterns(so.Neighbors.REPLACE, 3)[0].name == patterns("replace", 3)[0].name


def test_kinds_of_numbers() -> None:
    assert all(pair.d1.dtype == np.int64 for pair in patterns("answers", 3))
    assert all(pair.d1.dtype == np.float64 for pair in patterns("replace", 3))
    assert all(pair.d1.dtype == np.int64 for pair in patterns("replace", 3, (0, 110)))


@pytest.mark.parametrize("length", [0, -1, 2.5, True, None, "5", 10**9, math.nan])
def test_lengths_are_whole_and_positive(length: Any) -> None:
    with pytest.raises(InvalidInput, match="length"):
        patterns("answers", length)


@pytest.mark.parametrize(
    "domain",
    [
        (1, 0),
        (0, 0),
        (0, math.inf),
        (math.nan, 1),
        (-1.7e308, 1.7e308),
        [],
        "ab",
        5,
        ["a", "a"],
        {"a", "b"},
        [1, 1.0],
    ],
)
def test_domains_are_ranges_or_lists(domain: Any) -> None:
    with pytest.raises(InvalidInput, match="domain"):
        patterns("replace", 3, domain)


def test_one_category_cannot_be_replaced() -> None:
    with pytest.raises(InvalidInput, match="no room"):
        patterns("replace", 3, ["a"])
    with pytest.raises(InvalidInput, match="no room"):
        patterns(None, 3, ["a"])


@pytest.mark.parametrize("relation", ["unchecked", lambda a, b: True])
def test_relations_without_patterns_are_refused(relation: Any) -> None:
    with pytest.raises(InvalidInput, match="no patterns"):
        patterns(relation, 3)
    with pytest.raises(InvalidInput, match="not a known"):
        patterns("nonsense", 3)
