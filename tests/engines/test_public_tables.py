"""What public tables hold is as public as a declaration: keys without selection, bounds that nobody declared."""

from __future__ import annotations

import random
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sordino as so
from engine_plug import Plug
from first_of import first_of
from sordino.audit.replayed.distances import exactly, moved
from sordino.engines import public_tables
from sordino.errors import EngineFailed, InvalidInput
from sordino.plan import keys
from sordino.query.types import Day, Number, Text

NAMES = [f"Airline {i}" for i in range(16)]
CODES = [chr(65 + i) for i in range(16)]
COLUMNS: dict[str, dict[str, Any]] = {
    "carrier": {"type": "text"},
    "name": {"type": "text"},
    "country": {"type": "text"},
    "founded": {"type": "int"},
    "size": {"type": "float"},
    "since": {"type": "date"},
}


def airlines() -> pa.Table:
    return pa.table({
        "carrier": CODES, "name": NAMES, "country": ["US" if i % 4 else None for i in range(16)],
        "founded": [1900 + 7 * i for i in range(16)], "size": [1.5 * i for i in range(16)],
        "since": [date(2000 + i, 1, 1) for i in range(16)],
    })  # fmt: skip


def flights(seed: int = 1, without: int | None = None) -> pa.Table:
    chance = random.Random(seed)
    planes = [plane for plane in range(60) for _ in range(chance.randrange(9))]
    rows = [(plane, chance.choice([*CODES[:5], "??", None])) for plane in planes]
    kept = [row for row in rows if row[0] != without]
    return pa.table({"plane": [p for p, _ in kept], "carrier": [c for _, c in kept]})


def dataset(rows: pa.Table | None = None, public: Any = None, **more: Any) -> so.Dataset:
    columns = more.pop("columns", COLUMNS)
    return so.Dataset(
        tables={
            "flights": {
                "source": flights() if rows is None else rows, "unit": "plane", "max_rows_per_group": 4, "max_groups": 3,
                "columns": {"carrier": {"type": "text"}}, **more,
            },
            "airlines": {"source": airlines() if public is None else public, "public": True, "key": ["carrier"],
                         "columns": columns},
        },
        budget={"epsilon": 100, "delta": 1e-6},
    )  # fmt: skip


BY_NAME = "SELECT name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY name"


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        (BY_NAME, 16),
        (
            "SELECT name, COUNT(*) AS n FROM flights LEFT JOIN airlines USING (carrier) GROUP BY name",
            16,
        ),
        (
            "SELECT carrier, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY carrier",
            16,
        ),
        (
            "SELECT country, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY country",
            1,
        ),
        (
            "SELECT country, name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY country, name",
            12,
        ),
        (
            "SELECT carrier, name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY carrier, name",
            16,
        ),
        (
            "SELECT founded, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY founded",
            16,
        ),
        (
            "SELECT since, AVG(size) AS s FROM flights JOIN airlines USING (carrier) GROUP BY since",
            16,
        ),
        (
            "SELECT name, COUNT(*) AS n FROM (SELECT name FROM flights JOIN airlines USING (carrier)) AS f GROUP BY name",
            16,
        ),
    ],
)
def test_every_value_of_a_public_table_is_answered_without_a_delta(sql: str, groups: int) -> None:
    with so.Session(dataset()) as session:
        plan = session.preview(sql, epsilon=1, mechanism="laplace")
        answer = session.sql(sql, epsilon=1, mechanism="laplace")
    assert not plan.private_keys
    assert plan.price.delta == plan.charge.delta == 0
    assert plan.charge.pure == 1
    assert answer.to_arrow().num_rows == groups


def test_keys_of_one_public_row_stay_together_and_in_order() -> None:
    sql = "SELECT country, name, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY name, country"
    with so.Session(dataset()) as session:
        shown = session.sql(sql, epsilon=1).to_arrow()
    expected = sorted((name, "US") for i, name in enumerate(NAMES) if i % 4)
    assert (
        list(zip(shown["name"].to_pylist(), shown["country"].to_pylist(), strict=True)) == expected
    )


def test_the_question_about_the_public_table_itself_is_exact() -> None:
    with so.Session(dataset()) as session:
        answer = session.sql(
            "SELECT since, COUNT(*) AS n FROM airlines GROUP BY since", epsilon=1
        ).to_arrow()
    assert answer["since"].to_pylist() == [date(2000 + i, 1, 1) for i in range(16)]
    assert answer["n"].to_pylist() == [1] * 16


