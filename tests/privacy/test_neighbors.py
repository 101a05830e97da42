from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidInput
from sordino.privacy.neighbors import (
    Neighbors,
    finite_universe,
    histogram,
    l1_distance,
    l1_norm,
    rows,
)

UNIVERSE = ("a", "b", "c")
databases = st.lists(st.sampled_from(UNIVERSE), max_size=6).map(tuple)


def test_relation_is_made_from_its_name() -> None:
    assert Neighbors("add_remove") is Neighbors.ADD_REMOVE
    assert Neighbors("replace") is Neighbors.REPLACE
    assert Neighbors(Neighbors.REPLACE) is Neighbors.REPLACE


@pytest.mark.parametrize("name", ["swap", "ADD_REMOVE", "", None, 1])
def test_unknown_relation_is_refused_with_the_known_names(name: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Neighbors(name)
    assert caught.value.value == f"neighbors={name!r}"
    assert caught.value.rule == "it is not a known neighbour relation"
    assert caught.value.hint == "Pass 'add_remove' or 'replace'."


def test_histogram_of_the_notes() -> None:
    assert histogram(["+", "-", "+", "-"], ["+", "-"]) == (2, 2)
    assert histogram([], ["+", "-"]) == (0, 0)
    assert histogram(iter("abca"), "abc") == (2, 1, 1)
    assert histogram([("Alice", "F"), ("Bob", "M")], [("Bob", "M"), ("Alice", "F")]) == (1, 1)


@given(databases)
def test_two_views_hold_the_same_rows(database: tuple[str, ...]) -> None:
    counts = histogram(database, UNIVERSE)
    assert counts == tuple(Counter(database)[u] for u in UNIVERSE)
    assert l1_norm(counts) == len(database)
    assert rows(counts, UNIVERSE) == tuple(sorted(database))
    assert histogram(rows(counts, UNIVERSE), UNIVERSE) == counts


@given(databases, databases)
def test_distance_counts_rows_to_remove_and_add(x: tuple[str, ...], y: tuple[str, ...]) -> None:
    removed, added = Counter(x) - Counter(y), Counter(y) - Counter(x)
    assert (
        l1_distance(histogram(x, UNIVERSE), histogram(y, UNIVERSE))
        == removed.total() + added.total()
    )


@pytest.mark.parametrize(
    ("x", "y", "add_remove", "replace"),
    [
        ((2, 1), (2, 1), True, True),
        ((2, 1), (2, 0), True, False),
        ((2, 1), (2, 2), True, False),
        ((2, 1), (1, 2), False, True),
        ((2, 1), (3, 2), False, False),
        ((2, 1), (2, 3), False, False),
        ((3, 0), (1, 2), False, False),
        ((0, 0), (0, 0), True, True),
    ],
)
def test_who_is_related(
    x: tuple[int, ...], y: tuple[int, ...], add_remove: bool, replace: bool
) -> None:
    for a, b in ((x, y), (y, x)):
        assert Neighbors.ADD_REMOVE.related(a, b) is add_remove
        assert Neighbors.REPLACE.related(a, b) is replace


def edits(x: tuple[Any, ...], y: tuple[Any, ...], relation: Neighbors) -> bool:
    """Whether y is x after one edit at some position, straight from the words."""
    if relation is Neighbors.REPLACE:
        return len(x) == len(y) and sum(a != b for a, b in zip(x, y, strict=True)) == 1
    short, long = sorted((x, y), key=len)
    return len(long) == len(short) + 1 and any(
        long[:i] + long[i + 1 :] == short for i in range(len(long))
    )


@pytest.mark.parametrize("relation", Neighbors)
@pytest.mark.parametrize("universe", [("a",), ("a", "b"), UNIVERSE])
def test_around_lists_every_neighbour_once(relation: Neighbors, universe: tuple[str, ...]) -> None:
    everything = [x for n in range(5) for x in product(universe, repeat=n)]
    for database in (x for x in everything if len(x) < 4):
        listed = list(relation.around(database, universe))
        assert len(set(listed)) == len(listed)
        assert set(listed) == {y for y in everything if edits(database, y, relation)}


@settings(max_examples=50)
@given(databases, st.sampled_from(Neighbors))
def test_all_around_are_related_and_the_database_is_not_listed(
    database: tuple[str, ...], relation: Neighbors
) -> None:
    listed = list(relation.around(database, UNIVERSE))
    assert database not in listed
    assert all(
        relation.related(histogram(database, UNIVERSE), histogram(y, UNIVERSE)) for y in listed
    )


def test_around_refuses_before_it_is_iterated() -> None:
    with pytest.raises(InvalidInput, match="row 'z'"):
        Neighbors.REPLACE.around(("z",), UNIVERSE)


NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "value", "rule", "hint"),
    [
        (
            lambda: histogram(["z"], "ab"),
            "row 'z'",
            "must be an element of the universe",
            "Add it to the universe",
        ),
        (lambda: histogram([["a"]], "ab"), "['a']", "a row must be hashable", "Use tuples"),  # type: ignore[list-item]
        (lambda: histogram(["a"], "aba"), "'a'", "lists it twice", "each possible row once"),
        (lambda: finite_universe([1, True]), "True", "lists it twice", "each possible row once"),
        (lambda: finite_universe([]), "universe=()", "at least one row", "List every value"),
        (lambda: finite_universe({"a"}), "universe={'a'}", "in a fixed order", "list or tuple"),
        (lambda: finite_universe(5), "universe=5", "finite collection", "list or tuple"),  # type: ignore[arg-type]
        (
            lambda: finite_universe(iter("ab")),  # type: ignore[arg-type]
            "universe=<str",
            "finite collection",
            "list or tuple",
        ),
        (lambda: finite_universe([[1], [2]]), "[1]", "a row must be hashable", "Use tuples"),  # type: ignore[list-item]
        (lambda: finite_universe([NAN]), "nan", "must equal itself", "None"),
        (lambda: rows((1, 2), "abc"), "2 counts", "each of the 3 elements", "Write a zero"),
        (lambda: rows((1, 2, 3, 4), "abc"), "4 counts", "each of the 3 elements", "Write a zero"),
        (lambda: rows((1, -1), "ab"), "count -1", "none below zero", "number of rows of each kind"),
        (lambda: rows((1, 1.0), "ab"), "count 1.0", "whole numbers", "number of rows of each kind"),  # type: ignore[arg-type]
        (
            lambda: rows((1, True), "ab"),
            "count True",
            "whole numbers",
            "number of rows of each kind",
        ),
        (lambda: l1_norm("ab"), "count 'a'", "whole numbers", "`histogram`"),  # type: ignore[arg-type]
        (lambda: l1_norm((2, -2)), "count -2", "none below zero", "number of rows"),
        (
            lambda: l1_distance((1,), (1, 2)),
            "histograms of 1 and 2 counts",
            "the same universe",
            "one universe",
        ),
        (lambda: l1_distance((1,), (-1,)), "count -1", "none below zero", "number of rows"),
        (
            lambda: Neighbors.REPLACE.related((1,), (1, 2)),
            "1 and 2 counts",
            "the same universe",
            "one universe",
        ),
        (
            lambda: Neighbors.ADD_REMOVE.around("ab", "aa"),
            "'a'",
            "lists it twice",
            "each possible row once",
        ),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], value: str, rule: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        call()
    assert value in caught.value.value
    assert rule in caught.value.rule
    assert hint in caught.value.hint
