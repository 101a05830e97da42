"""The gate where tables meet: keys are unique, and persons and keys are compared only
where = cannot merge two of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sordino as so
from sordino.cli.declared import check_sources
from sordino.engines.duckdb import DuckDB
from sordino.engines.duckdb.sources import quoted
from sordino.errors import InvalidDeclaration

KINDS = ["frame", "parquet", "csv", "duckdb"]
CANARY = "canary-7f3a91"


def stored(kind: str, rows: Mapping[str, Any], folder: Path, name: str) -> dict[str, Any]:
    """The same rows as a source of some kind."""
    table = pa.table(rows)
    path = folder / f"{name}.{kind}"
    match kind:
        case "frame":
            return {"source": table}
        case "parquet":
            pq.write_table(table, path)
        case "csv":
            lines = [
                ",".join(rows),
                *(
                    ",".join("" if c is None else str(c) for c in row)
                    for row in zip(*rows.values(), strict=True)
                ),
            ]
            path.write_text("\n".join(lines) + "\n")
        case "duckdb":
            with duckdb.connect(path) as connection:
                connection.register("arriving", table)
                connection.execute(f"CREATE TABLE {name} AS FROM arriving")
    return {"source": path}


def shop(
    customers: Mapping[str, Any] | None, orders: Mapping[str, Any], lines: Mapping[str, Any],
    folder: Path, kind: str = "frame", keys: Mapping[str, str] | None = None,
) -> so.Dataset:  # fmt: skip
    whose = {"unit": "customer"} if customers is None else {"via": {"customer": "customers.id"}}
    tables = {
        "orders": stored(kind, orders, folder, "orders") | whose,
        "lines": stored(kind, lines, folder, "lines") | {"via": keys or {"order_id": "orders.id"}},
    }
    if customers is not None:
        tables["customers"] = stored(kind, customers, folder, "customers") | {"unit": "id"}
    return so.Dataset(tables=tables, budget={"epsilon": 1})


@contextmanager
def opened(dataset: so.Dataset) -> Iterator[DuckDB]:
    engine = DuckDB(dataset.tables.values())
    try:
        yield engine
    finally:
        engine.close()


def joined(dataset: so.Dataset) -> list[Any]:
    """The person of each line, along the path of parents, as the gate offers its columns."""
    table = dataset.tables["lines"]
    sql = 'gate."lines" AS t0'
    with opened(dataset) as engine:
        depth = 0
        while table.via is not None:
            parent = dataset.tables[table.via.parent]
            pairs = [
                f"t{depth}.{quoted(table.identity_column(own))} = t{depth + 1}.{quoted(parent.identity_column(theirs))}"
                for own, theirs in table.via.keys
            ]
            sql += f" JOIN gate.{quoted(parent.name)} AS t{depth + 1} ON {' AND '.join(pairs)}"
            table, depth = parent, depth + 1
        found = engine._connection.execute(
            f"SELECT t{depth}.{quoted(table.person_column)} FROM {sql}"
        ).fetchall()
    return sorted(row[0] for row in found if row[0] is not None)


def refusal(dataset: so.Dataset) -> InvalidDeclaration:
    with pytest.raises(InvalidDeclaration) as caught:
        so.Session(dataset)
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_lines_belong_to_whom_their_orders_belong(kind: str, tmp_path: Path) -> None:
    customers = {"id": ["ann", "bob"]}
    orders = {"id": [1, 2, 3, 4], "customer": ["ann", "bob", "eve", None]}
    lines = {"order_id": [1, 1, 2, 3, 4, 5, None]}
    # eve is no customer, order 5 is not there, order 4 and the last line name nobody
    assert joined(shop(customers, orders, lines, tmp_path, kind)) == ["ann", "ann", "bob"]
    assert joined(shop(None, orders, lines, tmp_path / "..", "frame")) == [
        "ann",
        "ann",
        "bob",
        "eve",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_parent_of_which_two_rows_share_a_key_is_refused(kind: str, tmp_path: Path) -> None:
    orders = {"id": [CANARY, "b", CANARY], "customer": ["ann", "ann", "bob"]}
    error = refusal(shop(None, orders, {"order_id": ["b"]}, tmp_path, kind))
    assert error.value == "tables.orders by id"
    assert "share this key" in error.rule
    assert CANARY not in str(error)


def test_a_key_is_shared_even_by_rows_of_nobody(tmp_path: Path) -> None:
    orders = {"id": [1, 1], "customer": ["ann", None]}
    assert "share" in refusal(shop(None, orders, {"order_id": [1]}, tmp_path)).rule


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_whole_key_share_nothing(kind: str, tmp_path: Path) -> None:
    orders = {
        "id": [None, None, "a", "a"],
        "shop": ["x", "x", None, None],
        "customer": ["ann", "bob", "ann", "bob"],
    }
    lines = {"order_id": [None, "a"], "shop": ["x", None]}
    keys = {"order_id": "orders.id", "shop": "orders.shop"}
    assert joined(shop(None, orders, lines, tmp_path, kind, keys)) == []


def test_a_key_of_several_columns_is_unique_as_a_whole(tmp_path: Path) -> None:
    orders: dict[str, Any] = {
        "id": [1, 1, 2],
        "shop": ["x", "y", "x"],
        "customer": ["ann", "bob", "eve"],
    }
    lines = {"order_id": [1, 1, 2, 2], "shop": ["x", "y", "x", "y"]}
    keys = {"order_id": "orders.id", "shop": "orders.shop"}
    assert joined(shop(None, orders, lines, tmp_path, keys=keys)) == ["ann", "bob", "eve"]
    error = refusal(shop(None, orders, lines, tmp_path))
    assert error.value == "tables.orders by id"
    orders["id"][0], orders["shop"][0] = 2, "x"
    assert (
        refusal(shop(None, orders, lines, tmp_path, keys=keys)).value == "tables.orders by id, shop"
    )


@pytest.mark.parametrize("seed", range(25))
def test_what_is_opened_has_one_person_for_each_line(seed: int, tmp_path: Path) -> None:
    """Opened if and only if no whole key is there twice; then each line finds the person that plain Python finds."""
    rng = random.Random(seed)
    pairs = rng.choice([1, 2])
    count, spread = rng.randint(0, 6), rng.randint(2, 9)

    def cells(rows: int) -> list[Any]:
        return [None if rng.random() < 0.2 else rng.randrange(spread) for _ in range(rows)]

    orders = {f"k{i}": pa.array(cells(count), pa.int32()) for i in range(pairs)}
    orders |= {
        "customer": pa.array(
            [None if rng.random() < 0.2 else rng.choice("abc") for _ in range(count)], pa.string()
        )
    }
    lines = {f"o{i}": pa.array(cells(12), pa.int64()) for i in range(pairs)}
    dataset = shop(
        None, orders, lines, tmp_path, keys={f"o{i}": f"orders.k{i}" for i in range(pairs)}
    )
    keys = list(zip(*(orders[f"k{i}"].to_pylist() for i in range(pairs)), strict=True))
    whole = [key for key in keys if None not in key]
    if len(set(whole)) < len(whole):
        assert "share" in refusal(dataset).rule
        return
    whose = {
        key: person
        for key, person in zip(keys, orders["customer"].to_pylist(), strict=True)
        if None not in key
    }
    named = zip(*(lines[f"o{i}"].to_pylist() for i in range(pairs)), strict=True)
    assert joined(dataset) == sorted(p for p in (whose.get(key) for key in named) if p is not None)


@pytest.fixture
def typed(tmp_path: Path) -> Any:
    """Two tables whose columns have given DuckDB types: joined by a via, or by their persons."""

    def make(ours: str, theirs: str, how: str) -> so.Dataset:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb"
        with duckdb.connect(path) as connection:
            connection.execute("CREATE TYPE mood AS ENUM ('1', '2')")
            connection.execute(f"CREATE TABLE a (k {theirs}, customer VARCHAR)")
            connection.execute(f"CREATE TABLE b (k {ours})")
        child = {"via": {"k": "a.k"}} if how == "via" else {"unit": "k"}
        parent = {"unit": "customer" if how == "via" else "k"}
        return so.Dataset(
            tables={"a": {"source": path, **parent}, "b": {"source": path, **child}},
            budget={"epsilon": 1},
        )

    return make


WIDTHS = [
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
]
OF_ONE_KIND = [(a, b) for a, b in zip(WIDTHS, [*WIDTHS[1:], WIDTHS[0]], strict=True)]
OF_ONE_KIND += [
    ("HUGEINT", "UBIGINT"),
    ("VARCHAR", "mood"),
    ("UUID", "VARCHAR"),
    ("VARCHAR COLLATE NOCASE", "VARCHAR"),
]
OF_ONE_KIND += [(kind, kind) for kind in ("UHUGEINT", "DECIMAL(18,2)", "BLOB", "UUID")]
OF_OTHER_KINDS = [
    ("VARCHAR", "INTEGER"),
    ("UUID", "BIGINT"),
    ("BLOB", "VARCHAR"),
    ("DECIMAL(18,2)", "DECIMAL(18,3)"),
]
OF_OTHER_KINDS += [
    ("DECIMAL(18,0)", "BIGINT"),
    ("UHUGEINT", "HUGEINT"),
    ("UHUGEINT", "UBIGINT"),
    ("BLOB", "UUID"),
]


@pytest.mark.parametrize("how", ["via", "persons"])
@pytest.mark.parametrize(("ours", "theirs"), OF_ONE_KIND)
def test_cells_of_one_kind_are_compared(ours: str, theirs: str, how: str, typed: Any) -> None:
    with opened(typed(ours, theirs, how)):
        pass
    # the engine's own comparison of the two makes no floats of them, where 2^53 and 2^53 + 1 are one
    with duckdb.connect() as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('1', '2')")
        connection.execute(f"CREATE TABLE a (x {ours}); CREATE TABLE b (y {theirs})")
        (plan,) = connection.execute("EXPLAIN SELECT COUNT(*) FROM a JOIN b ON x = y").fetchall()
        assert "DOUBLE" not in plan[1]
        assert "FLOAT" not in plan[1]


@pytest.mark.parametrize("how", ["via", "persons"])
@pytest.mark.parametrize(("ours", "theirs"), OF_OTHER_KINDS + [(b, a) for a, b in OF_OTHER_KINDS])
def test_cells_of_other_kinds_are_refused(ours: str, theirs: str, how: str, typed: Any) -> None:
    error = refusal(typed(ours, theirs, how))
    assert error.value == "tables.b: 'k'"
    assert "a.k, with which it is compared, holds" in error.rule
    assert "Convert one of them" in error.hint
    assert ("persons" in error.hint) == (how == "persons")


def test_persons_of_another_kind_are_not_compared(tmp_path: Path) -> None:
    tables = {
        "visits": {"source": pa.table({"id": [1, 2]}), "unit": "id"},
        "staff": {"source": pa.table({"id": ["a", "b"]}), "unit": "id", "persons": "employee"},
    }
    with opened(so.Dataset(tables=tables)):
        pass
    tables["staff"].pop("persons")
    assert (
        "if these are not the same id"
        in refusal(so.Dataset(tables=tables, budget={"epsilon": 1})).hint
    )


def test_collations_do_not_merge_keys(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id VARCHAR COLLATE NOCASE, customer VARCHAR)")
        connection.execute("INSERT INTO orders VALUES ('a', 'ann'), ('A', 'bob')")
        connection.execute("CREATE TABLE lines (order_id VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO lines VALUES ('a'), ('A'), ('A')")
    orders, lines = (
        {"source": path, "unit": "customer"},
        {"source": path, "via": {"order_id": "orders.id"}},
    )
    assert joined(so.Dataset(tables={"orders": orders, "lines": lines})) == ["ann", "bob", "bob"]


def test_keys_of_a_csv_are_text_or_the_number_that_they_spell(tmp_path: Path) -> None:
    (tmp_path / "lines.csv").write_text(f"order_id\n 007 \n7\n+8\n8.0\n{2**53 + 1}\nx\n")
    orders = {
        "source": pa.table({"id": [7, 8, 2**53], "customer": ["ann", "bob", "eve"]}),
        "unit": "customer",
    }
    lines: dict[str, Any] = {"source": tmp_path / "lines.csv", "via": {"order_id": "orders.id"}}

    def dataset(kind: str | None) -> so.Dataset:
        columns = {} if kind is None else {"Order_ID": {"type": kind}}
        return so.Dataset(
            tables={"orders": orders, "lines": lines | {"columns": columns}}, budget={"epsilon": 1}
        )

    assert joined(dataset("int")) == ["ann", "ann", "bob"]
    for kind in (None, "text"):
        error = refusal(dataset(kind))
        assert "holds text, and orders.id" in error.rule
        assert "declare it there" in error.hint
    error = refusal(dataset("float"))
    assert "Order_ID with type = 'float', a key" in error.value


@pytest.mark.parametrize(
    ("side", "what"), [("orders", "the key 'id' that a via names"), ("lines", "via.order_id")]
)
def test_keys_are_not_floats_nor_missing(side: str, what: str, tmp_path: Path) -> None:
    data: dict[str, dict[str, list[Any]]] = {
        "orders": {"id": [1], "customer": ["ann"]},
        "lines": {"order_id": [1]},
    }
    key = "id" if side == "orders" else "order_id"
    data[side] = {**data[side], key: [1.0]}
    error = refusal(shop(None, data["orders"], data["lines"], tmp_path))
    assert what in error.value
    assert "DOUBLE" in error.rule
    data[side][f"x{key}"] = data[side].pop(key)
    dataset = shop(None, data["orders"], data["lines"], tmp_path, "parquet")
    for check in (lambda: check_sources(dataset), lambda: so.Session(dataset)):
        with pytest.raises(InvalidDeclaration, match="no such column") as caught:
            check()
        assert what in caught.value.value


def test_an_endless_key_is_refused(tmp_path: Path) -> None:
    orders = {"id": ["a", "b" * (2**20 + 1)], "customer": ["ann", "bob"]}
    error = refusal(shop(None, orders, {"order_id": ["a"]}, tmp_path))
    assert "longer than" in error.rule
    assert error.value.startswith("tables.orders")


def test_a_refused_key_closes_the_engine_and_makes_no_charge(tmp_path: Path) -> None:
    orders: dict[str, Any] = {"id": [1, 1], "customer": ["ann", "bob"]}
    dataset = shop(None, orders, {"order_id": [1]}, tmp_path)
    ledger = tmp_path / "shop.ledger"
    with pytest.raises(InvalidDeclaration):
        so.Session(dataset, ledger=ledger)
    orders["id"][1] = 2
    with so.Session(shop(None, orders, {"order_id": [1]}, tmp_path), ledger=ledger) as session:
        assert session.receipts == ()
