from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.exact import float_upper
from sordino.privacy.neighbors import Neighbors, histogram
from sordino.privacy.sensitivity import SensitivityWitness, global_sensitivity, rounded_sensitivity

ADD_REMOVE, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE


def counts(rows: tuple[Any, ...]) -> tuple[int, ...]:
    return histogram(rows, range(3))


def proportion(rows: tuple[int, ...]) -> Fraction:
    return Fraction(sum(rows), len(rows))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_proportion_moves_by_one_nth(n: int) -> None:
    assert global_sensitivity(
        proportion, universe=(0, 1), size=n, neighbors=REPLACE
    ).value == Fraction(1, n)


@pytest.mark.parametrize(
    ("neighbors", "norm", "value"),
    [
        (ADD_REMOVE, 1, 1),
        (REPLACE, 1, 2),
        (ADD_REMOVE, 2, 1),
        (ADD_REMOVE, math.inf, 1),
        (REPLACE, math.inf, 1),
        (ADD_REMOVE, 0, 1),
        (REPLACE, 0, 2),
    ],
)
def test_histogram(neighbors: Neighbors, norm: float, value: int) -> None:
    found = global_sensitivity(counts, universe=range(3), size=4, neighbors=neighbors, norm=norm)
    assert found.value == value
    assert isinstance(found.value, Fraction)
    assert (found.neighbors, found.norm) == (neighbors, norm)


def test_histogram_in_l2_under_replace_is_the_root_of_two_rounded_up() -> None:
    found = global_sensitivity(counts, universe=range(3), size=3, neighbors=REPLACE, norm=2).value
    assert isinstance(found, float)
    assert Fraction(math.nextafter(found, 0)) ** 2 < 2 < Fraction(found) ** 2


@pytest.mark.parametrize(
    ("f", "neighbors", "size", "value"),
    [
        (sum, ADD_REMOVE, 3, 5),
        (sum, REPLACE, 3, 5),
        (len, ADD_REMOVE, 3, 1),
        (len, REPLACE, 3, 0),
        (max, REPLACE, 3, 5),
        (max, ADD_REMOVE, 3, 5),
        (median, REPLACE, 3, 5),
        (proportion, REPLACE, 4, Fraction(5, 4)),
        (proportion, ADD_REMOVE, 4, Fraction(5, 4)),
        (lambda rows: 7, ADD_REMOVE, 3, 0),
        (lambda rows: 7, REPLACE, 3, 0),
        (lambda rows: rows[0], REPLACE, 3, 5),
        (lambda rows: rows[-1], ADD_REMOVE, 3, 5),
        (lambda rows: sum((-1) ** i * x for i, x in enumerate(rows)), ADD_REMOVE, 3, 15),
        (lambda rows: (sum(rows), len(rows)), ADD_REMOVE, 2, 6),
        (lambda rows: [sum(rows), max(rows), -sum(rows)], REPLACE, 2, 15),
        (lambda rows: (), REPLACE, 2, 0),
    ],
)
def test_known_sensitivities(
    f: Callable[..., Any], neighbors: Neighbors, size: int, value: Fraction
) -> None:
    assert global_sensitivity(f, universe=range(6), size=size, neighbors=neighbors).value == value


def test_order_is_seen_by_an_order_dependent_function() -> None:
    found = global_sensitivity(
        lambda rows: rows[0] * 10, universe=(0, 1), size=2, neighbors="replace"
    )
    assert found == SensitivityWitness(Fraction(10), (0, 0), (1, 0), REPLACE, 1)


def test_sizes_in_a_range_are_all_tried() -> None:
    def peak(rows: tuple[int, ...]) -> int:
        return 9 * sum(rows) if len(rows) == 2 else 0

    assert global_sensitivity(peak, universe=(0, 1), size=4).value == 0
    assert global_sensitivity(peak, universe=(0, 1), size=range(1, 5)).value == 18
    assert global_sensitivity(peak, universe=(0, 1), size=range(4, 0, -2)).value == 18
    assert global_sensitivity(peak, universe=(0, 1), size=range(1, 5), neighbors=REPLACE).value == 9
    seen: list[int] = []

    def record(rows: tuple[int, ...]) -> int:
        seen.append(len(rows))
        return 0

    global_sensitivity(record, universe=(0, 1), size=range(2, 4), neighbors=REPLACE)
    assert sorted(seen) == [2] * 4 + [3] * 8


