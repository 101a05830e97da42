"""Which inputs are neighbours: every relation, every kind of data, and nothing odd raises."""

from __future__ import annotations

import datetime as dt
import enum
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import sordino as so
from sordino.audit.inputs.neighbors import RELATIONS, brief, check
from sordino.errors import InvalidInput

NAN = float("nan")
AGE = {"age": {"type": "int", "min": 0, "max": 110}}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Unhashable({self.name})"


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


def _named(x: Any) -> str:
    """The same in every worker: without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", brief(x))


YES: list[tuple[Any, Any, Any]] = [
    (0, 1, "number"),
    (0.25, 1.25, "number"),
    (2.2, 1.2, "number"),
    (Fraction(1, 3), 1, "number"),
    (Decimal("0.1"), 0.5, "number"),
    (10**400, 10**400 + 1, "number"),
    (np.float32(1), np.int64(2), "number"),
    (np.array(3), 4, "number"),
    ([1, 2, 3], [2, 1, 3], "answers"),
    (np.ones(4), np.ones(4) * 2, "answers"),
    ({"a": 1, "b": 2}, {"a": 2, "b": 1}, "answers"),
    (np.ones((2, 2)), np.zeros((2, 2)), "answers"),
    ([NAN, 1], [NAN, 2], "answers"),
    ([3, 1], [3, 2], "histogram"),
    ({"a": 1}, {"a": 1, "b": 1}, "histogram"),
    (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]]), "histogram"),
    ([], [5], "add_remove"),
    ([3, 1, 2], [2, 3], "add_remove"),
    (["a", "a"], ["a"], "add_remove"),
    ([NAN, NAN], [NAN], "add_remove"),
    ([[1, 2], [3]], [[3]], "add_remove"),
    ([{"x": [1]}], [], "add_remove"),
    ([(1, NAN), (2, None)], [(2, None)], "add_remove"),
    ([1, 2], np.array([2.0]), "add_remove"),
    ({1, 2}, {2}, "add_remove"),
    ({"a": 3, "b": 0}, {"a": 2}, "add_remove"),
    ([Unhashable("x"), Unhashable("y")], [Unhashable("y")], "add_remove"),
    (np.arange(6).reshape(3, 2), np.arange(4).reshape(2, 2), "add_remove"),
    ([1, 2, 3], [3, 9, 2], "replace"),
    (["yes", "no"], ["no", "no"], "replace"),
    ([True, False], [False, False], "replace"),
    ({"a": 2, "b": 1}, {"a": 1, "b": 2}, "replace"),
    (pa.table({"x": [1, 2]}), pa.table({"x": [2]}), "add_remove"),
    (
        pa.table({"x": [1, None], "y": ["a", "b"]}),
        pa.table({"x": [1, 5], "y": ["a", "b"]}),
        "replace",
    ),
    (pa.array([1, 2]), pa.array([1]), "add_remove"),
    (pa.table({"x": [1]}), pd.DataFrame({"x": [1.0, 2.0]}), "add_remove"),
    (pd.DataFrame({"x": [1.0, NAN]}), pd.DataFrame({"x": [NAN]}), "add_remove"),
    (pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [1, 2]}).iloc[1:], "add_remove"),
    (pd.Series([1, 2]), pd.Series([2]), "add_remove"),
    (pd.Series([1, pd.NA], dtype="Int64"), pd.Series([pd.NA], dtype="Int64"), "add_remove"),
    (pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [1, 3]}), "replace"),
    (pl.Series([1, 2]), pl.Series([1]), "add_remove"),
    (np.array([(1, 2.0)], dtype="i4,f8"), np.array([], dtype="i4,f8"), "add_remove"),
    (0, 1, "unchecked"),
    (0, 50, "unchecked"),
    ([1], "anything", "unchecked"),
    (Hostile(), Hostile(), "unchecked"),
    (3, 4, lambda a, b: b == a + 1),
    (3, 4, lambda a, b: np.bool_(True)),
    ([1, 2], [1], so.Neighbors.ADD_REMOVE),
    # inferred
    (0, 1, None),
    ("yes", "no", None),
    (True, False, None),
    (None, "x", None),
    (Colour.RED, Colour.BLUE, None),
    (dt.date(2024, 1, 1), dt.date(2025, 1, 1), None),
    (np.str_("a"), "b", None),
    ([1, 2], [2], None),
    ([1, 2], [2, 7], None),
    ([1, 2, 3], [2, 3, 4.0], None),
    ([1, 2, 3], [0, 1, 4], None),
    ({"a": 1}, {"a": 2}, None),
    ({"ann": 40, "bob": 50}, {"ann": 40}, None),
    ({"ann": "x"}, {"ann": "y"}, None),
]

NO: list[tuple[Any, Any, Any, str]] = [
    (0, 2, "number", "at most 1 apart"),
    (0, 2, None, "at most 1 apart"),
    (NAN, 1, None, "at most 1 apart"),
    (float("inf"), 1, None, "at most 1 apart"),
    (10**400, 0.5, None, "at most 1 apart"),
    (0, "1", "number", "needs two numbers"),
    (True, 0, "number", "needs two numbers"),
    ([1], [2], "number", "needs two numbers"),
    ([1, 2], [1, 4], "answers", "entry 1 moves from 2 to 4"),
    ([1, 2], [1], "answers", "equally many entries"),
    (["a"], ["b"], "answers", "must be a number"),
    (np.ones((2, 2)), np.zeros(4), "answers", "same shape"),
    ([NAN], [1], "answers", "entry 0"),
    ({1}, {2}, "answers", "not a vector"),
    ([1, 2], [2, 3], "histogram", "2 entries differ"),
    ([1, 2], [1, 5], "histogram", "no entry may move"),
    ({"a": 1}, {"b": 1}, "histogram", "2 entries differ"),
    ([1, 2], [2, 3], "add_remove", "in the first only: 1, in the second only: 1"),
    ([1, 2, 3], [1], "add_remove", "rows in the first only: 2"),
    ([1, 2], [3, 4], "replace", "rows in the first only: 2"),
    ([1, 2], [1], "replace", "add_remove"),
    ([1, 2], [2, 1], "replace", "another order"),
    ([1, 5], [5, 1], None, "another order"),
    (5, 6, "add_remove", "does not hold rows"),
    ([True], [], "replace", "one on each side may differ"),
    (pd.DataFrame({"x": [1]}), pd.DataFrame({"y": [1, 2]}), "add_remove", "columns"),
    (pa.table({"x": [1, 2]}), pa.table({"x": [1], "y": [1]}), "add_remove", "columns"),
    (object(), object(), None, "no relation that is known"),
    (1, [1], None, "no relation that is known"),
    (True, 0, None, "no relation that is known"),
    (Hostile(), Hostile(), None, "could not be compared"),
    ([Hostile()], [], "add_remove", "could not be compared"),
    (3, 4, lambda a, b: False, "says that they are not"),
    (3, 4, lambda a, b: 1, "returned 1"),
    (3, 4, lambda a, b: None, "returned None"),
    (3, 4, lambda a, b: a.rows, "raised AttributeError"),
    (3, 4, lambda a: True, "raised TypeError"),
]


@pytest.mark.parametrize(("d1", "d2", "relation"), YES, ids=lambda x: _named(x)[:30])
def test_neighbours_are_neighbours_both_ways(d1: Any, d2: Any, relation: Any) -> None:
    found = check(d1, d2, relation)
    assert found.ok, found.problem
    assert found.problem == ""
    assert found.relation
    if not (callable(relation) and relation(d2, d1) is False):
        assert check(d2, d1, relation).ok


@pytest.mark.parametrize(("d1", "d2", "relation", "why"), NO, ids=lambda x: _named(x)[:30])
def test_others_are_not_and_it_is_said_why(d1: Any, d2: Any, relation: Any, why: str) -> None:
    found = check(d1, d2, relation)
    assert not found.ok
    assert why in found.problem
    assert len(found.problem) < 500
    assert not check(d2, d1, relation).ok


@pytest.mark.parametrize("relation", [*RELATIONS, None, lambda a, b: True])
@pytest.mark.parametrize(
    "data",
    [
        0,
        NAN,
        "a",
        [],
        [1, 2],
        [NAN],
        np.arange(3),
        {"a": 1},
        {1, 2},
        pd.DataFrame({"x": [1]}),
        pa.table({"x": [NAN]}),
        object(),
    ],
    ids=_named,
)
def test_equal_inputs_are_a_problem_under_every_relation(data: Any, relation: Any) -> None:
    """Even unchecked: on equal inputs every mechanism would pass."""
    found = check(data, data, relation)
    assert not found.ok
    assert "equal" in found.problem


def test_equal_by_value_is_equal() -> None:
    assert "equal" in check([1, 2], np.array([1.0, 2.0]), "unchecked").problem
    assert "equal" in check({3, 1, 2}, {2, 3, 1}, "unchecked").problem
    assert check([1], [True], "unchecked").ok
    assert check([1, True], [1], "add_remove").ok
    assert not check([1, 1], [True], "add_remove").ok


def test_what_was_assumed_is_said() -> None:
    assert check(0, 1).relation == "two numbers at most 1 apart, assumed from the inputs"
    assert (
        check("a", "b").relation == "one person's answer, any two values, assumed from the inputs"
    )
    assert check([1, 2], [1]).relation == "rows, one added or removed, assumed from the inputs"
    assert (
        check([1, 2], [1, 3]).relation == "rows, one replaced by another, assumed from the inputs"
    )
    assert check([1, 2, 3], [2, 3, 4.5 - 0.5]).relation.startswith("rows, one replaced")
    assert check([5, 6], [6, 7.5 - 0.5]).relation.startswith("rows, one replaced")
    assert check([5, 6, 9], [6, 5, 8]).relation.startswith("rows, one replaced")
    assert (
        check([5, 7, 9], [6, 8, 10]).relation
        == "exact answers, each moved by at most 1, assumed from the inputs"
    )
    assert check([1], [2], "replace").relation == "rows, one replaced by another"


@pytest.mark.parametrize("word", ["add-remove", "hist", "swap", "", 3, ["replace"], True])
def test_unknown_relations_are_refused(word: Any) -> None:
    with pytest.raises(InvalidInput, match="not a known neighbour relation") as refusal:
        check(0, 1, word)
    assert "'add_remove'" in str(refusal.value)
    if word == "add-remove":
        assert "Did you mean 'add_remove'?" in str(refusal.value)


@pytest.mark.parametrize("relation", ["unchecked", None, lambda a, b: True])
def test_what_can_be_read_only_once_cannot_be_audited(relation: Any) -> None:
    assert "only once" in check(iter([1]), iter([1, 2]), relation).problem
    assert "only once" in check([1], (x for x in (1, 2)), relation).problem


def test_a_cycle_is_reported_not_raised() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert "RecursionError" in check(loop, [1], "add_remove").problem


def test_large_data_are_compared_by_counting_and_shown_by_their_size() -> None:
    rows = np.arange(50_000) * 0.5
    assert check(rows, rows[1:], "add_remove").ok
    shuffled = rows[::-1].copy()
    shuffled[0] = -1
    assert check(rows, shuffled, "replace").ok
    problem = check(rows, rows[2:], "add_remove").problem
    assert "a ndarray of 50,000" in problem
    assert check(rows.tolist(), (rows + 1).tolist(), "answers").ok


def dataset(rows: dict[str, list[Any]], **declared: Any) -> so.Dataset:
    return so.Dataset(pa.table(rows), columns=AGE, **declared)


def test_datasets_are_compared_by_person() -> None:
    one = dataset({"id": [1, 1, 2], "age": [30, 31, 50]}, unit="id")
    without = dataset({"id": [2], "age": [50]}, unit="id")
    other = dataset({"id": [1, 2], "age": [99, 50]}, unit="id")
    assert check(one, without).relation == "persons, one added or removed, as declared"
    assert not check(one, other).ok
    assert check(one, other, "replace").ok
    assert not check(one, dataset({"id": [3], "age": [50]}, unit="id")).ok
    assert "equal" in check(one, dataset({"id": [2, 1, 1], "age": [50, 31, 30]}, unit="id")).problem


def test_datasets_say_their_own_relation() -> None:
    one, two = ({"id": [1, 2], "age": [30, x]} for x in (40, 50))
    assert not check(dataset(one, unit="row"), dataset(two, unit="row")).ok
    found = check(
        dataset(one, unit="row", neighbors="replace"), dataset(two, unit="row", neighbors="replace")
    )
    assert found.relation == "persons, one replaced, as declared"
    assert (
        "declared"
        in check(dataset(one, unit="row"), dataset(two, unit="row", neighbors="replace")).problem
    )


def test_rows_of_nobody_and_undeclared_columns_do_not_count() -> None:
    one = dataset({"id": [1, None], "age": [30, 40]}, unit="id")
    assert "equal" in check(one, dataset({"id": [1, None], "age": [30, 41]}, unit="id")).problem
    assert (
        "equal" in check(one, dataset({"id": [1], "age": [30], "extra": ["x"]}, unit="id")).problem
    )


def test_public_tables_must_be_the_same() -> None:
    def both(city: str, ages: list[int]) -> so.Dataset:
        table = so.Table.declare(
            pa.table({"id": list(range(len(ages))), "age": ages}),
            name="people",
            unit="id",
            columns=AGE,
        )
        names: dict[str, dict[str, Any]] = {
            "age": {"type": "int", "min": 0, "max": 110},
            "city": {"type": "category", "values": ["A", "B"]},
        }
        public = so.Table.declare(
            pa.table({"age": [1], "city": [city]}),
            name="cities",
            columns=names,
            public=True,
            key=["age"],
        )
        return so.Dataset(tables={"people": table, "cities": public})

    assert check(both("A", [30, 40]), both("A", [30])).ok
    assert "declared" in check(both("A", [30, 40]), both("B", [30])).problem


def test_files_are_read_and_compared(tmp_path: Any) -> None:
    for name, ages in (("one", [30, 40]), ("two", [30])):
        pyarrow.parquet.write_table(pa.table({"age": ages}), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.csv").write_text("age\n" + "\n".join(map(str, ages)))
    one, two = (
        so.Dataset(tmp_path / f"{name}.parquet", columns=AGE, unit="row", name="t")
        for name in ("one", "two")
    )
    assert check(one, two).ok
    three, four = (
        so.Dataset(tmp_path / f"{name}.csv", columns=AGE, unit="row", name="t")
        for name in ("one", "two")
    )
    assert check(three, four).ok
    assert not check(three, three).ok
