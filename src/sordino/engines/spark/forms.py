"""Spark's types at the gate: which are read as what, and the expression that brings a cell into its one canonical form.

None of the expressions can fail on any cell. Text is compared byte by byte, whatever collation its column has; moments
with a time zone are read in the declared zone, or in UTC. A person is a whole number, a decimal, bytes or text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from sordino.engines.gate import Identity
from sordino.engines.spark.dialect import text
from sordino.query.dataset import Column, Kind
from sordino.query.types import Number

__all__ = ["TEXT", "WHOLE_NUMBERS", "cell", "convertible", "identity", "kind_of", "typed_text"]

WHOLE_NUMBERS, TEXT = "whole numbers", "text"

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_REAL = _WHOLE | {"float", "double", "decimal"}
_FITTING: Mapping[Kind, frozenset[str]] = {
    "int": _WHOLE,
    "float": _REAL,
    "bool": frozenset({"boolean"}),
    "text": frozenset({"string"}),
    "date": frozenset({"date"}),
    "datetime": frozenset({"timestamp", "timestamp_ntz"}),
}
_OF_TEXT = {
    "int": "DECIMAL(38, 0)",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP_NTZ",
}
_FIRST, _LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
_WHOLE_TEXT = "^[+-]?[0-9]{1,38}$"
_WITH_OFFSET = ":[0-9]{2}([.][0-9]+)? ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_REAL_TEXT = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_DATE_TEXT = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}$"
_MOMENT_TEXT = (
    "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?$"
)


def _name(engine_type: str) -> str:
    """The type without parameters and collation: decimal(18,2) is decimal, and array<int> is no int."""
    return re.sub(r"\(.*\)$| collate .*$", "", engine_type.strip().lower())


def _whole(engine_type: str) -> bool:
    """Whole numbers of up to 64 bits, or as decimals of up to 38 digits: Spark reads unsigned ones of 64 bits so."""
    return (
        _name(engine_type) in _WHOLE
        or re.fullmatch(r"decimal\(\d+,0\)", engine_type.strip().lower()) is not None
    )


def identity(engine_type: str, raw: str) -> Identity | None:
    """The canonical person or key; None where cells of this type do not name persons.

    Example:
        >>> identity("int", "r0"), identity("double", "r0")
        (Identity(sql='CAST(r0 AS BIGINT)', cells='whole numbers'), None)
    """
    name = _name(engine_type)
    if name in _WHOLE:
        return Identity(f"CAST({raw} AS BIGINT)", WHOLE_NUMBERS)
    if name == "binary":  # as text that every engine spells alike
        return Identity(f"HEX({raw})", "bytes")
    if name == "decimal":
        return Identity(raw, engine_type.strip().upper())
    return Identity(_text(raw), TEXT) if name == "string" else None


def cell(column: Column, engine_type: str, raw: str) -> str | None:
    """The canonical cell of a declared column; None where this type is not read as the declared one.

    Example:
        >>> cell(Column("int", Number()), "smallint", "r0")
        'CAST(r0 AS BIGINT)'
        >>> cell(Column("int", Number()), "string", "r0") is None
        True
    """
    name = _name(engine_type)
    match column.kind:
        case "int":
            return _number(engine_type, raw) if _whole(engine_type) else None
        case "float":
            return _number(engine_type, raw) if name in _REAL else None
        case "bool":
            return raw if name == "boolean" else None
        case "category" if isinstance(column.type, Number):
            return _number(engine_type, raw) if _whole(engine_type) else None
        case "category" | "text":
            return _text(raw) if name == "string" else None
        case "date":
            return raw if name == "date" else None
        case "datetime" if column.zone is not None:
            return _on_the_wall(raw, column.zone) if name == "timestamp" else None
        case "datetime":
            # the session's time zone is UTC
            return (
                f"CAST({raw} AS TIMESTAMP_NTZ)" if name in ("timestamp", "timestamp_ntz") else None
            )
        case _:
            assert_never(column.kind)


def _number(engine_type: str, raw: str) -> str:
    return f"CAST({raw} AS BIGINT)" if _name(engine_type) in _WHOLE else raw


def _text(raw: str) -> str:
    return f"COLLATE({raw}, 'UTF8_BINARY')"


def _on_the_wall(raw: str, zone: str) -> str:
    """What clocks in a zone showed at a moment; far beyond the calendar, its two ends."""
    first, last = (f"CAST('{end}' AS TIMESTAMP_NTZ)" for end in (_FIRST, _LAST))
    begins, ends = (f"CAST('{end}' AS TIMESTAMP)" for end in (_FIRST, _LAST))
    shown = f"CAST(FROM_UTC_TIMESTAMP({raw}, {text(zone)}) AS TIMESTAMP_NTZ)"
    return (
        f"CASE WHEN {raw} < {begins} THEN {first} WHEN {raw} > {ends} THEN {last} ELSE {shown} END"
    )


def typed_text(column: Column | None, raw: str, *, names: bool = False) -> str:
    """A cell of text in its declared type, as a CSV file needs it; NULL where it does not convert.

    What `names` somebody is not rounded; other whole numbers are, as DuckDB does.

    Spark reads more than DuckDB as numbers and dates ("1d", "2020-1"), so that a pattern comes first.
    """
    if column is not None and column.zone is not None:
        moment = f"CASE WHEN {raw} RLIKE {text(_WITH_OFFSET)} THEN TRY_CAST({raw} AS TIMESTAMP) END"
        return _on_the_wall(f"({moment})", column.zone)
    kind = None if column is None else column.kind
    if column is not None and kind == "category" and isinstance(column.type, Number):
        kind = "int"
    if kind is None or kind not in _OF_TEXT:
        return raw
    trimmed = f"TRIM(BOTH ' ' FROM {raw})"
    patterns = {"int": _WHOLE_TEXT, "float": _REAL_TEXT, "bool": "^(?i)(true|false|t|f|1|0|yes|no|y|n)$",
                "date": _DATE_TEXT, "datetime": _MOMENT_TEXT}  # fmt: skip
    if kind == "int" and not names:
        patterns["int"] = _REAL_TEXT
    fits = f"{trimmed} RLIKE {text(patterns[kind])}"
    if kind == "date":  # with a time of day, it is the day
        day = f"CAST(TRY_CAST({raw} AS TIMESTAMP_NTZ) AS DATE)"
        return f"CASE WHEN {fits} THEN TRY_CAST({trimmed} AS DATE) WHEN {raw} RLIKE {text(_MOMENT_TEXT)} THEN {day} END"
    if kind == "float":
        fits = f"({fits} OR LOWER({trimmed}) IN ('nan', 'inf', '-inf', 'infinity', '-infinity'))"
    return f"CASE WHEN {fits} THEN TRY_CAST({trimmed} AS {_OF_TEXT[kind]}) END"


def kind_of(engine_type: str) -> Kind | None:
    """The kind as which a column of this type is declared at first; None where none reads it."""
    if _whole(engine_type):
        return "int"
    return next((kind for kind, types in _FITTING.items() if _name(engine_type) in types), None)


def convertible(engine_type: str) -> str:
    """What to do about a type that does not fit, in words."""
    name = _name(engine_type)
    kinds = [f'"{kind}"' for kind, types in _FITTING.items() if name in types]
    if kinds and name not in ("float", "double"):
        return f"It can be declared as {' or '.join(kinds)}; else convert it in the source."
    if kinds:
        return 'It can be declared as "float"; for whole numbers or persons convert it in the source: CAST(x AS BIGINT).'
    return "No declared type reads it. Convert it in the source to whole numbers, text, dates or the like."
