"""A declaration to fill in, made from the schema of a file or a database: names and types of columns, nothing else.

What only the owner can know (who is protected, which limits are public) is left open, and `Dataset.load` refuses the stub
until the unit is filled in. No limit, value, statistic or row count of the data is read.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import show
from sordino.query.dataset import Kind, Source
from sordino.query.declaration import UNFILLED, key_text, name_fault
from sordino.query.sources import database_kind, name_parts, shown_address, source_kind, table_name

__all__ = ["Fields", "schema_stub", "source_columns", "type_word"]

_LONGEST_HEADER = 2**20

_HINTS: Mapping[Kind, str] = {
    "int": "min = ?, max = ?",
    "float": "min = ?, max = ?, step = ?",
    "bool": "",
    "category": "",
    "text": 'type = "category", values = [?] if its values are public',
    "date": "min = ?, max = ?",
    "datetime": "min = ?, max = ?",
}
_CSV_HINT = 'type = "int", "float", "bool", "date", "datetime", or "category" with values = [?]'

Fields: TypeAlias = Sequence[tuple[str, Kind | None, str]]
"""Name, kind (None: not supported) and the source's own word for the type, column by column."""


def schema_stub(
    path: str | os.PathLike[str], output: str | os.PathLike[str] | None = None, *, table: str | None = None
) -> str:
    """The text of a declaration of a file or a database; written to `output` if given, never over a file.

    Of a database all tables that may be read are written, or the one that is called `table`.
    """
    target = None if output is None else _target(output)
    if isinstance(path, str) and (kind := database_kind(path)) is not None:
        return _written(_of_database(kind, path, table), target)
    if table is not None:
        raise InvalidDeclaration(f"table = {show(table)}", "only a database has tables to choose from", "Leave it out.")
    file = _data_file(path)
    ending = source_kind(file)
    if ending == "duckdb":
        tables = _duckdb_fields(file)
    else:
        tables = {table_name(file): _parquet_fields(file) if ending == "parquet" else _csv_fields(file)}
    source = file.name if target is None else Path(os.path.relpath(file, target.parent)).as_posix()
    return _written(_rendered(source, tables, ending == "csv"), target)


def _of_database(kind: str, address: str, table: str | None) -> str:
    """The stub of a database: its engine tells the tables; the password of the address is not written down."""
    tables: dict[str, Fields] = import_module(f"sordino.engines.{kind}.schema").tables_of(address, table)
    shown = "spark" if address == "spark" else shown_address(address)
    if not tables:
        hint = "Check the address and the rights of its user, or name one table."
        raise InvalidDeclaration(show(shown), "it holds no table that may be read", hint)
    named: dict[str, tuple[str, Fields]] = {}
    for place, fields in tables.items():
        own = (name_parts(place) or [place])[-1]
        named[own if own.casefold() not in {name.casefold() for name in named} else place.replace(".", "_")] = place, fields
    text = _OPENING.format(source=_quoted(shown))
    for name, (place, fields) in named.items():
        declared = "data" if name_fault(name) else name
        section = _TABLE.format(key=key_text(declared), source=_quoted(shown), unfilled=UNFILLED)
        text += section.replace("\nunit = ", f"\ntable = {_quoted(place)}\nunit = ", 1)
        text += "".join(f"{line}\n" for line in _column_lines(fields, from_csv=False))
    return text


def _written(text: str, target: Path | None) -> str:
    if target is not None:
        try:
            with target.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            rule = "it exists already" if isinstance(error, FileExistsError) else "it cannot be written"
            raise InvalidDeclaration(show(str(target)), rule, "Choose another output.") from None
    return text


def source_columns(source: Source, table: str) -> list[str]:
    """The names of the columns of a declared file, from its schema alone; no cell is read."""
    file = source.path or Path()
    match source.kind:
        case "parquet":
            fields = _parquet_fields(file)
        case "csv":
            fields = _csv_fields(file)
        case _:
            tables = _duckdb_fields(file)
            wanted = source.table or table
            found = next((name for name in tables if name.casefold() == wanted.casefold()), None)
            if found is None:
                hint = f"It has {', '.join(map(show, tables))}."
                raise InvalidDeclaration(f"tables.{table}", f"the file has no table {show(wanted)}", hint)
            fields = tables[found]
    return [name for name, _, _ in fields]


def _data_file(path: object) -> Path:
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or source_kind(Path(text)) is None:
        shown = show(text) if isinstance(text, str) else f"an object of type {type(path).__name__}"
        rule = "a stub is made of a file that ends in .parquet, .csv, .csv.gz or .duckdb, or of a database"
        if isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text):
            shown = "an address"  # which may hold a password
        hint = 'Pass "visits.parquet", "postgresql://analyst@db.example.org/hospital" or the like.'
        ending = Path(text).suffix.lower() if isinstance(text, str) else ""
        if ending == ".toml":
            hint = f"It is a declaration already: `sordino check {text}` looks at it."
        elif ending in (".xlsx", ".xls", ".ods", ".json", ".tsv", ".txt"):
            hint = "Convert it to Parquet or CSV first."
        raise InvalidDeclaration(shown, rule, hint)
    try:
        found = Path(text).is_file()
    except ValueError:  # a NUL in the name
        found = False
    if not found or any(unicodedata.category(c) in {"Cc", "Cs"} for c in text):
        raise InvalidDeclaration(show(text), "there is no such file", "Check the path.")
    if any(c in Path(text).name for c in "*?"):  # a declaration would refuse it as a pattern
        raise InvalidDeclaration(show(text), "the name of a source holds no * or ?", "Rename the file.")
    return Path(text)