def test_a_universe_of_one_row() -> None:
    assert global_sensitivity(len, universe="a", size=3).value == 1
    assert global_sensitivity(len, universe="a", size=3, neighbors=REPLACE) == SensitivityWitness(
        Fraction(0), ("a", "a", "a"), ("a", "a", "a"), REPLACE, 1
    )


@pytest.mark.parametrize(
    ("high", "value"),
    [
        (0.1, Fraction(0.1)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (10**400, Fraction(10**400)),
        (Decimal("1e400"), Fraction(10**400)),
        (5e-324, Fraction(1, 2**1074)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.int64(3), Fraction(3)),
        (
            np.longdouble(1) + np.finfo(np.longdouble).eps,
            1 + Fraction(*np.finfo(np.longdouble).eps.as_integer_ratio()),
        ),
        (np.array(0.1), Fraction(0.1)),
        (np.array([0.1]), Fraction(0.1)),
    ],
)
def test_numbers_are_taken_bit_for_bit(high: Any, value: Fraction) -> None:
    zero = np.zeros_like(high) if isinstance(high, np.ndarray) else 0
    found = global_sensitivity(
        lambda rows: high if rows[0] else zero, universe=(0, 1), size=1, neighbors=REPLACE
    )
    assert found.value == value
    assert isinstance(found.value, Fraction)


@pytest.mark.parametrize("norm", [0, 1, 2, math.inf])
def test_an_array_counts_as_its_numbers(norm: float) -> None:
    array = global_sensitivity(
        lambda rows: np.array([sum(rows), 1.5]), universe=range(4), size=2, norm=norm
    )
    assert array == global_sensitivity(
        lambda rows: [sum(rows), Fraction(3, 2)], universe=range(4), size=2, norm=norm
    )


def test_l2_is_a_fraction_when_it_is_rational() -> None:
    found = global_sensitivity(
        lambda r: (3 * r[0], 4 * r[0] / 2, 0), universe=(0, 1), size=1, neighbors=REPLACE, norm=2
    )
    assert isinstance(found.value, float)
    found = global_sensitivity(
        lambda r: (3 * r[0] / 2, 2.0 * r[0]), universe=(0, 1), size=1, neighbors=REPLACE, norm=2
    )
    assert (found.value, type(found.value)) == (Fraction(5, 2), Fraction)


@pytest.mark.parametrize(
    "size", [Fraction(2), 2 * 10**300, Fraction(1, 2**1000), Fraction(1, 3), 10**18 + 1]
)
def test_an_irrational_l2_value_is_the_next_float_above(size: Fraction) -> None:
    found = global_sensitivity(
        lambda r: (size * r[0], size * r[0]), universe=(0, 1), size=1, neighbors=REPLACE, norm=2
    )
    assert isinstance(found.value, float)
    below = math.nextafter(found.value, 0)
    assert Fraction(below) ** 2 < 2 * Fraction(size) ** 2 < Fraction(found.value) ** 2


def test_unrelated_denominators_stay_exact() -> None:
    table = {rows: Fraction(1, 10**300 + i) for i, rows in enumerate(product(range(3), repeat=3))}
    found = global_sensitivity(
        lambda rows: table[rows], universe=range(3), size=3, neighbors=REPLACE
    )
    assert (
        found.value
        == table[found.database] - table[found.neighbor]
        == table[0, 0, 0] - table[2, 0, 0]
    )


def naive(
    f: Callable[[tuple[int, ...]], tuple[Any, ...]],
    universe: range,
    size: int,
    relation: Neighbors,
    norm: float,
) -> Fraction:
    """The definition, word by word; for L2 the square."""

    def neighbours(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
        if relation is REPLACE:
            return sum(a != b for a, b in zip(x, y, strict=True)) <= 1
        return any(x[:i] + x[i + 1 :] == y for i in range(len(x)))

    def distance(x: tuple[int, ...], y: tuple[int, ...]) -> Fraction:
        gaps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(f(x), f(y), strict=True)]
        if norm == 0:
            return Fraction(len([gap for gap in gaps if gap > 0]))
        if norm == math.inf:
            return max(gaps)
        return sum((gap ** int(norm) for gap in gaps), Fraction(0))

    firsts = list(product(universe, repeat=size))
    seconds = firsts if relation is REPLACE else list(product(universe, repeat=size - 1))
    return max(distance(x, y) for x in firsts for y in seconds if neighbours(x, y))


numbers = st.one_of(
    st.integers(-5, 5),
    st.fractions(-3, 3, max_denominator=6),
    st.floats(-4, 4, allow_nan=False),
    st.decimals(-4, 4, places=2),
)


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.sampled_from([(2, 3), (3, 2), (1, 3), (4, 1)]),
    st.sampled_from(Neighbors),
    st.integers(1, 3),
)
def test_agrees_with_the_definition(
    data: st.DataObject, shape: tuple[int, int], relation: Neighbors, d: int
) -> None:
    kinds, size = shape
    everything = [x for n in (size - 1, size) for x in product(range(kinds), repeat=n)]
    drawn = st.lists(st.tuples(*[numbers] * d), min_size=len(everything), max_size=len(everything))
    table = dict(zip(everything, data.draw(drawn), strict=True))
    for norm in (0, 1, 2, math.inf):
        found = global_sensitivity(
            table.__getitem__, universe=range(kinds), size=size, neighbors=relation, norm=norm
        )
        expected = naive(table.__getitem__, range(kinds), size, relation, norm)
        if norm != 2:
            assert found.value == expected
        elif isinstance(found.value, Fraction):
            assert found.value**2 == expected
        else:
            assert (
                Fraction(found.value) ** 2 * (1 - Fraction(1, 2**50))
                < expected
                < Fraction(found.value) ** 2
            )
        check_witness(found, table.__getitem__, range(kinds), expected)


