"""The JSON Schema of a declaration, for editors that complete and check TOML (Taplo, VS Code).

It is made from the same lists of keys, words and limits as `declaration.py` reads by. It knows the structure: which
keys there are, of what type, and which of them go together. What depends on several values, such as min below max,
only `Dataset.load` and `sordino check` say. A test holds both against each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from sordino.privacy.neighbors import Neighbors
from sordino.query.bounds import NAMES
from sordino.query.columns import KEYS, MOST_VALUES
from sordino.query.dataset import Kind
from sordino.query.declaration import (
    OF_ALL,
    OF_BUDGET,
    OF_FILE,
    OF_LEDGER,
    OF_PARENT,
    OF_PROTECTED,
    UNFILLED,
)
from sordino.query.entries import LONGEST_NAME, MOST_ROWS
from sordino.query.sources import FORMATS, OF_SOURCES, SUFFIXES
from sordino.query.types import LARGEST

__all__ = ["SCHEMA_FILE", "declaration_schema", "schema_text"]

SCHEMA_FILE = Path(__file__).with_name("declaration.schema.json")
"""The schema as it comes with the package."""

Schema = dict[str, Any]

_CONTROL = "[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029]"
_TEXT: Schema = {"type": "string", "pattern": "\\S", "not": {"pattern": _CONTROL}}
_NAME: Schema = {**_TEXT, "maxLength": LONGEST_NAME}
_COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_ROWS}
_NUMBER: Schema = {"type": "number", "minimum": -1e300, "maximum": 1e300}
_WHOLE: Schema = {"type": "integer", "exclusiveMinimum": -LARGEST, "exclusiveMaximum": LARGEST}
_DATE: Schema = {
    "type": "string",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "not": {"pattern": _CONTROL},
}
_CLOCK = "[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?"
_MOMENT: Schema = {**_DATE, "pattern": f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}$"}
_PART = '("([^"]|"")+"|[^".]+)'

_ROWS = sorted({"".join(letters) for letters in product("rR", "oO", "wW")} - {"row"})
"""What is neither a column nor "row"."""

_LIMITS: Mapping[Kind, Schema] = {
    "int": _WHOLE,
    "float": _NUMBER,
    "date": _DATE,
    "datetime": _MOMENT,
}
_OF_COLUMNS: Mapping[str, Schema] = {
    "step": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e300,
             "description": "Numbers are rounded to multiples of it where they are added up. Default: the largest power of "
                            "ten up to a millionth of max - min."},
    "values": {"type": "array", "minItems": 1, "maxItems": MOST_VALUES, "uniqueItems": True,
               "anyOf": [{"items": {"type": "string", "not": {"pattern": "\\x00"}}}, {"items": _WHOLE}],
               "description": "All possible values, which are public: all text, or all whole numbers."},
    "max_length": {**_COUNT, "description": "The most characters of a text. Optional."},
    "zone": {"type": "string", "pattern": "\\S",
             "description": 'The time zone in which moments are read, such as "Europe/Berlin". Default: UTC.'},
    "nullable": {"type": "boolean", "default": True, "description": "Whether cells may be missing. Default: true."},
}  # fmt: skip
_KINDS: Mapping[Kind, str] = {
    "int": "Whole numbers below 2^62 in size.", "float": "Numbers.", "bool": "True or false.",
    "category": "Text or whole numbers from a public list; any other cell is read as missing.",
    "text": "Text whose values are not declared.", "date": "Days.", "datetime": "Days with a time.",
}  # fmt: skip
_OF_TABLES: Mapping[str, Schema] = {
    "source": {**_TEXT, "description": f"A file that ends in {', '.join(SUFFIXES)}, relative to the folder of this file; or "
                                       '"postgresql://user@host/database", "spark", "sc://host:15002".'},
    "table": {**_TEXT, "description": "The name of the table in a DuckDB file or database. Default: that of this section."},
    "files": {**_TEXT, "not": {"pattern": f"{_CONTROL}|[*?\\[\\]{{}},]"},
              "description": "For Spark, instead of table: a file or folder."},
    "format": {"enum": list(FORMATS), "default": "parquet", "description": "For Spark: the format of files."},
    "password_file": {"type": "string", "pattern": "\\S", "description": "For PostgreSQL: a file that holds the password."},
    "materialized": {"type": "boolean", "default": False,
                     "description": "For PostgreSQL: true if it is a materialized view, each row of one person."},
    "unit": {**_NAME, "not": {"anyOf": [{"pattern": _CONTROL}, {"enum": [UNFILLED, *_ROWS]}]},
             "description": 'Who is protected: the column that names the person, or "row" if each row is another person.'},
    "persons": {**_NAME, "description": "The kind of persons that the unit names. Tables of one kind can be joined on them. "
                                        "Default: the name of the unit's column."},
    "via": {"type": "object", "minProperties": 1, "propertyNames": _NAME,
            "additionalProperties": {**_TEXT, "pattern": f"^{_PART}\\.{_PART}$"},
            "description": 'Instead of unit: to which row of another table a row belongs: { order_id = "orders.id" }.'},
    "neighbors": {"enum": [member.value for member in Neighbors], "default": Neighbors.ADD_REMOVE.value,
                  "description": '"add_remove" hides whether a person took part. "replace" hides what the rows of a person '
                                 "say, and the number of persons is public."},
    "max_rows": {**_COUNT, "description": "In one answer, at most this many rows of each person count."},
    "max_rows_per_group": {**_COUNT, "description": "In each group, at most this many rows of each person count. Optional."},
    "max_groups": {**_COUNT, "description": "In one answer, each person counts in at most this many groups. Optional."},
    "public": {"type": "boolean", "default": False, "description": "true: the table protects nobody. Default: false."},
    "key": {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"},
            "description": "For a public table: the columns that no two of its rows share."},
}  # fmt: skip
_OF_BUDGETS: Mapping[str, Schema] = {
    "epsilon": {"type": "number", "exclusiveMinimum": 0, "maximum": 1_000_000,
                "description": "What all answers together may reveal. Required."},
    "delta": {"type": "number", "minimum": 0, "exclusiveMaximum": 1,
              "description": "The same, such as 1e-6. Default: 0."},
    "key_delta": {"type": "number", "minimum": 0, "maximum": 1,
                  "description": "The part of delta for selecting groups by text that is no category. Default: half of it "
                                 "where there is such text, else 0."},
}  # fmt: skip


def declaration_schema() -> Schema:
    """The schema, in draft 7, which editors know best."""
    tables = {"type": "object", "minProperties": 1, "propertyNames": _NAME,
              "additionalProperties": {"$ref": "#/definitions/table"}, "description": "The tables, by name."}  # fmt: skip
    parts = {
        "budget": {**_section(OF_BUDGET, _OF_BUDGETS), "required": ["epsilon"],
                   "description": "What all answers together may reveal."},
        "ledger": {**_section(OF_LEDGER, {"path": {
                       "type": "string", "pattern": "\\S", "not": {"pattern": "[\\x00-\\x1f\\x7f-\\x9f]"},
                       "description": "Where the spending is written down: a file, or an address of PostgreSQL. Default: "
                                      "the name of this file, ending in .ledger."}}),
                   "description": "Where the spending is written down."},
        "tables": tables,
    }  # fmt: skip
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A declaration of Sordino",
        "description": "Who is protected, what is public of every column, and how much all answers together may reveal.",
        **_section(OF_FILE, parts),
        "required": ["tables"],
        "definitions": {"table": _table(), "column": {"oneOf": [_column(kind) for kind in KEYS]}},
    }


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(declaration_schema(), indent=1, ensure_ascii=True) + "\n"


def _section(keys: tuple[str, ...], described: Mapping[str, Schema]) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {key: described[key] for key in keys},
    }


def _column(kind: Kind) -> Schema:
    limit = (
        {**_LIMITS[kind], "description": "A public limit, not looked up in the data."}
        if kind in _LIMITS
        else {}
    )
    described = {
        "type": {"const": kind, "description": _KINDS[kind]},
        "min": limit,
        "max": limit,
        **_OF_COLUMNS,
    }
    required = ["type", "values"] if kind == "category" else ["type"]
    together = {"dependencies": {"min": ["max"], "max": ["min"]}} if "min" in KEYS[kind] else {}
    return {
        "description": _KINDS[kind],
        **_section(KEYS[kind], described),
        "required": required,
        **together,
    }


def _without(*keys: str) -> Schema:
    return {"properties": dict.fromkeys(keys, False)}


def _table() -> Schema:
    columns = {
        "type": "object",
        "propertyNames": _NAME,
        "additionalProperties": {"$ref": "#/definitions/column"},
        "description": "What is public of each column. Others cannot be asked about.",
    }
    described = {**_OF_TABLES, "columns": columns}
    if_public = {
        "if": {"properties": {"public": {"const": True}}, "required": ["public"]},
        "then": _without(*OF_PROTECTED),
        "else": {**_without("key"), "anyOf": [{"required": ["unit"]}, {"required": ["via"]}]},
    }
    if_via = {"if": {"required": ["via"]}, "then": _without(*OF_PARENT)}
    if_row = {
        "if": {"properties": {"unit": {"const": "row"}}, "required": ["unit"]},
        "then": {"properties": {"persons": False, **{name: {"const": 1} for name in NAMES}}},
    }
    keys = tuple(dict.fromkeys((*OF_ALL, *OF_PROTECTED, "key")))
    return {
        **_section(keys, described),
        "required": ["source"],
        "allOf": [
            if_public,
            if_via,
            if_row,
            _if_source(_letters("postgres") + "(" + _letters("ql") + ")?://", _POSTGRES, _OTHERS),
        ],
    }


def _letters(word: str) -> str:
    """A pattern of a word in either case."""
    return "".join(
        f"[{letter}{letter.upper()}]" if letter.isalpha() else f"\\{letter}" for letter in word
    )


def _if_source(pattern: str, then: Schema, otherwise: Schema) -> Schema:
    source = {
        "properties": {"source": {"type": "string", "pattern": f"^{pattern}"}},
        "required": ["source"],
    }
    return {"if": source, "then": then, "else": otherwise}


def _but(*keys: str) -> Schema:
    """Of the keys that say where the rows are, only these."""
    return _without(*(key for key in OF_SOURCES[1:] if key not in keys))


_POSTGRES_ADDRESS = _letters("postgres") + "(" + _letters("ql") + ")?://"
_POSTGRES = _but("table", "password_file", "materialized")
_SPARK: Schema = {**_but("table", "files", "format"), "dependencies": {"format": ["files"]},
                  "not": {"required": ["table", "files"]}}  # fmt: skip
_ENDING = "(" + "|".join(map(_letters, SUFFIXES)) + ")$"
_DUCKDB: Schema = {
    "properties": {**_but("table")["properties"], "table": {"maxLength": LONGEST_NAME}}
}
_FILE: Schema = {
    "properties": {
        "source": {"pattern": _ENDING, "not": {"pattern": "[*?]|^[A-Za-z][A-Za-z0-9+.-]+:"}}
    },
    "allOf": [_if_source(".*" + _letters(".duckdb") + "$", _DUCKDB, _but())],
}
_OTHERS = _if_source("(spark$|" + _letters("sc") + "://)", _SPARK, _FILE)
