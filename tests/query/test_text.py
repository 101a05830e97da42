"""The text of a question: reading it gives the question back, and no two questions share one."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlglot.parser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot.dialects.duckdb import DuckDB

from query.trees import Lookup, asked, source
from sordino import count, mean, quantile
from sordino import sum as sum_
from sordino.errors import InvalidInput, UnsupportedSQL
from sordino.query.aggregates.registry import kinds
from sordino.query.front import calls
from sordino.query.front.calls import ARITY, DATE_PARTS, DATE_UNITS
from sordino.query.front.python import Question
from sordino.query.front.shapes import DEEPEST, LARGEST, children
from sordino.query.front.sql import parse
from sordino.query.front.sql_tokens import (
    _REFUSED_CALLS,
    _REFUSED_PAIRS,
    _REFUSED_WORDS,
    DEEPEST_TEXT,
    MOST_JOINS,
)
from sordino.query.front.syntax import supported
from sordino.query.front.terms import Measure, Term, col, lit, when
from sordino.query.front.text import sql_text
from sordino.query.tree import (
    Aggregate,
    Call,
    Case,
    Column,
    Expression,
    Literal,
    Order,
    Output,
    Query,
    Table,
    Value,
)

from query import nasty  # isort: skip
from query.sql_grammar import VISITS, queries  # isort: skip
from query_cases import Questions, random_world  # isort: skip

A, B, C = Column("a"), Column("b"), Column("c")
COUNT = Aggregate("count")
Made = TypeVar("Made")


def read_back(query: Query) -> str:
    """The text, which must be read as this very question."""
    text = sql_text(query)
    found = parse(text)
    assert found == query, text
    assert repr(found) == repr(query), text
    assert sql_text(found) == text
    return text


def only_told_apart(query: Query, reason: str) -> str:
    """The text of a question that SQL cannot ask, or not within its limits: it is refused for a known reason."""
    text = sql_text(query)
    with pytest.raises(UnsupportedSQL, match=reason):
        parse(text)
    return text


def counted(where: Expression) -> Query:
    return asked("t", (Output("n", COUNT),), where)


def condition_text(where: Expression | Value | Term) -> str:
    """The text of a condition that SQL can ask."""
    node = where.tree if isinstance(where, Term) else where
    node = node if isinstance(node, Expression) else Literal(node)
    return read_back(counted(node)).removeprefix("SELECT COUNT(*) AS n FROM t WHERE ")


def f(name: str, *arguments: Expression | Value) -> Call:
    return Call(name, tuple(x if isinstance(x, Expression) else Literal(x) for x in arguments))


PINNED = {
    "select ward, count(*) n from visits where age>=65 group by 1 having count(*) > 3 order by 2 desc limit 3":
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 65 GROUP BY ward HAVING n > 3 ORDER BY n DESC LIMIT 3",
    "SELECT count(*) FROM visits OFFSET 2":
        "SELECT COUNT(*) AS count FROM visits OFFSET 2",
    "SELECT w.Region, avg(v.cost), median(cost), quantile(cost, .95), count(distinct id) FROM visits v "
    "LEFT JOIN wards w ON w.name = v.ward AND v.site = w.site JOIN prices USING (day) WHERE prices.p > v.cost GROUP BY 1":
        "SELECT wards.Region, AVG(visits.cost) AS avg_cost, MEDIAN(cost) AS median_cost, QUANTILE(cost, 0.95) AS p95_cost, "
        "COUNT(DISTINCT id) AS count_distinct_id FROM visits LEFT JOIN wards ON visits.ward = wards.name AND visits.site "
        "= wards.site JOIN prices ON day = prices.day WHERE prices.p > visits.cost GROUP BY wards.Region",
    "SELECT sum(cost) FILTER (WHERE age BETWEEN 18 AND 64) AS s, stddev(cost) AS d, var_pop(-cost) AS v FROM t":
        "SELECT SUM(CASE WHEN age >= 18 AND age <= 64 THEN cost END) AS s, STDDEV_SAMP(cost) AS d, VAR_POP(-cost) AS v "
        "FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE (a OR b) AND NOT (c = 1) AND x NOT IN ('it''s', 'B') "
    "OR d NOT LIKE 'a%' AND e IS NOT NULL":
        "SELECT COUNT(*) AS n FROM t WHERE (a OR b) AND NOT c = 1 AND x NOT IN ('it''s', 'B') OR d NOT LIKE 'a%' "
        "AND e IS NOT NULL",
    "SELECT COUNT(*) AS n FROM t WHERE a - (b - c) * -d / (e % 3) > - (-f) AND (a < b) = (c IS NULL)":
        "SELECT COUNT(*) AS n FROM t WHERE a - (b - c) * -d / (e % 3) > - -f AND (a < b) = (c IS NULL)",
    "SELECT COUNT(*) AS n FROM t WHERE CASE a WHEN 1 THEN b ELSE NULL END > IF(c, 0.50, -25e-4)":
        "SELECT COUNT(*) AS n FROM t WHERE CASE WHEN a = 1 THEN b END > CASE WHEN c THEN 0.5 ELSE -0.0025 END",
    "SELECT COUNT(*) AS n FROM t WHERE NULLIF(a, 0) = LEFT(b, 2) AND EXTRACT(year FROM d) = 2024 AND year(d) <> 1":
        "SELECT COUNT(*) AS n FROM t WHERE CASE WHEN a = 0 THEN NULL ELSE a END = SUBSTR(b, 1, 2) "
        "AND DATE_PART('year', d) = 2024 AND DATE_PART('year', d) <> 1",
    "SELECT date_trunc('month', d) AS m, COUNT(*) FROM t WHERE d >= DATE '2024-01-31' AND "
    "at < TIMESTAMP '2024-01-31T12:30' AND p = TRUE GROUP BY m ORDER BY m":
        "SELECT DATE_TRUNC('month', d) AS m, COUNT(*) AS count FROM t WHERE d >= DATE '2024-01-31' AND "
        "at < TIMESTAMP '2024-01-31 12:30:00' AND p = TRUE GROUP BY DATE_TRUNC('month', d) ORDER BY m",
    'SELECT "order", "my ""x", COUNT(*) AS "Größe", date FROM "Left" GROUP BY 1, 2, date ORDER BY "order"':
        'SELECT "order", "my ""x", COUNT(*) AS "Größe", date FROM "Left" GROUP BY "order", "my ""x", date ORDER BY "order"',
    "SELECT COUNT(*) AS n FROM t WHERE a > 1e30 AND b > 1.5e-30 AND c > 12345678901234567890 AND d = 1e3":
        "SELECT COUNT(*) AS n FROM t WHERE a > 1e30 AND b > 1.5e-30 AND c > 12345678901234567890 AND d = 1000",
}  # fmt: skip
"""Ledgers hold digests of these texts: none of them may ever change."""


@pytest.mark.parametrize(("sql", "text"), PINNED.items())
def test_spellings_are_pinned(sql: str, text: str) -> None:
    assert read_back(parse(sql)) == text


@pytest.mark.parametrize("row", supported(), ids=lambda row: row.what)
def test_every_supported_form_is_read_back(row: Any) -> None:
    read_back(parse(row.whole_sql))


class TestLaw:
    """What was generated in the tree's one form is read back."""

    @settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(queries())
    def test_generated_questions(self, query: Query) -> None:
        read_back(query)

    @pytest.mark.slow
    @settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(queries(depth=4))
    def test_generated_questions_long(self, query: Query) -> None:
        read_back(query)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def test_generated_questions_with_any_names_and_words(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(_NAMES, min_size=9, max_size=9, unique_by=str.casefold))
        words = tuple(data.draw(st.lists(_TEXTS, min_size=1, max_size=4)))
        lookup = replace(
            VISITS.lookups[0],
            table=names[7],
            on=((names[0], names[8]),),
            numbers=(names[1],),
            texts=(names[2],),
        )
        vocabulary = replace(
            VISITS, table=names[6], numbers=tuple(names[:2]), truths=(names[2],), texts=(names[3],), days=(names[4],),
            moments=(names[5],), person=names[0], lookups=(lookup,), words=words,
        )  # fmt: skip
        read_back(data.draw(queries(vocabulary)))

    def test_questions_of_the_whole_line(self) -> None:
        rng = random.Random(5)
        for _ in range(100):
            asked = Questions(rng, random_world(rng))
            read_back(one_form(asked.one()))

    def test_nasty_expressions(self) -> None:
        source, kept = nasty.Expressions(7), 0
        for i in range(120):
            node = source.one(("number", "truth", "text", "day", "moment")[i % 5], 3)
            try:
                query = one_form(asked("t", (Output("n", Aggregate("sum", (node,))),), node))
            except InvalidInput:
                continue  # NULL within IN, which no front end makes
            read_back(query)
            kept += 1
        assert kept > 80

    def test_questions_of_python(self) -> None:
        campaign(random.Random(1), 120)

    @pytest.mark.slow
    def test_questions_of_python_long(self) -> None:
        campaign(random.Random(2), 8000)


