"""A declaration to fill in, made from the schema of a file or a database: names and types of columns, nothing else.

What only the owner can know (who is protected, which limits are public) is left open, and `Dataset.load` refuses the
stub until the unit is filled in. No limit, value, statistic or row count of the data is read.
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
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias

from sordino.errors import InvalidDeclaration
from sordino.privacy.exact import show
from sordino.privacy.paths import not_a_file
from sordino.query.dataset import Kind, Source
from sordino.query.declaration import UNFILLED, key_text, name_fault
from sordino.query.header_types import suggested
from sordino.query.same_name import folded
from sordino.query.sources import database_kind, name_parts, shown_address, source_kind, table_name

__all__ = ["Fields", "schema_stub", "source_columns", "type_word"]

_LONGEST_HEADER = 2**20

_HINTS: Mapping[Kind, str] = {
    "int": "min = ?, max = ?", "float": "min = ?, max = ?, step = ?", "bool": "", "category": "",
    "text": 'type = "category", values = [?] if its values are public',
    "date": "min = ?, max = ?", "datetime": "min = ?, max = ?",
}  # fmt: skip
_CSV_HINT = 'type = "int", "float", "bool", "date", "datetime", or "category" with values = [?]'

Fields: TypeAlias = Sequence[tuple[str, Kind | None, str]]
"""Name, kind (None: not supported) and the source's own word for the type, column by column."""


PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class _Section:
    """One table of a stub: its name, its source as written, what it is called inside of it, and its columns."""

    name: str
    source: str
    fields: Fields
    inside: str | None = None
    from_csv: bool = False
    public: bool = False


def schema_stub(
    path: PathLike | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    table: str | None = None,
    public: Sequence[PathLike] = (),
) -> str:
    """The text of a declaration of files or a database; written to `output` if given, never over a file.

    Of a database all tables that may be read are written, or the one that is called `table`. `public` are further
    files, whose tables protect nobody.
    """
    target = None if output is None else _target(output)
    sources = list(path) if isinstance(path, list | tuple) else [path]
    if not sources:
        raise InvalidDeclaration(
            "no source", "a stub is made of at least one file", 'Pass "visits.parquet" or the like.'
        )
    if table is not None and not any(
        isinstance(source, str) and database_kind(source) for source in sources
    ):
        raise InvalidDeclaration(
            f"table = {show(table)}", "only a database has tables to choose from", "Leave it out."
        )
    found: list[_Section] = []
    for place, source in enumerate([*sources, *public]):
        found += _sections(source, table, target, public=place >= len(sources))
    return _written(_rendered(_named_apart(found)), target)


def _sections(
    source: object, table: str | None, target: Path | None, *, public: bool
) -> list[_Section]:
    """The tables of one source."""
    if isinstance(source, str) and (kind := database_kind(source)) is not None:
        return _of_database(kind, source, table, public=public)
    file = _data_file(source)
    ending = source_kind(file)
    written = file.name if target is None else Path(os.path.relpath(file, target.parent)).as_posix()
    if ending == "duckdb":
        return [
            _Section(name, written, fields, public=public)
            for name, fields in _duckdb_fields(file).items()
        ]
    fields = _parquet_fields(file) if ending == "parquet" else _csv_fields(file)
    return [_Section(table_name(file), written, fields, from_csv=ending == "csv", public=public)]


def _of_database(kind: str, address: str, table: str | None, *, public: bool) -> list[_Section]:
    """The tables of a database: its engine tells them; the password of the address is not written down."""
    catalog = import_module("sordino.engines.openers").catalog_of(kind)
    tables: dict[str, Fields] = catalog.tables_of(address, table)
    shown = "spark" if address == "spark" else shown_address(address)
    if not tables:
        hint = "Check the address and the rights of its user, or name one table."
        raise InvalidDeclaration(show(shown), "it holds no table that may be read", hint)
    named: dict[str, tuple[str, Fields]] = {}
    for place, fields in tables.items():
        own = (name_parts(place) or [place])[-1]
        named[
            own if folded(own) not in {folded(name) for name in named} else place.replace(".", "_")
        ] = place, fields
    return [
        _Section(name, shown, fields, inside=place, public=public)
        for name, (place, fields) in named.items()
    ]


def _named_apart(sections: Sequence[_Section]) -> list[_Section]:
    """Sections with names that can be declared, no two alike;
    a DuckDB table that is renamed keeps its own one inside.
    """
    found: dict[str, _Section] = {}
    for section in sections:
        first = "data" if name_fault(section.name) else section.name
        tries = chain([first], (f"{first}_{n}" for n in count(2)))
        name = next(each for each in tries if folded(each) not in found)
        inside = section.inside
        if name != section.name and section.source.lower().endswith(".duckdb"):
            inside = section.name
        found[folded(name)] = replace(section, name=name, inside=inside)
    return list(found.values())


