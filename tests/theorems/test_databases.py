"""Databases as rows and as histograms, and which of them are neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import product

from sordino import Neighbors
from sordino.privacy.neighbors import histogram, l1_distance, l1_norm, rows

KINDS = ("+", "-", "?")
DATABASES = [d for n in range(5) for d in product(KINDS, repeat=n)]
HISTOGRAMS = sorted({histogram(d, KINDS) for d in DATABASES})


def test_two_plus_and_two_minus_are_the_histogram_two_two() -> None:
    """Rows +, -, +, - and counts (2, 2) are the same database. Notes: Lecture 2, Section 1."""
    assert histogram(("+", "-", "+", "-"), "+-") == (2, 2)
    assert rows((2, 2), "+-") == ("+", "+", "-", "-")


def test_both_views_hold_the_same_rows() -> None:
    """A histogram keeps everything of the rows but their order. Notes: Lecture 2, Section 1."""
    for database in DATABASES:
        counts = histogram(database, KINDS)
        assert Counter(rows(counts, KINDS)) == Counter(database)
        assert histogram(rows(counts, KINDS), KINDS) == counts
    assert histogram(("+", "-"), KINDS) == histogram(("-", "+"), KINDS)


def test_records_of_several_fields_are_one_kind_each() -> None:
    """A row may be a person's whole record, and the universe all records. Notes: Lecture 2, Section 1, the matrix."""
    universe = list(product(("Alice", "Bob", "Zeus"), "FM", "+-"))
    table = (("Alice", "F", "+"), ("Bob", "M", "-"), ("Zeus", "M", "+"))
    counts = histogram(table, universe)
    assert l1_norm(counts) == 3
    assert max(counts) == 1
    assert rows(counts, universe) == table


def test_norm_counts_the_rows() -> None:
    """The L1 norm of a histogram is the number of rows. Notes: Lecture 2, Definition 1."""
    assert all(l1_norm(histogram(d, KINDS)) == len(d) for d in DATABASES)


def test_distance_counts_the_rows_that_only_one_database_has() -> None:
    """The L1 distance is the size of the symmetric difference, as multisets of rows. Notes: Lecture 2, Definition 2."""
    for x, y in product(HISTOGRAMS, repeat=2):
        a, b = Counter(rows(x, KINDS)), Counter(rows(y, KINDS))
        assert l1_distance(x, y) == ((a - b) + (b - a)).total()


def test_one_changed_entry_is_at_distance_two() -> None:
    """A changed row counts once as gone and once as new, so distance is not the number of changed rows.

    Notes: Lecture 2.
    """
    for database in DATABASES:
        for other in Neighbors.REPLACE.around(database, KINDS):
            assert sum(a != b for a, b in zip(database, other, strict=True)) == 1
            assert l1_distance(histogram(database, KINDS), histogram(other, KINDS)) == 2


def test_distance_is_a_metric() -> None:
    """Symmetric, zero only between equals, and never longer than a detour. Notes: Lecture 2, Definition 2."""
    distance = {(x, y): l1_distance(x, y) for x, y in product(HISTOGRAMS, repeat=2)}
    for x, y in distance:
        assert distance[x, y] == distance[y, x]
        assert (distance[x, y] == 0) == (x == y)
    for x, y, z in product(HISTOGRAMS, repeat=3):
        assert distance[x, z] <= distance[x, y] + distance[y, z]


def test_neighbours_are_the_databases_within_distance_one() -> None:
    """Neighbours differ by at most one row; distinct ones have n and n - 1 rows. Notes: Lecture 2, Definition 3."""
    for x, y in product(HISTOGRAMS, repeat=2):
        assert Neighbors.ADD_REMOVE.related(x, y) == (l1_distance(x, y) <= 1)
        if x != y and Neighbors.ADD_REMOVE.related(x, y):
            assert abs(l1_norm(x) - l1_norm(y)) == 1


def test_adding_or_deleting_one_row_makes_every_neighbour() -> None:
    """Any row may go and any row may come; there are no other neighbours. Notes: Lecture 2, after Definition 4."""
    for database in DATABASES:
        if len(database) == 4:
            continue  # its larger neighbours are not among the histograms listed
        x = histogram(database, KINDS)
        made = {histogram(d, KINDS) for d in Neighbors.ADD_REMOVE.around(database, KINDS)}
        assert made == {y for y in HISTOGRAMS if l1_distance(x, y) == 1}


def test_any_two_databases_are_joined_by_a_chain_of_neighbours() -> None:
    """As many steps between neighbours as the L1 distance, and no fewer.

    Notes: Lecture 2, the deterministic argument.
    """
    for start in HISTOGRAMS:
        steps = {start: 0}
        frontier = [start]
        while frontier:
            near = [
                (x, y)
                for x in frontier
                for y in HISTOGRAMS
                if y not in steps and Neighbors.ADD_REMOVE.related(x, y)
            ]
            steps |= {y: steps[x] + 1 for x, y in near}
            frontier = list(dict.fromkeys(y for _, y in near))
        inside = [y for y in HISTOGRAMS if l1_norm(start) + l1_distance(start, y) <= 4]
        assert all(steps[y] >= l1_distance(start, y) for y in HISTOGRAMS)
        assert all(steps[y] == l1_distance(start, y) for y in inside)
        assert len(steps) == len(HISTOGRAMS)
