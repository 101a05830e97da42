"""What is asked of cells before they are cleaned is true for the same rows as what was asked of clean cells."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import sordino as so
from query import nasty
from sordino.plan.fragments import column
from sordino.plan.uncleaned import asked_of_cells
from sordino.query.meaning.expressions import typed
from sordino.query.meaning.reading import read
from sordino.query.tree import Call, Column, Expression, Literal
from sordino.query.typed import Typed
from sordino.query.types import Day, Moment, Number, Text

ALIKE = {"small": "age", "any_day": "day", "any_at": "at"}
"""Columns that are declared here as others are: two columns of the same bounds are compared with each other."""
COLUMNS = {name: nasty.COLUMNS[ALIKE.get(name, name)] for name in nasty.COLUMNS}
DIRECT = {name: one for name, one in COLUMNS.items() if not isinstance(one.type, Text)}
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
FOUND = ("age", "small", "big", "cost", "signed", "wide", "any_float", "flag", "ward", "day", "at")
"""Columns of which conditions are found for cells as they are."""


def cleaned_before(named: Any) -> Typed:
    """A column as a relation has it: clean under its name, but for texts, which are cleaned where they are used."""
    declared = COLUMNS[named.name]
    cell = column(named.name)
    return Typed(declared.type, cell) if named.name in DIRECT else read(declared, cell)


def constants(kind: Any) -> list[Any]:
    """Constants at the bounds, beside them and between them."""
    match kind:
        case Text(values=tuple() as values) | Number(values=tuple() as values):
            return [*values]
        case Day(lower=low, upper=high) | Moment(lower=low, upper=high):
            step = timedelta(days=1)
            within = [low, high, low + step, high - step, low + 40 * step]
            return [x for x in within if not isinstance(x, datetime) or x.year > 1]
        case Number(lower=low, upper=high):
            ends = [Fraction(end) for end in (low, high) if end is not None]
            parts = (-1, Fraction(-1, 2), 0, Fraction(1, 2), 1)
            beside = [end + part for end in ends for part in parts]
            return [*beside, *map(Fraction, (0, 1, -2, 7, 17, 40)), Fraction(1, 10)]
        case _:
            return [True, False]


class Conditions:
    """Random conditions on columns and constants."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def one(self, depth: int) -> Expression:
        r = self.rng
        kind = r.choice(["compare", "compare", "in", "flag", "and", "or", "not"])
        if depth and kind in ("and", "or"):
            return Call(kind, tuple(self.one(depth - 1) for _ in range(r.randint(2, 3))))
        if depth and kind == "not":
            return Call("not", (self.one(depth - 1),))
        name = r.choice([n for n in COLUMNS if n not in ("city", "name")])
        own = Column(name)
        if name == "flag" and kind != "compare":
            return own
        listed = [Literal(value) for value in constants(COLUMNS[name].type)]
        if kind == "in":
            return Call("in", (own, *r.sample(listed, min(2, len(listed)))))
        if r.random() < 0.3:
            others = [n for n, one in COLUMNS.items() if one.type == COLUMNS[name].type]
            return Call(r.choice(COMPARED), (own, Column(r.choice(others))))
        pair = (own, r.choice(listed))
        return Call(r.choice(COMPARED), pair if r.random() < 0.8 else pair[::-1])


def on_clean(condition: exp.Expr) -> Any:
    """The condition with each column cleaned where it stands."""

    def clean(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in DIRECT:
            return exp.Paren(this=read(DIRECT[node.name], node.copy()).sql)
        return node

    return condition.copy().transform(clean)


def test_it_is_true_for_the_same_rows() -> None:
    """Nasty cells (NaN, infinities, far dates, unlisted texts, NULL), constants at every bound and beside it."""
    made, rng = list[tuple[Any, Any, bool]](), Conditions(3)
    seen: Counter[str] = Counter()
    pairs = 0
    while len(made) < 1500:
        condition = typed(rng.one(2), cleaned_before).sql
        holds = rng.rng.random() < 0.7
        found = asked_of_cells(condition, DIRECT, holds=holds)
        if found is None:
            continue
        made.append((on_clean(condition), found, holds))
        names = [one.name for one in condition.find_all(exp.Column)]
        seen.update(names)
        pairs += isinstance(condition, exp.Paren) and len(names) == 2 and names[0] != names[1]
    rows = nasty.table()
    for begin in range(0, len(made), 250):
        part = made[begin : begin + 250]
        wanted = rows.run([one for one, _, _ in part])
        got = rows.run([one for _, one, _ in part])
        for (condition, found, holds), cells, others in zip(part, wanted, got, strict=True):
            expected = [cell is holds for cell in cells]
            assert expected == [cell is True for cell in others], (condition.sql(), found.sql())
    assert {name for name, count in seen.items() if count >= 20} >= {*FOUND, "any_day", "any_at"}
    assert pairs > 50


@pytest.mark.parametrize("shared", [False, True])
def test_keys_of_public_files_are_grouped_only_where_they_must_be(shared: bool) -> None:
    """Persons are bounded after a lookup: unique keys are not grouped in each question. Where each row is another
    person, nothing comes after it: a file that is exchanged amid a question must not make one row two.
    """
    keys = ["x", "y", *(["x"] if shared else [])]
    wards = {"source": pa.table({"place": keys, "size": list(range(len(keys)))}), "public": True, "key": ["place"],
             "columns": {"place": {"type": "category", "values": ["x", "y"]},
                         "size": {"type": "int", "min": 0, "max": 9}}}  # fmt: skip
    visits = {"source": pa.table({"id": [1, 1, 2], "ward": ["x", "y", "x"]}),
              "columns": {"ward": {"type": "category", "values": ["x", "y"]}}}  # fmt: skip
    question = "SELECT SUM(size) AS s FROM visits JOIN wards ON ward = place"
    per_person = (
        "SELECT SUM(size) AS s FROM (SELECT id, MIN(ward) AS ward FROM visits GROUP BY id) AS p "
        "JOIN wards ON p.ward = place"
    )
    grouped = []
    for unit, asked in (("id", question), ("row", question), ("id", per_person)):
        bounds = {"max_rows": 3} if unit == "id" else {}
        tables = {"visits": {**visits, "unit": unit, **bounds}, "wards": wards}
        with so.Session(so.Dataset(tables=tables, budget={"epsilon": 10})) as session:
            sql = session.preview(asked, epsilon=1, bias=False).sql()
        grouped.append('GROUP BY\n    "c' in sql or 'GROUP BY "c' in " ".join(sql.split()))
    assert grouped == [shared, True, True]