def _target(output: object) -> Path:
    text = os.fspath(output) if isinstance(output, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text or not text.lower().endswith(".toml"):
        shown = show(text) if isinstance(text, str) else f"an object of type {type(output).__name__}"
        raise InvalidDeclaration(shown, "a declaration is a file that ends in .toml", 'Pass output="visits.toml".')
    return Path(text)


def _unreadable(file: Path, what: str) -> InvalidDeclaration:
    # The reader's own words are left out: they may quote the data.
    return InvalidDeclaration(
        show(file.name), f"it cannot be read as {what}", "Check the file, or write the declaration by hand."
    )


def _parquet_fields(file: Path) -> Fields:
    lib, parquet = import_module("pyarrow.lib"), import_module("pyarrow.parquet")
    try:
        schema = parquet.read_schema(file)
    except (lib.ArrowException, OSError, ValueError):
        raise _unreadable(file, "a Parquet file") from None
    return [(field.name, _arrow_kind(field.type), type_word(str(field.type))) for field in schema]


def _arrow_kind(kind: Any) -> Kind | None:
    t = import_module("pyarrow.types")
    if t.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    if t.is_timestamp(kind):
        return "datetime"  # with a time zone it is read in UTC
    tests: Mapping[Kind, tuple[Any, ...]] = {
        "int": (t.is_integer,),
        "float": (t.is_floating, t.is_decimal),
        "bool": (t.is_boolean,),
        "text": (t.is_string, t.is_large_string, t.is_string_view),
        "date": (t.is_date,),
    }
    return next((name for name, tried in tests.items() if any(test(kind) for test in tried)), None)


def _duckdb_fields(file: Path) -> dict[str, Fields]:
    from sordino.engines.duckdb.schema import tables_of

    found = tables_of(file)
    if found is None:
        raise _unreadable(file, "a DuckDB file")
    tables = {table: fields for table, fields in found.items() if not name_fault(table)}  # others cannot be declared
    if not tables:
        raise InvalidDeclaration(show(file.name), "its main schema holds no table", "Create one first.")
    return tables


def _csv_fields(file: Path) -> Fields:
    opened = gzip.open if file.name.lower().endswith(".gz") else open
    try:
        with opened(file, "rb") as lines:  # in bytes: to decode would go beyond the first line, into cells
            header = lines.readline(_LONGEST_HEADER).split(b"\r")[0].decode("utf-8-sig")
        names = next(csv.reader([header], strict=True), [])
    except (OSError, EOFError, ValueError, csv.Error, zlib.error):
        raise _unreadable(file, "a CSV file") from None
    if not names or len(header) == _LONGEST_HEADER:
        raise InvalidDeclaration(
            show(file.name), "its first line is empty, or longer than 1 MiB", "It must name the columns."
        )
    if len(names) == 1 and any(c in names[0] for c in ";\t|"):
        rule = "the columns of a CSV file are separated by commas"
        raise InvalidDeclaration(show(file.name), rule, "Convert it, to Parquet if you can.")
    return [(name, "text", "text") for name in names]


def type_word(kind: str) -> str:
    """The word of a type without its parameters: those of an ENUM, also deep inside a STRUCT, are values of the data."""
    for bracket in "(<[":
        kind = kind.split(bracket)[0]
    return kind.strip()


_OPENING = """\
# The declaration of {source}: fill it in. It was made from the schema alone and holds nothing of the data.
# Limits and values must be public knowledge: do not look them up in the data. Write them inside the braces.

# [budget]
# epsilon = ?                   # what all answers together may reveal, such as 1.0
# delta = ?                     # such as 1e-6; needed for groups by text that is no category
"""

_TABLE = """
[tables.{key}]
source = {source}
unit = "{unfilled}"                   # who is protected: the column that names the person; "row" if each row is another
# via = {{ order_id = "orders.id" }}  # instead of unit, if rows name the rows of another table, whose persons they are of
# neighbors = "replace"         # only if the number of persons is public; else "add_remove", the default
# max_rows = ?                  # in one answer a person weighs at most as much as so many rows
# max_rows_per_group = ?        # and within one group at most as much as so many; optional
# max_groups = ?                # and at most as much as in so many groups; optional

[tables.{key}.columns]
"""


def _rendered(source: str, tables: Mapping[str, Fields], from_csv: bool) -> str:
    text = _OPENING.format(source=_quoted(source))
    for name, fields in tables.items():
        declared = "data" if name_fault(name) else name
        text += _TABLE.format(key=key_text(declared), source=_quoted(source), unfilled=UNFILLED)
        text += "".join(f"{line}\n" for line in _column_lines(fields, from_csv))
    return text


def _column_lines(fields: Fields, from_csv: bool) -> list[str]:
    lines, left_out, seen = [], [], set()
    if from_csv:
        lines.append("# A CSV file has no types: change them where a column is no text.")
    for position, (name, kind, word) in enumerate(fields, start=1):
        if fault := name_fault(name):
            left_out.append(f"column {position}: {fault}")
        elif name.casefold() in seen:
            left_out.append(f"{_quoted(name)}: another column has this name, but for case")
        elif kind is None:
            left_out.append(f"{_quoted(name)}: type {word} is not supported")
        else:
            hint = _CSV_HINT if from_csv else _HINTS[kind]
            line = f'{key_text(name)} = {{ type = "{kind}" }}'
            lines.append(f"{line:<40}  # {hint}" if hint else line)
        seen.add(name.casefold())
    return lines + (["# Left out:"] + [f"#   {line}" for line in left_out] if left_out else [])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
