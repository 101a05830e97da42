"""DuckDB's types at the gate: which are read as what, and the expression that brings a cell into its one canonical
form.

None of the expressions can fail on any cell. Text is compared byte by byte, whatever collation its column has; moments
with a time zone are read in the declared zone, or in UTC. A person is a whole number, a decimal, bytes or text: among
these GROUP BY, JOIN and = agree (gate.md), which they do not for floats (NaN, -0.0) and nested types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from sordino.engines.gate import Identity
from sordino.query.dataset import Column, Kind
from sordino.query.types import Number

__all__ = ["TEXT", "WHOLE_NUMBERS", "cell", "convertible", "identity", "kind_of", "typed_text"]

WHOLE_NUMBERS, TEXT = "whole numbers", "text"

_WHOLE = frozenset(
    [
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
)
_REAL = _WHOLE | {"FLOAT", "DOUBLE", "DECIMAL"}
_MOMENT = frozenset(["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
_ZONED, _ZONED_FINE = "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"
# the calendar's ends, in microseconds since 1970
_FIRST, _LAST = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)
_WITH_OFFSET = ":[0-9]{2}([.][0-9]+)? ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_FITTING: Mapping[Kind, frozenset[str]] = {
    "int": _WHOLE,
    "float": _REAL,
    "bool": frozenset({"BOOLEAN"}),
    "text": frozenset({"VARCHAR", "ENUM"}),
    "date": frozenset({"DATE"}),
    "datetime": _MOMENT | {_ZONED, _ZONED_FINE},
}
_OF_TEXT = {
    "int": "HUGEINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}


def _name(engine_type: str) -> str:
    """The type without parameters: DECIMAL(18,2) is DECIMAL, and INTEGER[] is no INTEGER."""
    return re.sub(r"\(.*\)$", "", engine_type.strip().upper(), flags=re.DOTALL).strip()


def identity(engine_type: str, raw: str) -> Identity | None:
    """The canonical person or key; None where cells of this type do not name persons.

    Whole numbers are compared as such, whatever their widths; only UHUGEINT and HUGEINT would both become floats, where
    neighbouring numbers are one. So that one, decimals and bytes are compared among their own type only.

    Example:
        >>> identity("VARCHAR", "r0"), identity("DOUBLE", "r0")
        (Identity(sql='r0 COLLATE "binary"', cells='text'), None)
    """
    name = _name(engine_type)
    if name in _WHOLE:
        return Identity(raw, WHOLE_NUMBERS)
    # as text that every engine spells alike: which of a person's values count hangs on a hash of it
    if name == "BLOB":
        return Identity(f"HEX({raw})", name)
    if name in ("UHUGEINT", "DECIMAL"):
        return Identity(raw, engine_type.strip().upper())
    return Identity(_text(name, raw), TEXT) if name in ("VARCHAR", "ENUM", "UUID") else None


def cell(column: Column, engine_type: str, raw: str) -> str | None:
    """The canonical cell of a declared column; None where this type is not read as the declared one.

    Example:
        >>> cell(Column("float", Number()), "DECIMAL(18,2)", "r0")
        'r0'
        >>> cell(Column("int", Number()), "VARCHAR", "r0") is None
        True
    """
    name = _name(engine_type)
    match column.kind:
        case "int":
            return raw if name in _WHOLE else None
        case "float":
            return raw if name in _REAL else None
        case "bool":
            return raw if name == "BOOLEAN" else None
        case "category" if isinstance(column.type, Number):
            return raw if name in _WHOLE else None
        case "category" | "text":
            return _text(name, raw) if name in ("VARCHAR", "ENUM") else None
        case "date":
            return raw if name == "DATE" else None
        case "datetime" if column.zone is not None:
            if name == _ZONED_FINE:
                return _on_the_wall(f"MAKE_TIMESTAMPTZ(EPOCH_NS({raw}) // 1000)", column.zone)
            return _on_the_wall(raw, column.zone) if name == _ZONED else None
        case "datetime":
            if name == _ZONED:
                # by the number behind it: a cast would go by the time zone of this machine
                return f"CASE WHEN ISFINITE({raw}) THEN MAKE_TIMESTAMP(EPOCH_US({raw})) END"
            if name == _ZONED_FINE:  # nanoseconds, as pandas writes them
                return f"MAKE_TIMESTAMP(EPOCH_NS({raw}) // 1000)"
            return f"TRY_CAST({raw} AS TIMESTAMP)" if name in _MOMENT else None
        case _:
            assert_never(column.kind)


def _text(name: str, raw: str) -> str:
    return f'{raw} COLLATE "binary"' if name == "VARCHAR" else f"CAST({raw} AS VARCHAR)"


def _on_the_wall(raw: str, zone: str) -> str:
    """What clocks in a zone showed at a moment.

    Far beyond the calendar the conversion would fail: there, its two ends.
    """
    moment = f"EPOCH_US({raw})"
    inside = f"WHEN {moment} < {_FIRST} THEN MAKE_TIMESTAMP({_FIRST}) WHEN {moment} > {_LAST} THEN MAKE_TIMESTAMP({_LAST})"
    name = zone.replace("'", "''")
    return f"CASE WHEN ISFINITE({raw}) THEN CASE {inside} ELSE {raw} AT TIME ZONE '{name}' END END"


def typed_text(column: Column | None, raw: str) -> str:
    """A cell of text in its declared type, as a CSV file needs it; NULL where it does not convert."""
    if column is not None and column.zone is not None:
        # the engine would read a time without an offset by the time zone of this machine
        moment = f"CASE WHEN REGEXP_MATCHES({raw}, '{_WITH_OFFSET}') THEN TRY_CAST({raw} AS TIMESTAMPTZ) END"
        return _on_the_wall(f"({moment})", column.zone)
    kind = None if column is None else _OF_TEXT.get(column.kind)
    if column is not None and column.kind == "category" and isinstance(column.type, Number):
        kind = "HUGEINT"
    return raw if kind is None else f"TRY_CAST({raw} AS {kind})"


def kind_of(engine_type: str) -> Kind | None:
    """The kind as which a column of this type is declared at first; None where none reads it."""
    return next((kind for kind, types in _FITTING.items() if _name(engine_type) in types), None)


def convertible(engine_type: str) -> str:
    """What to do about a type that does not fit, in words."""
    name = _name(engine_type)
    kinds = [f'"{kind}"' for kind, types in _FITTING.items() if name in types]
    if kinds and name not in ("FLOAT", "DOUBLE"):
        return f"It can be declared as {' or '.join(kinds)}; else convert it in the source."
    if kinds:
        return 'It can be declared as "float"; for whole numbers or persons convert it in the source: CAST(x AS BIGINT).'
    return "No declared type reads it. Convert it in the source to whole numbers, text, dates or the like."