_ORDINARY = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
_TEXTS = st.text(_ORDINARY, max_size=12) | st.sampled_from(
    ["'", "''", "\\'", "\n", "--", "/*", "${x}", "{{x}}", "\r\n", "%"]
)
_NAMES = st.text(_ORDINARY, min_size=1, max_size=12) | st.sampled_from(
    [
        "all",
        "ALL",
        "select",
        "From",
        '"',
        '""',
        " ",
        "a b",
        "a.b",
        "a--b",
        "date",
        "count",
        "1",
        "1a",
        "_",
        "$x",
        "é",
        "'",
    ]
)


def one_form(query: Query) -> Query:
    """The question as a front end would make it: chains of AND are flat, whole numbers are ints."""

    def of(node: Expression) -> Expression:
        match node:
            case Literal(value):
                return calls.constant(value)
            case Call("neg", (x,)):
                return calls.negated(of(x))
            case Call(function, parts):
                return calls.call(function, *map(of, parts))
            case Case(branches, otherwise):
                return Case(
                    tuple((of(condition), of(value)) for condition, value in branches),
                    of(otherwise),
                )
            case Aggregate(function, parts, parameter):
                return calls.aggregate(function, *map(of, parts), parameter=parameter)
            case _:
                return node

    return replace(
        query,
        outputs=tuple(Output(output.name, of(output.value)) for output in query.outputs),
        where=None if query.where is None else of(query.where),
        keys=tuple(map(of, query.keys)),
    )


SOME_NAMES = (
    "a",
    "A",
    "b",
    "n",
    "count",
    "all",
    "order",
    "a b",
    'q"t',
    "1",
    "Ünï",
    "is",
    "x\ty",
    "date",
    "m" * 198,
)
SOME_TABLES = ("t", "Case", "all", "the table", "w")
SOME_VALUES: tuple[Value, ...] = (
    0, 1, -1, 10, True, False, None, "a", "1", "", "it's", "NULL", "two\nlines", Fraction(1, 2), Fraction(-1, 10), 10**30,
    Fraction(1, 10**30), 2**70, -(2**63), date(2024, 1, 31), datetime(2024, 1, 31), datetime(2024, 1, 31, 12, 30, 0, 250),
    date(1, 1, 1), Fraction(10**39 - 1, 10**39), 11 * 10**290,
)  # fmt: skip


