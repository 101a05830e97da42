"""`Session.suggest`: charged first, stored and given again,
refused before anything is spent; its lines can be declared.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from sordino.answer.suggestion import Suggestion
from sordino.errors import BudgetExceeded, EngineFailed, InvalidInput, RequestRefused
from sordino.query.types import Number
from tape import Tape, replay

RNG = np.random.default_rng(5)
N = 6000
TABLE = pa.table(
    {
        "p": np.arange(N) // 3,
        "cost": RNG.lognormal(4, 1, N),
        "share": RNG.integers(0, 41, N) / 4,
        "age": RNG.integers(18, 90, N),
        "ward": RNG.choice(list("ABC"), N),
        "city": RNG.choice(["Bern", "Thun"], N),
        "day": [date(2015, 1, 1) + timedelta(days=int(d)) for d in RNG.integers(0, 2000, N)],
        "seen": [datetime(2015, 1, 1) + timedelta(hours=int(h)) for h in RNG.integers(0, 40000, N)],
        "zoned": pa.array([datetime(2015, 1, 1)] * N, pa.timestamp("us", "UTC")),
    }
)
COLUMNS: dict[str, Any] = {
    "cost": {"type": "float"},
    "share": {"type": "float", "step": 0.25, "nullable": False},
    "age": {"type": "int"},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "day": {"type": "date"},
    "seen": {"type": "datetime"},
    "zoned": {"type": "datetime", "zone": "Europe/Berlin"},
}


def data(unit: str = "p", epsilon: float = 100, **more: Any) -> so.Dataset:
    return so.Dataset(
        TABLE, unit=unit, columns=COLUMNS, budget=so.Budget(epsilon, 1e-6), name="visits", **more
    )


@pytest.fixture(scope="module")
def session() -> Iterator[so.Session]:
    with so.Session(data()) as opened:
        yield opened


def test_it_is_charged_once_and_given_again(session: so.Session) -> None:
    before = session.remaining.pure or 0
    first = session.suggest("visits", epsilon=4, keys=["ward"], request_id="a")
    assert before - (session.remaining.pure or 0) == 4
    assert session.suggest("VISITS", epsilon=4, keys=["ward"], request_id="a") == first
    assert before - (session.remaining.pure or 0) == 4
    assert first.receipt is not None
    assert first.receipt.charge.pure == 4
    with pytest.raises(RequestRefused):
        session.suggest("visits", epsilon=5, keys=["ward"], request_id="a")
    with pytest.raises(RequestRefused):
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1, request_id="a")


def test_what_is_found_is_useful_and_its_lines_load(tmp_path: Path, session: so.Session) -> None:
    with replay(Tape(4)):
        found = session.suggest(epsilon=20, keys=["ward", "city"])
    assert list(found.bounds) == [
        "max_rows",
        "max_groups",
        "max_rows_per_group",
        "cost",
        "share",
        "age",
        "day",
        "seen",
        "zoned",
    ]
    assert 3 <= found.bounds["max_rows"] <= 6
    assert 2 <= found.bounds["max_groups"] <= 6
    assert all(one.held for one in found.found)
    low, high = found.bounds["age"]
    assert -20 <= low <= 25
    assert 80 <= high <= 130
    first, last = found.bounds["day"]
    assert date(2000, 1, 1) <= first <= date(2016, 1, 1)
    assert date(2019, 1, 1) <= last <= date(2040, 12, 31)
    pq.write_table(TABLE, tmp_path / "visits.parquet")
    text = '[budget]\nepsilon = 1\n[tables.visits]\nsource = "visits.parquet"\nunit = "p"\n'
    rest = found.toml.removeprefix("[tables.visits]\n")
    declared = {
        name: entry["type"]
        for name, entry in tomllib.loads(found.toml)["tables"]["visits"]["columns"].items()
    }
    assert declared == {name: COLUMNS[name]["type"] for name in declared}
    (tmp_path / "visits.toml").write_text(text + rest)
    loaded = so.Dataset.load(tmp_path / "visits.toml").tables["visits"]
    assert loaded.bounds.rows == found.bounds["max_rows"]
    assert loaded.columns["zoned"].zone == "Europe/Berlin"
    share = loaded.columns["share"].type
    assert isinstance(share, Number)
    assert not share.nullable


def test_it_says_what_error_a_later_question_would_have(session: so.Session) -> None:
    found = session.suggest(epsilon=5, columns=["age"], query_epsilon=0.5)
    rows, age = found.found
    later = so.Dataset(
        TABLE, unit="p", max_rows=found.bounds["max_rows"], budget=so.Budget(1), name="visits",
        columns={"age": dict(zip(("type", "min", "max"), ("int", *map(int, found.bounds["age"])), strict=True))},
    )  # fmt: skip
    with so.Session(later) as asked:
        plan = asked.preview("SELECT COUNT(*) AS n FROM visits", epsilon=0.5, bias=False)
        assert plan.errors()["n"] == pytest.approx(dict(rows.errors)["COUNT(*)"], rel=0.02, abs=1)
        plan = asked.preview("SELECT SUM(age) AS s FROM visits", epsilon=0.5, bias=False)
        assert plan.errors()["s"] == pytest.approx(dict(age.errors)["SUM(age)"], rel=0.02)


def test_rows_that_are_persons_have_columns_only() -> None:
    with so.Session(data("row", neighbors="replace")) as session:
        found = session.suggest(epsilon=2, columns=["cost"])
        assert list(found.bounds) == ["cost"]
        assert [what for what, _ in found.found[0].errors] == ["SUM(cost)", "AVG(cost)"]
        with pytest.raises(InvalidInput, match="one group"):
            session.suggest(epsilon=1, keys=["ward"])


def test_it_reads_back_as_it_was(session: so.Session) -> None:
    found = session.suggest(epsilon=3)
    assert Suggestion.from_json(found.to_json(), found.receipt) == found
    assert str(found).startswith(
        "# Suggested for visits; errors are those of questions at epsilon 10."
    )
    assert "epsilon = 3" in found.privacy


def test_too_little_to_find_anything_is_said() -> None:
    few = so.Dataset(
        TABLE.slice(0, 6),
        unit="row",
        columns={"cost": {"type": "float"}},
        budget=so.Budget(1),
        name="visits",
    )
    with so.Session(few) as session, replay(Tape(6)):
        found = session.suggest(epsilon=0.001)
    assert "TOO UNCERTAIN" in str(found)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": 1, "query_epsilon": 0}, "query_epsilon=0"),
        ({"epsilon": 1, "columns": ["cots"]}, "Did you mean 'cost'"),
        ({"epsilon": 1, "columns": "cost"}, "list of names"),
        ({"epsilon": 1, "columns": ["cost", "COST"]}, "twice"),
        ({"epsilon": 1, "columns": ["ward"]}, "numbers and dates"),
        ({"epsilon": 1, "keys": "ward"}, "list"),
        ({"epsilon": 1, "keys": ["wrad"]}, "Did you mean 'ward'"),
        ({"epsilon": 1, "keys": ["age"]}, "public"),
        ({"epsilon": 1, "keys": [3]}, "column name"),
        ({"table": "vists", "epsilon": 1}, "Did you mean 'visits'"),
        ({"table": 7, "epsilon": 1}, "named by a text"),
    ],
)
def test_bad_input_costs_nothing(session: so.Session, asked: dict[str, Any], words: str) -> None:
    before = session.remaining
    with pytest.raises(InvalidInput, match=words):
        session.suggest(**asked)
    with pytest.raises(InvalidInput, match=words):
        session.preview_suggest(**asked)
    assert session.remaining == before


def test_a_bad_request_id_costs_nothing(session: so.Session) -> None:
    before = session.remaining
    with pytest.raises(InvalidInput, match="request_id"):
        session.suggest(epsilon=1, request_id="")
    assert session.remaining == before


def test_a_preview_reads_nothing_and_says_what_would_be_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, Any] = {
        "epsilon": 2,
        "keys": ["ward"],
        "columns": ["cost", "day"],
        "query_epsilon": 0.5,
    }
    with so.Session(data(epsilon=8)) as session:
        with monkeypatch.context() as closed:
            closed.setattr(session._engine, "run", lambda _: pytest.fail("data were read"))
            plan = session.preview_suggest(**asked)
            refused = session.preview_suggest(epsilon=90)
        assert not session.receipts
        found = session.suggest(**asked)
        charged = session.receipts[0].charge
        assert charged.pure == plan.charge.pure == 2
        assert float(charged.mu_squared or 0) == pytest.approx(float(plan.charge.mu_squared or 0))
        assert [one.search.what for one in plan.searched] == [one.name for one in found.found]
        assert [one.margin for one in plan.searched] == [one.margin for one in found.found]
    told = str(plan)
    for line in ("Suggestion for visits", "protects     each p,", "finds        max_rows, for epsilon 0.4; numbers of",
                 "max_rows_per_group by ward, for epsilon 0.4", "limits of cost, for epsilon 0.4", "limits of day",
                 "later questions at epsilon 0.5", "private with epsilon 2", "11.13 % of the budget",
                 "8 answers like this one fit"):  # fmt: skip
        assert line in told, told
    assert "it does not fit" in str(refused)


def test_tables_that_need_no_suggestion_are_refused() -> None:
    code = pa.table({"code": [1, 2]})
    public = {"source": code, "public": True, "columns": {"code": {"type": "int"}}}
    limited = {
        "source": TABLE,
        "unit": "row",
        "columns": {"age": {"type": "int", "min": 0, "max": 110}},
    }
    other = {"source": TABLE, "unit": "p", "columns": {"age": {"type": "int"}}}
    with so.Session(
        so.Dataset(tables={"codes": public, "a": limited, "b": other}, budget=so.Budget(1))
    ) as session:
        for table, words in (("codes", "public"), ("a", "limits already"), (None, "protects 2")):
            with pytest.raises(InvalidInput, match=words):
                session.suggest(table, epsilon=0.1)
        assert session.remaining.pure == 1
        assert list(session.suggest("a", epsilon=0.1, columns=["age"]).bounds) == ["age"]


def test_the_budget_is_kept_and_nothing_is_read_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with so.Session(data(epsilon=1)) as session:
        run, calls = session._engine.run, []

        def counted(statement: Any) -> Any:
            calls.append(len(session.receipts))
            return run(statement)

        monkeypatch.setattr(session._engine, "run", counted)
        with pytest.raises(BudgetExceeded):
            session.suggest(epsilon=1.5)
        assert not calls
        session.suggest(epsilon=1)
        assert not session.remaining.pure
        assert calls
        assert set(calls) == {1}


def test_a_failure_after_the_charge_is_forfeited_with_a_fixed_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with so.Session(data(epsilon=1)) as session:

        def fails(statement: object) -> object:
            raise ValueError(f"secret {statement}")

        monkeypatch.setattr(session._engine, "run", fails)
        with pytest.raises(EngineFailed) as caught:
            session.suggest(epsilon=0.5, request_id="x")
        assert "secret" not in str(caught.value)
        assert session.remaining.pure == Fraction(1, 2)
        with pytest.raises(RequestRefused):
            session.suggest(epsilon=0.5, request_id="x")


def test_persons_through_a_parent_table() -> None:
    orders = pa.table({"id": np.arange(600), "buyer": np.arange(600) // 2})
    lines = pa.table({"order_id": np.repeat(np.arange(600), 2), "price": RNG.uniform(0, 20, 1200)})
    tables: dict[str, Any] = {
        "orders": {"source": orders, "unit": "buyer", "columns": {"id": {"type": "int"}}},
        "lines": {
            "source": lines,
            "via": {"order_id": "orders.id"},
            "columns": {"price": {"type": "float"}},
        },
    }
    with so.Session(so.Dataset(tables=tables, budget=so.Budget(50))) as session, replay(Tape(7)):
        found = session.suggest("lines", epsilon=30)
    assert 4 <= found.bounds["max_rows"] <= 6
    assert list(found.bounds) == ["max_rows", "price"]
