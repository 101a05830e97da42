"""Nothing of the data leaves but through noise: canary tokens in every text cell, looked for wherever text comes out.

Errors are searched with everything that hangs on them (`__cause__`, `__context__`), since a log may print it. Refused
questions touch no data; admitted ones never fail because of what a cell holds; the engine cannot read anything else.
"""

from __future__ import annotations

import dataclasses
import logging
import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine_plug import Plug
from query import nasty
from query_cases import Questions, World, random_rows, random_world
from sordino.engines.duckdb import DuckDB
from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidDeclaration,
    InvalidInput,
    SordinoError,
)
from sordino.query import tree
from sordino.query.dataset import Dataset
from sordino.query.types import Number
from sordino.release import exact_groups
from sordino.session import Session

TOKENS = [secrets.token_hex(16) for _ in range(40)]


def leaked(text: str) -> list[str]:
    return [token for token in TOKENS if token in text]


def error_texts(error: BaseException | None) -> Iterator[str]:
    """Everything that an error says, with all errors that hang on it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from (str(one), repr(one), repr(one.args), *getattr(one, "__notes__", []))
        waiting += [one.__cause__, one.__context__]


def assert_silent(error: BaseException) -> None:
    for text in error_texts(error):
        assert leaked(text) == []


def canary_world(rng: random.Random) -> World:
    """Persons named by text, text of any length."""
    world = random_world(rng)
    columns = {**world.columns, "t": {"type": "text"}}
    return dataclasses.replace(
        world,
        person=True,
        columns=columns,
        types={**world.types, "id": pa.string(), "c": pa.string()},
    )


def canary_rows(rng: random.Random, world: World) -> list[dict[str, Any]]:
    """Every text cell, person and undeclared category is a token."""
    rows = random_rows(
        rng,
        dataclasses.replace(
            world, person=False, types={k: v for k, v in world.types.items() if k != "id"}
        ),
    )
    return [
        {
            **row,
            "id": rng.choice(TOKENS),
            "t": rng.choice(TOKENS),
            "c": row["c"] if row["c"] in ("A", "B", "C") else rng.choice(TOKENS),
        }
        for row in rows
    ]


def test_answered_questions_show_no_cell(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked = 0
    for seed in range(6):
        rng = random.Random(seed)
        world = canary_world(rng)
        dataset = world.dataset(world.table(canary_rows(rng, world)))
        plug = Plug(threads=1)
        with Session(dataset, engine=plug) as session:
            while asked < 3 * (seed + 1):
                query = Questions(rng, world).one()
                try:
                    plan = session.preview(query, epsilon=1)
                except InvalidInput as error:
                    assert_silent(error)
                    continue
                asked += 1
                exacts = [plug.run(statement) for statement in plan.statements]
                groups = exact_groups(plan, exacts)
                shown = [
                    str(plan),
                    repr(plan),
                    plan.sql(),
                    repr(plan.charge),
                    repr(exacts),
                    repr(groups),
                    repr(dataset),
                ]
                answer = session.run(query, epsilon=1)
                shown += [
                    repr(session),
                    repr(plug.duckdb),
                    repr(session.receipts),
                    str(session.remaining),
                    answer.privacy,
                    *answer.notes,
                ]
                if not plan.private_keys:
                    shown += [str(answer), repr(answer), str(answer.to_dict())]
                assert leaked("\n".join(shown)) == []
    out, err = capfd.readouterr()
    assert leaked(out + err + caplog.text) == []


def test_private_keys_are_shown_only_if_selected() -> None:
    """A rare key is selected with a probability of at most delta; a common one is shown."""
    common, rare = TOKENS[:2]
    table = pa.table({"id": [str(i) for i in range(2001)], "t": [common] * 2000 + [rare]})
    dataset = Dataset(
        table,
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns={"t": {"type": "text"}},
        budget={"epsilon": 10, "delta": 1e-9},
    )
    with Session(dataset) as session:
        answer = session.sql("SELECT t, COUNT(*) AS n FROM data GROUP BY t", epsilon=1)
    assert leaked(str(answer) + repr(answer) + str(answer.to_dict())) == [common]


REFUSED = [
    "SELECT * FROM data",
    "SELECT t FROM data",
    "SELECT COUNT(*) FROM nothing",
    "SELECT MAX(x) AS m FROM data",
    "DELETE FROM data",
    "SELECT COUNT(*) AS n FROM data; SELECT 1",
    "SELECT COUNT(*) AS n FROM data, data AS d",
    "SELECT SUM(t) AS s FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE t",
    "SELECT COUNT(*) AS n FROM read_text('secret')",
    "SELECT x, COUNT(*) AS n FROM data",
    "SELECT SUM(DISTINCT x) AS n FROM data",
    "SELECT SUM(missing) AS s FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE id = 'x'",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM data)",
    "SELECT STRING_AGG(t, ',') AS s FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE",
    "COPY data TO 'x'",
    "PRAGMA version",
    "SELECT COUNT(*) AS n FROM data UNION SELECT COUNT(*) AS n FROM data",
    "",
    "\x00",
    "(" * 5000,
    "SELECT COUNT(*) AS n FROM data WHERE x IN (SELECT x FROM data)",
    "SELECT SUM(x) OVER () AS s FROM data",
    "SELECT QUANTILE(x, 2) AS q FROM data",
    "SELECT COUNT(*) AS n FROM data GROUP BY y",
    "SELECT id, COUNT(*) AS n FROM data GROUP BY id",
]
COSTS: list[dict[str, Any]] = [
    {},
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": float("nan")},
    {"epsilon": 1, "error": 1},
    {"error": {"nothing": 1}},
    {"error": "x"},
    {"epsilon": 1, "mechanism": "none"},
    {"epsilon": 1, "confidence": 2},
    {"epsilon": "much"},
    {"epsilon": 10**9},
]


def small_session(plug: Plug) -> Session:
    table = pa.table({"id": TOKENS, "t": TOKENS[::-1], "x": list(range(40)), "y": [0.5] * 40})
    columns: dict[str, dict[str, Any]] = {
        "t": {"type": "text"},
        "x": {"type": "int", "min": 0, "max": 9},
        "y": {"type": "float"},
    }
    budget = {"epsilon": 100, "delta": 1e-6}
    return Session(
        Dataset(
            table, unit="id", max_rows_per_group=2, max_groups=1, columns=columns, budget=budget
        ),
        engine=plug,
    )


def test_refused_questions_touch_no_data_and_cost_nothing() -> None:
    plug = Plug(threads=1)
    with small_session(plug) as session:
        before = session.remaining
        for text in REFUSED:
            with pytest.raises(InvalidInput) as refused:
                session.sql(text, epsilon=1)
            assert_silent(refused.value)
        for cost in COSTS:
            with pytest.raises(SordinoError) as wrong:
                session.sql("SELECT SUM(x) AS s FROM data", **cost)
            assert_silent(wrong.value)
        assert (plug.runs, session.remaining, session.receipts) == ([], before, ())
        session.sql("SELECT SUM(x) AS s FROM data", epsilon=1)
        assert len(plug.runs) == 1
        assert session.remaining != before


def test_an_empty_budget_touches_no_data() -> None:
    plug = Plug(threads=1)
    with small_session(plug) as session:
        with pytest.raises(BudgetExceeded) as error:
            session.sql("SELECT SUM(x) AS s FROM data", epsilon=1000)
        assert_silent(error.value)
        assert plug.runs == []


class Failing:
    """A connection that quotes a cell in its error."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def execute(self, text: str) -> Any:
        raise self.error(f"Could not convert string '{TOKENS[0]}' to INT32 in {text}")

    def close(self) -> None:
        """Nothing to close."""