@dataclass(frozen=True)
class Builder:
    """Draws questions through the Python front end, of all functions and no particular types."""

    rng: random.Random
    names: tuple[str, ...] = SOME_NAMES
    values: tuple[Value, ...] = SOME_VALUES
    tables: tuple[str, ...] = SOME_TABLES

    def made(self, make: Callable[[], Made]) -> Made:
        """What was made, tried again while it is refused."""
        while True:
            try:
                return make()
            except InvalidInput:
                continue

    def expression(self, depth: int, joined: tuple[str, ...] = ()) -> Expression:
        return self.made(lambda: self._expression(depth, joined))

    def _expression(self, depth: int, joined: tuple[str, ...]) -> Expression:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            if rng.random() < 0.5:
                return Literal(rng.choice(self.values))
            return Column(rng.choice(self.names), rng.choice([None, None, *joined]))

        def sub() -> Expression:
            return self.expression(depth - 1, joined)

        function = rng.choice([*ARITY, "case", "and", "or", "not", "neg", "-", "="])
        match function:
            case "case":
                return Case(
                    tuple((sub(), sub()) for _ in range(rng.randint(1, 2))),
                    rng.choice([sub(), Literal(None)]),
                )
            case "neg":
                return calls.negated(sub())
            case "in":
                return calls.call(
                    "in",
                    sub(),
                    *(Literal(rng.choice(self.values)) for _ in range(rng.randint(1, 3))),
                )
            case "like":
                return calls.call("like", sub(), Literal(rng.choice(["a%", "it's", ""])))
            case "bucket":
                return calls.call(
                    "bucket", sub(), Literal(rng.choice((Fraction(1, 10), Fraction(1, 4))))
                )
            case "round":
                return calls.call(
                    "round", sub(), *[Literal(rng.choice([-1, 2]))][: rng.randint(0, 1)]
                )
            case "substr":
                return calls.call("substr", sub(), *[Literal(1), Literal(3)][: rng.randint(1, 2)])
            case "date_part":
                return calls.call("date_part", Literal(rng.choice(DATE_PARTS)), sub())
            case "date_trunc":
                return calls.call("date_trunc", Literal(rng.choice(DATE_UNITS)), sub())
            case _:
                least, most = ARITY[function]
                return calls.call(
                    function, *(sub() for _ in range(rng.randint(least, min(most, 3))))
                )

    def aggregate(self, joined: tuple[str, ...]) -> Aggregate:
        rng = self.rng
        name = rng.choice(list(kinds()))
        if name == "count" and rng.random() < 0.5:
            return COUNT
        level = Fraction(rng.randint(0, 20), 20) if name == "quantile" else None
        arguments = [self.expression(2, joined) for _ in kinds()[name].arguments]
        found = calls.aggregate(name, *arguments, parameter=level)
        return calls.when_true(self.expression(1, joined), found) if rng.random() < 0.2 else found

    def measure(self, joined: tuple[str, ...]) -> Measure:
        one, other = Measure(self.aggregate(joined)), Measure(self.aggregate(joined))
        made = [one, one / other, 2 * one - Fraction(3, 2), -(one + other) * one, one - (other - 1)]
        return self.rng.choices(made, [16, 1, 1, 1, 1])[0]

    def query(self) -> Query:
        return self.made(self._query)

    def _query(self) -> Query:
        rng = self.rng
        table, *others = rng.sample(self.tables, rng.choice([1, 1, 2, 3]))
        question = Question(table)
        for other in others:
            pairs = {
                rng.choice(self.names): rng.choice(self.names) for _ in range(rng.randint(1, 2))
            }
            question = question.join(other, on=pairs, how=rng.choice(["inner", "left"]))
        joined = tuple(others)
        for _ in range(rng.choice([0, 1, 2])):
            question = question.where(Term(self.expression(3, joined)))
        for _ in range(rng.choice([0, 0, 1, 2])):
            key = Term(self.expression(rng.choice([0, 0, 2]), joined))
            question = (
                question.group_by(**{rng.choice(self.names): key})
                if rng.random() < 0.5
                else question.group_by(key)
            )
        for _ in range(rng.randint(1, 3)):
            question = question.agg(**{rng.choice(self.names): self.measure(joined)})
        outputs = question.query.outputs
        for _ in range(rng.choice([0, 0, 1, 2])):
            question = question.having(self.condition(outputs))
        ordered = rng.sample(outputs, rng.randint(0, len(outputs)))
        question = question.order_by(
            *(rng.choice(["", "-"]) + output.name for output in ordered[:2])
        )
        if rng.random() < 0.3:
            question = question.limit(rng.randint(0, 20), offset=rng.randint(0, 2))
        return question.query

    def condition(self, outputs: tuple[Output, ...]) -> str | Term:
        """A condition on the answer: by names, or by what the outputs are."""
        if self.rng.random() < 0.3:
            alone = sql_text(asked("t", (Output("it", self.rng.choice(outputs).value),)))
            return alone.removeprefix("SELECT ").removesuffix(" AS it FROM t") + " > 3"
        names = tuple(output.name for output in outputs)
        return Term(Builder(self.rng, names).expression(2))


def campaign(rng: random.Random, how_many: int) -> None:
    """Read so many questions of the Python front end back."""
    builder = Builder(rng)
    for _ in range(how_many):
        read_back(builder.query())


