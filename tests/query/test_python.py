"""Questions in Python: the same trees as SQL, and clear errors where Python invites mistakes."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import sordino as so
from query.trees import Lookup, lookups
from sordino import count, mean
from sordino.errors import InvalidInput, UnsupportedSQL
from sordino.query.front.python import Question
from sordino.query.front.shapes import LARGEST
from sordino.query.front.sql import parse
from sordino.query.front.terms import Measure, Term, col, lit, when
from sordino.query.front.text import sql_text
from sordino.query.tree import Aggregate, Column, Expression, Literal, Output, Query

from query.sql_grammar import queries  # isort: skip
from query.sql_grammar import _sql as expression_sql  # isort: skip


def counted(condition: Term | str) -> Expression | None:
    return Question("t").where(condition).agg(n=count()).query.where


UNTYPED: Any = 5
"""A value of a wrong type, unseen by the type checker."""


def refused(condition: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        condition()
    assert caught.value.hint.endswith((".", "?"))
    return caught.value


def test_each_item_of_one_persons_rows_has_a_name_of_its_own() -> None:
    """A key that is called like an aggregate beside it gets another name, as in the answer of a question."""
    question = Question("t").per_person("a", person="u", a=so.sum("b")).agg(n=count())
    assert "SELECT u, a AS a_2, SUM(b) AS a FROM t GROUP BY u, 2" in sql_text(question.query)
    assert parse(sql_text(question.query)) == question.query
    assert refused(lambda: Question("t").per_person(person="u", U=count())).value == "U"
    assert (
        refused(lambda: Question("t").per_person(person="u", n=count(), N=count())).value == "n, N"
    )


class TestTerms:
    @pytest.mark.parametrize(
        ("term", "sql"),
        [
            (5 - col("a"), "5 - a"),
            (1.5 / col("a"), "1.5 / a"),
            (2 * col("a") + 3 * -col("b"), "2 * a + 3 * -b"),
            (100 % col("a"), "100 % a"),
            (3 + col("a"), "3 + a"),
            (5 > col("a"), "a < 5"),
            (abs(col("a")), "ABS(a)"),
            ((col("a") > 1) & (col("b") > 1) & True, "a > 1 AND b > 1 AND TRUE"),
            (True & (col("a") > 1), "TRUE AND a > 1"),
            (False | (col("a") > 1), "FALSE OR a > 1"),
            ((col("a") | col("b")) | (col("c") | col("d")), "a OR b OR c OR d"),
            (~(col("a") == None), "NOT a = NULL"),  # noqa: E711
            (col("a").isin(x for x in (1, 2)), "a IN (1, 2)"),
            (col("a").isin(np.array([1, 2])), "a IN (1, 2)"),
            (-lit(5), "-5"),
            (lit("x") == col("a"), "'x' = a"),
            (col("a").coalesce(col("b"), 0), "COALESCE(a, b, 0)"),
            (col("a").substr(2), "SUBSTR(a, 2)"),
            (col("a").round(), "ROUND(a)"),
            (
                so.quarter("a") + so.month("a") + so.week("a") + so.day("a"),
                "QUARTER(a) + MONTH(a) + WEEK(a) + DAY(a)",
            ),
            (so.date_part("hour", "a"), "HOUR(a)"),
            (when("a > 1", 1).end(), "CASE WHEN a > 1 THEN 1 END"),
        ],
    )
    def test_build_the_tree_of_the_sql(self, term: Term, sql: str) -> None:
        where = parse(f"SELECT COUNT(*) AS n FROM t WHERE {sql}").where
        assert repr(counted(term)) == repr(where)

    @pytest.mark.parametrize(
        ("value", "read"),
        [
            (0.1, Fraction(1, 10)),
            (np.float64(0.1), Fraction(1, 10)),
            (np.int64(5), 5),
            (np.bool_(True), True),
            (np.str_("x"), "x"),
            (2.0, 2),
            (Decimal("0.25"), Fraction(1, 4)),
            (Fraction(1, 3), Fraction(1, 3)),
            (10**50, 10**50),
            (True, True),
            (None, None),
            (date(2024, 1, 31), date(2024, 1, 31)),
            (pd.Timestamp("2024-01-31 10:00"), datetime(2024, 1, 31, 10)),
            (datetime(2024, 1, 31, fold=1), datetime(2024, 1, 31)),
        ],
    )
    def test_constants_are_what_was_typed(self, value: object, read: object) -> None:
        assert repr(lit(value).tree) == repr(Literal(read))  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "value",
        [float("nan"), float("inf"), np.nan, 10**400, Fraction(1, 10**400), "a\x00b", "\ud800", pd.NaT, object(), [1],
         {"a": 1}, b"x", 1j,
         datetime(2024, 1, 31, tzinfo=UTC), count(), when("a", 1), np.array([1, 2])],
    )  # fmt: skip
    def test_other_constants_are_refused(self, value: object) -> None:
        refused(lambda: lit(value))
        refused(lambda: col("a") == value)

    def test_have_no_truth_value(self) -> None:
        a = col("a")
        assert "&, | and ~" in refused(lambda: 1 < a < 5).hint
        refused(lambda: a > 1 and a < 5)
        refused(lambda: not a)
        refused(lambda: a in [1, 2])
        refused(lambda: 1 in a)  # type: ignore[operator]
        refused(lambda: list(a))
        with pytest.raises(TypeError):
            hash(a)

    def test_forgotten_brackets_are_told(self) -> None:
        assert "brackets" in refused(lambda: col("a") & 5).hint
        assert "brackets" in refused(lambda: "x" | col("a")).hint

    @pytest.mark.parametrize(
        "make",
        [
            lambda: col(""), lambda: col(UNTYPED), lambda: col("a", ""), lambda: col("a").isin("abc"),
            lambda: col("a").isin(UNTYPED), lambda: col("a").isin([]),
            lambda: col("a").isin([None]), lambda: col("a").isin([col("b")]), lambda: col("a").like(UNTYPED),
            lambda: col("a").like("\\%"),
            lambda: col("a").round(UNTYPED / 2), lambda: col("a").bucket(0), lambda: col("a").bucket(col("b")),
            lambda: col("a").substr(0),
            lambda: col("a").date_part("century"), lambda: col("a").date_trunc("second"), lambda: so.year(UNTYPED),
            lambda: col("a").clamp(0, col("b")), lambda: col("a").cast("text"), lambda: col("a").time_bucket("5 seconds"),
            lambda: col("a").time_bucket(UNTYPED), lambda: so.date_diff("week", "a", "b"),
            lambda: so.date_diff("day", "a", UNTYPED),
            lambda: col("a").ilike(UNTYPED), lambda: so.concat(UNTYPED),
            lambda: so.mean(UNTYPED),
            lambda: so.quantile("a", 2), lambda: so.quantile("a", "0.5"), lambda: so.count_distinct(),
            lambda: when(UNTYPED, 1),
            lambda: so.sum("a") + col("b"), lambda: when("a >", 1), lambda: col("a") + count(),
            lambda: count().where(UNTYPED),
        ],
    )  # fmt: skip
    def test_wrong_arguments_are_refused(self, make: Any) -> None:
        refused(make)


class TestQuestion:
    def test_every_step_returns_a_new_one(self) -> None:
        base = Question("visits").agg(n=count())
        narrow = base.where("age > 5")
        assert base.query.where is None
        assert narrow.query == parse("SELECT COUNT(*) AS n FROM visits WHERE age > 5")
        assert narrow.where("age < 9").query == parse(
            "SELECT COUNT(*) AS n FROM visits WHERE age > 5 AND age < 9"
        )

    def test_all_steps_together(self) -> None:
        question = (
            Question("visits")
            .join("wards", on={"ward": "name"}, how="left")
            .where(col("age") >= 65)
            .where("wards.region = 'North' AND visits.cost > 1")
            .group_by("ward", so.year("day"), decade=so.bucket("age", 10))
            .agg(n=count(), cost=mean("cost"))
            .having("COUNT(*) > 5", col("cost") < 100, "year_day > 2000")
            .order_by("-n", "ward", "n")
            .limit(5, offset=2)
        )
        assert question.query == parse(
            "SELECT ward, YEAR(day), BUCKET(age, 10) AS decade, COUNT(*) AS n, AVG(cost) AS cost "
            "FROM visits LEFT JOIN wards ON visits.ward = wards.name "
            "WHERE age >= 65 AND wards.region = 'North' AND visits.cost > 1 "
            "GROUP BY 1, 2, 3 HAVING n > 5 AND cost < 100 AND year_day > 2000 "
            "ORDER BY n DESC, ward LIMIT 5 OFFSET 2"
        )

    def test_joins(self) -> None:
        query = Question("t").join("u", on="x").join("v", on=["y", "z"]).agg(n=count()).query
        assert lookups(query)[1] == (
            Lookup("u", ((Column("x"), "x"),)),
            Lookup("v", ((Column("y"), "y"), (Column("z"), "z"))),
        )

    def test_a_key_asked_twice_is_one_key(self) -> None:
        query = Question("t").group_by("a", b="A").agg(n=count()).query
        assert query.keys == (Column("a"),)
        assert query.outputs[:2] == (Output("a", Column("a")), Output("b", Column("a")))
        assert query == parse("SELECT a, a AS b, COUNT(*) AS n FROM t GROUP BY a")

    def test_runs_by_its_session(self) -> None:
        class Session:
            def run(self, query: Query, **cost: Any) -> Any:
                return "run", query, cost

            def preview(self, query: Query, **cost: Any) -> Any:
                return "preview", query, cost

            def person_of(self, name: str, source: Any) -> str | None:
                return None

        question = Question("t", session=Session()).agg(n=count())
        assert question.run(epsilon=0.2) == (
            "run",
            question.query,
            {"epsilon": 0.2, "request_id": None},
        )
        assert question.preview(error=5) == ("preview", question.query, {"error": 5})
        assert "session.table" in refused(lambda: Question("t").agg(n=count()).run(epsilon=1)).hint

    @pytest.mark.parametrize(
        "make",
        [
            lambda q: Question(""), lambda q: Question(UNTYPED), lambda q: Question("t").query,
            lambda q: Question("t").group_by("a").query,
            lambda q: q.where(5), lambda q: q.where("a >"), lambda q: q.where("COUNT(*) > 5"),
            lambda q: q.where("u.a > 5"), lambda q: q.where(""),
            lambda q: q.where("a > 5 GROUP BY b"), lambda q: q.join("t", on="x"),
            lambda q: q.join("u", on="x").join("U", on="x"),
            lambda q: q.join("u", on=[]), lambda q: q.join("u", on="x", how="outer"), lambda q: q.join("u", on=[5]),
            lambda q: q.join("", on="x"),
            lambda q: q.group_by(5), lambda q: q.group_by(count()), lambda q: q.agg(m=col("a")), lambda q: q.agg(m="a"),
            lambda q: q.agg(n=count()).query,
            lambda q: q.agg(N=count()).query, lambda q: q.group_by(n="a").query, lambda q: q.having(5),
            lambda q: q.having("m > 5").query,
            lambda q: q.having(col("m") > 5).query, lambda q: q.having("SUM(a) > sum_a").query, lambda q: q.order_by(5),
            lambda q: q.order_by("m").query,
            lambda q: q.limit(-1), lambda q: q.limit(True), lambda q: q.limit(1.5), lambda q: q.limit(5, offset=-1),
            lambda q: q.agg(**{"": count()}).query,
        ],
    )  # fmt: skip
    def test_wrong_steps_are_refused(self, make: Any) -> None:
        refused(lambda: make(Question("t").agg(n=count())))

    def test_a_small_program_cannot_build_an_enormous_question(self) -> None:
        grown = col("a")
        for _ in range(60):
            grown = grown + grown
        assert "nested" in refused(lambda: Question("t").where(grown > 1).agg(n=count()).query).rule
        for _ in range(2):
            doubled = col("a") > 1
            for _ in range(40):
                doubled = doubled & doubled
            assert (
                f"{LARGEST}"
                in refused(lambda: Question("t").where(doubled).agg(n=count()).query).rule  # noqa: B023
            )
        twice = col("a")
        for _ in range(20):
            twice = twice * twice
        assert f"{LARGEST}" in refused(lambda: Question("t").agg(n=so.sum(twice)).query).rule
        long = col("a")
        for _ in range(5000):
            long = long + 1
        assert "nested" in refused(lambda: Question("t").group_by(long).agg(n=count()).query).rule

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(queries())
    def test_texts_and_terms_mean_the_same(self, query: Query) -> None:
        tables = Question(query.source)
        keys = {
            output.name: Term(output.value)
            for output in query.outputs
            if not isinstance(output.value, Aggregate)
        }
        measures = {
            o.name: Measure(o.value) for o in query.outputs if isinstance(o.value, Aggregate)
        }
        asked = tables.group_by(**keys).agg(**measures)
        terms = texts = asked.order_by(
            *("-" * order.descending + order.output for order in query.order)
        )
        if query.where is not None:
            terms, texts = terms.where(Term(query.where)), texts.where(expression_sql(query.where))
        if query.having is not None:
            terms, texts = (
                terms.having(Term(query.having)),
                texts.having(expression_sql(query.having)),
            )
        assert repr(terms.query) == repr(texts.query)
        assert (terms.query.where, terms.query.having, terms.query.order) == (
            query.where,
            query.having,
            query.order,
        )


def test_unsupported_text_is_told_as_such() -> None:
    with pytest.raises(UnsupportedSQL):
        Question("t").where("a IN (SELECT 1)")


def test_python_alone_loads_no_sql() -> None:
    heavy = "{'sqlglot', 'duckdb'} & set(sys.modules)"
    code = f"import sys, sordino.query.front.python, sordino.query.front.terms as p; p.col('a') > 1; sys.exit(bool({heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
