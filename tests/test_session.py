"""Sessions: the whole line from a question to an answer, and what is charged for it."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sordino as so
from engine_plug import Plug
from sordino.engines.duckdb import DuckDB
from sordino.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidDeclaration,
    InvalidInput,
    LedgerMismatch,
    LedgerUnavailable,
    RequestRefused,
    SordinoError,
)
from sordino.ledger.receipt import Receipt
from sordino.query.aggregates.quantiles import noisy_quantiles
from sordino.query.dataset import Table
from sordino.release import noisy_groups
from tape import Tape, replay

COLUMNS: dict[str, dict[str, Any]] = {
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "text"},
    "age": {"type": "int", "min": 0, "max": 110},
    "cost": {"type": "float", "min": 0, "max": 5000, "step": 0.01},
    "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31"},
}


def rows(count: int = 3000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "pid": rng.integers(0, count // 3, count),
            "ward": rng.choice(["A", "B"], count),
            "city": rng.choice(["Bern", "Chur", "Thun"], count, p=[0.7, 0.2995, 0.0005]),
            "age": rng.integers(0, 100, count),
            "cost": np.round(rng.gamma(2, 300, count), 2),
            "day": np.datetime64("2024-01-01") + rng.integers(0, 366, count),
        }
    )


def regional(wards: list[str], regions: list[str]) -> dict[str, Any]:
    columns = {
        "ward": COLUMNS["ward"],
        "region": {"type": "category", "values": ["north", "south"]},
    }
    return {
        "source": pa.table({"ward": wards, "region": regions}),
        "public": True,
        "key": ["ward"],
        "columns": columns,
    }


def declared(table: pa.Table | None = None, **options: Any) -> so.Dataset:
    bounds = {
        "unit": "pid",
        "max_rows_per_group": 10,
        "max_groups": 2,
        "budget": so.Budget(10, 1e-6),
        **options,
    }
    regions = regional(["A", "B", "C"], ["north", "south", "south"])
    budget = bounds.pop("budget")
    visits = {"source": rows() if table is None else table, "columns": COLUMNS, **bounds}
    return so.Dataset(tables={"visits": visits, "regions": regions}, budget=budget)


@pytest.fixture(scope="module")
def plug() -> Plug:
    return Plug()


@pytest.fixture(scope="module")
def session(plug: Plug) -> so.Session:
    return so.Session(declared(budget=so.Budget(10_000, 1e-6)), engine=plug)


def test_answers_are_near_the_truth(session: so.Session) -> None:
    table = rows().to_pandas()
    sql = "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS c, STDDEV(age) AS d, MEDIAN(age) AS m, COUNT(DISTINCT pid) AS p"
    answer = session.sql(f"{sql} FROM visits", epsilon=500)
    assert answer.value("n") == pytest.approx(3000, abs=10)
    assert answer.value("s") == pytest.approx(table.age.sum(), rel=0.01)
    assert answer.value("c") == pytest.approx(table.cost.mean(), rel=0.02)
    assert answer.value("d") == pytest.approx(table.age.std(), rel=0.03)
    assert answer.value("m") == pytest.approx(table.age.median(), abs=2)
    assert answer.value("p") == pytest.approx(table.pid.nunique(), abs=5)


def test_sql_and_python_ask_the_same(session: so.Session) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age >= 65 GROUP BY ward"
    question = (
        session.table("visits")
        .where("age >= 65")
        .group_by("ward")
        .agg(n=so.count(), cost=so.mean("cost"))
    )
    with replay(Tape(3)):
        first = session.sql(sql, epsilon=1).to_dict()
    with replay(Tape(3)):
        second = question.run(epsilon=1).to_dict()
    assert first == second
    assert str(session.preview(sql, epsilon=1)) == str(question.preview(epsilon=1))


def test_every_public_key_is_answered(session: so.Session) -> None:
    answer = session.sql(
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age < 0 GROUP BY ward", epsilon=1
    )
    assert answer["ward"] == ["A", "B", "C"]
    answer = session.sql(
        "SELECT BUCKET(age, 50) AS b, COUNT(*) AS n FROM visits GROUP BY b", epsilon=1
    )
    assert answer["b"] == [0, 50, 100]
    answer = session.sql(
        "SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) AS n FROM visits GROUP BY q", epsilon=1
    )
    assert [str(q) for q in answer["q"]] == ["2024-01-01", "2024-04-01", "2024-07-01", "2024-10-01"]
    answer = session.sql(
        "SELECT COALESCE(ward, 'none') AS w, COUNT(*) AS n FROM visits GROUP BY w", epsilon=1
    )
    assert answer["w"] == ["A", "B", "C", "none"]
    answer = session.sql(
        "SELECT ward, age >= 50 AS old, COUNT(*) AS n FROM visits GROUP BY ward, old", epsilon=1
    )
    assert len(answer) == 6


def test_private_keys_are_selected(session: so.Session) -> None:
    answer = session.sql(
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY city", epsilon=5
    )
    assert answer["city"] == ["Bern", "Chur"]


def test_no_private_key_at_all() -> None:
    with so.Session(declared(rows(0))) as empty:
        answer = empty.sql(
            "SELECT city, COUNT(*) AS n, MEDIAN(age) AS m FROM visits GROUP BY city", epsilon=1
        )
        assert len(answer) == 0
        assert answer.to_arrow().num_rows == 0
        assert "n" in str(answer)


def test_an_empty_table_is_answered_like_any_other() -> None:
    sql = "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(cost) AS c, STDDEV(age) AS d, MEDIAN(age) AS m FROM visits"
    with so.Session(declared(rows(0))) as empty:
        row = empty.sql(sql, epsilon=1).rows()[0]
        assert isinstance(row["n"], int)
        assert isinstance(row["c"], float)
        assert abs(row["n"]) < 10_000
        assert 0 <= row["c"] <= 5000
        assert empty.remaining.pure == 9


def test_having_order_and_limit_see_noisy_numbers_only(session: so.Session) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 500 ORDER BY n DESC LIMIT 1"
    answer = session.sql(sql, epsilon=1)
    assert len(answer) == 1
    with replay(Tape(9)):
        full = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1).rows()
    with replay(Tape(9)):
        one = session.sql(sql, epsilon=1).rows()
    assert one == sorted((row for row in full if row["n"] > 500), key=lambda row: -row["n"])[:1]  # type: ignore[operator]


def test_having_keeps_groups_that_are_empty_or_small(session: so.Session) -> None:
    """Which groups are shown depends on the noisy numbers alone: ward C has no rows, and may be shown all the same."""
    every = session.sql(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > -100000", epsilon=1
    )
    assert every["ward"] == ["A", "B", "C"]
    shown = set()
    for seed in range(20):
        with replay(Tape(seed)):
            full = session.sql(
                "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1
            ).rows()
        with replay(Tape(seed)):
            some = session.sql(
                "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 0", epsilon=1
            ).rows()
        assert some == [row for row in full if row["n"] > 0]  # type: ignore[operator]
        shown.add(len(some))
    assert shown == {2, 3}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_every_number_gets_the_noise_of_its_own_channel(
    session: so.Session, plug: Plug, mechanism: Any
) -> None:
    """What becomes of the exact sums is what the channel's mechanism releases next, for every group and coordinate."""
    sql = "SELECT ward, COUNT(*) AS n, AVG(age) AS a, STDDEV(cost) AS c, COUNT(DISTINCT pid) AS p FROM visits GROUP BY ward"
    plan = session.preview(sql, epsilon=1, mechanism=mechanism)
    groups = plug.exact_groups(plan)
    with replay(Tape(8)):
        noisy = noisy_groups(groups, plan)
    with replay(Tape(8)):
        mechanisms = {
            release.name: release.mechanism
            for release in plan.sums
            if release.mechanism is not None
        }
        released = {name: m.release(groups.vectors[name].ravel()) for name, m in mechanisms.items()}
    assert released.keys() == groups.vectors.keys() == {"s0", "s1", "s2"}
    for name, own in released.items():
        assert noisy.vectors[name].ravel().tolist() == own.tolist()
    assert len({x for own in released.values() for x in own.tolist()}) > 10