class TestNames:
    @pytest.mark.parametrize("word", ["ward", "date", "count", "Year", "name", "n", "_x1", "value"])
    def test_ordinary_ones_are_bare(self, word: str) -> None:
        assert word in read_back(Question("t").group_by(word).agg(other=count()).query).split(
            "GROUP BY "
        )

    def test_words_of_the_parser(self) -> None:
        bare = [
            word.lower()
            for word in _words()
            if word.lower() == condition_text(Column(word.lower()))
        ]
        assert len(bare) > 150
        for word in bare[::5]:  # `make slow` takes all
            _everywhere(word)

    @pytest.mark.slow
    def test_all_words_in_the_source_of_the_parser(self) -> None:
        source = Path(sqlglot.parser.__file__).read_text(encoding="utf-8")
        words = {
            word.lower()
            for word in [*re.findall("[A-Za-z_][A-Za-z0-9_]+", source), *DuckDB.Parser.FUNCTIONS]
        }
        assert len(words) > 2000
        for word in sorted(words):
            _everywhere(word)

    @settings(max_examples=40, deadline=None)
    @given(_NAMES)
    def test_any_name(self, name: str) -> None:
        _everywhere(name)

    def test_names_that_nobody_may_give_are_left_to_the_parser(self) -> None:
        text = read_back(parse('SELECT "a\tb", "a\tb", SUM("a\tb") FROM t GROUP BY 1 ORDER BY 3'))
        assert (
            text == 'SELECT "a\tb", "a\tb", SUM("a\tb") FROM t GROUP BY "a\tb" ORDER BY "sum_a\tb"'
        )
        long = "m" * 198
        text = read_back(parse(f"SELECT {long}, {long}, SUM({long}) FROM t GROUP BY 1"))
        assert text == f"SELECT {long}, {long} AS {long}_2, SUM({long}) FROM t GROUP BY {long}"

    @pytest.mark.parametrize("name", ["a\x00b", "\ud800"])
    def test_names_that_are_no_text(self, name: str) -> None:
        only_told_apart(Question("t").where(col(name)).agg(n=count()).query, "ordinary text")


def _words() -> list[str]:
    """The words that sqlglot knows in our dialect, and those that our own checks know."""
    known = [
        *DuckDB.Tokenizer.KEYWORDS,
        *DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS,
        *_REFUSED_CALLS,
        *_REFUSED_WORDS,
    ]
    known += [word for pair in _REFUSED_PAIRS for word in pair]
    return sorted(
        {part for word in (*known, "lambda") for part in re.findall("[A-Za-z_]+", word.upper())}
    )


def _everywhere(name: str) -> None:
    """The name, wherever a name may stand, is read back."""
    x, y = Column(name), Column(name, "u_" if name.casefold() == "u" else "u")
    on = Lookup(y.table or "", ((x, name), (x, "k")))
    where = f("and", x, f("not", x), f(">", f("neg", x), f("-", x, x)), f("is_null", x), f("in", y, "a"), f("like", x, "a"),
              f("abs", x), Case(((x, x), (f("=", y, x), x)), x), f("substr", x, 1), f("date_part", "year", x))  # fmt: skip
    if name.isprintable():
        named = (
            Output(f"{name}0", x),
            Output(f"{name}1", y),
            Output(name, COUNT),
            Output(f"{name}3", Aggregate("sum", (x,))),
        )
        read_back(
            asked(
                name,
                named,
                where,
                (x, y),
                (on,),
                f(">", Column(f"{name}3"), 5),
                (Order(f"{name}1", True),),
            )
        )
        alone, joined = (
            Output(name, Aggregate("avg", (x,))),
            Lookup(name, ((Column("k"), name),), "left"),
        )
        if name.casefold() != "t":
            read_back(asked("t", (alone,), Column(name, name), (), (joined,), x, (Order(name),), 5))
    keyed = Output(name, x), Output("n_", COUNT)
    read_back(asked("t", keyed, where, (x,), (on,), f("<", x, 2), (Order(name), Order("n_"))))


