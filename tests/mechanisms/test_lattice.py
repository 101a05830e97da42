"""Values on and off the lattice, exact in both directions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sordino.errors import InvalidInput, OffLattice
from sordino.mechanisms.lattice import Lattice, Steps, add

CENT = Lattice(Fraction(1, 100))
WHOLE = Lattice(Fraction(1))


def listed(steps: Steps) -> Any:
    return steps.tolist() if isinstance(steps, np.ndarray) else steps


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        (7, 700),
        (0.29, 29),
        (-0.07, -7),
        (Fraction(3, 4), 75),
        (Decimal("1.10"), 110),
        (np.float64(12.34), 1234),
    ],
)
def test_numbers_on_the_lattice_are_recognised(value: Any, steps: int) -> None:
    assert CENT.steps(value) == steps
    assert CENT.steps([value, value]) == [steps, steps]
    assert listed(CENT.steps(np.array([value], object))) == [steps]


@pytest.mark.parametrize(
    "value", [0.291, 0.29000000000000004, Fraction(1, 3), Decimal("0.005"), 1e-9]
)
def test_numbers_off_the_lattice_are_refused_with_value_rule_and_hint(value: Any) -> None:
    with pytest.raises(OffLattice) as caught:
        CENT.steps(value)
    text = str(caught.value)
    assert (str(value) if isinstance(value, Fraction) else repr(value))[:20] in text
    assert "whole multiple of step=0.01" in text
    assert "round_to_lattice=True" in text


def test_the_first_wrong_element_is_named() -> None:
    with pytest.raises(OffLattice, match=r"got 1.5: element 1 must be a whole multiple of step=1"):
        WHOLE.steps(np.array([1.0, 1.5, 2.5]))
    with pytest.raises(OffLattice, match="element 2"):
        WHOLE.steps([1, 2, 2.5])


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, np.float32("nan"), Decimal("NaN"), Decimal("Infinity")]
)
def test_missing_and_infinite_values_are_refused(bad: Any) -> None:
    for value in (bad, [1, bad], np.array([1.0, float(bad)]), np.array([1, bad], object)):
        for rounding in (False, True):
            with pytest.raises(InvalidInput, match="finite"):
                WHOLE.steps(value, round_to_lattice=rounding)


@pytest.mark.parametrize(
    "bad",
    [None, "3", b"3", True, np.True_, 1j, [True], ["a"], [None], [[1, 2]], {1: 2}, {1}, object(), np.array([True]),
     np.array(["a"]), np.array([1j]), np.array(["2020-01-01"], "datetime64[D]"), np.array([None]), [],
     (), np.array([]), np.zeros((0, 3), int), np.ma.masked_array([1, 2], [True, False])],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_what_is_not_numbers_is_refused(bad: Any) -> None:
    for lattice in (WHOLE, CENT):
        with pytest.raises(InvalidInput):
            lattice.steps(bad)


def test_rounding_is_to_the_nearest_and_upwards_from_halves() -> None:
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, -(2.0**-60), 4503599627370497.5]
    expected = [1, 2, 3, 0, -1, 0, 0, 4503599627370498]
    assert WHOLE.steps(values, round_to_lattice=True) == expected
    assert listed(WHOLE.steps(np.array(values), round_to_lattice=True)) == expected
    assert [WHOLE.steps(v, round_to_lattice=True) for v in values] == expected


@given(st.floats(-1e6, 1e6), st.integers(-1000, 1000))
def test_rounding_commutes_with_whole_steps_so_distances_stay_within_the_next_whole_step(
    x: float, n: int
) -> None:
    exact = Fraction(x) + n
    moved, still = (listed(WHOLE.steps(y, round_to_lattice=True)) for y in (exact, x))
    assert moved == still + n


def test_rounding_halves_to_even_would_not_commute() -> None:
    """Why floor(x + 1/2): 1/2 and 3/2 are one step apart, yet round() puts them two apart."""
    assert round(1.5) - round(0.5) == 2
    assert WHOLE.steps([0.5, 1.5], round_to_lattice=True) == [1, 2]


@given(
    st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=20),
    st.sampled_from([1, Fraction(1, 100), Fraction(3, 7), 5]),
)
def test_arrays_round_like_exact_fractions(values: list[float], step: Fraction | int) -> None:
    steps = Lattice(Fraction(step)).steps(np.array(values), round_to_lattice=True)
    assert listed(steps) == [math.floor(Fraction(v) / step + Fraction(1, 2)) for v in values]


@given(
    st.lists(st.integers(-(2**70), 2**70), min_size=1),
    st.sampled_from([1, 5, Fraction(1, 100), Fraction(2, 3)]),
)
def test_what_leaves_depends_on_the_integers_alone(steps: list[int], step: Fraction | int) -> None:
    """The same integers as a list, as int64 and as Python integers in an array give the same numbers."""
    lattice = Lattice(Fraction(step))
    plain = lattice.values(steps)
    assert plain == [k * step if isinstance(step, int) else float(k * step) for k in steps]
    assert lattice.values(np.array(steps, object)).tolist() == plain
    if all(-(2**63) <= k < 2**63 for k in steps):
        assert lattice.values(np.array(steps, np.int64)).tolist() == plain


def test_values_beyond_floats_become_infinite_not_an_error() -> None:
    assert Lattice(Fraction(1, 2)).values(10**400) == math.inf
    assert Lattice(Fraction(1, 2)).values(-(10**400)) == -math.inf


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_integer_arrays_of_every_width_pass_and_never_wrap(dtype: type) -> None:
    ends: Any = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    noise = np.array([-(2**62), 2**62])
    assert listed(add(WHOLE.steps(ends), noise.copy())) == [
        int(e) + int(z) for e, z in zip(ends, noise, strict=True)
    ]


def test_sums_beyond_int64_become_python_integers_and_come_back_when_they_fit() -> None:
    big = add(np.array([2**63 - 1, 0]), np.array([1, 0]))
    assert isinstance(big, np.ndarray)
    assert big.dtype == object
    assert big.tolist() == [2**63, 0]
    back = add(np.array([2**63, 0], object), np.array([-1, 0]))
    assert isinstance(back, np.ndarray)
    assert back.dtype == np.int64


def test_shape_and_order_are_kept() -> None:
    value = np.arange(24).reshape(2, 3, 4)[:, ::-1, ::2]
    steps = WHOLE.steps(value)
    assert isinstance(steps, np.ndarray)
    assert listed(add(steps, np.zeros(steps.size, np.int64))) == value.tolist()


def test_the_callers_array_is_never_changed() -> None:
    value = np.arange(5)
    add(WHOLE.steps(value), np.ones(5, np.int64))
    assert value.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("value", [np.float32(0.5), np.float16(0.25), np.longdouble(1) / 3])
def test_other_float_widths_are_read_exactly(value: Any) -> None:
    exact = Fraction(*value.as_integer_ratio())
    assert Lattice(Fraction(1, 2**80)).steps(value) == exact * 2**80


def test_columns_of_pandas_and_polars_are_arrays_of_numbers() -> None:
    lattice = Lattice(Fraction(1, 2))
    for column in (pd.Series([1.5, 2.0], index=[5, 3]), pl.Series([1.5, 2.0])):
        assert np.asarray(lattice.steps(column)).tolist() == [3, 4]
    with pytest.raises(InvalidInput):
        lattice.steps(pd.Series([1.5, None]))