def check_witness(
    found: SensitivityWitness, f: Callable[..., Any], universe: range, expected: Fraction
) -> None:
    gaps = [
        abs(Fraction(a) - Fraction(b))
        for a, b in zip(f(found.database), f(found.neighbor), strict=True)
    ]
    reached = {
        0: sum(map(bool, gaps)),
        1: sum(gaps),
        2: sum(g * g for g in gaps),
        math.inf: max(gaps),
    }[found.norm]
    assert reached == expected
    assert found.neighbors.related(
        histogram(found.database, universe), histogram(found.neighbor, universe)
    )
    if len(universe) > 1:
        listed = found.neighbors.around(found.database, universe)
        assert found.neighbor in set(listed)


@pytest.mark.parametrize("relation", Neighbors)
def test_the_function_is_called_once_for_each_database(relation: Neighbors) -> None:
    seen: list[tuple[int, ...]] = []

    def record(rows: tuple[int, ...]) -> int:
        seen.append(rows)
        return len(seen)

    global_sensitivity(record, universe=range(3), size=3, neighbors=relation)
    assert len(seen) == len(set(seen)) == (27 if relation is REPLACE else 27 + 9)


def never(rows: tuple[Any, ...]) -> int:
    raise AssertionError("called although the enumeration is too large")


