"""Reads an owner's declaration, from TOML or from plain Python values: one reading function for both.

Every error names file and key, the rule, and what to write instead. No data is read here, and no object of the caller
is shown: a table in memory must not leak through the text of an error.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.exact import bounds, readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.privacy.paths import absolute, not_a_file
from sordino.query.bounds import NAMES, Bounds
from sordino.query.columns import column
from sordino.query.dataset import Column, Dataset, Table
from sordino.query.entries import (
    Place,
    check_names,
    closest,
    count,
    key_text,
    name_fault,
    number,
    section,
    shown,
    yes_or_no,
)
from sordino.query.foreign_keys import related, via
from sordino.query.same_name import folded
from sordino.query.sources import (
    OF_SOURCES,
    database_kind,
    expect_one_engine,
    name_parts,
    read_source,
    source_kind,
    table_name,
)

__all__ = [
    "OF_ALL", "OF_BUDGET", "OF_FILE", "OF_LEDGER", "OF_PARENT", "OF_PROTECTED", "UNFILLED", "Place", "key_text", "load",
    "name_fault", "python_budget", "python_ledger", "python_table", "python_tables", "source_kind", "table_name",
]  # fmt: skip

UNFILLED = "TODO"
"""What a stub holds in place of the unit; it is never a column."""

_LONGEST_FILE = 16 * 2**20

OF_ALL = (*OF_SOURCES, "public", "columns")
OF_PROTECTED = ("unit", "persons", "via", "neighbors", *NAMES)
OF_PARENT = ("unit", "persons", "neighbors")
OF_FILE, OF_BUDGET, OF_LEDGER = (
    ("budget", "ledger", "tables"),
    ("epsilon", "delta", "key_delta"),
    ("path",),
)
"""What may be written where; the schema for editors is made from these, too (`declaration_schema.py`)."""


def _table(place: Place, name: str, value: Any, folder: Path) -> Table:
    entries = section(place, value, (*OF_ALL, *OF_PROTECTED, "key"))
    if "source" not in entries:
        raise place.lacks(
            "source", "a table has a source", f'Add source = "{name}.parquet" or the like.'
        )
    source = read_source(place, entries, folder)
    public = yes_or_no(place.at("public"), entries.get("public", False))
    described = section(place.at("columns"), entries.get("columns", {}))
    check_names(place.at("columns"), described, "column")
    columns = {key: column(place.at("columns").at(key), described[key]) for key in described}
    if public:
        for key in OF_PROTECTED:
            if key in entries:
                raise place.at(key).wrong(
                    entries[key],
                    "a public table protects nobody",
                    f"Leave out {key}, or public = true.",
                )
        return Table(
            name,
            source,
            columns,
            public=True,
            key=_key(place.at("key"), entries.get("key"), columns),
        )
    if "key" in entries:
        raise place.at("key").wrong(
            entries["key"], "only a public table has a key", "Leave out key, or add public = true."
        )
    if "via" in entries:
        for key in OF_PARENT:
            if key in entries:
                rule = f"with via the {key} is that of the parent, whose persons the rows belong to"
                raise place.at(key).wrong(entries[key], rule, f"Leave out {key}, or via.")
    parent = via(place.at("via"), entries["via"], columns) if "via" in entries else None
    person = None if parent else _person(place, entries, columns)
    limits = {key: count(place.at(key), entries[key]) for key in NAMES if key in entries}
    for key, limit in limits.items():
        if person is None and parent is None and limit != 1:
            rule = 'with unit = "row" every person has one row, so it can only be 1'
            raise place.at(key).wrong(
                limit, rule, f"Leave out {key}, or name the column of the person as unit."
            )
    neighbors = _neighbors(place.at("neighbors"), entries.get("neighbors", Neighbors.ADD_REMOVE))
    persons = (
        _persons(place.at("persons"), entries["persons"], person) if "persons" in entries else None
    )
    own = Bounds(*map(limits.get, NAMES))
    return Table(name, source, columns, person, neighbors, own, persons=persons, via=parent)


def _person(place: Place, entries: Mapping[str, Any], columns: Mapping[str, Column]) -> str | None:
    rule = "a table must say who is protected"
    hint = 'Write unit = "row" if each row is another person, or unit = "patient_id" for the column that names the person.'
    if "unit" not in entries:
        hint += ' A table whose rows name the rows of another has via = { order_id = "orders.id" } instead.'
        raise place.lacks(
            "unit", rule, f"{hint} A table without private data has public = true instead."
        )
    place, unit = place.at("unit"), entries["unit"]
    if fault := name_fault(unit):
        raise place.wrong(unit, fault, hint)
    if unit == UNFILLED:
        raise place.wrong(unit, f"it is still to be filled in: {rule}", hint)
    same = {folded(name): name for name in columns}
    if folded(unit) == "row":
        if unit != "row" or "row" in same:
            clash = 'unit = "row" means that each row is another person, and no column may have this name'
            raise place.wrong(
                unit, clash, 'Write unit = "row" in small letters, or rename the column.'
            )
        return None
    return same.get(folded(unit), str(unit))


def _persons(place: Place, value: Any, person: str | None) -> str:
    """The kind of persons, without regard to case: two tables of one kind speak of the same persons."""
    if fault := name_fault(value):
        raise place.wrong(value, fault, 'Write persons = "patient" or the like.')
    if person is None:
        rule = 'with unit = "row" each row is another person, whom no other table speaks of'
        raise place.wrong(
            value, rule, "Leave out persons, or name the column of the person as unit."
        )
    return folded(str(value))


def _neighbors(place: Place, value: Any) -> Neighbors:
    if isinstance(value, Neighbors):
        return value
    known, word = (
        {member.value: member for member in Neighbors},
        value if isinstance(value, str) else "",
    )
    if word not in known:
        rule = "neighbors is add_remove, or replace where the number of persons is public"
        raise place.wrong(value, rule, closest(word, known))
    return known[word]


def _key(place: Place, value: Any, columns: Mapping[str, Column]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        raise place.wrong(value, "a key is a list of columns", 'Write key = ["code"] or the like.')
    same = {folded(name): name for name in columns}
    key: list[str] = []
    for i, name in enumerate(value):
        if not isinstance(name, str) or folded(name) not in same:
            hint = closest(name if isinstance(name, str) else "", columns)
            raise place.item(i).wrong(name, "a key is made of declared columns", hint)
        if same[folded(name)] in key:
            raise place.item(i).wrong(name, "the key lists it twice", "List each column once.")
        key.append(same[folded(name)])
    return tuple(key)


def _settled(name: str, table: Table) -> Table:
    """A table under its name in the dataset, by which a database knows it unless another is declared."""
    source = table.source
    if (
        source.kind in ("duckdb", "postgres", "spark")
        and source.table is None
        and source.files is None
    ):
        source = replace(source, table=name if source.kind == "duckdb" else _as_name(name))
    return replace(table, name=name, source=source)


def _as_name(name: str) -> str:
    """A name that is one name, also where it holds a dot."""
    return '"' + name.replace('"', '""') + '"' if set('". ') & set(name) else name


def _tables(place: Place, value: Any, folder: Path) -> dict[str, Table]:
    tables = section(place, value)
    if not tables:
        rule = "a dataset has at least one table"
        raise InvalidDeclaration(str(place), rule, "Add a section [tables.visits] or the like.")
    check_names(place, tables, "table")
    read = {
        n: t if isinstance(t, Table) else _table(place.at(n), n, t, folder)
        for n, t in tables.items()
    }
    settled = {name: _settled(name, table) for name, table in read.items()}
    expect_one_engine(place, settled)
    return related(place, settled)


def _budget(place: Place, value: Any) -> tuple[Budget, Any]:
    """The budget of a section, and its `key_delta` as written."""
    entries = section(place, value, OF_BUDGET)
    if "epsilon" not in entries:
        raise place.lacks("epsilon", "a budget has an epsilon", "Add epsilon = 1.0 or the like.")
    for key, given in entries.items():
        number(place.at(key), given)
    key = "epsilon"
    try:
        Budget(entries[key])
        key = "delta"
        return Budget(entries["epsilon"], entries.get(key, Fraction(0))), entries.get("key_delta")
    except InvalidInput as error:
        raise place.at(key).wrong(entries[key], error.rule, error.hint) from None


def _reserved(
    place: Place, value: Any, budget: Budget | None, tables: Iterable[Table]
) -> Fraction | None:
    """The part of delta that is kept for private keys: as declared, else half of it if there can be any."""
    if value is None:
        if budget is None:
            return None
        return budget.delta / 2 if any(table.has_private_keys for table in tables) else Fraction(0)
    if number(place, value) < 0 or bounds("key_delta", value).lower > (
        budget.delta if budget else 1
    ):
        most = f" {readable(budget.delta)}" if budget else ", below 1"
        rule = f"it is a part of the budget's delta{most}"
        raise place.wrong(value, rule, "Write a number from 0 to delta, or leave it out.")
    return bounds("key_delta", value).lower


def _ledger(place: Place, value: Any, folder: Path) -> str | None:
    if value is None:
        return None
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if (
        not isinstance(text, str)
        or not text.strip()
        or any(unicodedata.category(c) in {"Cc", "Cs"} for c in text)
    ):
        raise place.wrong(
            # an address may hold a password
            value if text is None else "an address" if "://" in text else text,
            "a ledger is the path of a file, without control characters",
            'Write path = "visits.ledger".',
        )
    # The same ledger from wherever the program is started: another one would forget what was spent.
    return text if "://" in text else str(absolute(folder / text))


def load(path: str | os.PathLike[str]) -> Dataset:
    """The dataset that a TOML file declares."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        rule = "a declaration is the path of a TOML file"
        raise InvalidDeclaration(shown(path), rule, 'Pass "visits.toml" or the like.')
    file = Path(path)
    place, folder = Place(file.name), absolute(file).parent
    entries = section(place, _parsed(file), OF_FILE)
    if "tables" not in entries:
        raise place.lacks(
            "tables",
            "a dataset has at least one table",
            "Add a section [tables.visits] or the like.",
        )
    tables = _tables(place.at("tables"), entries["tables"], folder)
    budget, key_delta = (
        _budget(place.at("budget"), entries["budget"]) if "budget" in entries else (None, None)
    )
    reserved = _reserved(place.at("budget").at("key_delta"), key_delta, budget, tables.values())
    kept = section(place.at("ledger"), entries.get("ledger", {}), OF_LEDGER)
    ledger = _ledger(place.at("ledger").at("path"), kept.get("path"), folder)
    return Dataset(
        tables=tables, budget=budget, reserved_delta=reserved, ledger=ledger, file=absolute(file)
    )


