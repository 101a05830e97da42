"""Hints lead somewhere: what they tell to write is answered."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import pyarrow as pa
import pytest

import sordino as so
from sordino.errors import BudgetExceeded, InvalidInput

WARDS = {
    "source": pa.table({"name": ["A"], "region": ["n"]}),
    "public": True,
    "key": ["name"],
    "columns": {
        "name": {"type": "category", "values": ["A", "B"]},
        "region": {"type": "category", "values": ["n", "s"]},
    },
}
VISITS = {
    "source": pa.table(
        {
            "pid": [1],
            "ward": ["A"],
            "carrier": ["x"],
            "x": [1],
            "y": [2.0],
            "at": [datetime(2024, 1, 1)],
        }
    ),
    "unit": "pid",
    "max_rows_per_group": 2,
    "max_groups": 2,
    "columns": {
        "ward": {"type": "category", "values": ["A", "B"]},
        "carrier": {"type": "text"},
        "x": {"type": "int", "min": 0, "max": 10},
        "y": {"type": "float", "min": 0, "max": 10},
        "at": {"type": "datetime", "min": "2024-01-01T00:00:00", "max": "2024-12-31T23:59:59"},
    },
}


@pytest.fixture(scope="module")
def session() -> so.Session:
    return so.Session(
        so.Dataset(tables={"visits": VISITS, "wards": WARDS}, budget=so.Budget(5, 1e-6))
    )


@pytest.mark.parametrize(
    ("refused", "told", "works"),
    [
        ("SUM(y) OVER (PARTITION BY ward) AS n FROM visits",
         "ORDER BY n DESC LIMIT 10",
         "ward, SUM(y) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 10"),
        ("COUNT(*) AS n FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1", "which is public", None),
            ("AVG(CAST(y AS DECIMAL(9, 2))) AS n FROM visits", "ROUND(x, 2)", "AVG(ROUND(y, 2)) AS n FROM visits"),
            ("at::text AS d, COUNT(*) AS n FROM visits GROUP BY 1",
             "x::DATE",
             "at::DATE AS d, COUNT(*) AS n FROM visits GROUP BY 1"),
            ("AVG(LOG(x)) AS n FROM visits", "LN(x)", "AVG(LN(CLAMP(x, 1, 9))) AS n FROM visits"),
        ("COUNT(*) AS n FROM visits WHERE ward IN (SELECT name FROM wards)",
         "JOIN wards ON visits.ward = wards.name",
         "COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.name WHERE wards.region = 'n'"),
        ("MODE(carrier) AS n FROM visits",
         "ORDER BY n DESC LIMIT 1",
         "carrier, COUNT(*) AS n FROM visits GROUP BY carrier ORDER BY n DESC LIMIT 1"),
        ("SKEWNESS(x) AS n FROM visits", "`sordino docs sql`", None),
    ],
)  # fmt: skip
def test_what_a_hint_says_works(
    refused: str, told: str, works: str | None, session: so.Session
) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.preview(f"SELECT {refused}", epsilon=1)
    assert told in caught.value.hint
    assert "docs/" not in str(caught.value)
    if works is not None:
        session.preview(f"SELECT {works}", epsilon=1)


def test_plans_and_answers_say_that_rows_without_a_person_are_left_out(session: so.Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert "rows without a pid name nobody and are left out" in str(session.preview(sql, epsilon=1))
    told = "Rows without a pid name nobody and are left out"
    assert any(note.startswith((told, "About")) for note in session.sql(sql, epsilon=1).notes)
    assert f"{told}." in session.sql(sql, epsilon=1, bias=False).notes
    rows = so.Dataset(pa.table({"a": [1]}), unit="row", columns={}, budget=so.Budget(1))
    with so.Session(rows) as other:
        assert not other.sql("SELECT COUNT(*) AS n FROM data", epsilon=1).notes
        assert "left out" not in str(other.preview("SELECT COUNT(*) AS n FROM data", epsilon=1))
    assert "left out" not in str(session.preview("SELECT COUNT(*) AS n FROM wards", epsilon=1))


def test_words_beside_names_and_numbers_fit_them() -> None:
    """An id and a row, not a id and 1 rows: in plans, in notes, and in what tables are said to hold."""
    rows = pa.table({"id": list(range(40)) * 2, "ward": ["A", "B"] * 40})
    data = so.Dataset(
        rows,
        unit="id",
        max_rows=1,
        max_groups=2,
        max_rows_per_group=1,
        columns={"ward": {"type": "category", "values": ["A", "B"]}},
        budget=so.Budget(100),
    )
    with so.Session(data) as session:
        for sql in (
            "SELECT COUNT(*) AS n FROM data",
            "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward",
        ):
            plan, answer = session.preview(sql, epsilon=1), session.sql(sql, epsilon=1)
            told = " ".join(
                [str(plan), *answer.notes, *session.sql(sql, epsilon=1, bias=False).notes]
            )
            assert "ithout an id name nobody" in told
            assert "each person counts as at most 1 row " in " ".join(str(plan).split())
            assert not re.findall(r"\b1 (?:rows|groups|persons)\b|\ba id\b", told)


@pytest.mark.parametrize(
    ("refused", "told", "works"),
    [
        ("strftime(at, '%Y-%m') AS m, COUNT(*) AS n FROM visits GROUP BY 1",
         "DATE_TRUNC('month', day)",
         "DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM visits GROUP BY 1"),
        ("CAST(at AS VARCHAR) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
         "DATE_TRUNC('month', day)",
         "EXTRACT(month FROM at) AS m, COUNT(*) AS n FROM visits GROUP BY 1"),
        ("DATE_TRUNC(day, 'month') AS m, COUNT(*) AS n FROM visits GROUP BY 1", "DATE_TRUNC('month', day)", None),
        ('COUNT(*) AS n FROM visits WHERE ward = "A"', "ward = 'A'", "COUNT(*) AS n FROM visits WHERE ward = 'A'"),
        ("COUNT(*) AS n FROM visits WHERE carrier = Zed",
         "single quotes: 'Zed'", "COUNT(*) AS n FROM visits WHERE carrier = 'Zed'"),
        ("COUNT(*) AS n FROM visits WHERE carrier = 3", "'3'", "COUNT(*) AS n FROM visits WHERE carrier = '3'"),
        ("COUNT(*) AS n FROM visits WHERE x = '3'", "without quotes: 3", "COUNT(*) AS n FROM visits WHERE x = 3"),
        ("COUNT(*) AS n FROM visits WHERE at > 2024-01-31",
         "'2024-01-31'", "COUNT(*) AS n FROM visits WHERE at > '2024-01-31'"),
        ("COUNT(*) AS n FROM visits WHERE ward = 'D'", "'A', 'B'", "COUNT(*) AS n FROM visits WHERE ward = 'B'"),
        ("COUNT(*) AS n FROM visits WHERE x = NULL", "x IS NULL", "COUNT(*) AS n FROM visits WHERE x IS NULL"),
        ("COUNT(*) AS n FROM visits WHERE x <> NULL", "x IS NOT NULL", "COUNT(*) AS n FROM visits WHERE x IS NOT NULL"),
        ("COUNT(*) AS n FROM visits GROUP BY", "GROUP BY ward", "ward, COUNT(*) AS n FROM visits GROUP BY ward"),
        ("COUNT(*) AS n FORM visits", "FROM instead of FORM", "COUNT(*) AS n FROM visits"),
        ("TOP 5 ward, COUNT(*) AS n FROM visits GROUP BY ward",
         "LIMIT 5", "ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 5"),
        ("AVERAGE(y) AS n FROM visits", "AVG(cost)", "AVG(y) AS n FROM visits"),
        ("MEDAIN(y) AS n FROM visits", "Did you mean MEDIAN?", "MEDIAN(y) AS n FROM visits"),
        ("PERCENTILE(y, 90) AS n FROM visits", "QUANTILE(cost, 0.5)", "QUANTILE(y, 0.5) AS n FROM visits"),
        ("WIDTH_BUCKET(x, 0, 10, 5) AS b, COUNT(*) AS n FROM visits GROUP BY 1",
         "BUCKET(age, 10)", "BUCKET(x, 2) AS b, COUNT(*) AS n FROM visits GROUP BY 1"),
        ("DISTINCT ward FROM visits", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
         "ward, COUNT(*) AS n FROM visits GROUP BY ward"),
        ("COUNT(*) AS n FROM visits WHERE carrier ~ 'a'", "ILIKE 'a%'",
         "COUNT(*) AS n FROM visits WHERE carrier ILIKE 'a%'"),
        ("COUNT(*) AS n FROM visits WHERE ward IS 'A'", "Write = for a value", None),
        ("COUNT(*) AS n FROM visits WHERE ward = `A`", "'A' for a text", None),
        ("ROW_NUMBER() OVER (PARTITION BY pid ORDER BY at) AS k FROM visits", "PARTITION BY patient_id",
         "COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY at) AS k FROM visits) AS v"),
    ],
)  # fmt: skip
def test_mistakes_of_a_first_day(
    refused: str, told: str, works: str | None, session: so.Session
) -> None:
    before = len(session.receipts)
    with pytest.raises(InvalidInput) as caught:
        session.sql(f"SELECT {refused}", epsilon=1)
    assert told in caught.value.hint
    assert len(session.receipts) == before  # nothing was charged
    if works is not None:
        session.preview(f"SELECT {works}", epsilon=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELCT COUNT(*) FROM visits", "SELECT instead of SELCT"),
        ("SHOW TABLES", "sordino check"),
        ("EXPLAIN SELECT 1", "preview"),
        ("UPDATE visits SET x = 1", "SELECT COUNT(*)"),
    ],
)
def test_texts_that_are_no_question(text: str, told: str, session: so.Session) -> None:
    with pytest.raises(InvalidInput) as caught:
        session.preview(text, epsilon=1)
    assert told in caught.value.hint


def test_lower_epsilon_is_not_said_when_nothing_is_left() -> None:
    for budget in (so.Budget(1), so.Budget(1, 1e-6)):
        data = so.Dataset(pa.table({"a": [1]}), unit="row", columns={}, budget=budget)
        with so.Session(data) as session:
            with pytest.raises(BudgetExceeded, match="Lower epsilon"):
                session.sql("SELECT COUNT(*) AS n FROM data", epsilon=2)
            session.sql("SELECT COUNT(*) AS n FROM data", epsilon=1, mechanism="laplace")
            if budget.delta == 0:
                with pytest.raises(BudgetExceeded, match="only its owner can raise it") as caught:
                    session.sql("SELECT COUNT(*) AS n FROM data", epsilon=0.1)
                assert "Lower" not in str(caught.value)


def test_python_names_of_other_libraries(session: so.Session) -> None:
    question = session.table("visits")
    answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.01)
    for owner, name, told in [
        (session, "query", "session.sql("), (session, "tables", "session.dataset"), (session, "budget", "remaining"),
        (question, "count", "agg(n=so.count())"), (question, "groupby", "group_by"), (question, "filter", "where"),
        (answer, "n", "answer['n']"), (answer, "df", "to_pandas()"), (so, "load", "so.Dataset.load"),
        (so, "laplace", "so.Laplace"),
    ]:  # fmt: skip
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
        assert told in str(caught.value), name
        assert caught.value.name == name
    assert (
        copy.copy(answer).to_json()
        == pickle.loads(pickle.dumps(answer)).to_json()
        == answer.to_json()
    )
    assert not hasattr(question, "__array__")


def test_python_values_in_the_wrong_place(session: so.Session) -> None:
    table, loose, asked = pa.table({"a": [1]}), cast("Any", so), cast("Any", session)
    mistakes: list[tuple[Callable[[], object], str]] = [
        (lambda: asked.sql("SELECT COUNT(*) FROM visits", 0.1), "epsilon=0.1"),
        (lambda: loose.Session("visits.toml"), "so.Dataset.load('visits.toml')"),
        (lambda: loose.Session(table), "so.Dataset(table, unit=..."),
        (lambda: loose.Dataset(table, unit="row", columns={}, budget=1), "so.Budget(1, 1e-6)"),
        (lambda: loose.Dataset(table, unit="row", columns={"a": int}), '{"type": "int"}'),
        (lambda: loose.Dataset(table, unit="row", columns={"a": "integer"}), '{"type": "int"}'),
        (lambda: loose.Dataset(table, unit="row", columns=["a"]), '{"age": {"type": "int"'),
        (lambda: asked.table("visits").select(n=so.count()), ".agg(n=so.count())"),
        (lambda: loose.quantile("x"), 'so.quantile("cost", 0.9)'),
    ]
    for act, told in mistakes:
        with pytest.raises(InvalidInput) as caught:
            act()
        assert told in caught.value.hint, told