@pytest.mark.parametrize(
    ("universe", "size", "neighbors", "limit", "count"),
    [
        (range(2), 3, "add_remove", 23, "makes 24 pairs of neighbours, the limit is 23"),
        (range(3), 3, "replace", 80, "makes 81 pairs of neighbours, the limit is 80"),
        (range(3), range(1, 4), "add_remove", 101, "makes at least 102 pairs"),
        (range(10), 9, "add_remove", 2_000_000, "makes 9000000000 pairs"),
        (range(10**9), 2, "replace", 2_000_000, "makes 999999999000000000000000000 pairs"),
        (range(2), 10**12, "add_remove", 2_000_000, "makes more than 2**999999999999 pairs"),
        (range(1), 10**12, "replace", 2_000_000, "makes 1000000000000 pairs"),
        (range(1), range(1, 10**12), "add_remove", 2_000_000, "makes at least 2001000 pairs"),
    ],
)
def test_a_large_enumeration_is_refused_before_the_function_is_called(
    universe: range, size: int | range, neighbors: str, limit: int, count: str
) -> None:
    with pytest.raises(TooLarge) as caught:
        global_sensitivity(never, universe=universe, size=size, neighbors=neighbors, limit=limit)
    assert count in caught.value.rule
    assert caught.value.value.startswith(f"universe of {len(universe)} and size={size}")
    assert caught.value.hint == "Take a smaller universe or size, or raise limit if you can wait."


@pytest.mark.parametrize(
    ("universe", "size", "neighbors", "limit"),
    [
        (range(2), 3, "add_remove", 24),
        (range(3), 3, "replace", 81),
        (range(3), range(1, 4), "add_remove", 102),
    ],
)
def test_the_limit_itself_is_allowed(
    universe: range, size: int | range, neighbors: str, limit: int
) -> None:
    assert (
        global_sensitivity(
            sum, universe=universe, size=size, neighbors=neighbors, limit=limit
        ).value
        > 0
    )


