"""Outputs of any kind as columns: batches, lists and arrays of the same outputs give the same table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sordino.audit.sampled.features import Whole, propose
from sordino.audit.sampled.outputs import MISSING, Raised, Table, code, concat, encode, mix


class Colour(Enum):
    RED = 1


@dataclass
class Pair:
    left: int
    right: Any


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError


def wholes(outputs: Any) -> list[int]:
    table = encode(outputs)
    atoms = Whole(tuple(table.columns)).column(table).atoms
    assert atoms is not None
    return [int(atom) for atom in atoms]


def names(table: Table, column: str) -> list[str]:
    atoms = table.columns[column].atoms
    assert atoms is not None
    return [table.names.get(int(atom), "") for atom in atoms]


def test_numbers_and_vectors() -> None:
    table = encode(np.array([1.5, 2.5]))
    assert list(table.columns) == [""]
    assert table.columns[""].numbers.tolist() == [1.5, 2.5]
    assert table.columns[""].atoms is None
    table = encode(np.arange(6).reshape(3, 2))
    assert {name: column.numbers.tolist() for name, column in table.columns.items()} == {
        "[0]": [0, 2, 4],
        "[1]": [1, 3, 5],
    }
    assert list(encode(np.zeros((2, 2, 3))).columns) == [f"[{i}]" for i in range(6)]


@pytest.mark.parametrize(
    "values",
    [
        [1.0, math.nan, math.inf, -math.inf, 0.0],
        [1, 2, -3],
        [2**70, 1, -(2**65) + 1],
        [2**62, 2**62 + 1],
        [True, False],
        ["a", "b", "a"],
        [None, 1, "x", 2.5, True],
        [(1, 2), (3, 4)],
        [[1, 2, 3], [1], []],
        [(1, None, "x"), (2, 3.0, "y")],
        [{"a": 1, "b": 2}, {"a": 1}],
        [{1, 2}, frozenset({3})],
        [b"x", b"y"],
        [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)],
        [Decimal("0.1"), Decimal("NaN"), Decimal("0.10")],
        [np.float64(1), np.int64(2), np.bool_(True)],
        [np.array([1.0, 2.0]), np.array([1.0])],
        [np.array(3.0), np.array(4.0)],
        [Raised("ValueError", "no"), 3],
        [Colour.RED, object(), Odd()],
        [Pair(1, None), Pair(2, "x")],
        [((1, 2), [3, (4, 5)]), ((1, 2), [3, (4, 6)])],
        [1j, 2j],
        [10**400, -(10**400)],
    ],
)
def test_equal_outputs_and_only_those_are_equal_rows(values: list[Any]) -> None:
    codes = wholes(values + values)
    half = len(values)
    assert codes[:half] == codes[half:]
    assert len(set(codes)) == len(
        {f"{type(v)} {'odd' if isinstance(v, Odd) else repr(v)}" for v in values}
    )
    one_by_one = concat([encode([value]) for value in values])
    assert one_by_one.size == half
    assert all(column.numbers.shape == (half,) for column in one_by_one.columns.values())
    assert propose(encode(values + values))


def test_atoms_have_names() -> None:
    table = encode([1.0, math.nan, None, "yes", math.inf])
    assert names(table, "")[1:3] == ["NaN", "None"]
    assert table.columns[""].is_number().tolist() == [True, False, False, False, False]


def test_missing_places() -> None:
    table = encode([[1, 2], [3]])
    atoms = table.columns["[1]"].atoms
    assert atoms is not None
    assert atoms.tolist() == [0, MISSING]
    assert len(set(table.shape.tolist())) == 2
    joined = concat([encode(np.zeros((2, 1))), encode(np.zeros((2, 2)))])
    found = joined.column("[1]").atoms
    assert found is not None
    assert found.tolist() == [MISSING, MISSING, 0, 0]
    nowhere = joined.column("[9]").atoms
    assert nowhere is not None
    assert nowhere.tolist() == [MISSING] * 4


def test_types_are_part_of_the_shape() -> None:
    assert len(set(encode([1, 1.0, True, "1", None]).shape.tolist())) == 5
    assert len(set(encode([1, 2, 3]).shape.tolist())) == 1
    assert (
        encode(np.array([1.0])).shape[0]
        == encode([np.float64(1)]).shape[0]
        != encode([1.0]).shape[0]
    )
    assert encode(np.zeros(1, np.float32)).shape[0] != encode(np.zeros(1)).shape[0]
    assert encode([{"a": 1, "b": 2}]).shape[0] != encode([{"b": 2, "a": 1}]).shape[0]


def test_numbers_inside_texts_and_objects_are_found() -> None:
    table = encode(["value -3.5e2, 7", "none", ValueError("12")])
    assert table.column(".number 1").numbers.tolist() == [-350.0, 0.0, 12.0]
    assert table.column(".number 2").numbers.tolist() == [7.0, 0.0, 0.0]
    assert encode([1 + 2j]).column(".imag").numbers.tolist() == [2.0]
    assert encode([timedelta(days=1)]).column("").numbers.tolist() == [86400.0]
    assert encode([np.array([(1.5, 2)], "f8,i4")[0]]).column("[0]").numbers.tolist() == [1.5]
    assert encode([pd.DataFrame({"a": [1, 2]})]).column("['a'][1]").numbers.tolist() == [2.0]
    assert encode([pl.DataFrame({"a": [1, 2]})]).column("['a'][1]").numbers.tolist() == [2.0]
    assert encode([pa.table({"a": [1, 2]})]).column("['a'][1]").numbers.tolist() == [2.0]
    assert encode([10**400 + 5]).column(".low").numbers.tolist() == [float((10**400 + 5) % 2**53)]


def test_what_cannot_be_looked_into_is_told() -> None:
    assert encode([object()]).opaque
    assert encode([lambda: 1]).opaque
    assert not encode([1, "x", None, (1, {"a": b"x"})]).opaque
    assert concat([encode([1]), encode([object()])]).opaque
    assert encode(np.zeros((1, 5000))).opaque


def test_an_array_and_its_list_have_the_same_numbers() -> None:
    array = np.random.default_rng(0).normal(size=(50, 3))
    fast, slow = encode(array), encode([tuple(row) for row in array.tolist()])
    for name, column in fast.columns.items():
        assert np.array_equal(column.numbers, slow.columns[name].numbers)


def test_exact_numbers_that_are_one_float() -> None:
    assert len(set(wholes([2**60, 2**60 + 1]))) == 2
    assert len(set(wholes(np.array([2**60, 2**60 + 1])))) == 2
    assert len(set(wholes([0.0, -0.0]))) == 2


def test_addresses_are_no_output() -> None:
    assert len(set(wholes([object() for _ in range(20)]))) == 1


def test_many_places_are_bounded() -> None:
    assert len(encode(np.zeros((2, 5000))).columns) <= 4096
    assert len(encode([list(range(5000))]).columns) <= 4096


def test_codes_are_stable_and_mixing_keeps_order_apart() -> None:
    assert code("NaN") == code("NaN") > 0
    assert mix(mix(1, 2), 3) != mix(mix(1, 3), 2)
    assert (mix(np.arange(1000), 7) > 0).all()
    assert len(np.unique(mix(np.arange(1000), 7))) == 1000