def _written(text: str, target: Path | None) -> str:
    if target is not None:
        try:
            with target.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            rule = (
                "it exists already"
                if isinstance(error, FileExistsError)
                else "it cannot be written"
            )
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
                raise InvalidDeclaration(
                    f"tables.{table}", f"the file has no table {show(wanted)}", hint
                )
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
    fault = not_a_file(Path(text))
    if not fault and any(unicodedata.category(c) in {"Cc", "Cs"} for c in text):
        fault = "a declaration names files by proper text without control characters"
    if fault:
        raise InvalidDeclaration(show(text), fault, "Check the path.")
    if any(c in Path(text).name for c in "*?"):  # a declaration would refuse it as a pattern
        raise InvalidDeclaration(
            show(text), "the name of a source holds no * or ?", "Rename the file."
        )
    return Path(text)


def _target(output: object) -> Path:
    text = os.fspath(output) if isinstance(output, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text or not text.lower().endswith(".toml"):
        shown = (
            show(text) if isinstance(text, str) else f"an object of type {type(output).__name__}"
        )
        raise InvalidDeclaration(
            shown, "a declaration is a file that ends in .toml", 'Pass output="visits.toml".'
        )
    return Path(text)


def _unreadable(file: Path, what: str) -> InvalidDeclaration:
    # The reader's own words are left out: they may quote the data.
    return InvalidDeclaration(
        show(file.name),
        f"it cannot be read as {what}",
        "Check the file, or write the declaration by hand.",
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
    # others cannot be declared
    tables = {table: fields for table, fields in found.items() if not name_fault(table)}
    if not tables:
        raise InvalidDeclaration(
            show(file.name), "its main schema holds no table", "Create one first."
        )
    return tables


def _csv_fields(file: Path) -> Fields:
    opened = gzip.open if file.name.lower().endswith(".gz") else open
    try:
        with opened(
            file, "rb"
        ) as lines:  # in bytes: to decode would go beyond the first line, into cells
            header = lines.readline(_LONGEST_HEADER).split(b"\r")[0].decode("utf-8-sig")
        names = next(csv.reader([header], strict=True), [])
    except (OSError, EOFError, ValueError, csv.Error, zlib.error):
        raise _unreadable(file, "a CSV file") from None
    if not names or len(header) == _LONGEST_HEADER:
        rule = "its first line is empty, or longer than 1 MiB"
        raise InvalidDeclaration(show(file.name), rule, "It must name the columns.")
    if len(names) == 1 and any(c in names[0] for c in ";\t|"):
        rule = "the columns of a CSV file are separated by commas"
        raise InvalidDeclaration(show(file.name), rule, "Convert it, to Parquet if you can.")
    return [(name, suggested(name), "text") for name in names]


def type_word(kind: str) -> str:
    """The word of a type without its parameters: those of an ENUM,
    also deep inside a STRUCT, are values of the data.
    """
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

_PROTECTED = """\
unit = "{unfilled}"                   # who is protected: the column that names the person; "row" if each row is another
# via = {{ order_id = "orders.id" }}  # instead of unit, if each row belongs to a row of another table, and to its person
# neighbors = "replace"         # only if the number of persons is public; default: "add_remove"
# max_rows = ?                  # at most this many rows of each person count in one answer
# max_rows_per_group = ?        # and at most this many in each group; optional
# max_groups = ?                # and in at most this many groups; optional
"""
_PUBLIC = """\
public = true                   # everybody may see every cell of it; it is there to be joined
# key = ["?"]                   # the columns that no two of its rows share
"""


def _rendered(sections: Sequence[_Section]) -> str:
    sources = list(dict.fromkeys(section.source for section in sections))
    text = _OPENING.format(source=", ".join(map(_quoted, sources)))
    for section in sections:
        text += f"\n[tables.{key_text(section.name)}]\nsource = {_quoted(section.source)}\n"
        text += f"table = {_quoted(section.inside)}\n" if section.inside is not None else ""
        text += _PUBLIC if section.public else _PROTECTED.format(unfilled=UNFILLED)
        text += f"\n[tables.{key_text(section.name)}.columns]\n"
        text += "".join(f"{line}\n" for line in _column_lines(section.fields, section.from_csv))
    return text


def _column_lines(fields: Fields, from_csv: bool) -> list[str]:
    lines, left_out, seen = [], [], set()
    if from_csv:
        lines.append(
            "# A CSV file has no types: these are guessed from the names, and no cell was read. Correct them."
        )
    for position, (name, kind, word) in enumerate(fields, start=1):
        if fault := name_fault(name):
            left_out.append(f"column {position}: {fault}")
        elif folded(name) in seen:
            left_out.append(f"{_quoted(name)}: another column has this name, but for case")
        elif kind is None:
            left_out.append(f"{_quoted(name)}: type {word} is not supported")
        else:
            hint = _CSV_HINT if from_csv and kind == "text" else _HINTS[kind]
            line = f'{key_text(name)} = {{ type = "{kind}" }}'
            lines.append(f"{line:<40}  # {hint}" if hint else line)
        seen.add(folded(name))
    return lines + (["# Left out:"] + [f"#   {line}" for line in left_out] if left_out else [])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