@pytest.mark.parametrize("grouped", ["", " GROUP BY ward"])
def test_quantiles_are_drawn_at_the_rate_that_is_charged(
    session: so.Session, grouped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All weight that a person moves, times the loss of a unit of it,
    is the epsilon of the column; and draws do vary.
    """
    asked: list[dict[str, Any]] = []

    def seen(*cells: Any, **given: Any) -> Any:
        asked.append(given)
        return noisy_quantiles(*cells, **given)

    sql = f"SELECT MEDIAN(age) AS m, QUANTILE(age, 0.9) AS q, COUNT(*) AS n FROM visits{grouped}"
    plan = session.preview(sql, epsilon=Fraction(1, 50), bias=False)
    with monkeypatch.context() as patch:
        patch.setattr("sordino.session.rehearse", lambda *_: None)
        patch.setattr("sordino.query.aggregates.quantile_column.noisy_quantiles", seen)
        session.sql(sql, epsilon=Fraction(1, 50), bias=False)
    assert len(asked) == (3 if grouped else 1)
    for given in asked:
        assert given["rate"] * plan.drawn[0].moved == plan.drawn[0].epsilon == Fraction(1, 100)
    medians = {
        session.sql("SELECT MEDIAN(age) FROM visits", epsilon=Fraction(1, 1000)).value()
        for _ in range(20)
    }
    assert len(medians) > 3


def test_selected_keys_come_in_an_order_of_their_own() -> None:
    """Not in that of the rows, nor in that in which the engine finds them."""
    cities = [f"city {i * 37 % 101:03}" for i in range(101)]
    table = pa.table({"pid": range(101 * 60), "city": [city for _ in range(60) for city in cities]})
    for rows_in_order in (table, table.take(pa.array(range(len(table) - 1, -1, -1)))):
        data = so.Dataset(rows_in_order, name="t", unit="pid", max_rows_per_group=1, max_groups=1,
                          columns={"city": {"type": "text"}}, budget=so.Budget(10, 1e-6))  # fmt: skip
        with so.Session(data) as fresh:
            assert fresh.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=5)[
                "city"
            ] == sorted(cities)


def test_public_lookups(session: so.Session) -> None:
    sql = "SELECT region, COUNT(*) AS n FROM visits JOIN regions ON visits.ward = regions.ward GROUP BY region"
    answer = session.sql(sql, epsilon=200)
    truth = rows().to_pandas().ward.value_counts()
    assert answer["region"] == ["north", "south"]
    assert answer["n"][0] == pytest.approx(truth["A"], abs=5)
    question = (
        session.table("visits").join("regions", on="ward").group_by("region").agg(n=so.count())
    )
    assert (
        question.query
        == session.table("visits")
        .join("regions", on="ward")
        .group_by("region")
        .agg(n=so.count())
        .query
    )
    exact = session.sql(
        "SELECT region, COUNT(*) AS n, MEDIAN(ward = 'A') AS m FROM regions GROUP BY region",
        epsilon=1,
    )
    assert exact["n"] == [1, 2] == exact["n_low"] == exact["n_high"]


def test_a_public_table_with_repeated_keys_multiplies_no_row() -> None:
    data = declared()
    doubled = regional(["A", "A", "B"], ["north", "south", "south"])
    data = so.Dataset(
        tables={"visits": data.tables["visits"], "regions": doubled}, budget=so.Budget(1000, 1e-6)
    )
    with so.Session(data) as session:
        sql = "SELECT COUNT(*) AS n FROM visits JOIN regions ON visits.ward = regions.ward"
        assert session.sql(sql, epsilon=500).value() == pytest.approx(3000, abs=5)


def test_spending_is_exact_and_refused_when_it_no_longer_fits() -> None:
    with so.Session(declared(budget=so.Budget(1))) as session:
        for i in range(10):
            assert session.fits("SELECT COUNT(*) FROM visits", epsilon=Fraction(1, 10)) == 10 - i
            session.sql("SELECT COUNT(*) FROM visits", epsilon=Fraction(1, 10))
        assert session.remaining.pure == 0
        assert len(session.receipts) == 10
        with pytest.raises(BudgetExceeded, match="is left"):
            session.sql("SELECT COUNT(*) FROM visits", epsilon=Fraction(1, 10))
        assert len(session.receipts) == 10


def test_previews_and_refusals_are_free_and_read_nothing() -> None:
    plug = Plug()
    with so.Session(declared(), engine=plug) as fresh:
        fresh.preview("SELECT city, COUNT(*) FROM visits GROUP BY city", epsilon=1)
        bad: list[dict[str, Any]] = [
            {"query": "SELECT COUNT(*) FROM visits", "epsilon": -1},
            {"query": "SELECT SUM(city) FROM visits", "epsilon": 1},
            {"query": "SELECT * FROM visits", "epsilon": 1},
            {"query": "SELECT COUNT(*) FROM visits", "epsilon": 1000},
            {
                "query": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING m > 1",
                "epsilon": 1,
            },
        ]
        for arguments in bad:
            with pytest.raises(SordinoError):
                fresh.sql(**arguments)
        assert plug.runs == []
        assert fresh.remaining.pure == 10
        assert fresh.receipts == ()


def test_whatever_fails_after_the_charge_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("token-4711")

    monkeypatch.setattr("sordino.session.release", broken)
    with so.Session(declared()) as fresh:
        with pytest.raises(EngineFailed) as failure:
            fresh.sql("SELECT COUNT(*) FROM visits", epsilon=1)
        assert failure.value.__context__ is failure.value.__cause__ is None
        assert "token" not in str(failure.value)
        assert fresh.remaining.pure == 9


def test_post_processing_is_declared(session: so.Session) -> None:
    answer = session.sql(
        "SELECT COUNT(*) AS n FROM visits WHERE age < 0", epsilon=Fraction(1, 100), nonnegative=True
    )
    value, low = answer.value("n"), answer["n_low"][0]
    assert isinstance(value, int)
    assert value >= 0
    assert low >= 0  # type: ignore[operator]
    assert any("zero" in note for note in answer.notes)


def test_the_answer_says_what_is_promised(session: so.Session) -> None:
    answer = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=Fraction(1, 5))
    assert "every pid (epsilon = 0.2)" in answer.privacy
    assert "is in the table or not" in answer.privacy
    assert isinstance(answer.receipt, Receipt)
    assert answer.receipt.charge.pure == Fraction(1, 5)
    with so.Session(declared(neighbors="replace")) as replacing:
        assert (
            "entirely different" in replacing.sql("SELECT COUNT(*) FROM visits", epsilon=1).privacy
        )


def test_persons_without_a_name_are_dropped() -> None:
    table = pa.table({"pid": pa.array([None, None, 7], pa.int64()), "ward": ["A", "A", "B"]})
    data = so.Dataset(
        table,
        name="visits",
        unit="pid",
        max_rows_per_group=5,
        columns={"ward": COLUMNS["ward"]},
        budget=so.Budget(1000),
    )
    with so.Session(data) as session:
        assert session.sql("SELECT COUNT(*) FROM visits", epsilon=500).value() == 1


def test_sessions_need_a_dataset_and_a_budget() -> None:
    with pytest.raises(InvalidInput, match=r"Pass so\.Dataset\.load"):
        so.Session("visits.toml")  # type: ignore[arg-type]
    data = so.Dataset(rows(), name="visits", unit="row", columns=COLUMNS)
    with pytest.raises(InvalidDeclaration, match="budget"):
        so.Session(data)
    with so.Session(data, so.Budget(1, 1e-6)) as session:
        assert session.remaining.pure == 1
        assert "Session(visits" in repr(session)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_intervals_cover_the_bounded_truth(mechanism: Any) -> None:
    """The end-to-end coverage of many groups: each interval holds its exact number at least 95 % of the time."""
    rng = np.random.default_rng(2)
    size = 4000
    table = pa.table({"k": rng.integers(0, 400, size), "x": rng.integers(0, 11, size)})
    columns = {
        "k": {"type": "int", "min": 0, "max": 399},
        "x": {"type": "int", "min": 0, "max": 10},
    }
    data = so.Dataset(table, name="t", unit="row", columns=columns, budget=so.Budget(1000, 1e-6))
    truth = table.to_pandas().groupby("k").x.agg(["count", "sum", "mean"]).reindex(range(400))
    with so.Session(data) as session, replay(Tape(4)):
        covered = {"n": 0, "s": 0, "m": 0}
        for _ in range(5):
            answer = session.sql(
                "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY k",
                epsilon=2,
                mechanism=mechanism,
            )
            for name, exact in (("n", "count"), ("s", "sum"), ("m", "mean")):
                low, high, true = (
                    np.array(answer[f"{name}_low"], float),
                    np.array(answer[f"{name}_high"], float),
                    truth[exact].to_numpy(),
                )
                covered[name] += int(
                    ((low <= true + 1e-9) & (true <= high + 1e-9))[~np.isnan(true)].sum()
                )
    total = 5 * int((~truth["mean"].isna()).sum())
    for name, hits in covered.items():
        assert hits / total > 0.95 - 3 * np.sqrt(0.95 * 0.05 / total), name


DECLARATION = """
[budget]
epsilon = 1
[tables.people]
source = "people.csv"
unit = "row"
[tables.people.columns]
age = { type = "int", min = 0, max = 110 }
"""
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def people(tmp_path: Path) -> so.Dataset:
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, range(100))) + "\n")
    (tmp_path / "people.toml").write_text(DECLARATION)
    return so.Dataset.load(tmp_path / "people.toml")


def test_a_budget_outlives_its_session(people: so.Dataset, tmp_path: Path) -> None:
    with so.Session(people) as session:
        session.sql(COUNT, epsilon=Fraction(3, 4))
    assert (tmp_path / "people.ledger").exists()
    with so.Session(people) as session:
        assert session.remaining.pure == Fraction(1, 4)
        with pytest.raises(BudgetExceeded):
            session.sql(COUNT, epsilon=Fraction(1, 2))


def test_the_same_request_is_drawn_once(people: so.Dataset) -> None:
    with so.Session(people) as session:
        first = session.sql(COUNT, epsilon=1, request_id="r")
    with so.Session(people) as session:  # nothing is left, and nothing is needed
        again = session.sql("select  count(*) n FROM people", epsilon=1, request_id="r")
        asked = session.table("people").agg(n=so.count()).run(epsilon=1, request_id="r")
        assert first.to_json() == again.to_json() == asked.to_json()
        assert first.receipt == again.receipt
        for other in ({"epsilon": 0.5}, {"epsilon": 1, "confidence": 0.9}, {"error": 5}):
            with pytest.raises(RequestRefused, match="stands for another question"):
                session.sql(COUNT, request_id="r", **other)
        assert len(session.receipts) == 1


def _raised(error: type[BaseException], _: object) -> None:
    raise error


def test_a_failing_query_forfeits_its_charge(people: so.Dataset) -> None:
    plug = Plug()
    with so.Session(people, engine=plug) as session:
        for error, seen in ((RuntimeError, EngineFailed), (KeyboardInterrupt, KeyboardInterrupt)):
            plug.before = partial(_raised, error)
            with pytest.raises(seen):
                session.sql(COUNT, epsilon=Fraction(1, 4), request_id=seen.__name__)
            plug.before = lambda _: None
            with pytest.raises(RequestRefused, match="its query failed"):
                session.sql(COUNT, epsilon=Fraction(1, 4), request_id=seen.__name__)
        assert session.remaining.pure == Fraction(1, 2)
        assert [payment.status for payment in session.ledger.payments] == ["forfeited", "forfeited"]
        assert session.ledger.verify()


def test_an_answer_that_could_not_be_stored_is_not_shown(
    people: so.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again it would be drawn anew."""
    with so.Session(people) as session:
        with monkeypatch.context() as patch:
            failed = LedgerUnavailable("here", "the disk is full", "Make room.")
            patch.setattr(session.ledger, "store", lambda *_: (_ for _ in ()).throw(failed))
            with pytest.raises(LedgerUnavailable):
                session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r")
        with pytest.raises(RequestRefused, match="has no answer"):
            session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r")
        assert session.remaining.pure == Fraction(3, 4)


def test_analysts_have_their_parts(people: so.Dataset) -> None:
    with so.Session(people, analyst="ana") as session:
        session.ledger.allot("ana", so.Budget(Fraction(1, 2)))
        assert session.fits(COUNT, epsilon=Fraction(1, 4)) == 2
        session.sql(COUNT, epsilon=Fraction(1, 2))
        with pytest.raises(BudgetExceeded):
            session.sql(COUNT, epsilon=Fraction(1, 4))
    with so.Session(people) as session, pytest.raises(InvalidInput, match="there is none for them"):
        session.sql(COUNT, epsilon=Fraction(1, 4))
    for analyst in (5, "", " a", "a\nb"):
        with pytest.raises(InvalidInput, match="analyst"):
            so.Session(people, analyst=analyst)  # type: ignore[arg-type]


def test_another_budget_than_the_recorded_one_is_refused(people: so.Dataset) -> None:
    so.Session(people).close()
    with pytest.raises(LedgerMismatch, match="sordino budget set"):
        so.Session(people, so.Budget(2))


def test_another_ledger_may_be_given(people: so.Dataset, tmp_path: Path) -> None:
    with so.Session(people, ledger=tmp_path / "elsewhere.ledger") as session:
        assert session.ledger.place == str((tmp_path / "elsewhere.ledger").resolve())
    for wrong in (5, b"x", "a\0b", ""):
        with pytest.raises(InvalidInput):
            so.Session(people, ledger=wrong)  # type: ignore[arg-type]


def test_a_query_can_be_stopped(people: so.Dataset) -> None:
    with so.Session(people) as session:
        session.interrupt()  # nothing runs, so nothing happens
        assert session.progress is None
        assert session.sql(COUNT, epsilon=Fraction(1, 2)).value() is not None


def test_an_answer_that_was_paid_for_stays_within_reach(people: so.Dataset) -> None:
    """Also for one who has no sub-budget, now that others have."""
    with so.Session(people) as session:
        first = session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r")
        session.ledger.allot("ana", so.Budget(Fraction(1, 2)))
    with so.Session(people) as session:
        assert (
            session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r").to_json() == first.to_json()
        )


def test_a_closed_session_charges_nothing(people: so.Dataset) -> None:
    session = so.Session(people)
    session.close()
    session.close()
    with pytest.raises(SordinoError, match="closed"):
        session.sql(COUNT, epsilon=Fraction(1, 4))
    with so.Session(people) as other:
        assert other.receipts == ()


def test_closing_stops_other_threads_before_they_are_charged(people: so.Dataset) -> None:
    budget = so.Dataset(people.tables["people"].source.path, name="people", unit="row", budget={"epsilon": 1000},
                        columns={"age": {"type": "int", "min": 0, "max": 110}}, ledger=people.file.parent / "many.ledger")  # type: ignore[union-attr]  # fmt: skip
    session = so.Session(budget)
    started, ended = threading.Barrier(4), []

    def ask() -> None:
        session.sql(COUNT, epsilon=Fraction(1, 100))
        started.wait(60)
        try:
            while True:
                session.sql(COUNT, epsilon=Fraction(1, 100))
        except SordinoError as error:
            ended.append(type(error).__name__)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait(60)
    session.close()
    for thread in threads:
        thread.join(60)
    assert len(ended) == 3
    with so.Session(budget) as other:
        charged = len(other.receipts)
        assert other.ledger.verify()
    with pytest.raises(SordinoError):
        session.sql(COUNT, epsilon=Fraction(1, 100))
    with so.Session(budget) as other:
        assert len(other.receipts) == charged


def test_a_forked_child_is_refused_before_it_is_charged(people: so.Dataset) -> None:
    with so.Session(people) as session:
        first = session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                session.sql(COUNT, epsilon=Fraction(1, 4), request_id="child")
            except InvalidInput:
                # what is stored needs no engine
                again = session.sql(COUNT, epsilon=Fraction(1, 4), request_id="r")
                code = 0 if again.to_json() == first.to_json() else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(session.receipts) == 1


def test_a_forked_child_is_refused_before_it_plans(
    people: so.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans import: a child that was forked amid an import of another thread waited for it for ever."""
    with so.Session(people) as session:
        monkeypatch.setattr(so.Session, "_plan", lambda *_: os._exit(3))
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                session.sql(COUNT, epsilon=Fraction(1, 4))
            except InvalidInput:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_session_that_nobody_closes_leaves_no_folder(people: so.Dataset) -> None:
    folders: list[Path] = []

    def opened(tables: Sequence[Table]) -> DuckDB:
        engine = DuckDB(tables)
        folders.append(engine._scratch.path)
        return engine

    session = so.Session(people, engine=opened)
    (folder,) = folders
    assert folder.exists()
    del session
    gc.collect()
    assert not folder.exists()


def test_sessions_of_analysts_share_engine_ledger_and_public_tables() -> None:
    with so.Session(declared(budget=so.Budget(2))) as session:
        session.ledger.allot("ana", so.Budget(1))
        session.ledger.allot("bob", so.Budget(Fraction(1, 2)))
        ana, bob = session.as_analyst("ana"), session.as_analyst("bob")
        assert (ana._engine, ana.ledger, ana._public) == (
            session._engine,
            session.ledger,
            session._public,
        )
        first = ana.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5, request_id="mine")
        second = bob.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5, request_id="mine")
        assert (
            ana.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5, request_id="mine").to_json()
            == first.to_json()
        )
        assert second.receipt != first.receipt
        assert [ana.remaining.pure, bob.remaining.pure] == [Fraction(1, 2), Fraction(0)]
        with pytest.raises(so.errors.BudgetExceeded):
            bob.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.25)
        with pytest.raises(so.errors.InvalidInput, match="sub-budgets"):
            session.as_analyst("eve").sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.25)
        bob.close()
        with pytest.raises(so.errors.InvalidInput, match="closed session"):
            bob.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.25)
        # one who leaves takes nothing away
        ana.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.25)
        assert {receipt.analyst for receipt in session.receipts} == {"ana", "bob"}
    with pytest.raises(so.errors.InvalidInput, match="closed session"):
        ana.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.25)
    with pytest.raises(so.errors.InvalidInput, match="closed session"):
        ana.as_analyst("bob")


def test_what_runs_past_its_deadline_is_stopped_and_forfeited(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    people = np.arange(2_000_000)  # on any machine more than some milliseconds of work
    table = pa.table({"who": people * 7919 % 1_000_003, "age": people % 90})
    pq.write_table(table, tmp_path / "people.parquet")
    age = {"type": "int", "min": 0, "max": 110}
    data = so.Dataset(
        tmp_path / "people.parquet",
        unit="who",
        columns={"age": age},
        max_rows=3,
        budget={"epsilon": 9},
    )
    question = "SELECT age, COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) AS m FROM people GROUP BY age"
    with so.Session(data, ledger=tmp_path / "l", deadline=0.01) as session:
        began = time.monotonic()
        with pytest.raises(so.errors.EngineFailed):
            session.sql(question, epsilon=1, request_id="late")
        assert time.monotonic() - began < 3
        (payment,) = session.ledger.payments
        assert payment.status == "forfeited"
        statement = session.preview("SELECT MEDIAN(age) AS m FROM people", epsilon=1).statements[0]
        with pytest.raises(so.errors.EngineFailed):
            session._engine.run(statement, 0.003)
        session.deadline = 60  # what was stopped hurts nobody later
        assert session.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)["n"]
    for wrong in (0, -1, "1", True, float("nan")):
        with pytest.raises(so.errors.InvalidInput, match="deadline"):
            so.Session(data, deadline=wrong)  # type: ignore[arg-type]