def test_an_error_of_the_function_names_the_database_and_is_chained() -> None:
    with pytest.raises(InvalidInput) as caught:
        global_sensitivity(proportion, universe=(0, 1), size=1)
    assert caught.value.value == "f(())"
    assert "ZeroDivisionError" in caught.value.rule
    assert "leave such databases out" in caught.value.hint
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("result", "value", "rule", "hint"),
    [
        (math.nan, "f((1,))=nan", "finite numbers", "Clamp"),
        (math.inf, "f((1,))=inf", "finite numbers", "Clamp"),
        ([0, -math.inf], "f((1,))=-inf", "finite numbers", "Clamp"),
        (Decimal("NaN"), "f((1,))=Decimal('NaN')", "finite numbers", "Clamp"),
        (Decimal("sNaN"), "f((1,))=Decimal('sNaN')", "finite numbers", "Clamp"),
        (np.array([np.nan]), "f((1,))=nan", "finite numbers", "Clamp"),
        (1j, "f((1,))=1j", "not complex", "real number"),
        ("5", "f((1,))='5'", "not str", "real number"),
        (b"5", "f((1,))=b'5'", "not bytes", "real number"),
        (None, "f((1,))=None", "not NoneType", "real number"),
        (True, "f((1,))=True", "not bool", "real number"),
        (np.array([True]), "f((1,))=True", "not bool", "real number"),
        ({"a": 1}, "f((1,))={'a': 1}", "not dict", "flat sequence"),
        ([[1], [2]], "f((1,))=[1]", "not list", "flat sequence"),
        (np.zeros((2, 2)), "f((1,))=[0.0, 0.0]", "not list", "flat sequence"),
        ((1, 2, 3), "f((1,)) of 3 coordinates", "but f((0,)) has 1", "Fill up with zeros"),
        ((), "f((1,)) of 0 coordinates", "but f((0,)) has 1", "Fill up with zeros"),
    ],
)
def test_a_result_that_is_no_number_is_refused(
    result: Any, value: str, rule: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        global_sensitivity(
            lambda rows: result if rows == (1,) else 0, universe=(0, 1), size=1, neighbors=REPLACE
        )
    assert caught.value.value == value
    assert rule in caught.value.rule
    assert hint in caught.value.hint


def test_lengths_must_agree_across_sizes() -> None:
    with pytest.raises(InvalidInput, match=r"of 2 coordinates: .* but f\(\(0,\)\) has 1"):
        global_sensitivity(lambda rows: rows, universe=(0, 1), size=2)


@pytest.mark.parametrize(
    ("changes", "value", "rule", "hint"),
    [
        ({"universe": []}, "universe=()", "at least one row", "List every value"),
        ({"universe": [0, 1, 0]}, "0", "lists it twice", "each possible row once"),
        ({"universe": [[0], [1]]}, "[0]", "hashable", "Use tuples"),
        ({"universe": {0, 1}}, "universe={0, 1}", "fixed order", "list or tuple"),
        ({"universe": 3}, "universe=3", "finite collection", "list or tuple"),
        ({"size": 0}, "size=0", "at least 1", "Pass an int"),
        ({"size": 0, "neighbors": "replace"}, "size=0", "at least 1", "Pass an int"),
        ({"size": -1}, "size=-1", "at least 1", "Pass an int"),
        ({"size": True}, "size=True", "whole number", "Pass an int"),
        ({"size": 2.0}, "size=2.0", "whole number", "Pass an int"),
        ({"size": "2"}, "size='2'", "whole number", "Pass an int"),
        ({"size": range(3)}, "size=range(0, 3)", "none below 1", "range(1, 5)"),
        ({"size": range(3, -1, -1)}, "size=range(3, -1, -1)", "none below 1", "range(1, 5)"),
        ({"size": range(3, 3)}, "size=range(3, 3)", "at least one size", "range(1, 5)"),
        ({"norm": 3}, "norm=3", "norm must be one", "0, 1, 2 or math.inf"),
        ({"norm": True}, "norm=True", "norm must be one", "0, 1, 2 or math.inf"),
        ({"norm": "inf"}, "norm='inf'", "norm must be one", "0, 1, 2 or math.inf"),
        ({"norm": math.nan}, "norm=nan", "norm must be one", "0, 1, 2 or math.inf"),
        (
            {"neighbors": "swap"},
            "neighbors='swap'",
            "not a known neighbour relation",
            "'add_remove' or 'replace'",
        ),
        ({"limit": 0}, "limit=0", "at least 1", "Pass an int"),
        ({"limit": 1e6}, "limit=1000000.0", "whole number", "Pass an int"),
        ({"f": 5}, "f=5", "must be a function", "such as len"),
    ],
)
def test_bad_arguments_are_refused(
    changes: dict[str, Any], value: str, rule: str, hint: str
) -> None:
    arguments: dict[str, Any] = {"f": sum, "universe": (0, 1), "size": 2} | changes
    with pytest.raises(InvalidInput) as caught:
        global_sensitivity(arguments.pop("f"), **arguments)
    assert caught.value.value == value
    assert rule in caught.value.rule
    assert hint in caught.value.hint


def test_numpy_is_not_loaded() -> None:
    code = "import sys, sordino.privacy.sensitivity as s; s.global_sensitivity(sum, universe=(0, 1), size=2); "
    subprocess.run([sys.executable, "-c", code + "sys.exit('numpy' in sys.modules)"], check=True)


def round_half_up(x: Fraction) -> int:
    return (2 * x.numerator + x.denominator) // (2 * x.denominator)


GRID = 16
REACHES = [Fraction(1, 4), Fraction(1), Fraction(5, 4), Fraction(2), Fraction(11, 4)]


def most_steps(reach: Fraction) -> dict[int, int]:
    """For each distance t/GRID up to `reach`, the most steps apart that two points of the grid can land."""
    return {
        t: max(
            round_half_up(Fraction(x + t, GRID)) - round_half_up(Fraction(x, GRID))
            for x in range(GRID)
        )
        for t in range(int(reach * GRID) + 1)
    }


def enumerated(reach: Fraction, dimension: int, power: int) -> int:
    """The largest sum of steps^power over all points of the grid whose distances^power sum to at most reach^power."""
    return max(
        sum(int(steps**power) for _, steps in move)
        for move in product(most_steps(reach).items(), repeat=dimension)
        if sum(t**power for t, _ in move) <= (reach * GRID) ** power
    )


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_rounding_bounds_hold_for_all_pairs_and_are_reached(
    reach: Fraction, dimension: int
) -> None:
    step = Fraction(1, 3)
    l1, l2, linf = (
        rounded_sensitivity(reach * step, step=step, dimension=dimension, norm=norm) / step
        for norm in (1, 2, math.inf)
    )
    assert linf == max(most_steps(reach).values())
    assert l1 == enumerated(reach, dimension, 1)
    square = enumerated(reach, dimension, 2)
    assert square <= l2**2
    if dimension == 1 or reach <= 1:
        assert l2**2 - square < Fraction(1, 2**90)


@given(st.fractions(Fraction(1, 9), 9, max_denominator=20), st.integers(1, 50))
def test_l2_rounding_bound_is_below_the_two_simple_ones(reach: Fraction, dimension: int) -> None:
    bound = rounded_sensitivity(reach, step=1, dimension=dimension, norm=2)
    slack = 1 + Fraction(1, 2**90)
    root = Fraction(math.isqrt(dimension << 400) + 1, 1 << 200)
    assert bound <= slack * (reach + root)
    assert bound <= slack * math.ceil(reach) * root
    assert bound >= math.ceil(reach)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(-9, 9)] * 3), min_size=9, max_size=9),
    st.sampled_from([1, 2, math.inf]),
)
def test_a_rounded_function_stays_within_the_bound(
    values: list[tuple[int, ...]], norm: float
) -> None:
    table = dict(zip(product(range(3), repeat=2), values, strict=True))

    def exact(rows: tuple[int, ...]) -> list[Fraction]:
        return [Fraction(x, 4) for x in table[rows]]

    def rounded(rows: tuple[int, ...]) -> list[int]:
        return [2 * round_half_up(x / 2) for x in exact(rows)]

    before = global_sensitivity(
        exact, universe=range(3), size=2, neighbors=REPLACE, norm=norm
    ).value
    after = global_sensitivity(
        rounded, universe=range(3), size=2, neighbors=REPLACE, norm=norm
    ).value
    bound = rounded_sensitivity(before, step=2, dimension=3, norm=norm)
    assert after <= float_upper(bound)