def _parsed(file: Path) -> dict[str, Any]:
    # Only a .toml is opened: the complaint of a parser about a data file would quote the data.
    if not file.name.lower().endswith(".toml"):
        hint = "Pass visits.toml or the like; `sordino init visits.parquet` writes one."
        if database_kind(str(file)) is not None or source_kind(file) is not None:
            in_python = f"so.Dataset({str(file)!r}, unit=...)"
            hint = f"Write one with `sordino init {shlex.quote(str(file))}`, or declare it in Python: {in_python}."
        raise InvalidDeclaration(
            show(file.name), "a declaration is a file that ends in .toml", hint
        )
    if fault := not_a_file(file):  # to open a pipe would wait for ever
        raise InvalidDeclaration(
            show(str(file)), fault, "Check the path; relative ones start at the current folder."
        )
    try:
        if file.stat().st_size > _LONGEST_FILE:
            raise InvalidDeclaration(
                file.name, "a declaration has at most 16 MiB", "Declare long categories as text."
            )
        text = file.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidDeclaration):
            raise
        rule = (
            "the file is not UTF-8 text"
            if isinstance(error, UnicodeDecodeError)
            else "the file cannot be read"
        )
        rule = "there is no such file" if isinstance(error, FileNotFoundError) else rule
        raise InvalidDeclaration(
            show(str(file)), rule, "Check the path; relative ones start at the current folder."
        ) from None
    try:
        return tomllib.loads(text, parse_float=_decimal)
    except RecursionError:
        hint = "`sordino docs declaration` shows the form."
        raise InvalidDeclaration(file.name, "its lists are nested too deeply", hint) from None
    except ValueError as error:
        what, line = re.fullmatch(r"(.*?)(?: \(at (.*)\))?", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
        where = f"{file.name}, {line}" if line else file.name
        hint = 'Text stands in double quotes, a section on one line: { type = "int", min = 0, max = 110 }.'
        raise InvalidDeclaration(
            where, f"it is not valid TOML ({what.strip().rstrip('.')})", hint
        ) from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent of more than 18 digits, which is refused as not finite
        return Decimal("inf")


def python_table(name: Any, entries: Mapping[str, Any]) -> Table:
    """One table declared by arguments; by default it has the name of its file."""
    if name is None:
        source = entries.get("source")
        text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        name = table_name(Path(text)) if isinstance(text, str) and text else "data"
        if isinstance(text, str) and database_kind(text) is not None:
            inside = entries.get("table")
            name = (name_parts(inside) or ["data"])[-1] if isinstance(inside, str) else "data"
    if fault := name_fault(name):
        raise Place().at("name").wrong(name, fault, 'Pass name="visits" or the like.')
    return _table(Place(), name, entries, Path())


def python_tables(one: Mapping[str, Any], several: Any) -> dict[str, Table]:
    """The tables declared by arguments: one by its source, or several by name."""
    if several is None:
        if "source" not in one:
            rule = "a dataset has a source, or tables"
            raise Place().lacks(
                "source", rule, 'Pass so.Dataset("visits.parquet", unit=..., columns=...).'
            )
        table = python_table(one.get("name"), {k: v for k, v in one.items() if k != "name"})
        return {table.name: _settled(table.name, table)}
    if one:
        key = next(iter(one))
        rule = "beside tables it has no meaning"
        raise (
            Place()
            .at(key)
            .wrong(one[key], rule, f"Pass it to the table: so.Table.declare(source, {key}=...).")
        )
    return _tables(Place().at("tables"), several, Path())


def python_budget(
    budget: Any, reserved: Any, tables: Iterable[Table]
) -> tuple[Budget | None, Fraction | None]:
    """The budget and the part of its delta for private keys, from a `Budget` or the keys of `[budget]`."""
    place, key_delta = Place().at("reserved_delta"), None
    if budget is not None and not isinstance(budget, Budget):
        budget, key_delta = _budget(Place().at("budget"), budget)
    if key_delta is not None:
        if reserved is not None:
            raise place.wrong(
                reserved, "it is the same thing as key_delta in the budget", "Pass one of them."
            )
        place = Place().at("budget").at("key_delta")
    return budget, _reserved(place, reserved if key_delta is None else key_delta, budget, tables)


def python_ledger(value: Any) -> str | None:
    """The ledger as an address or an absolute path."""
    return _ledger(Place().at("ledger"), value, Path())