class TestConstants:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0, "0"), (-1, "-1"), (True, "TRUE"), (None, "NULL"), ("it's", "'it''s'"), ("two\nlines", "'two\nlines'"),
            (Fraction(1, 10), "0.1"), (Fraction(-5, 2), "-2.5"), (Fraction(1, 1024), "0.0009765625"), (2**64, str(2**64)),
            (10**20, "1e20"), (10**19, "10000000000000000000"), (25 * 10**300, "2.5e301"), (2**70, str(2**70)),
            (Fraction(1, 10**19), "0.0000000000000000001"), (Fraction(1, 10**20), "1e-20"), (Fraction(3, 10**320), "3e-320"),
            (int("1" * 37) * 10**99, "1." + "1" * 36 + "e135"), (int("1" * 38) * 10**63, "11." + "1" * 36 + "e99"),
            (Fraction(int("1" * 39), 10**47), "1" + "." + "1" * 38 + "e-9"), (10**307, "1e307"),
            (10**40 - 1, "9" * 40), (Fraction(int("9" * 39), 10**39), "0." + "9" * 39),
            (date(1, 1, 1), "DATE '0001-01-01'"), (datetime(2024, 1, 31), "TIMESTAMP '2024-01-31 00:00:00'"),
            (datetime(2024, 1, 31, 1, 2, 3, 40), "TIMESTAMP '2024-01-31 01:02:03.000040'"),
        ],
    )  # fmt: skip
    def test_are_exact(self, value: Value, text: str) -> None:
        assert condition_text(value) == text

    @pytest.mark.parametrize("sign", ["", "-"])
    def test_whatever_sql_can_spell_is_read_back(self, sign: str) -> None:
        rng = random.Random(3)
        for _ in range(250):
            digits = "".join(rng.choices("0123456789", k=rng.randint(1, 40)))
            point = rng.randint(0, len(digits))
            power = rng.choice(
                [
                    "",
                    "",
                    f"e{rng.randint(-400, 300)}",
                    f"E+{rng.randint(0, 99)}",
                    f"e-{rng.randint(0, 99)}",
                ]
            )
            words = f"{sign}{digits[:point]}.{digits[point:]}{power}"
            try:
                query = parse(f"SELECT COUNT(*) AS n FROM t WHERE a > {words}")
            except UnsupportedSQL:
                continue  # more digits than are allowed
            read_back(query)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Fraction(1, 3), "(1/3)"),
            (Fraction(-22, 7), "(-22/7)"),
            (Fraction(0.1), "(3602879701896397/36028797018963968)"),
            (10**50 + 1, str(10**50 + 1)),
            (-(10**50) - 1, f"-{10**50 + 1}"),
        ],
    )
    def test_what_sql_cannot_spell_has_a_spelling_of_its_own(
        self, value: int | Fraction, text: str
    ) -> None:
        query = Question("t").where(col("a").isin([value])).agg(n=count()).query
        assert only_told_apart(query, "its list must hold constants|at most 40 digits").endswith(
            f"WHERE a IN ({text})"
        )

    def test_a_third_is_no_division(self) -> None:
        third, division = (
            Question("t").where(lit(Fraction(1, 3)) > col("a")),
            Question("t").where(lit(1) / 3 > col("a")),
        )
        texts = [sql_text(question.agg(n=count()).query) for question in (third, division)]
        assert [text.split("WHERE ")[1] for text in texts] == ["(1/3) > a", "1 / 3 > a"]

    def test_levels(self) -> None:
        for level in (0, 1, 0.5, 0.999, Fraction(1, 10**25)):
            read_back(Question("t").agg(q=quantile("a", level)).query)
        assert "QUANTILE(a, (1/3))" in only_told_apart(
            Question("t").agg(q=quantile("a", Fraction(1, 3))).query, "level"
        )

    def test_absurd_numbers_are_refused(self) -> None:
        for value in (10**5000, Fraction(1, 3**5000)):
            with pytest.raises(InvalidInput, match="absurd"):
                sql_text(counted(Literal(value)))


class TestBrackets:
    @pytest.mark.parametrize(
        ("tree", "text"),
        [
            (f("-", f("-", A, B), C), "a - b - c"),
            (f("-", A, f("-", B, C)), "a - (b - c)"),
            (f("*", f("+", A, B), C), "(a + b) * c"),
            (f("+", f("*", A, B), C), "a * b + c"),
            (f("*", A, f("%", B, C)), "a * (b % c)"),
            (f("neg", f("+", A, B)), "-(a + b)"),
            (f("neg", f("neg", A)), "- -a"),
            (f("-", A, -5), "a - -5"),
            (f("and", f("or", A, B), C), "(a OR b) AND c"),
            (f("or", f("and", A, B), C), "a AND b OR c"),
            (f("not", f("and", A, B)), "NOT (a AND b)"),
            (f("not", f("not", A)), "NOT NOT a"),
            (f("not", f("=", A, B)), "NOT a = b"),
            (f("=", f("not", A), B), "(NOT a) = b"),
            (f("=", f("=", A, B), C), "(a = b) = c"),
            (f("is_null", f("=", A, B)), "(a = b) IS NULL"),
            (f("=", f("is_null", A), B), "(a IS NULL) = b"),
            (f("is_null", f("is_null", A)), "(a IS NULL) IS NULL"),
            (f("not", f("is_null", f("not", f("in", A, 1)))), "(a NOT IN (1)) IS NOT NULL"),
            (f("like", f("+", A, B), "x"), "a + b LIKE 'x'"),
            (f("abs", f("or", A, B)), "ABS(a OR b)"),
        ],
    )
    def test_only_where_needed(self, tree: Expression, text: str) -> None:
        assert condition_text(tree) == text

    def test_forms_that_no_front_end_makes_differ_all_the_same(self) -> None:
        pairs: list[tuple[Expression, Expression]] = [
            (f("and", f("and", A, B), C), f("and", A, B, C)),
            (f("and", A, f("and", B, C)), f("and", A, B, C)),
            (f("neg", 5), Literal(-5)),
            (f("neg", -5), f("neg", f("neg", 5))),
            (Literal(Fraction(5)), Literal(5)),
            (f("neg", Fraction(1, 3)), Literal(Fraction(-1, 3))),
        ]
        for one, other in pairs:
            assert sql_text(counted(one)) != sql_text(counted(other))


