"""Tables that a session holds: copied and cleaned once when it opens, with the same numbers as when they are read."""

from __future__ import annotations

from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Exact
from sordino.errors import InvalidInput
from sordino.query.front.sql import parse

NASTY: dict[str, Any] = {
    "id": ["a", "a", "b", None, "c", "d", "e", "b"],
    "whole": [1, -5, 10**12, 7, None, 100, 101, 3],
    "real": [0.5, float("nan"), float("inf"), -1.0, None, float("-inf"), 9.99, -0.0],
    "ward": ["x", "X", "odd", "y", None, "y", "x|y", "'"],
    "name": ["ann", "bartholomew", "", "ä" * 40, None, "A", "b", "c"],
    "code": [1, 2, 3, 2, None, 5, 1, 9],
    "day": [date(2020, 1, 1), date(1900, 1, 1), date(2999, 1, 1), None, *[date(2020, 2, 3)] * 4],
    "at": [
        datetime(2020, 1, 1, 5),
        datetime(1800, 1, 1),
        None,
        *[datetime(2020, 5, 6, 7, 8, 9)] * 5,
    ],
    "flag": [True, False, None, True, True, False, False, True],
}
COLUMNS: dict[str, Any] = {
    "whole": {"type": "int", "min": -2, "max": 100},
    "real": {"type": "float", "min": 0, "max": 5, "step": 0.25},
    "ward": {"type": "category", "values": ["x", "y", "'", "x|y"]},
    "name": {"type": "text", "max_length": 5},
    "code": {"type": "category", "values": [1, 2, 3]},
    "day": {"type": "date", "min": "2000-01-01", "max": "2020-12-31"},
    "at": {"type": "datetime", "min": "2000-01-01T00:00:00", "max": "2020-12-31T00:00:00"},
    "flag": {"type": "bool"},
}
QUESTIONS = (
    "SELECT ward, SUM(whole) AS a, AVG(real) AS b, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT code, COUNT(DISTINCT id) AS n, MEDIAN(whole) AS m, MODE(ward) AS w FROM visits GROUP BY code",
    "SELECT name, COUNT(*) AS n FROM visits WHERE ward IN ('x', 'x|y') OR name LIKE 'b%' GROUP BY name",
    "SELECT YEAR(day) AS y, SUM(HOUR(at)) AS h, SUM(flag) AS f FROM visits GROUP BY y",
    "SELECT COUNT(*) AS n FROM visits WHERE ward || name = 'xann' OR whole >= 100 OR day < DATE '2001-01-01'",
    "SELECT region, SUM(size) AS s, COUNT(*) AS n FROM visits JOIN wards ON ward = place GROUP BY region",
    "SELECT COUNT(*) AS n FROM visits JOIN wards ON ward = place WHERE size <= 3",
    "SELECT n, COUNT(*) AS c FROM (SELECT id, COUNT(*) AS n, MAX(real) AS r FROM visits WHERE real > 0 GROUP BY id) "
    "AS p WHERE r < 5 GROUP BY n",
)


def dataset(folder: Path, kind: str) -> so.Dataset:
    visits = pa.table(NASTY)
    wards = pa.table(
        {"place": ["x", "y", "'"], "region": ["N", "S", "N"], "size": [1.0, float("inf"), 3.0]}
    )
    tables: dict[str, Any] = {"visits": visits, "wards": wards}
    if kind == "parquet":
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet")
        tables = {name: str(folder / f"{name}.parquet") for name in tables}
    places = {"type": "category", "values": ["x", "y", "'"]}
    public = {"place": places, "region": {"type": "text"}, "size": {"type": "float"}}
    return so.Dataset(
        tables={
            "visits": {"source": tables["visits"], "unit": "id", "max_rows": 2, "columns": COLUMNS},
            "wards": {
                "source": tables["wards"],
                "public": True,
                "key": ["place"],
                "columns": public,
            },
        },
        budget={"epsilon": 100, "delta": 1e-6},
    )


