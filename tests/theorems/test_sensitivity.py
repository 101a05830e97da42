"""Global sensitivity: its definition and the examples of the notes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from sordino import Neighbors, global_sensitivity
from sordino.privacy.neighbors import histogram

GROUPS = ("child", "adult", "old")


def proportion(answers: tuple[int, ...]) -> Fraction:
    return Fraction(sum(answers), len(answers))


def ages(people: tuple[str, ...]) -> tuple[int, ...]:
    return histogram(people, GROUPS)


@pytest.mark.parametrize("n", range(1, 9))
def test_proportion_moves_by_one_over_n(n: int) -> None:
    """One of n people who changes a yes/no answer moves the share of yes by 1/n exactly. Notes: Lecture 5, Examples."""
    found = global_sensitivity(proportion, universe=(0, 1), size=n, neighbors="replace")
    assert found.value == Fraction(1, n)
    assert abs(proportion(found.database) - proportion(found.neighbor)) == Fraction(1, n)


@pytest.mark.parametrize("n", range(1, 6))
def test_count_of_those_with_a_property_moves_by_one(n: int) -> None:
    """One person moves the number of people who wear socks by 1, present or changed. Notes: Lecture 5."""
    for relation in Neighbors:
        assert global_sensitivity(sum, universe=(0, 1), size=n, neighbors=relation).value == 1


@pytest.mark.parametrize(("relation", "value"), [(Neighbors.ADD_REMOVE, 1), (Neighbors.REPLACE, 2)])
def test_histogram_moves_by_one_bar_or_by_two(relation: Neighbors, value: int) -> None:
    """A newcomer raises one bar; one who changes group lowers one and raises another. Notes: Lecture 5, Examples."""
    for n in range(1, 6):
        assert global_sensitivity(ages, universe=GROUPS, size=n, neighbors=relation).value == value


def test_histogram_does_not_grow_with_its_bars() -> None:
    """The sensitivity of a histogram is the same for any number of bars. Notes: Lecture 5, Examples."""
    for d in range(2, 9):
        bars = range(d)

        def count(people: tuple[int, ...], bars: range = bars) -> tuple[int, ...]:
            return histogram(people, bars)

        assert global_sensitivity(count, universe=bars, size=3).value == 1
        assert global_sensitivity(count, universe=bars, size=3, neighbors="replace").value == 2


@pytest.mark.parametrize("values", [(0, Fraction(1, 3), 1), (0, 1)])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_statistical_query_moves_by_one_over_m(values: tuple[Any, ...], m: int) -> None:
    """The mean over m rows of a function into [0, 1] moves by at most 1/m. Notes: Lecture 12, proof of Claim 0.2."""
    assert global_sensitivity(
        proportion, universe=values, size=m, neighbors="replace"
    ).value == Fraction(1, m)


@pytest.mark.parametrize(
    "f", [sum, max, lambda rows: sum(rows) ** 2, lambda rows: (min(rows), sum(rows) % 3)]
)
def test_global_sensitivity_is_the_largest_change_between_neighbours(
    f: Callable[[tuple[Any, ...]], Any],
) -> None:
    """It is the maximum of |f(x) - f(x')|_1 over neighbours, and some pair reaches it.

    Notes: Lecture 2, Definition 5.
    """

    def distance(x: tuple[Any, ...], y: tuple[Any, ...]) -> int:
        a, b = (v if isinstance(v, tuple) else (v,) for v in (f(x), f(y)))
        return sum(abs(s - t) for s, t in zip(a, b, strict=True))

    universe = (0, 1, 3)
    naive = max(
        distance(x, y)
        for x in product(universe, repeat=3)
        for y in Neighbors.REPLACE.around(x, universe)
    )
    found = global_sensitivity(f, universe=universe, size=3, neighbors="replace")
    assert found.value == naive == distance(found.database, found.neighbor)
    assert found.neighbor in Neighbors.REPLACE.around(found.database, universe)


def test_sensitivity_in_l2_is_between_that_in_linf_and_that_in_l1() -> None:
    """The definition carries over to vectors by a norm: here 1, sqrt 2 and 2 for one function.

    Notes: Lecture 3, 2.1.
    """
    found = {
        norm: global_sensitivity(
            ages, universe=GROUPS, size=3, neighbors="replace", norm=norm
        ).value
        for norm in (math.inf, 2, 1)
    }
    assert found[math.inf] == 1
    assert found[2] == pytest.approx(math.sqrt(2), rel=1e-15)
    assert Fraction(found[2]) ** 2 >= 2
    assert found[1] == 2


def test_all_one_vector_has_l1_sensitivity_d_but_l2_sensitivity_root_d() -> None:
    """Why high dimensions favour L2: each person moves d coordinates by 1.

    Notes: Lecture 3, benefits of the Gaussian.
    """
    for root in (1, 2, 3):
        d = root * root

        def repeated(rows: tuple[int, ...], d: int = d) -> list[int]:
            return [sum(rows)] * d

        assert global_sensitivity(repeated, universe=(0, 1), size=2, norm=1).value == d
        assert global_sensitivity(repeated, universe=(0, 1), size=2, norm=2).value == root
