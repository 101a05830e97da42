"""PostgreSQL's types at the gate: which are read as what, and the expression that brings a cell into its canonical
form.

None of the expressions can fail on any cell. Texts are compared byte by byte. A text or a name of more than a mebibyte
is NULL: to group by it could take all memory, and the failure would tell whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from sordino.engines.gate import Identity
from sordino.engines.postgres.dialect import text
from sordino.query.dataset import Column, Kind
from sordino.query.types import Number

__all__ = ["cell", "convertible", "identity", "kind_of"]

_WHOLE = frozenset(["smallint", "integer", "bigint"])
_TEXT = frozenset(["text", "character varying", "character", "enum"])
_LONGEST_CELL = 2**20
_FITTING: Mapping[Kind, frozenset[str]] = {
    "int": _WHOLE,
    "float": _WHOLE | {"real", "double precision", "numeric"},
    "bool": frozenset({"boolean"}),
    "text": _TEXT,
    "date": frozenset({"date"}),
    "datetime": frozenset({"timestamp without time zone", "timestamp with time zone"}),
}


def _name(kind: str) -> str:
    """The type without parameters: numeric(10,2) is numeric, timestamp(3) without time zone as the whole is."""
    return re.sub(r"\([^)]*\)", "", kind).strip()


def _digits(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a numeric that has them."""
    match = re.fullmatch(r"numeric\((\d+),(-?\d+)\)", kind)
    return None if match is None else (int(match[1]), int(match[2]))


def _is_whole(kind: str) -> bool:
    """Whether cells are whole numbers: also numeric without places, of up to 38 digits."""
    digits = _digits(kind)
    return kind in _WHOLE or (digits is not None and digits[0] <= 38 and digits[1] == 0)


def _text(name: str, raw: str) -> str:
    """A text of bearable length, compared byte by byte."""
    if name == "enum":  # not by CAST: owners of a type may have made one of their own
        return f'(CASE WHEN {raw} IS NOT NULL THEN CONCAT({raw}) END COLLATE "C")'
    return f'(CASE WHEN OCTET_LENGTH(CAST({raw} AS TEXT)) <= {_LONGEST_CELL} THEN CAST({raw} AS TEXT) END COLLATE "C")'


def _spelled(function: str, raw: str) -> str:
    """The text of a cell as its type itself writes it."""
    return f'(TEXTIN({function}({raw})) COLLATE "C")'


def identity(kind: str, raw: str) -> Identity | None:
    """The canonical person or key; None where cells of this type do not name persons.

    Example:
        >>> identity("integer", "r"), identity("double precision", "r")
        (Identity(sql='CAST(r AS BIGINT)', cells='whole numbers'), None)
    """
    name = _name(kind)
    if name in _WHOLE:
        return Identity(f"CAST({raw} AS BIGINT)", "whole numbers")
    if name in _TEXT:
        return Identity(_text(name, raw), "text")
    if name == "uuid":
        return Identity(_spelled("UUID_OUT", raw), "text")
    if name == "bytea":  # spelled as DuckDB does
        short = (
            f"CASE WHEN OCTET_LENGTH({raw}) <= {_LONGEST_CELL} THEN UPPER(ENCODE({raw}, 'hex')) END"
        )
        return Identity(f'({short} COLLATE "C")', "BLOB")
    # with as many places as its column has, else without zeros at the end: equal ones are spelled
    # alike
    if name == "numeric":
        return (
            Identity(raw, kind.upper())
            if _digits(kind)
            else Identity(f"TRIM_SCALE({raw})", "NUMERIC")
        )
    return None


def cell(column: Column, kind: str, raw: str) -> str | None:
    """The canonical cell of a declared column; None where this type is not read as the declared one."""
    name = _name(kind)
    match column.kind:
        case "int":
            return _whole(kind, raw)
        case "float":
            if name in _WHOLE or name in ("real", "double precision"):
                return f"CAST({raw} AS DOUBLE PRECISION)"
            return _double(kind, raw) if name == "numeric" else None
        case "bool":
            return raw if name == "boolean" else None
        case "category" if isinstance(column.type, Number):
            return _whole(kind, raw)
        case "category" | "text":
            return _text(name, raw) if name in _TEXT else None
        case "date":
            return f"CAST({raw} AS DATE)" if name == "date" else None
        case "datetime" if column.zone is not None:
            return _on_the_wall(raw, column.zone) if name == "timestamp with time zone" else None
        case "datetime":
            if name == "timestamp with time zone":
                return _on_the_wall(raw, "UTC")
            return f"CAST({raw} AS TIMESTAMP)" if name == "timestamp without time zone" else None
        case _:
            assert_never(column.kind)


def _whole(kind: str, raw: str) -> str | None:
    if _name(kind) in _WHOLE:
        return f"CAST({raw} AS BIGINT)"
    # compared as it is before it is cast; NaN is no number
    return f"CASE WHEN {raw} <> 'NaN' THEN {raw} END" if _is_whole(kind) else None


def _double(kind: str, raw: str) -> str:
    """The nearest double; PostgreSQL fails on numbers that are too large or too small for one."""
    digits = _digits(kind)
    plain = f"CAST({raw} AS DOUBLE PRECISION)"
    if digits is not None and digits[0] <= 300 and abs(digits[1]) <= 300:
        return plain
    arms = f"WHEN {raw} = 'NaN' THEN {text_double('NaN')} WHEN ABS({raw}) < 1e-300 THEN {text_double('0')}"
    arms += f" WHEN {raw} > 1e300 THEN {text_double('Infinity')} WHEN {raw} < -1e300 THEN {text_double('-Infinity')}"
    return f"CASE {arms} ELSE {plain} END"


def text_double(value: str) -> str:
    """A double by its name."""
    return f"CAST('{value}' AS DOUBLE PRECISION)"


def _on_the_wall(raw: str, zone: str) -> str:
    """What clocks in a zone showed at a moment; beyond the calendar its two ends, where a conversion could fail."""
    first, last = "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"
    ends = f"WHEN {raw} < '{first}' THEN TIMESTAMP '0001-01-01' WHEN {raw} > '{last}'"
    ends += " THEN TIMESTAMP '9999-12-31 23:59:59.999999'"
    return (
        f"CASE WHEN ISFINITE({raw}) THEN CASE {ends} ELSE {raw} AT TIME ZONE {text(zone)} END END"
    )


def kind_of(kind: str) -> Kind | None:
    """The kind as which a column of this type is declared at first; None where none reads it."""
    return (
        "int"
        if _is_whole(kind)
        else next((word for word, kinds in _FITTING.items() if _name(kind) in kinds), None)
    )


def convertible(kind: str) -> str:
    """What to do about a type that does not fit, in words."""
    name = _name(kind)
    kinds = [f'"{word}"' for word, kinds in _FITTING.items() if name in kinds]
    if kinds and name not in ("real", "double precision", "numeric"):
        return f"It can be declared as {' or '.join(kinds)}; else convert it in the database."
    if kinds:
        return (
            'It can be declared as "float"; for whole numbers or persons '
            "convert it in the database: ALTER ... TYPE bigint."
        )
    return "No declared type reads it. Convert it in the database to whole numbers, text, dates or the like."
