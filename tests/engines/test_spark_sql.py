"""The SQL that is written for Spark means there what it means in DuckDB: letters, numbers, dates, and extreme cells."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from engines.conformance import plans_of_relations, plans_of_tables
from engines.spark_sessions import local_session
from query import nasty
from query.nasty import bind
from sordino.engines.duckdb.dialect import write
from sordino.engines.spark import dialect
from sordino.engines.spark.letters import LETTERS
from sordino.engines.spark.sessions import open_session
from sordino.engines.spark.sources import sent
from sordino.engines.widths import MOST_ROWS, Widths
from sordino.errors import InvalidInput
from sordino.query.meaning import nodes
from sordino.query.meaning.neutral import TextList, WideDiv
from sordino.query.tree import Call, Case, Expression

_LIBM = frozenset({"ln", "exp", "log10", "power"})
"""Functions that mathematics libraries round in their own ways."""


@cache
def session() -> Any:
    """A pinned session with the table of nasty cells."""
    found = open_session(None, local_session())
    rows = nasty.table().connection.sql("SELECT * FROM rows ORDER BY id").to_arrow_table()
    sent(found, rows).coalesce(1).createOrReplaceTempView("rows")
    return found


def in_spark(expressions: list[str]) -> list[tuple[Any, ...]]:
    listed = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
    table = session().sql(f"SELECT {listed} FROM rows ORDER BY id").toArrow()
    return [tuple(column.to_pylist()) for column in table.columns]


def of_library(expression: Expression) -> bool:
    match expression:
        case Call(function, arguments):
            return function in _LIBM or any(map(of_library, arguments))
        case Case(branches, otherwise):
            return of_library(otherwise) or any(
                of_library(part) for branch in branches for part in branch
            )
        case _:
            return False


def same(wanted: Any, got: Any) -> bool:
    return bool(wanted == got) and isinstance(wanted, bool) == isinstance(got, bool)


def test_every_function_on_extreme_cells() -> None:
    """Each function once on each column that it takes; those of a mathematics library within a rounding."""
    from query.nasty import COLUMNS
    from sordino.query.meaning.functions import FUNCTIONS
    from sordino.query.tree import Column, Literal

    asked: list[Expression] = []
    for name in sorted(FUNCTIONS):
        extra: Any = {
            "round": [(), (Literal(3),), (Literal(-2),)],
            "substr": [(Literal(2), Literal(3)), (Literal(2**31 - 1),)],
            "like": [(Literal("%o_g%"),)],
            "ilike": [(Literal("%Ü%"),), (Literal("İ%"),)],
            "bucket": [(Literal(10),)],
            "clamp": [(Literal(-5), Literal(10)), (Literal("2020-01-31"), Literal("2021-02-03"))],
            "%": [(Literal(7),)],
            "and": [(Column("flag"),)],
            "or": [(Column("flag"),)],
            "||": [(Column("ward"),)],
            "in": [
                (Literal(7), Literal(40)),
                (Literal("A"), Literal("")),
                (Literal("2020-02-29"),),
            ],
        }.get(
            name,
            [
                (),
                *(
                    (Column(other),)
                    for other in ("age", "big", "wide", "signed", "city", "any_day", "any_at")
                ),
            ],
        )
        for column in COLUMNS:
            for more in extra:
                asked += [Call(name, (Column(column), *more))]
        if name in ("date_part", "date_trunc", "time_bucket", "date_diff", "cast"):
            words = [
                "year",
                "quarter",
                "month",
                "week",
                "day",
                "dow",
                "isodow",
                "doy",
                "hour",
                "minute",
            ]
            words = {"time_bucket": ["7 minutes", "5 hours", "3 days", "9999 weeks", "500 years", "7 months", "2 quarters"],
                     "cast": ["integer", "bigint", "double", "date", "timestamp"]}.get(name, words)  # fmt: skip
            for word in words:
                for column in COLUMNS:
                    day = Column("any_day" if COLUMNS[column].kind == "date" else "any_at")
                    asked.append(
                        Call(
                            name,
                            (
                                Literal(word),
                                Column(column),
                                *((day,) if name == "date_diff" else ()),
                            ),
                        )
                    )
    bound = []
    for one in asked:
        try:
            bound.append((one, bind(one).sql))
        except InvalidInput:
            continue
    assert {one.function for one, _ in bound if isinstance(one, Call)} == set(FUNCTIONS)
    wrong = []
    for begin in range(0, len(bound), 60):
        part = bound[begin : begin + 60]
        wanted = nasty.table().run([sql for _, sql in part])
        got = in_spark([dialect.write(sql) for _, sql in part])
        for (one, _), ws, gs in zip(part, wanted, got, strict=True):
            for w, g in zip(ws, gs, strict=True):
                close = (
                    of_library(one)
                    and isinstance(w, float)
                    and isinstance(g, float)
                    and math.isclose(w, g, rel_tol=1e-14)
                )
                if not (same(w, g) or close):
                    wrong.append(f"{one}: {w!r} is {g!r}")
    assert wrong == []


def letters_differ(letters: list[str]) -> list[Any]:
    """Words whose LOWER or UPPER is not that of DuckDB."""
    frame = pa.table({"c": letters})
    with duckdb.connect() as connection:
        connection.register("t", frame)
        wanted = connection.sql("SELECT c, LOWER(c) AS l, UPPER(c) AS u FROM t").fetchall()
    sent(session(), frame).createOrReplaceTempView("letters")
    c = exp.column("c")
    lower, upper = dialect.write(exp.Lower(this=c.copy())), dialect.write(exp.Upper(this=c.copy()))
    got = session().sql(f"SELECT c, {lower} AS l, {upper} AS u FROM letters").toArrow()
    found = {
        row[0]: row for row in zip(*(column.to_pylist() for column in got.columns), strict=True)
    }
    return [(row, found[row[0]]) for row in wanted if tuple(row) != found[row[0]]]


def test_letters_of_words() -> None:
    words = ["ΑΣ", "ΣΑΣ Σ", "İstanbul", "straße", "ŉ", "ǅ", "e\u0301ᾳ", "x" * 3000 + "É", ""]
    assert letters_differ([*map(chr, range(1, 0x600)), *words]) == []


@pytest.mark.slow
def test_letters() -> None:
    """LOWER and UPPER of all letters that have another case, and of words, are those of DuckDB."""
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    changing = [c for c in letters if c.lower() != c or c.upper() != c]
    staying = [c for known in LETTERS.values() for c in known.stay + known.before]
    words = ["ΑΣ", "ΣΑΣ Σ", "İstanbul", "straße", "ŉ", "ǅ", "e\u0301ᾳ", "x" * 3000 + "É", ""]
    assert letters_differ([*dict.fromkeys(changing + staying), *words]) == []


@pytest.mark.slow
def test_all_letters() -> None:
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    for begin in range(0, len(letters), 50_000):
        assert (
            letters_differ(["".join(letters[i : i + 50]) for i in range(begin, begin + 50_000, 50)])
            == []
        )


@pytest.mark.parametrize(
    "word",
    [
        "a",
        "",
        "it's",
        '"',
        "back\\slash",
        "\\u0041",
        "${x}",
        "new\nline",
        "Zürich",
        "🤦🏼‍♂️",
        "`",
        "--",
        "%",
    ],
)
def test_text_literals(word: str) -> None:
    assert in_spark([dialect.write(exp.Literal.string(word))])[0][0] == word


def test_wide_division_is_exact() -> None:
    top, below = 2**100 + 12345, 65536
    tree = exp.select(
        exp.alias_(WideDiv(this=exp.Literal.number(top), expression=exp.Literal.number(below)), "q")
    )
    assert session().sql(dialect.write(tree)).toArrow().to_pylist() == [{"q": top // below}]


def test_sums_beyond_64_bits() -> None:
    """The largest whole numbers of 62 bits, often: a sum of 64 bits would overflow."""
    values = " UNION ALL ".join(["SELECT 4611686018427387903L AS x"] * 9)
    tree = exp.select(exp.alias_(exp.Sum(this=exp.column("x", quoted=True)), "s")).from_("t")
    sql = dialect.write(tree)
    assert session().sql(f"WITH t AS ({values}) {sql}").toArrow().to_pylist() == [
        {"s": 9 * (2**62 - 1)}
    ]


@pytest.mark.parametrize(
    ("most", "short"),
    [(1, True), (500_000, True), (2**21 - 1, True), (2**21, False), (2**40, False)],
)
def test_only_small_terms_are_summed_in_64_bits(most: int, short: bool) -> None:
    cut = nodes.clamped_whole(exp.column("x", quoted=True), -most, most)
    tree = exp.select(exp.alias_(exp.Sum(this=exp.column("v", quoted=True)), "s")).from_(
        exp.select(exp.alias_(cut, "v", quoted=True)).from_("t").subquery("lines")
    )
    assert (most * MOST_ROWS < 2**63) is short
    total = next(tree.find_all(exp.Sum))
    assert Widths(tree).short(total.this) is short
    assert ("DECIMAL" not in dialect.write(tree)) is short


def test_a_sum_of_cells_is_never_taken_for_small() -> None:
    """Without written bounds, or with one that a NULL passes by, nothing is known of a term."""
    x = exp.column("x", quoted=True)
    one_sided = nodes.case(
        [(exp.LT(this=x.copy(), expression=nodes.whole(0)), nodes.whole(0))], x.copy()
    )
    of_two = exp.Least(this=x.copy(), expressions=[exp.column("y", quoted=True)])
    for term in (
        x,
        one_sided,
        of_two,
        exp.Neg(this=x.copy()),
        exp.Add(this=x.copy(), expression=nodes.whole(1)),
    ):
        assert Widths(exp.select(exp.Sum(this=term)).from_("t")).reach(term) is None


def test_a_bound_that_may_be_null_is_none() -> None:
    """LEAST of a cut column and a cell is the cell where the column is NULL."""
    cut = nodes.clamped_whole(exp.column("x", quoted=True), 0, 5)
    lines = (
        exp.select(exp.alias_(cut, "v", quoted=True), exp.column("y", quoted=True))
        .from_("t")
        .subquery("lines")
    )
    term = exp.Least(this=exp.column("v", quoted=True), expressions=[exp.column("y", quoted=True)])
    low = exp.Greatest(this=term, expressions=[nodes.whole(0)])
    assert Widths(exp.select(exp.Sum(this=low)).from_(lines)).reach(low) is None


@pytest.mark.parametrize(
    "tree",
    [
        exp.select("x").from_("t").hint("BROADCAST(t)"),
        exp.select(exp.func("RAND")).from_("t"),
        exp.select(exp.Anonymous(this="JAVA_METHOD", expressions=[])).from_("t"),
        exp.select(exp.cast(exp.column("x"), "INT")).from_("t"),
        exp.select(TextList(this=exp.Literal.string("a|b"), expression=exp.Literal.string("|"))),
        exp.select("x").distinct(),
    ],
)
def test_what_is_not_known_to_mean_the_same_is_refused(tree: exp.Expr) -> None:
    with pytest.raises(InvalidInput, match="no words for it"):
        dialect.write(tree)


def test_duckdb_writes_what_spark_reads() -> None:
    """The one writer is not the other's: a tree has a text for each."""
    tree = exp.select(exp.alias_(exp.Literal.number(1), "n", quoted=True)).from_("t")
    assert (write(tree), dialect.write(tree)) == (
        'SELECT 1 AS "n" FROM t',
        "SELECT 1L AS `n` FROM `t`",
    )


@pytest.mark.parametrize("made", [plans_of_tables, plans_of_relations])
def test_only_what_is_read_several_times_is_kept(made: Any) -> None:
    """Every view is read at least twice by what comes after it, so that Spark's own plan never computes it twice."""
    kept = 0
    for plan in made(3, 5)[2]:
        for statement in plan.statements:
            steps, last = dialect.steps(statement.select, 0)
            texts = [*(step.sql for step in steps), last]
            for place, step in enumerate(steps):
                assert sum(text.count(f"`{step.name}`") for text in texts[: place + 1]) == 0
                assert sum(text.count(f"`{step.name}`") for text in texts[place + 1 :]) > 1
            kept += len(steps)
    assert kept