ERRORS = [
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InternalException,
    duckdb.IOException,
    duckdb.FatalException,
    RuntimeError,
    MemoryError,
    UnicodeDecodeError,
]


@pytest.mark.parametrize("kind", ERRORS)
def test_engine_failures_say_nothing(
    kind: type[Exception], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    plug = Plug(threads=1)
    with small_session(plug) as session:
        before = session.remaining
        real = plug.duckdb._connection
        plug.duckdb._connection = Failing(_unicode_error if kind is UnicodeDecodeError else kind)  # type: ignore[assignment, arg-type]
        with pytest.raises(EngineFailed) as failed:
            session.sql("SELECT SUM(x) AS s FROM data", epsilon=1)
        assert session.remaining != before
        assert_silent(failed.value)
        plug.duckdb._connection = real
    out, err = capfd.readouterr()
    assert leaked(out + err + caplog.text) == []


def _unicode_error(text: str) -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", text.encode(), 0, 1, "invalid start byte")


@pytest.mark.parametrize("damage", ["deleted", "truncated", "overwritten"])
def test_a_file_that_changes_under_the_engine(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    """It is noticed before anything is charged."""
    count = 5000
    pq.write_table(
        pa.table(
            {
                "id": [TOKENS[i % 40] + str(i) for i in range(count)],
                "x": [i % 10 for i in range(count)],
            }
        ),
        path,
    )
    columns = {"x": {"type": "int", "min": 0, "max": 9}}
    with Session(
        Dataset(path, unit="id", max_rows_per_group=1, columns=columns, budget={"epsilon": 10})
    ) as session:
        if damage == "deleted":
            path.unlink()
        elif damage == "truncated":
            path.write_bytes(path.read_bytes()[:4000])
        else:
            path.write_text(TOKENS[0] * 1000)
        with pytest.raises(InvalidInput, match="not the one that this session opened") as refused:
            session.sql("SELECT SUM(x) AS s FROM data", epsilon=1)
        assert_silent(refused.value)
        assert session.receipts == ()


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sordino.engines.duckdb.engine._LEAST_MEMORY", 0)
    table = pa.table(
        {
            "id": [TOKENS[i % 40] + str(i) for i in range(100_000)],
            "t": [TOKENS[i % 40] + str(i % 7000) for i in range(100_000)],
        }
    )
    columns = {"t": {"type": "text"}}
    dataset = Dataset(
        table,
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns=columns,
        budget={"epsilon": 10, "delta": 1e-6},
    )
    with Session(dataset, memory="2MB", threads=1) as session:
        with pytest.raises(EngineFailed) as failed:
            session.sql("SELECT t, COUNT(*) AS n FROM data GROUP BY t", epsilon=1)
        assert_silent(failed.value)


@pytest.mark.parametrize("kind", ["int", "float", "bool", "date", "datetime", "category"])
def test_a_declaration_that_does_not_fit_quotes_no_cell(kind: str, tmp_path: Path) -> None:
    """Text declared as something else: refused by its type, or (from a CSV) read as missing."""
    column = {"type": kind, **({"values": ["A", "B"]} if kind == "category" else {})}
    table = pa.table({"id": TOKENS, "x": TOKENS})
    path = tmp_path / "data.csv"
    path.write_text("id,x\n" + "".join(f"{token},{token}\n" for token in TOKENS))
    sources: list[Any] = [table, path]
    for source in sources:
        dataset = Dataset(
            source,
            name="data",
            unit="id",
            max_rows_per_group=1,
            columns={"x": column},
            budget={"epsilon": 10},
        )
        try:
            with Session(dataset) as session:
                session.sql("SELECT COUNT(x) AS n FROM data", epsilon=1)
                assert source is path or kind == "category"
        except InvalidDeclaration as error:
            assert source is table
            assert_silent(error)


def test_a_csv_that_is_no_text_quotes_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"id,x\n" + TOKENS[0].encode() + b",\xff\xfe\n")
    dataset = Dataset(
        path,
        unit="id",
        max_rows_per_group=1,
        columns={"x": {"type": "text"}},
        budget={"epsilon": 10},
    )
    refused: Exception | None = None
    try:
        Session(dataset).close()
    except Exception as error:
        refused = error
    if refused is not None:  # it may as well be read, with this cell missing
        assert_silent(refused)
        assert isinstance(refused, InvalidDeclaration)


def broken_text(words: Sequence[bytes]) -> pa.Array:
    """Text that is no UTF-8, as files written by other programs may hold."""
    return pa.array(words, pa.binary()).view(pa.string())


@pytest.mark.parametrize("source", ["frame", "parquet"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT t, COUNT(*) AS n FROM data GROUP BY t",
        "SELECT COUNT(*) AS n FROM data WHERE LOWER(t) = 'ab'",
    ],
)
def test_one_broken_cell_does_not_fail_a_question(source: str, text: str, tmp_path: Path) -> None:
    """If it did, whether a question fails would tell, without noise, if this person's row is there and passes the
    filter.

    Refusing the source when it is opened, before any question, is fine.
    """
    table: Any = pa.table({"id": ["a", "b", "c"], "t": broken_text([b"ab", b"\xff\xfe", b"cd"])})
    if source == "parquet":
        pq.write_table(table, tmp_path / "data.parquet")
        table = tmp_path / "data.parquet"
    dataset = Dataset(
        table,
        name="data",
        unit="id",
        max_rows_per_group=1,
        max_groups=1,
        columns={"t": {"type": "text"}},
        budget={"epsilon": 10, "delta": 0.1},
    )
    try:
        session = Session(dataset)
    except InvalidDeclaration:
        return
    with session:
        session.sql(text, epsilon=1)


FORBIDDEN = [
    "SELECT * FROM read_text('{0}/other.csv')",
    "SELECT * FROM read_csv('{0}/other.csv')",
    "SELECT * FROM read_parquet('{0}/other.parquet')",
    "SELECT * FROM glob('{0}/*')",
    "SELECT * FROM '{0}/other.csv'",
    "COPY (SELECT 1) TO '{0}/new.csv'",
    "ATTACH '{0}/new.duckdb' AS a",
    "EXPORT DATABASE '{0}/new'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '1TB'",
    "SET python_enable_replacements = true",
    "SET allowed_paths = ['{0}/other.csv']",
    "RESET memory_limit",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM python_local_variable",
]


@pytest.mark.parametrize("text", FORBIDDEN)
def test_the_engine_is_locked(text: str, tmp_path: Path) -> None:
    """It reads the declared file and nothing beside it, writes nothing new, and cannot be unlocked."""
    python_local_variable = pa.table({"x": [1, 2]})
    for name in ("declared", "other"):
        pq.write_table(python_local_variable, tmp_path / f"{name}.parquet")
    (tmp_path / "other.csv").write_text("x\n1\n")
    before = sorted(tmp_path.iterdir())
    columns = {"x": {"type": "int", "min": 0, "max": 9}}
    dataset = Dataset(tmp_path / "declared.parquet", unit="row", columns=columns)
    with closing(DuckDB(dataset.tables.values())) as engine:
        connection = engine._connection
        with pytest.raises(duckdb.Error):
            connection.execute(text.format(tmp_path)).fetchall()
        assert connection.execute("SELECT COUNT(*) FROM gate.declared").fetchall() == [(2,)]
    assert sorted(tmp_path.iterdir()) == before


def nasty_session(plug: Plug) -> tuple[Session, list[dict[str, Any]]]:
    """All columns of query/nasty.py, full of nasty cells."""
    rows = nasty.raw_rows(120, seed=3)
    rng = random.Random(3)
    fields = {}
    for name, column in nasty.COLUMNS.items():
        whole = isinstance(column.type, Number)
        kind = nasty._ARROW[
            ("int" if whole else "text") if column.kind == "category" else column.kind
        ]
        fields[name] = pa.array([row[name] for row in rows], type=kind)
    fields["id"] = pa.array([rng.choice([1, 2, 3, None]) for _ in rows], pa.int64())
    seed = Dataset(
        pa.table(fields),
        unit="id",
        max_rows_per_group=3,
        max_groups=2,
        columns={},
        budget={"epsilon": 10**6, "delta": 0.1},
    )
    table = dataclasses.replace(seed.tables["data"], columns=nasty.COLUMNS)
    return Session(
        Dataset(
            tables={"data": table},
            budget={"epsilon": 10**6, "delta": 0.1},
            reserved_delta=Fraction(1, 100),
        ),
        engine=plug,
    ), rows


def _never_fails(seeds: Sequence[int], depth: int) -> int:
    plug = Plug()
    session, _ = nasty_session(plug)
    admitted = 0
    with session:
        for seed in seeds:
            make, rng = nasty.Expressions(seed), random.Random(seed)
            number = make.one("number", depth)
            bounded = tree.Call(
                "least", (tree.Call("greatest", (number, tree.Literal(-5))), tree.Literal(100))
            )
            key = rng.choice(
                [
                    make.one("truth", depth),
                    make.one("text", 1),
                    tree.Call("bucket", (bounded, tree.Literal(10))),
                ]
            )
            values: list[Any] = [
                tree.Aggregate("sum", (bounded,)),
                tree.Aggregate("avg", (make.one("truth", depth),)),
                tree.Aggregate("count", (make.one("day", 1),)),
                tree.Aggregate("quantile", (bounded,), Fraction(1, 2)),
            ]
            chosen = [key, *rng.sample(values, 2)]
            query = tree.Query(
                tree.Table("data"),
                tuple(tree.Output(f"o{i}", v) for i, v in enumerate(chosen)),
                make.one("truth", depth),
                (key,),
            )
            try:
                plan = session.preview(query, epsilon=1)
            except InvalidInput:
                continue
            plug.exact_groups(plan)
            admitted += 1
    return admitted


def test_no_cell_makes_an_admitted_question_fail() -> None:
    assert _never_fails(range(20), 2) > 12


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_cell_makes_an_admitted_question_fail_campaign(part: int) -> None:
    assert _never_fails(range(1000 + part * 100, 1100 + part * 100), 3) > 50


@pytest.mark.parametrize("end", [1e150, 1e300])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VARIANCE", "STDDEV_POP", "MEDIAN"])
def test_wide_bounds_are_planned_and_answered(aggregate: str, end: float) -> None:
    """What was charged for is answered, or refused before the charge."""
    table = pa.table({"y": [1.0, -end, end]})
    dataset = Dataset(
        table,
        unit="row",
        columns={"y": {"type": "float", "min": -end, "max": end}},
        budget={"epsilon": 10},
    )
    with Session(dataset) as session:
        try:
            str(session.preview(f"SELECT {aggregate}(y) AS v FROM data", epsilon=1))
        except InvalidInput:
            return
        str(session.sql(f"SELECT {aggregate}(y) AS v FROM data", epsilon=1))


def test_dates_at_the_ends_of_time() -> None:
    days = [date(1, 1, 1), date(9999, 12, 31), None]
    table = pa.table({"d": pa.array(days, pa.date32())})
    with Session(
        Dataset(table, unit="row", columns={"d": {"type": "date"}}, budget={"epsilon": 10})
    ) as session:
        for part in ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy"):
            session.sql(f"SELECT AVG(DATE_PART('{part}', d)) AS v FROM data", epsilon=1)
