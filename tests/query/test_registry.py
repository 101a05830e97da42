"""One aggregate, one file: what is registered once is found in SQL,
in Python, in texts, in the docs, and is answered.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pytest
from sqlglot import exp

import sordino as so
from sordino.errors import InvalidInput, UnsupportedSQL
from sordino.query.aggregates.argument import Argument
from sordino.query.aggregates.grid import Grid
from sordino.query.aggregates.partial import Partial, Reach
from sordino.query.aggregates.registry import Example, Kind, kinds, register
from sordino.query.front.python import Question
from sordino.query.front.sql import parse
from sordino.query.front.syntax import render, supported
from sordino.query.front.text import sql_text
from sordino.query.tree import Aggregate, Column

SOURCE = Path(so.__file__).parent


@dataclass(frozen=True)
class Overlap(Partial):
    """The sum of (x - min x)(y - min y)."""

    bounding: ClassVar[Literal["clip", "scale", "once"]] = "scale"
    points: tuple[Grid, Grid]

    @property
    def label(self) -> str:
        return "products"

    @property
    def serves(self) -> frozenset[str]:
        return frozenset({"overlap"})

    @property
    def inputs(self) -> int:
        return 1

    @property
    def grids(self) -> tuple[Grid, ...]:
        return self.points

    @property
    def reach(self) -> Reach:
        most = self.points[0].cells * self.points[1].cells
        return Reach(most, most**2, most, spread=most)

    def sums(self, *arguments: exp.Expr) -> tuple[exp.Expr, ...]:
        above = [
            exp.Paren(this=x - grid.first) for x, grid in zip(arguments, self.points, strict=True)
        ]
        return (exp.Sum(this=exp.Mul(this=above[0], expression=above[1])),)

    def weights(self, function: str, unit: int) -> tuple[Fraction, ...]:
        return (self.points[0].step * self.points[1].step / unit,)


def _overlap(arguments: tuple[Argument, ...]) -> Partial:
    x, y = (argument.grid("overlap", 2**20) for argument in arguments)
    return Overlap((x, y))


OVERLAP = Kind(
    "overlap",
    ("OVERLAP", "ARG_MAX"),
    "overlap",
    "The sum of products.",
    (Example("overlap", "OVERLAP(age, cost)", 'so.overlap("age", "cost")', "a test"),),
    _overlap,
    arguments=("x", "y"),
)


@pytest.fixture
def overlap() -> Iterator[Kind]:
    remove = register(OVERLAP)
    yield OVERLAP
    remove()


@pytest.mark.usefixtures("overlap")
class TestFoundEverywhere:
    TREE = Aggregate("overlap", (Column("age"), Column("cost")))

    def test_in_sql(self) -> None:
        # a name that the parser does not know, and one that it does
        for name in ("OVERLAP", "overlap", "ARG_MAX"):
            assert parse(f"SELECT {name}(age, cost) AS n FROM visits").outputs[0].value == self.TREE
        filtered = (
            parse("SELECT OVERLAP(age, cost) FILTER (WHERE age > 5) FROM visits").outputs[0].value
        )
        assert isinstance(filtered, Aggregate)
        assert filtered.arguments[1] == Column("cost")
        for wrong in (
            "OVERLAP(age)",
            "OVERLAP(age, cost, 1)",
            "OVERLAP(*)",
            "OVERLAP()",
            "OVERLAP(DISTINCT age)",
        ):
            with pytest.raises(UnsupportedSQL):
                parse(f"SELECT {wrong} FROM visits")

    def test_in_python(self) -> None:
        question = Question("visits").agg(n=so.overlap("age", so.col("cost")))
        assert question.query == parse("SELECT OVERLAP(age, cost) AS n FROM visits")
        with pytest.raises(InvalidInput, match="overlap"):
            so.overlap("age")

    def test_in_completion(self) -> None:
        assert "overlap" in dir(so)
        assert list(inspect.signature(so.overlap).parameters) == ["x", "y"]
        assert so.overlap.__doc__ == "The sum of products."

    def test_in_stored_texts(self) -> None:
        query = parse("SELECT arg_max(age, cost) FROM visits")
        assert sql_text(query) == "SELECT OVERLAP(age, cost) AS overlap_age_cost FROM visits"
        assert parse(sql_text(query)) == query

    def test_in_the_docs(self) -> None:
        assert (
            '| overlap | `OVERLAP(age, cost)` | `so.overlap("age", "cost")` | a test |' in render()
        )
        assert any(row.what == "overlap" for row in supported())

    @pytest.mark.parametrize("unit", ["pid", "row"])
    def test_in_answers(self, unit: str) -> None:
        rows = [(pid, pid % 50 if pid % 7 else None, pid % 11) for pid in range(400)]
        table = pa.table(
            dict(zip(("pid", "age", "cost"), map(list, zip(*rows, strict=True)), strict=True))
        )
        columns: dict[str, Any] = {
            "age": {"type": "int", "min": 10, "max": 40},
            "cost": {"type": "int", "min": -2, "max": 8},
        }
        bounds: dict[str, Any] = {"max_rows_per_group": 1} if unit == "pid" else {}
        budget = {"epsilon": 1000, "delta": 1e-6}
        data = so.Dataset(table, name="visits", unit=unit, columns=columns, budget=budget, **bounds)
        wanted = sum(
            (min(max(a, 10), 40) - 10) * (min(c, 8) + 2) for _, a, c in rows if a is not None
        )
        with so.Session(data) as session:
            answer = session.sql(
                "SELECT OVERLAP(age, cost) AS n, COUNT(*) AS m FROM visits",
                epsilon=200,
                confidence=1 - 1e-9,
            )
            (release, _) = session.preview(
                "SELECT OVERLAP(age, cost) AS n, COUNT(*) AS m FROM visits", epsilon=1
            ).sums
        low, high = answer.interval("n")
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert low <= wanted <= high
        assert high - low < wanted / 100
        assert release.sensitivity.l1 == release.unit * 30 * 10


def test_it_is_gone_afterwards() -> None:
    assert "overlap" not in kinds()
    assert not hasattr(so, "overlap")
    with pytest.raises(UnsupportedSQL):
        parse("SELECT ARG_MAX(age, cost) FROM visits")


def test_a_name_is_registered_once() -> None:
    with pytest.raises(InvalidInput, match="already"):
        register(next(iter(kinds().values())))


@pytest.mark.parametrize(
    "word", ["count_distinct", "stddev_samp", "var_pop", "covar_pop", "regr_r2"]
)
def test_an_aggregate_is_named_in_its_own_file_only(word: str) -> None:
    """But for what one person's own rows are summed up to, which needs no noise."""
    named = {
        path.name
        for path in SOURCE.rglob("*.py")
        if re.search(rf"\b{word}\b", path.read_text("utf-8"))
    } - {"own_rows.py"}
    assert len(named) <= 1, named
