"""A served dataset is a copy in memory, typed and cut when it is loaded: the same answers, and no cell that is slow."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sordino.engines.duckdb import DuckDB
from sordino.engines.engine import Exact
from sordino.errors import InvalidDeclaration
from sordino.privacy.budget import Budget
from sordino.query.dataset import Dataset
from sordino.server.made_up_rows import made_up
from sordino.session import Session

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "int", "min": 0, "max": 110},
    "ward": {"type": "category", "values": ["A", "B", "it's"]},
    "note": {"type": "text"},
    "short": {"type": "text", "max_length": 3},
    "cost": {"type": "float", "min": 0, "max": 10},
    "day": {"type": "date", "min": "2020-01-01", "max": "2024-12-31"},
    "well": {"type": "bool"},
}  # fmt: skip
QUESTIONS = (
    "SELECT COUNT(*) AS n, AVG(age) AS a, SUM(cost) AS c FROM visits WHERE well",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT COUNT(*) AS n FROM visits WHERE note LIKE '%x%' OR ward = 'it''s'",
    "SELECT COUNT(*) AS n FROM visits WHERE short = 'abc'",
    "SELECT COUNT(DISTINCT pid) AS n FROM visits WHERE day >= DATE '2021-06-01'",
)


def rows(**more: Any) -> dict[str, list[Any]]:
    count = 40
    cells: dict[str, list[Any]] = {
        "pid": [f"p{i % 9}" for i in range(count)],
        "age": [None if i % 11 == 0 else i * 5 for i in range(count)],
        "ward": [["A", "B", "it's", "C", None][i % 5] for i in range(count)],
        "note": [["x", "yy", "", None, "axb" * 20][i % 5] for i in range(count)],
        "short": [["abc", "abcd", "ab", None][i % 4] for i in range(count)],
        "cost": [float("nan") if i % 13 == 0 else i / 3 for i in range(count)],
        "day": [dt.date(2020, 1, 1) + dt.timedelta(days=50 * i) for i in range(count)],
        "well": [[True, False, None][i % 3] for i in range(count)],
    }
    return cells | more


def told(exact: Exact) -> list[str]:
    """All rows, in an order of their own."""
    return sorted(map(repr, zip(*exact.keys, *exact.sums.T.tolist(), strict=True)))


def dataset(source: Any) -> Dataset:
    return Dataset(
        source,
        name="visits",
        unit="pid",
        max_rows=4,
        max_groups=3,
        columns=COLUMNS,
        budget=Budget(100, 1e-6),
    )


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv", "duckdb"])
def test_the_copy_has_the_same_exact_sums(tmp_path: Path, kind: str) -> None:
    table_ = pa.table(rows())
    source: Any = table_
    if kind != "frame":
        source = tmp_path / f"visits.{kind}"
        if kind == "parquet":
            pq.write_table(table_, source)
        elif kind == "csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(table_, source)
        else:
            import duckdb

            with duckdb.connect(str(source)) as connection:
                connection.execute("CREATE TABLE visits AS SELECT * FROM table_")
    data = dataset(source)
    with Session(data, ledger=tmp_path / "l") as session:
        plans = [session.preview(question, epsilon=1) for question in QUESTIONS]
    plain, copied = (
        DuckDB(data.tables.values()),
        DuckDB(data.tables.values(), threads=1, longest_text=256),
    )
    try:
        for plan in plans:
            one, other = ([engine.run(s) for s in plan.statements] for engine in (plain, copied))
            assert [told(each) for each in one] == [told(each) for each in other]
    finally:
        plain.close()
        copied.close()


def test_a_huge_cell_is_cut_when_it_is_loaded(tmp_path: Path) -> None:
    """Statements read 256 characters of a row with a megabyte more, and nothing else changes."""
    question = (
        "SELECT COUNT(*) AS n FROM visits WHERE UPPER(LOWER(UPPER(LOWER(note)))) LIKE '%A%B%C%Z%'"
    )
    data = dataset(pa.table(rows(note=["abc" * 330_000, *["abcz"] * 39])))
    with Session(data, ledger=tmp_path / "l") as session:
        (statement,) = session.preview(question, epsilon=1).statements
    found = {}
    for longest in (None, 256):
        engine = DuckDB(data.tables.values(), threads=1, longest_text=longest)
        found[longest] = engine.run(statement).sums.tolist()
        if longest is not None:
            (longest_cell,) = engine._connection.execute(
                'SELECT MAX(LENGTH(note)) FROM "copy of visits"'
            ).fetchall()[0]
            assert longest_cell == longest
        engine.close()
    assert found[256] == found[None]


def test_names_of_persons_are_never_cut_but_refused() -> None:
    """Two persons whose names begin alike stay two; a name of a megabyte is no name."""
    alike = [f"{'p' * 300}{i % 9}" for i in range(40)]
    engine = DuckDB(dataset(pa.table(rows(pid=alike))).tables.values(), longest_text=256)
    (people,) = engine._connection.execute(
        'SELECT COUNT(DISTINCT person) FROM "copy of visits"'
    ).fetchall()[0]
    assert people == 9
    engine.close()
    with pytest.raises(InvalidDeclaration, match="longer than 1,024 bytes"):
        DuckDB(
            dataset(pa.table(rows(pid=["p" * 2000, *alike[1:]]))).tables.values(), longest_text=256
        )


def test_made_up_rows_need_no_source_and_fit_the_declaration(tmp_path: Path) -> None:
    visits = {"source": "gone.parquet", "unit": "pid", "max_rows": 5, "columns": COLUMNS}
    data = Dataset(tables={"visits": visits}, budget=Budget(1000, 1e-6))
    first, second = (made_up(data, 700).tables["visits"].source.frame for _ in range(2))
    assert first.equals(second)
    with Session(made_up(data, 700)) as session:
        for question in QUESTIONS:
            session.sql(question, epsilon=5)
        answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=50)
        assert abs(float(str(answer["n"][0])) - 700) < 60
    assert not list(tmp_path.iterdir())
