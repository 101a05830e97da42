"""Wide questions cost what they ask for: SQL grows with the question, long lists are relations, the rest is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from engine_plug import Plug
from sordino.errors import TooLarge
from sordino.plan.plan import Plan

MANY = 100
NAMES = [f"Value {i}" for i in range(MANY)]
CELLS = [
    "Value 1",
    "Value 1",
    "value 1",
    "Value 1 ",
    "VALUE 2",
    "Value 2",
    "nothing",
    None,
    "Value 99",
    "Val\u00fce 3",
]


def _session(plug: Plug | None = None) -> so.Session:
    table = pa.table(
        {
            "p": list(range(len(CELLS))),
            "name": CELLS,
            "code": [7, 7, 70, 8, None, 7, 2**40, -7, 693, 14],
            "age": [10 * i for i in range(len(CELLS))],
            "at": [dt.datetime(2020, 1, 1)] * len(CELLS),
        }
    )
    columns: dict[str, dict[str, Any]] = {
        "name": {"type": "category", "values": NAMES},
        "code": {"type": "category", "values": [7 * i for i in range(MANY)]},
        "age": {"type": "int", "min": 0, "max": 110},
        "at": {"type": "datetime"},
    }
    regions = pa.table(
        {"name": ["Value 1", "Value 2", "other"], "region": ["north", "south", "west"]}
    )
    public = {"name": {"type": "category", "values": NAMES}, "region": {"type": "text"}}
    visits = {
        "source": table,
        "unit": "p",
        "max_rows_per_group": 1,
        "max_groups": 1,
        "columns": columns,
    }
    lookup = {"source": regions, "public": True, "key": ["name"], "columns": public}
    return so.Session(
        so.Dataset(tables={"v": visits, "regions": lookup}, budget={"epsilon": 10**6}), engine=plug
    )


def _exactly(session: so.Session, sql: str) -> list[dict[str, Any]]:
    """The answer at an epsilon at which the noise is nothing, but for what is nothing itself."""
    return [row for row in session.sql(sql, epsilon=10_000).rows() if row["n"]]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("name", {"Value 1": 2, "Value 2": 1, "Value 99": 1}),
        ("code", {7: 3, 14: 1, 70: 1, 693: 1}),
        ("LOWER(name)", {"value 1": 2, "value 2": 1, "value 99": 1}),
        ("SUBSTR(name, 7)", {"1": 2, "2": 1, "99": 1}),
    ],
)
def test_long_lists_are_looked_up_letter_by_letter(key: str, expected: dict[object, int]) -> None:
    """Neither case nor spaces at the end nor accents are overlooked, and what is not listed belongs to no group."""
    with _session() as session:
        sql = f"SELECT {key} AS k, COUNT(*) AS n FROM v GROUP BY {key}"
        assert {row["k"]: row["n"] for row in _exactly(session, sql)} == expected
        assert len(session.sql(sql, epsilon=1)) == MANY


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM v WHERE name = 'Value 1'", 2),
        ("SELECT COUNT(name) AS n FROM v", 4),
        ("SELECT COUNT(*) AS n FROM v WHERE name IS NULL AND code IS NULL", 4),
        ("SELECT COUNT(*) AS n FROM v WHERE code >= 14", 3),
        (
            "SELECT COUNT(*) AS n FROM v JOIN regions ON v.name = regions.name WHERE region = 'north'",
            2,
        ),
        ("SELECT COUNT(*) AS n FROM v LEFT JOIN regions ON v.name = regions.name", len(CELLS)),
    ],
)
def test_a_long_list_means_what_a_short_one_means(
    sql: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _session() as session:
        assert "Value 17" not in session.preview(sql, epsilon=1).sql()
        assert _exactly(session, sql)[0]["n"] == expected
        monkeypatch.setattr("sordino.query.meaning.reading._LONG", 1000)
        assert not session.preview(sql, epsilon=1).statements[0].lists
        assert _exactly(session, sql)[0]["n"] == expected


def _sizes(plan: Plan) -> list[int]:
    return [len(statement.text()) for statement in plan.statements]


def test_sql_of_many_medians_grows_with_their_number() -> None:
    """Every statement once computed the values of all others: 160 medians took most of a minute."""
    with _session() as session:
        few, many = (
            session.preview(
                f"SELECT {', '.join(f'MEDIAN(age + {i})' for i in range(k))} FROM v", epsilon=1
            )
            for k in (10, 80)
        )
    assert sum(_sizes(many)) < 9 * sum(_sizes(few))


def test_sql_does_not_grow_with_the_list_at_each_use() -> None:
    uses = " OR ".join(f"name = 'Value {i}'" for i in range(80))
    with _session() as session:
        assert (
            sum(_sizes(session.preview(f"SELECT COUNT(*) FROM v WHERE {uses}", epsilon=1)))
            < 200 * 80
        )


def test_quantiles_of_very_many_groups_are_refused_while_planning() -> None:
    month = "DATE_TRUNC('month', at)"
    with _session() as session, pytest.raises(TooLarge, match="119,988 groups"):
        session.preview(f"SELECT {month} AS m, MEDIAN(age) FROM v GROUP BY {month}", epsilon=1)


def test_very_much_sql_is_refused_while_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sordino.plan.plan._MOST_SQL", 10_000)
    medians = ", ".join(f"MEDIAN(age + {i})" for i in range(40))
    with _session() as session:
        session.preview("SELECT MEDIAN(age) FROM v", epsilon=1)
        with pytest.raises(TooLarge, match="of 41 parts"):
            session.preview(f"SELECT {medians} FROM v", epsilon=1)


def test_an_engine_holds_a_list_once() -> None:
    plug = Plug()
    with _session(plug) as session:
        for _ in range(3):
            session.sql("SELECT name, COUNT(*) AS n FROM v GROUP BY name", epsilon=1)
        assert len(plug.duckdb._held) == 1


@pytest.mark.parametrize("grouped", [False, True])
def test_the_sql_of_many_sums_grows_with_their_number(
    grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that tell what lies beyond the bounds had a zero for each sum: 240 variances took 34 s to plan."""
    people = pa.table({"p": [i // 4 for i in range(60)], "x": list(range(60)), "g": [0, 1, 2] * 20})
    columns: dict[str, dict[str, object]] = {
        "x": {"type": "int", "min": 0, "max": 40},
        "g": {"type": "category", "values": [0, 1, 2]},
    }
    data = so.Dataset(
        people, name="t", unit="p", max_rows=2, columns=columns, budget={"epsilon": 10**6}
    )
    plug = Plug()

    def asked(session: so.Session, many: int) -> Plan:
        values = (f"AVG(x * {i + 1}) AS a{i}, SUM(x - {i}) AS s{i}" for i in range(many))
        sql = f"SELECT {', '.join(values)} FROM t{' GROUP BY g' * grouped}"
        return session.preview(sql, epsilon=1)

    def exactly(plan: Plan) -> Any:
        groups = plug.exact_groups(plan)
        return groups.keys, groups.beyond, {k: v.tolist() for k, v in groups.vectors.items()}

    with so.Session(data, engine=plug) as session:
        sizes = [len(asked(session, many).sql()) for many in (20, 40, 80)]
        assert sizes[2] < 2.1 * sizes[1] < 4.4 * sizes[0]
        found = exactly(asked(session, 12))
        assert any(found[1])
        monkeypatch.setattr("sordino.plan.statement._MOST_PADDED", 10**6)
        assert exactly(asked(session, 12)) == found
