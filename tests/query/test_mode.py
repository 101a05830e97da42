"""MODE: the law of the draw, what one person can change, and an answer column of values."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

import sordino as so
from engine_reference import Bench
from sordino.answer.answer import Answer, ValueColumn
from sordino.audit.replayed.distances import moved
from sordino.query.aggregates.draws import Cells
from sordino.query.aggregates.mode import most_frequent

COLUMNS: dict[str, Any] = {
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "code": {"type": "category", "values": [f"code {i}" for i in range(300)]},
    "age": {"type": "int", "min": 0, "max": 110},
    "listed": {"type": "category", "values": [3, 50, 700]},
    "smoker": {"type": "bool"},
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-01-31"},
    "city": {"type": "text"},
}


def cells(weights: dict[int, int]) -> Cells:
    return np.array(sorted(weights), np.int64), np.array(
        [weights[place] for place in sorted(weights)], np.int64
    )


def law(weights: dict[int, int], positions: int, rate: Fraction) -> list[float]:
    sizes = [math.exp(rate * weights.get(place, 0)) for place in range(positions)]
    return [size / sum(sizes) for size in sizes]


def misfit(found: Counter[int], expected: list[float]) -> float:
    """The probability of counts as far from a law as these."""
    total = found.total()
    return float(
        chi2.sf(
            sum((found[i] - total * p) ** 2 / (total * p) for i, p in enumerate(expected)),
            len(expected) - 1,
        )
    )


def test_the_law_of_the_draw() -> None:
    """With and without weight, first and last: the exact law is accepted, and one of a rate that is 10 % off is not."""
    weights, rate = {1: 5, 2: 2, 5: 7}, Fraction(1, 4)
    found = Counter(most_frequent(cells(weights), 7, rate) for _ in range(20_000))
    assert misfit(found, law(weights, 7, rate)) > 1e-4
    assert misfit(found, law(weights, 7, rate * 11 / 10)) < 1e-4
    assert set(found) == set(range(7))


def test_nothing_weighs_nothing() -> None:
    assert {most_frequent(cells({}), 3, Fraction(1)) for _ in range(100)} == {0, 1, 2}
    assert most_frequent(cells({0: 4}), 1, Fraction(1)) == 0


def test_one_unit_of_weight_costs_the_rate_and_no_more() -> None:
    """For all small weights and neighbours: log-probabilities move within an interval
    of the length rate * moved weight.
    """
    rate, worst = Fraction(1, 2), 0.0
    for w, v in itertools.product(itertools.product(range(3), repeat=3), repeat=2):
        apart = sum(abs(a - b) for a, b in zip(w, v, strict=True))
        one, other = (law(dict(enumerate(x)), 3, rate) for x in (w, v))
        shifts = [math.log(p / q) for p, q in zip(one, other, strict=True)]
        assert max(shifts) - min(shifts) <= float(rate) * apart + 1e-12
        if apart:
            worst = max(worst, (max(shifts) - min(shifts)) / (float(rate) * apart))
    assert worst == pytest.approx(1)


@pytest.fixture(scope="module")
def session() -> Iterator[so.Session]:
    rng = random.Random(5)
    size = 900
    table = pa.table(
        {
            "pid": [i % 300 for i in range(size)],
            "ward": rng.choices("AABBBB", k=size),
            "code": rng.choices(["code 7", "code 7", "code 7", "code 8"], k=size),
            "age": rng.choices([5, 40, 40], k=size),
            "listed": rng.choices([3, 700, 700, 1], k=size),
            "smoker": rng.choices([True, True, True, False], k=size),
            "day": pa.array([None] * size, pa.date32()),
            "city": ["x"] * size,
        }
    )
    data = so.Dataset(
        table,
        name="t",
        unit="pid",
        max_rows_per_group=3,
        max_groups=2,
        columns=COLUMNS,
        budget={"epsilon": 10**5},
    )
    with so.Session(data) as opened:
        yield opened


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ward", "B"),
        ("code", "code 7"),
        ("age", 40),
        ("listed", 700),
        ("smoker", True),
        ("BUCKET(age, 30)", 30),
        ("age > 20", True),
    ],
)
def test_the_most_frequent_value_is_found(session: so.Session, column: str, value: Any) -> None:
    answer = session.sql(f"SELECT MODE({column}) AS m FROM t", epsilon=50)
    assert answer.value() == value
    assert type(answer.value()) is type(value)


def test_it_is_a_column_of_values(session: so.Session) -> None:
    sql = "SELECT smoker, MODE(ward) AS m, COUNT(*) AS n FROM t GROUP BY smoker HAVING m = 'B' ORDER BY m, smoker"
    answer = session.sql(sql, epsilon=80)
    assert answer["m"] == ["B", "B"]
    assert [type(column) for column in answer.columns][1] is ValueColumn
    assert [key.name for key in answer.keys] == ["smoker"]
    assert set(answer.to_dict()) == {"smoker", "m", "n", "n_low", "n_high"}
    again = Answer.from_json(answer.to_json())
    assert (again.rows(), again.to_json()) == (answer.rows(), answer.to_json())
    assert isinstance(again.columns[1], ValueColumn)
    assert "B" in answer.to_text()
    assert answer.to_arrow().column("m").to_pylist() == ["B", "B"]
    with pytest.raises(so.errors.InvalidInput, match="intervals"):
        session.sql("SELECT MODE(ward) AS m FROM t", epsilon=1).interval("m")
    with pytest.raises(so.errors.InvalidInput, match="numbers"):
        session.sql("SELECT MODE(ward) AS m FROM t", epsilon=1).plot()


def test_python_asks_the_same(session: so.Session) -> None:
    assert (
        session.table("t").agg(m=so.mode("ward").where("age > 20")).run(epsilon=50).value() == "B"
    )


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("MODE(city)", "ORDER BY n DESC LIMIT 1"),
        ("MODE(age * age * age * age)", "BUCKET"),
        ("MODE(age) + 1", "separately"),
        ("MODE(ward) / COUNT(*)", "separately"),
    ],
)
def test_what_has_no_mode_is_refused_while_planning(
    session: so.Session, sql: str, hint: str
) -> None:
    with pytest.raises(so.errors.InvalidInput) as caught:
        session.preview(f"SELECT {sql} AS m FROM t", epsilon=1)
    assert hint in caught.value.hint


def test_a_public_table_tells_the_first_of_the_most_frequent() -> None:
    table = pa.table({"ward": ["C", "B", "C", "B", None]})
    data = so.Dataset(
        table, name="t", public=True, columns={"ward": COLUMNS["ward"]}, budget={"epsilon": 1}
    )
    with so.Session(data) as opened:
        assert opened.sql("SELECT MODE(ward) AS m FROM t", epsilon=1).value() == "B"


def test_no_person_moves_more_weight_than_declared() -> None:
    rng, bench = random.Random(2), Bench()
    types = pa.schema({"pid": pa.int64(), "ward": pa.string(), "age": pa.int64()})
    for neighbors in ("add_remove", "replace"):
        columns = {name: COLUMNS[name] for name in ("ward", "age")}
        bounds: dict[str, Any] = {
            "unit": "pid",
            "max_rows_per_group": 2,
            "max_groups": 1,
            "neighbors": neighbors,
        }
        empty = pa.Table.from_pylist([], types)
        data = so.Dataset(empty, name="t", columns=columns, budget={"epsilon": 10}, **bounds)
        with so.Session(data) as opened:
            plan = opened.preview("SELECT ward, MODE(age) AS m FROM t GROUP BY ward", epsilon=1)
        reached = 0.0
        for _ in range(12):
            rows = [
                {"pid": rng.randrange(4), "ward": rng.choice("ABC"), "age": rng.randrange(3)}
                for _ in range(14)
            ]
            other = [row for row in rows if row["pid"] != 1]
            if neighbors == "replace":
                other += [{"pid": 1, "ward": rng.choice("ABC"), "age": 100} for _ in range(3)]
            found = []
            for each in (rows, other):
                bench.load(data.tables, {"t": pa.Table.from_pylist(each, types)})
                found.append(bench.run(plan))
            distances = moved(plan, *found)
            assert [distance for distance in distances if distance.broken] == []
            reached = max(reached, *(distance.tightness for distance in distances))
        assert 0.9999 < reached <= 1


def test_it_is_drawn_at_the_rate_that_is_charged(
    session: so.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[Fraction] = []

    def seen(cells: Cells, positions: int, rate: Fraction) -> int:
        rates.append(rate)
        return most_frequent(cells, positions, rate)

    plan = session.preview(
        "SELECT ward, MODE(age) AS m FROM t GROUP BY ward", epsilon=Fraction(1, 3), bias=False
    )
    with monkeypatch.context() as patch:
        patch.setattr("sordino.session.rehearse", lambda *_: None)
        patch.setattr("sordino.query.aggregates.mode.most_frequent", seen)
        session.sql(
            "SELECT ward, MODE(age) AS m FROM t GROUP BY ward", epsilon=Fraction(1, 3), bias=False
        )
    (drawn,) = plan.drawn
    assert [rate * drawn.moved for rate in rates] == [Fraction(1, 3)] * 3
    assert plan.charge.pure == Fraction(1, 3)