def test_only_the_public_tables_of_the_question_are_read_and_each_once() -> None:
    plug = Plug()
    with so.Session(dataset(), engine=plug) as session:
        session.preview("SELECT COUNT(*) AS n FROM flights", epsilon=1)
        assert plug.runs == []
        session.preview(BY_NAME, epsilon=1)
        first = len(plug.runs)
        session.preview(BY_NAME, epsilon=2)
        assert len(plug.runs) == first > 0
        assert all("flights" not in statement.text("duckdb") for statement in plug.runs)


def test_the_declaration_goes_before_what_is_found() -> None:
    declared = {**COLUMNS, "name": {"type": "category", "values": ["Airline 1", "Airline 99"]}}
    with so.Session(dataset(columns=declared)) as session:
        answer = session.sql(BY_NAME, epsilon=1).to_arrow()
    assert answer["name"].to_pylist() == ["Airline 1", "Airline 99"]


def completed(public: pa.Table, columns: dict[str, dict[str, Any]]) -> so.Table:
    key = ["carrier"] if "carrier" in columns else None
    table = so.Table.declare(public, name="airlines", public=True, key=key, columns=columns)
    plug = Plug()([table])
    return public_tables.completed(table, plug.run)


def test_types_are_completed_outward_and_only_where_nothing_is_declared() -> None:
    found = {name: column.type for name, column in completed(airlines(), COLUMNS).columns.items()}
    assert isinstance(found["country"], Text)
    assert found["country"].values == ("US",)
    assert found["founded"] == Number(
        Fraction(1900), Fraction(2005), Fraction(1), tuple(range(1900, 2006, 7))
    )
    assert found["since"] == Day(date(2000, 1, 1), date(2015, 1, 1))
    size = found["size"]
    assert isinstance(size, Number)
    assert (size.lower, size.upper) == (Fraction(0), Fraction(45, 2))
    bounded = {"founded": {"type": "int", "min": 0, "max": 10}}
    assert completed(airlines(), bounded).columns["founded"].type == Number(
        Fraction(0), Fraction(10), Fraction(1)
    )


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([None, None], "text"),
        (["a\0b", "c"], "text"),
        ([], "text"),
        ([None], "int"),
        ([2**62, 1], "int"),
        ([float("nan"), float("inf")], "float"),
        ([1.0, 1.0], "float"),
        ([None], "date"),
    ],
)
def test_cells_that_tell_no_list_and_no_bounds_leave_the_column_as_declared(
    cells: list[Any], kind: str
) -> None:
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "date": pa.date32()}
    table = pa.table({"x": pa.array(cells, types[kind])})
    declared = so.Table.declare(table, name="t", public=True, columns={"x": {"type": kind}})
    plug = Plug()([declared])
    assert (
        public_tables.completed(declared, plug.run).columns["x"].type == declared.columns["x"].type
    )


def test_too_many_values_are_selected_privately_and_the_plan_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(public_tables, "MOST_VALUES", 15)
    with so.Session(dataset()) as session:
        plan = session.preview(BY_NAME, epsilon=1)
    assert plan.private_keys
    assert plan.charge.delta > 0
    assert "airlines is public: too many to answer each" in " ".join(plan.explain().split())


@pytest.mark.parametrize("names", [[], [None, None]])
def test_a_grouping_without_a_possible_key_is_refused_before_it_is_charged(
    names: list[str | None],
) -> None:
    empty = pa.table(
        {
            "carrier": pa.array(CODES[: len(names)], pa.string()),
            "name": pa.array(names, pa.string()),
        }
    )
    columns = {name: COLUMNS[name] for name in ("carrier", "name")}
    with so.Session(dataset(public=empty, columns=columns)) as session:
        for sql in (BY_NAME, BY_NAME.replace("JOIN", "LEFT JOIN")):
            with pytest.raises(
                InvalidInput, match=r"GROUP BY name: .* public table airlines, which has none there"
            ):
                session.sql(sql, epsilon=1)
        assert not session.receipts
        whole = session.sql(
            "SELECT COUNT(*) AS n FROM flights LEFT JOIN airlines USING (carrier)", epsilon=1
        )
        own = session.sql("SELECT name, COUNT(*) AS n FROM airlines GROUP BY name", epsilon=1)
    assert (len(whole), len(own)) == (1, 0)