class TestOutputs:
    """Where a word would mean another column, the text says it otherwise."""

    @pytest.mark.parametrize(
        ("sql", "end"),
        [
            ("SELECT a AS b, COUNT(*) AS a FROM t GROUP BY 1", "GROUP BY 1"),
            ("SELECT BUCKET(a, 10) AS a, a AS b, COUNT(*) FROM t GROUP BY 1, 2", "GROUP BY BUCKET(a, 10), 2"),
            ("SELECT Ward AS w, COUNT(*) AS n FROM t GROUP BY ward", "GROUP BY ward"),
            ("SELECT 5 AS five, COUNT(*) AS n FROM t GROUP BY five", "GROUP BY (5)"),
            ("SELECT 'x' AS x, COUNT(*) AS n FROM t GROUP BY 1", "GROUP BY ('x')"),
            ("SELECT COUNT(*) AS n FROM t GROUP BY a, b", "GROUP BY a, b"),
            ('SELECT COUNT(*) AS n FROM t GROUP BY ("all"), b', 'GROUP BY ("all"), b'),
            ("SELECT a AS b, COUNT(*) AS a FROM t GROUP BY 1 HAVING COUNT(*) > 5", "HAVING COUNT(*) > 5"),
            ("SELECT w AS x, LOWER(b) AS w, COUNT(*) FROM t GROUP BY 1, 2 HAVING LOWER(b) = 'a'", "HAVING LOWER(b) = 'a'"),
            ("SELECT n > 5 AS p, COUNT(*) AS n FROM t GROUP BY 1 HAVING COUNT(*) > 5", "HAVING COUNT(*) > 5"),
            ("SELECT n > 5 AS p, COUNT(*) AS n FROM t GROUP BY 1 HAVING n > 5", "HAVING p"),
            ("SELECT n > 5 AS p, COUNT(*) AS n, COUNT(*) AS m FROM t GROUP BY 1 HAVING COUNT(*) > 5 AND m > 1",
             "HAVING COUNT(*) > 5 AND m > 1"),
            ("SELECT u.a AS x, x AS y, COUNT(*) FROM t JOIN u USING (k) GROUP BY 1, 2 HAVING u.a > 1", "HAVING u.a > 1"),
            ("SELECT a AS b, COUNT(*) AS a, b AS c FROM t GROUP BY 1, 3 ORDER BY 2, c, 1 DESC", "ORDER BY 2, c, 1 DESC"),
            ('SELECT COUNT(*) AS "All" FROM t ORDER BY 1', 'ORDER BY ("All")'),
            ("SELECT COUNT(*) AS a FROM t GROUP BY t.a HAVING a > 3", "GROUP BY t.a HAVING a > 3"),
            ("SELECT COUNT(*) AS a FROM t GROUP BY t.a HAVING t.a > 3", "GROUP BY t.a HAVING t.a > 3"),
            ("SELECT COUNT(*) AS a FROM t GROUP BY t.a ORDER BY 1", "GROUP BY t.a ORDER BY a"),
            ("SELECT COUNT(*) AS a FROM t GROUP BY t.a ORDER BY t.a", "GROUP BY t.a ORDER BY t.a"),
            ("SELECT b AS a, COUNT(*) AS n FROM t GROUP BY a, t.a", "GROUP BY b, t.a"),
        ],
    )  # fmt: skip
    def test_are_named_without_doubt(self, sql: str, end: str) -> None:
        assert read_back(parse(sql)).endswith(end)

    @pytest.mark.parametrize(
        ("items", "end"),
        [
            ("-a AS a, COUNT(*) AS n FROM t GROUP BY u, t.a HAVING t.a > 3", "GROUP BY u, t.a HAVING t.a > 3"),
            ("-a AS a, COUNT(*) AS n FROM t GROUP BY u, 2 HAVING a > 3", "GROUP BY u, -a HAVING -t.a > 3"),
            ("-a AS a, COUNT(*) AS n FROM t GROUP BY u, 2 HAVING -a > 3", "GROUP BY u, -a HAVING -t.a > 3"),
            ("b AS a, COUNT(*) AS n FROM t GROUP BY u, a, t.a", "GROUP BY u, b, t.a"),
            ("a AS b, b AS a FROM t GROUP BY u, a, b", "GROUP BY u, 3, 2"),
            ("MAX(a) AS a FROM t GROUP BY u HAVING a > 3", "GROUP BY u HAVING MAX(a) > 3"),
            ("MAX(b) AS a FROM t GROUP BY u HAVING MAX(a) > 3", "GROUP BY u HAVING MAX(a) > 3"),
            ("5 AS five, COUNT(*) AS n FROM t GROUP BY u, five", "GROUP BY u, (5)"),
            ("w.a, COUNT(*) AS n FROM t JOIN t AS w ON t.u = w.u GROUP BY t.u, t.a, w.a HAVING t.a > 3",
             "GROUP BY t.u, t.a, w.a HAVING t.a > 3"),
        ],
    )  # fmt: skip
    def test_are_named_without_doubt_in_a_subquery(self, items: str, end: str) -> None:
        first = "t.u" if "JOIN" in items else "u"
        query = parse(f"SELECT COUNT(*) AS n FROM (SELECT {first}, {items}) AS q")
        assert read_back(query).endswith(f"{end}) AS q")

    @pytest.mark.parametrize(
        "items",
        ["-a AS a FROM t GROUP BY u, a", "b AS a FROM t GROUP BY u, t.a, b HAVING a > 3"],
    )
    def test_a_word_for_a_key_and_another_item_is_refused(self, items: str) -> None:
        with pytest.raises(UnsupportedSQL, match="both a column and the name of another output"):
            parse(f"SELECT COUNT(*) AS n FROM (SELECT u, {items}) AS q")

    def test_a_condition_that_no_text_asks_for_is_told_apart(self) -> None:
        swapped = asked(
            "t",
            (Output("a", B), Output("b", A), Output("n", COUNT)),
            keys=(B, A),
            having=f(">", A, 5),
        )
        assert only_told_apart(swapped, "no table").endswith('HAVING "".a > 5')
        assert sql_text(swapped) != sql_text(replace(swapped, having=f(">", B, 5)))

    def test_a_column_of_another_table_than_the_joined_ones(self) -> None:
        plain, own = (
            Question("t").where(c > 1).agg(n=count()).query for c in (col("a"), col("a", table="t"))
        )
        assert sql_text(plain) != sql_text(own)
        only_told_apart(Question("t").where(col("a", table="u")).agg(n=count()).query, "no table u")

    def test_twice_the_same_name(self) -> None:
        named, other = (
            asked("t", (Output("a", A), Output("a", COUNT)), None, (A,)),
            asked("t", (Output("a_2", A), Output("a", COUNT)), None, (A,)),
        )
        assert sql_text(named) != sql_text(other)

    def test_names_that_nobody_may_give(self) -> None:
        names = ("a\tb", "a\nb", "", "x" * 201, "count")
        assert len({sql_text(asked("t", (Output(name, COUNT),))) for name in names}) == len(names)


