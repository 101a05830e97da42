"""Persons through foreign keys: what a declaration says of them, and every rule with its message."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from sordino.errors import InvalidDeclaration
from sordino.ledger.terms import Terms
from sordino.privacy.neighbors import Neighbors
from sordino.query.dataset import Dataset, Table, Via

SHOP = """
[tables.Customers]
source = "customers.parquet"
unit = "Id"
persons = "Customer"
neighbors = "replace"

[tables.orders]
source = "orders.parquet"
via = { customer = "customers.ID" }
[tables.orders.columns]
ID = { type = "int" }

[tables.lines]
source = "lines.parquet"
via = { order_id = "orders.id" }
max_rows_per_group = 5
[tables.lines.columns]
Order_ID = { type = "int" }

[tables.notes]
source = "notes.parquet"
unit = "customer"
neighbors = "replace"
"""


def load(folder: Path, text: str) -> Dataset:
    (folder / "shop.toml").write_text(text)
    return Dataset.load(folder / "shop.toml")


def refusal(folder: Path, text: str) -> InvalidDeclaration:
    with pytest.raises(InvalidDeclaration) as caught:
        load(folder, text)
    return caught.value


def test_a_path_of_parents_leads_to_the_persons(tmp_path: Path) -> None:
    tables = load(tmp_path, SHOP).tables
    assert tables["lines"].via == Via("orders", (("Order_ID", "ID"),))
    assert tables["orders"].via == Via("Customers", (("customer", "Id"),))
    assert {table.persons for table in tables.values()} == {"customer"}
    assert {table.neighbors for table in tables.values()} == {Neighbors.REPLACE}
    assert all(table.has_persons for table in tables.values())
    assert [table.person for table in tables.values()] == ["Id", None, None, "customer"]
    assert tables["lines"].bounds.per_group == 5


def test_keys_are_offered_on_both_sides_under_names_of_their_own(tmp_path: Path) -> None:
    tables = load(tmp_path, SHOP).tables
    assert [table.identities for table in tables.values()] == [
        ("Id",),
        ("customer", "ID"),
        ("Order_ID",),
        (),
    ]
    orders = tables["orders"]
    names = [orders.person_column, *map(orders.identity_column, ("CUSTOMER", "id"))]
    assert len({name.casefold() for name in (*names, *orders.columns)}) == 4
    taken = {name: {"type": "bool"} for name in ("identity0", "IDENTITY0_", "identity1", "Person")}
    table = Table.declare("v.csv", unit="p", columns=taken)
    wide = Table(table.name, table.source, table.columns, "p", identities=("a", "b"))
    names = [wide.person_column, wide.identity_column("a"), wide.identity_column("B")]
    assert len({name.casefold() for name in (*names, *wide.columns)}) == 7


@pytest.mark.parametrize(
    ("unit", "persons", "kind", "lineage"),
    [
        ("Patient_ID", None, "patient_id", "Patient_ID"),
        ("Patient_ID", "PATIENT_id", "patient_id", "Patient_ID"),
        ("id", "Patient", "patient", "id (patient)"),
        ("row", None, None, "row"),
    ],
)
def test_persons_are_called_like_their_column_by_default(
    unit: str, persons: Any, kind: Any, lineage: str
) -> None:
    dataset = Dataset(
        tables={"v": Table.declare("v.csv", unit=unit, persons=persons)}, budget={"epsilon": 1}
    )
    assert dataset.tables["v"].persons == kind
    # what was written down before there were kinds of persons is still what the declaration says
    assert Terms.of(dataset).lineage == (("v", lineage, "add_remove"),)


def test_a_ledger_knows_by_which_keys_persons_are_found(tmp_path: Path) -> None:
    terms = Terms.of(load(tmp_path, "[budget]\nepsilon = 1\n" + SHOP))
    assert ("lines", "customer via Order_ID = orders.ID", "replace") in terms.lineage
    assert Terms.read(terms.facts) == terms


def test_composite_keys_and_names_with_dots(tmp_path: Path) -> None:
    text = """
        [tables."a.b"]
        source = "a.parquet"
        unit = "p"
        [tables.c]
        source = "c.parquet"
        via = { x = '"A.B".k', y = '"a.b"."l ""1"".2"', "z.1" = '"a.b".m' }
    """
    child = load(tmp_path, text).tables["c"]
    assert child.via == Via("a.b", (("x", "k"), ("y", 'l "1".2'), ("z.1", "m")))


def test_toml_and_python_declare_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = Dataset(
        tables={
            "Customers": Table.declare("customers.parquet", unit="Id", persons="customer", neighbors="replace"),
            "orders": Table.declare("orders.parquet", via={"customer": "customers.id"}, columns={"ID": {"type": "int"}}),
            "lines": {"source": "lines.parquet", "via": {"order_ID": "Orders.id"}, "max_rows_per_group": 5,
                      "columns": {"Order_ID": {"type": "int"}}},
            "notes": Table.declare("notes.parquet", unit="customer", neighbors="replace"),
        }
    )  # fmt: skip
    assert dataset == load(tmp_path, SHOP) == copy.deepcopy(dataset)
    assert dataset.with_budget({"epsilon": 1}).tables == dataset.tables
    assert "lines: 1 column, unit customer via Order_ID = orders.ID" in repr(dataset)


PARENT = '[tables.orders]\nsource = "orders.parquet"\nunit = "customer"\n'


def child(keys: str, parent: str = PARENT) -> str:
    return f'{parent}\n[tables.lines]\nsource = "lines.parquet"\n{keys}\n'


@pytest.mark.parametrize(
    ("text", "value", "rule", "hint"),
    [
        (child('unit = "p"\nvia = { a = "orders.id" }'), "unit = 'p'", "that of the parent", "Leave out unit"),
        (child('persons = "p"\nvia = { a = "orders.id" }'), "persons = 'p'", "that of the parent", "Leave out persons"),
        (child('neighbors = "replace"\nvia = { a = "orders.id" }'), "neighbors", "of the parent", "Leave out neighbors"),
        (child('public = true\nvia = { a = "orders.id" }'), "via = a table of 1 key", "protects nobody", "Leave out via"),
        (child('public = true\npersons = "p"'), "persons = 'p'", "protects nobody", "Leave out persons"),
        (child('unit = "row"\npersons = "p"'), "persons = 'p'", "each row is another person", "Leave out persons"),
        (child('unit = "p"\npersons = ""'), "persons = ''", "not empty", "persons = "),
        (child('unit = "p"\npersons = 5'), "persons = 5", "text", "persons = "),
        (child(""), "without unit", "who is protected", 'via = { order_id = "orders.id" }'),
        (child("via = {}"), "via = a table of 0 keys", "which column names", "via = {"),
        (child('via = "orders.id"'), "via = 'orders.id'", "which column names", "via = {"),
        (child('via = { a = "id" }'), "via.a = 'id'", "written with a dot", "order_id = "),
        (child('via = { a = "orders." }'), "via.a = 'orders.'", "written with a dot", "order_id = "),
        (child('via = { a = "x.orders.id" }'), "via.a", "written with a dot", "double quotes"),
        (child("via = { a = 5 }"), "via.a = 5", "written with a dot", "order_id = "),
        (child('via = { " " = "orders.id" }'), "the column name ' '", "not empty", "Rename"),
        (child('via = { a = "orders.x", A = "orders.y" }'), "'a' and 'A'", "only in case", "Rename"),
        (child(f'via = {{ a = "orders.{"x" * 201}" }}'), "via.a", "200 characters", "via = {"),
        (child('via = { a = "orders.x", b = "orders.X" }'), "via.b = 'orders.X'", "named twice", "once"),
        (child('via = { a = "orders.x", b = "lines.y" }'), "via.b = 'lines.y'", "one parent, and orders", "one table"),
        (child('via = { a = "order.id" }'), "a = order.id", "no such table", "orders"),
        (child('via = { a = "orders.id" }', PARENT.replace("customer", "row")), "a = orders.id", '"row"', 'unit = "id"'),
        (child('via = { a = "orders.id" }', PARENT.replace('unit = "customer"', "public = true")),
         "a = orders.id", "is public", "public = true"),
        (child('via = { a = "lines.id" }'), "lines -> lines", "leads back", "unit"),
        (child('via = { a = "orders.id" }', PARENT.replace('unit = "customer"', 'via = { b = "lines.x" }')),
         "orders -> lines -> orders", "leads back", "unit"),
    ],
)  # fmt: skip
def test_a_bad_foreign_key_is_refused(
    tmp_path: Path, text: str, value: str, rule: str, hint: str
) -> None:
    error = refusal(tmp_path, text)
    assert value in error.value
    assert rule in error.rule
    assert hint in error.hint


def test_a_table_of_other_persons_is_not_touched(tmp_path: Path) -> None:
    text = (
        child('via = { a = "orders.id" }')
        + '[tables.staff]\nsource = "staff.parquet"\nunit = "id"\n'
    )
    tables = load(tmp_path, text).tables
    assert [table.persons for table in tables.values()] == ["customer", "customer", "id"]
    assert tables["staff"].identities == ()


def test_the_example_of_the_page_is_read_as_it_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "declaration.md").read_text()
    tables = load(
        tmp_path,
        page.split("## Persons through other tables")[1].split("```toml")[1].split("```")[0],
    ).tables
    assert {table.persons for table in tables.values()} == {"customer"}
    assert tables["lines"].via == Via("orders", (("order_id", "id"),))