def test_a_public_table_that_cannot_be_read_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with so.Session(dataset()) as session:
        with monkeypatch.context() as failing:

            def fail(_: Any) -> Any:
                raise EngineFailed

            failing.setattr(session._engine, "run", fail)
            plan = session.preview(BY_NAME, epsilon=1)
        assert plan.private_keys
        assert "not read the public table airlines, which failed" in " ".join(
            plan.explain().split()
        )
        assert any("Not read: the public table airlines" in note for note in plan.notes)
        assert "airlines is public: its values, had it been read" in " ".join(
            plan.explain().split()
        )
        other = session.preview("SELECT COUNT(*) AS n FROM flights", epsilon=1)
        assert not other.unread
        again = session.preview(BY_NAME, epsilon=1)
    assert not again.private_keys
    assert not again.unread


def test_too_many_combinations_are_selected_privately(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT a.name AS x, b.name AS y, COUNT(*) AS n FROM flights JOIN airlines AS a ON flights.carrier = a.carrier "
    sql += "JOIN airlines AS b ON flights.carrier = b.carrier GROUP BY a.name, b.name"
    with so.Session(dataset()) as session:
        assert not session.preview(sql, epsilon=1).private_keys
        monkeypatch.setattr(keys, "MOST_KEYS", 255)
        assert session.preview(sql, epsilon=1).private_keys


def test_a_plan_without_data_says_that_the_public_table_would_tell() -> None:
    from plan.shop import planned

    text = " ".join(planned(BY_NAME, dataset()).explain().split())
    assert (
        "private keys, selected with noise (airlines is public: all its values, if it is read"
        in text
    )


def test_a_value_that_no_public_row_has_is_refused_with_the_nearest_one() -> None:
    with (
        so.Session(dataset()) as session,
        pytest.raises(InvalidInput, match="Did you mean 'Airline 3'"),
    ):
        session.sql(
            "SELECT COUNT(*) AS n FROM flights JOIN airlines USING (carrier) WHERE name = 'airline 3'",
            epsilon=1,
        )


def test_two_public_rows_with_one_key_lose_no_row_of_the_answer() -> None:
    twice = pa.table(
        {"carrier": ["A", "A", "B"], "name": ["x", "y", "z"], "country": ["Z", "Y", "X"]}
    )
    sql = "SELECT name, country, COUNT(*) AS n FROM flights JOIN airlines USING (carrier) GROUP BY name, country"
    columns = {name: COLUMNS[name] for name in ("carrier", "name", "country")}
    plug = Plug()
    with so.Session(
        dataset(public=twice, columns=columns, max_rows_per_group=99, max_groups=9), engine=plug
    ) as session:
        groups = plug.exact_groups(session.preview(sql, epsilon=1, bias=False))
        all_rows = plug.exact_groups(
            session.preview(
                "SELECT COUNT(*) AS n FROM flights JOIN airlines USING (carrier)",
                epsilon=1,
                bias=False,
            )
        )
    assert len(groups.keys) == 4  # (x, Y) is what the look finds, beside the three rows
    assert (
        0
        < sum(row[0] for row in groups.vectors["s0"])
        == sum(row[0] for row in all_rows.vectors["s0"])
    )


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbors", first_of(1, ["add_remove", "replace"]))
@pytest.mark.parametrize("seed", first_of(1, range(3)))
def test_neighbours_have_the_same_plan_and_differ_within_its_sensitivity(
    seed: int, mechanism: Any, neighbors: str
) -> None:
    sql = "SELECT name, country, COUNT(*) AS n, COUNT(DISTINCT plane) AS p FROM flights JOIN airlines USING (carrier) "
    sql += "GROUP BY name, country"
    plug, other = Plug(), Plug()
    for gone in range(0, 60, 7):
        one = dataset(flights(seed), neighbors=neighbors)
        rows = flights(seed, without=gone)
        if neighbors == "replace":
            rows = pa.concat_tables([rows, pa.table({"plane": [gone] * 9, "carrier": CODES[:9]})])
        with (
            so.Session(one, engine=plug) as a,
            so.Session(dataset(rows, neighbors=neighbors), engine=other) as b,
        ):
            plan, same = (s.preview(sql, epsilon=1, mechanism=mechanism) for s in (a, b))
            assert (plan.sql(), str(plan), keys.all_keys(plan.keys)) == (
                same.sql(), str(same), keys.all_keys(same.keys)
            )  # fmt: skip
            groups = [exactly(p.exact_groups(plan)) for p in (plug, other)]
        assert groups[0].found is None
        assert not any(part.broken for part in moved(plan, *groups))