class TestInjectivity:
    """Different trees have different texts, also those that no front end makes."""

    def test_among_many_small_ones(self) -> None:
        values = (
            0,
            1,
            -1,
            True,
            None,
            "a",
            "1",
            Fraction(1, 3),
            Fraction(1),
            Fraction(1, 2),
            date(1, 1, 1),
            datetime(1, 1, 1),
        )
        leaves: list[Expression] = [
            *map(Literal, values),
            A,
            Column("A"),
            Column("a", "t"),
            Column("t.a"),
            Column("1"),
            Column("TRUE"),
        ]
        once = [*leaves, *(f(name, *pick) for name in ARITY if (pick := leaves[-ARITY[name][0] :]))]
        names = [name for name in ARITY if ARITY[name][0] <= 2]
        parts = (
            leaves[:3] + once[-30:] + [Case(((A, B),)), Case(((A, B),), C), Case(((A, B), (C, A)))]
        )
        twice = [
            f(name, x, *([y] * (ARITY[name][0] - 1)))
            for name in names
            for x in parts
            for y in (A, parts[-1], parts[5])
        ]
        _all_differ(counted(node) for node in (*once, *twice))

    def test_among_aggregates_and_clauses(self) -> None:
        items = [
            Aggregate(name, of, level)
            for name in kinds()
            for of in ((), (A,), (Literal(1),), (A, B))
            for level in (None, Fraction(1, 2), Fraction(1))
        ]
        base = asked("t", (Output("n", COUNT), Output("a", A)), keys=(A,))
        joins = [
            Lookup("u", ((A, "b"),)),
            Lookup("u", ((A, "b"),), "left"),
            Lookup("u", ((Column("a", "t"), "b"),)),
            Lookup("u", ((A, "b"), (B, "a"))),
        ]
        varied = [
            base, replace(base, source=Table("T")), replace(base, keys=()), replace(base, keys=(A, B)),
            replace(base, where=A), replace(base, having=A), replace(base, limit=0), replace(base, limit=1),
            replace(base, offset=1),
            replace(base, limit=1, offset=1), replace(base, order=(Order("n"),)), replace(base, order=(Order("n", True),)),
            replace(base, order=(Order("a"), Order("n"))), replace(base, order=(Order("n"), Order("a"))),
            replace(base, keys=(Literal(1),)), replace(base, keys=(Literal("a"),)),
            replace(base, outputs=base.outputs[::-1]),
        ]  # fmt: skip
        _all_differ(
            [
                *varied,
                *(replace(base, source=source("t", (join,))) for join in joins),
                *(asked("t", (Output("n", item),)) for item in items),
            ]
        )

    def test_of_neighbours(self) -> None:
        _neighbours_differ(random.Random(4), 120)

    @pytest.mark.slow
    def test_of_neighbours_long(self) -> None:
        _neighbours_differ(random.Random(5), 4000)

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(queries(depth=1), queries(depth=1))
    def test_of_pairs(self, one: Query, other: Query) -> None:
        assert (sql_text(one) == sql_text(other)) == (repr(one) == repr(other))


def _all_differ(trees: Iterator[Query] | list[Query] | Any) -> None:
    texts: dict[str, str] = {}
    for tree in trees:
        assert texts.setdefault(sql_text(tree), repr(tree)) == repr(tree)
    assert len(texts) > 20


def _neighbours_differ(rng: random.Random, how_many: int) -> None:
    """No question shares its text with one that differs from it in a single place."""
    odd = (*SOME_VALUES, Fraction(1, 3), Fraction(2), Fraction(-1, 3), 10**45 + 1)
    builder, texts = Builder(rng, values=odd), dict[str, str]()
    for _ in range(how_many):
        query = builder.query()
        for tree in (query, *(_changed(rng, builder, query) for _ in range(8))):
            assert texts.setdefault(sql_text(tree), repr(tree)) == repr(tree)


def _changed(rng: random.Random, builder: Builder, query: Query) -> Query:
    match rng.randrange(7):
        case 0 if query.where is not None:
            return replace(query, where=_altered(rng, builder, query.where))
        case 1 if query.having is not None:
            return replace(query, having=_altered(rng, builder, query.having))
        case 2:
            return replace(query, keys=tuple(rng.sample(query.keys, len(query.keys))))
        case 3:
            return replace(query, keys=tuple(_altered(rng, builder, key) for key in query.keys))
        case 4:
            return replace(
                query,
                order=tuple(
                    replace(order, descending=not order.descending) for order in query.order
                ),
            )
        case _:
            i = rng.randrange(len(query.outputs))
            name, value = query.outputs[i].name, query.outputs[i].value
            if not isinstance(value, Aggregate):
                value = _altered(rng, builder, value)
            elif value.arguments:
                value = replace(
                    value, arguments=tuple(_altered(rng, builder, each) for each in value.arguments)
                )
            name = rng.choice([name, name.swapcase(), f"{name} ", rng.choice(builder.names)])
            return replace(
                query, outputs=(*query.outputs[:i], Output(name, value), *query.outputs[i + 1 :])
            )