def exact(session: so.Session, question: str) -> list[tuple[Any, ...]]:
    """The exact whole numbers of a question, before noise, with what they cost."""

    def rows(one: Exact) -> list[tuple[Any, ...]]:
        return sorted(zip(*one.keys, *one.sums.T.tolist(), strict=True), key=repr)

    plan = session.preview(parse(question), epsilon=1)
    with session.snapshot(plan.statements) as run:
        return [(rows(run(statement)), plan.charge) for statement in plan.statements]


@pytest.mark.parametrize("kind", ["frame", pytest.param("parquet", marks=pytest.mark.slow)])
def test_what_is_held_has_the_same_numbers(tmp_path: Path, kind: str) -> None:
    data = dataset(tmp_path, kind)
    with so.Session(data) as read, so.Session(data, held=True) as held:
        for question in QUESTIONS:
            assert exact(held, question) == exact(read, question), question
            assert len(held.preview(question, epsilon=1).sql()) <= len(
                read.preview(question, epsilon=1).sql()
            )
        # cleaned again where a plan does not know that they are held, with the same numbers
        held._planned = held.dataset
        for question in QUESTIONS[:2] if kind == "frame" else QUESTIONS:
            assert exact(held, question) == exact(read, question), question


def test_what_is_held_is_asked_as_ever(tmp_path: Path) -> None:
    with so.Session(dataset(tmp_path, "parquet"), held=True) as session:
        assert len(session.sql(QUESTIONS[0], epsilon=1)) == 4
        (tmp_path / "visits.parquet").write_bytes(b"other")
        with pytest.raises(InvalidInput):
            session.sql(QUESTIONS[0], epsilon=1)


def test_a_long_list_is_not_looked_up_again(tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(300)]
    rows = pa.table({"name": [*names[:200], "other", None]})
    columns = {"name": {"type": "category", "values": names}}
    data = so.Dataset(rows, unit="row", columns=columns, budget={"epsilon": 10})
    question = "SELECT name, COUNT(*) AS n FROM data GROUP BY name"
    with so.Session(data) as read, so.Session(data, held=True) as held:
        assert exact(held, question) == exact(read, question)
        assert all(statement.lists for statement in read.preview(question, epsilon=1).statements)
        assert not any(one.lists for one in held.preview(question, epsilon=1).statements)


def test_held_is_for_the_default_engine() -> None:
    data = so.Dataset(pa.table({"x": [1]}), unit="row", budget={"epsilon": 1})
    with pytest.raises(InvalidInput, match="held"):
        so.Session(data, engine=DuckDB, held=True)


@pytest.mark.parametrize("shared", [False, True])
def test_a_public_row_is_found_once(shared: bool) -> None:
    """Keys that no two rows share are not grouped again; of rows that share one the least cell counts, as ever."""
    places = ["x", "y", None, None, *(["x"] if shared else [])]
    wards = pa.table({"place": places, "size": list(range(len(places), 0, -1))})
    entries = {
        "visits": {"source": pa.table({"ward": ["x", "x", "y", None]}), "unit": "row",
                   "columns": {"ward": {"type": "category", "values": ["x", "y"]}}},
        "wards": {"source": wards, "public": True, "key": ["place"], "columns": {
            "place": {"type": "category", "values": ["x", "y"]}, "size": {"type": "int", "min": 0, "max": 9}}},
    }  # fmt: skip
    data = so.Dataset(tables=entries, budget={"epsilon": 10})
    question = "SELECT SUM(size) AS s, COUNT(*) AS n FROM visits LEFT JOIN wards ON ward = place"
    with so.Session(data) as read, so.Session(data, held=True) as held:
        assert exact(held, question) == exact(read, question)
        grouped = [
            session.preview(question, epsilon=1).sql().count("GROUP BY") for session in (read, held)
        ]
        assert grouped == [1, int(shared)]


def test_long_texts_are_cut_in_what_is_held() -> None:
    rows = pa.table({"name": ["a" * 9, "a" * 5, "b"]})
    data = so.Dataset(
        rows, unit="row", columns={"name": {"type": "text"}}, budget={"epsilon": 9, "delta": 0.1}
    )
    with so.Session(data, engine=partial(DuckDB, longest_text=4, held=True)) as session:
        question = "SELECT COUNT(*) AS n FROM data WHERE name = 'aaaa'"
        assert exact(session, question)[0][0] == [(2,)]