@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_nothing_moves_nothing(norm: float) -> None:
    assert rounded_sensitivity(0, step=0.5, dimension=7, norm=norm) == 0


def test_both_numbers_are_read_as_they_are_typed() -> None:
    assert rounded_sensitivity(0.1, step=0.1, dimension=1, norm=1) == Fraction(1, 10)
    assert rounded_sensitivity(Decimal("0.1"), step=0.1, dimension=1, norm=1) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("changes", "value", "rule", "hint"),
    [
        ({"sensitivity": -1}, "sensitivity=-1", "must not be negative", "positive number"),
        ({"sensitivity": math.inf}, "sensitivity=inf", "must be finite", "finite number"),
        ({"sensitivity": "1"}, "sensitivity='1'", "must be a number", "Pass an int"),
        ({"step": 0}, "step=0", "greater than zero", "0.01"),
        ({"step": -0.5}, "step=-0.5", "greater than zero", "0.01"),
        ({"step": math.nan}, "step=nan", "must be finite", "finite number"),
        ({"dimension": 0}, "dimension=0", "at least 1", "Pass an int"),
        ({"dimension": 1.5}, "dimension=1.5", "whole number", "Pass an int"),
        ({"dimension": True}, "dimension=True", "whole number", "Pass an int"),
        (
            {"norm": 0},
            "norm=0",
            "norm must be one",
            "1, 2 or math.inf. Rounding never makes more coordinates differ",
        ),
        ({"norm": 3}, "norm=3", "norm must be one", "1, 2 or math.inf"),
    ],
)
def test_rounding_refuses_bad_arguments(
    changes: dict[str, Any], value: str, rule: str, hint: str
) -> None:
    arguments: dict[str, Any] = {"sensitivity": 1, "step": 1, "dimension": 1, "norm": 1} | changes
    with pytest.raises(InvalidInput) as caught:
        rounded_sensitivity(arguments.pop("sensitivity"), **arguments)
    assert caught.value.value == value
    assert rule in caught.value.rule
    assert hint in caught.value.hint