def _altered(rng: random.Random, builder: Builder, node: Expression) -> Expression:
    """The expression with one part of it changed a little."""
    parts = children(node)
    if parts and rng.random() < 0.7:
        i = rng.randrange(len(parts))
        return _with_parts(node, (*parts[:i], _altered(rng, builder, parts[i]), *parts[i + 1 :]))
    match node:
        case Column(name, table):
            return Column(
                rng.choice([name, name.swapcase(), f"{name}."]), rng.choice([table, "t", "w"])
            )
        case Literal():
            return Literal(rng.choice(builder.values))
        case Call(function, (left, right)) if function in {"-", "and", "or", "=", "*", "%"}:
            return rng.choice(
                [
                    Call(function, (right, left)),
                    Call(function, (left, Call(function, (right, left)))),
                    Call("/", parts),
                ]
            )
        case _:
            return rng.choice(
                [
                    Call("not", (node,)),
                    Call("neg", (node,)),
                    Call("is_null", (node,)),
                    Case(((node, node),)),
                    *parts,
                ]
            )


def _with_parts(node: Expression, parts: tuple[Expression, ...]) -> Expression:
    if isinstance(node, Call):
        return Call(node.function, parts)
    return Case(tuple(zip(parts[:-1:2], parts[1::2], strict=True)), parts[-1])


class TestLimits:
    @pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
    def test_the_longest_chain_needs_no_brackets(self, operator: str) -> None:
        read_back(
            parse("SELECT COUNT(*) AS n FROM t WHERE " + f" {operator} ".join(["a"] * DEEPEST))
        )

    @pytest.mark.parametrize(
        ("opening", "closing"),
        [("ABS(", ")"), ("CASE WHEN ", " THEN a END"), ("NOT ", ""), ("- ", ""), ("a AND (b OR ", ")"), ("b - (", " + 1)"),
         ("IF(", ", 1, 2)"), ("COALESCE(", ", 1)"), ("1 + LEFT(", ", 2)")],
    )  # fmt: skip
    def test_the_deepest_text(self, opening: str, closing: str) -> None:
        read_back(
            parse(
                "SELECT COUNT(*) AS n FROM t WHERE "
                + opening * DEEPEST_TEXT
                + "a"
                + closing * DEEPEST_TEXT
            )
        )

    @pytest.mark.parametrize(
        "nest",
        [lambda x: 1 - x, lambda x: abs(x), lambda x: ~x, lambda x: -x, lambda x: when(x, 1).end(), lambda x: x == lit(1),
         lambda x: x.is_null(), lambda x: x.isin([1])],
    )  # fmt: skip
    def test_the_deepest_tree(self, nest: Callable[[Term], Term]) -> None:
        made, deepest = col("a"), Question("t").agg(n=count()).query
        for _ in range(2 * DEEPEST):
            made = nest(made)
            try:
                deepest = Question("t").where(made).agg(n=count()).query
            except InvalidInput:
                break
        assert deepest.where is not None
        only_told_apart(deepest, "nested")

    def test_the_largest_tree(self) -> None:
        query = (
            Question("t")
            .where(*(col("a") > i for i in range(LARGEST // 3 - 1)))
            .agg(n=count())
            .query
        )
        only_told_apart(query, "bytes|words")
        wide = Question("t").agg(**{f"n{i}": sum_(col("a") + i) for i in range(500)}, all=mean("a"))
        only_told_apart(wide.order_by(*(f"n{i}" for i in range(500))).query, "bytes|words")

    def test_a_tree_that_is_too_deep_is_refused(self) -> None:
        deep: Expression = A
        for _ in range(2000):
            deep = f("abs", deep)
        with pytest.raises(InvalidInput, match="nested"):
            sql_text(counted(deep))

    def test_many_joins(self) -> None:
        question = Question("t")
        for i in range(MOST_JOINS):
            question = question.join(f"u{i}", on="k")
        read_back(question.agg(n=count()).query)
        only_told_apart(question.join("v", on="k").agg(n=count()).query, "joined")

    @pytest.mark.parametrize(
        "node",
        [f("sin", A), f("not", A, B), f("and", A), f("ABS", A), f("+", A, B, C), Call("or", ())],
    )
    def test_functions_that_do_not_exist_are_refused(self, node: Expression) -> None:
        with pytest.raises(InvalidInput, match="no such function"):
            sql_text(counted(node))

    def test_aggregates_that_do_not_exist_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="no such aggregate"):
            sql_text(asked("t", (Output("n", Aggregate("skewness", (A,))),)))


def test_writing_loads_no_parser() -> None:
    code = "import sys, sordino.query.front.text; sys.exit(bool({'sqlglot', 'duckdb'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        ("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        ("rows 2 preceding", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        (
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ),
        ("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", ""),
    ],
)
def test_frames_have_one_spelling(frame: str, kept: str) -> None:
    """What holds without a frame is not written; a column may still be called rows."""
    text = "SELECT COUNT(*) AS n FROM (SELECT u, SUM(x) OVER (PARTITION BY u ORDER BY rows {}) AS s FROM v) AS q WHERE s > 1"
    query = parse(text.format(frame))
    assert sql_text(query) == text.format(kept).replace(" )", ")")
    assert parse(sql_text(query)) == query
    assert (
        parse("SELECT COUNT(*) AS n FROM v WHERE a > 1 AND rows BETWEEN 1 AND 2").where is not None
    )
