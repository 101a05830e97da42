"""An answer as text: the form that is stored and read back without loss, and those for pipes.

The stored form is one JSON object with `"kind": "answer"` and `"v": 1`. Numbers are JSON numbers that read back to the
same 64 bits; NULL is null and an infinite number is "inf" or "-inf"; a key that JSON has no type for is an object of
one field, such as {"date": "2024-02-29"}. The same answer always gives the same text. The meaning of a version never
changes.
"""

from __future__ import annotations

import csv
import json
import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sordino.answer.answer import Answer, EstimateColumn, KeyColumn, ValueColumn
from sordino.errors import InvalidInput
from sordino.privacy.exact import Number
from sordino.privacy.json_form import encodable, list_of, read, text_of, texts_of, write
from sordino.query.aggregates.estimates import Estimates, Floats
from sordino.query.having import Cell

if TYPE_CHECKING:
    from sordino.ledger.receipt import Receipt

__all__ = ["VERSION", "csv_text", "dump", "load", "records", "stored_value", "value_of"]

VERSION = 1
_FIELDS = {"columns", "confidence", "notes", "privacy"}
_UNBOUNDED = {"inf": math.inf, "-inf": -math.inf}
_STARTS_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    *map(chr, (0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)),
)  # also the wide ones of East Asian keyboards
_PLAIN = {str, int, bool, float, type(None)}


def dump(answer: Answer) -> str:
    """The text of an answer, without its receipt; it can always be encoded as UTF-8."""
    fields = {
        "columns": [
            _key_fields(c) if isinstance(c, KeyColumn) else _estimate_fields(c)
            for c in answer.columns
        ],
        "confidence": _stored(answer.confidence),
        "notes": list(answer.notes),
        "privacy": answer.privacy,
    }
    try:
        return write("answer", VERSION, fields)
    except ValueError:
        hint = "Declare keys of at most 4,000 digits."
        raise InvalidInput(
            "a key with thousands of digits", "it cannot be written as text", hint
        ) from None


def load(text: str, receipt: Receipt | None = None) -> Answer:
    """The answer of a stored text, with a receipt if there is one."""

    def answer(fields: dict[str, Any]) -> Answer:
        if set(fields) != _FIELDS:
            raise ValueError
        return Answer(
            tuple(_column(entry) for entry in list_of(fields["columns"])),
            text_of(fields["privacy"]),
            receipt,
            _number(fields["confidence"]),
            texts_of(fields["notes"]),
        )

    return read(text, "answer", VERSION, "answer", answer)


def csv_text(answer: Answer, *, formulas: bool = False) -> str:
    """A line of names and one for each row; NULL is empty, and a lone surrogate is written as its escape.

    Texts that spreadsheets would run begin with an apostrophe, unless `formulas` are to stay.
    """
    columns = answer.to_dict()
    name = str if formulas else _inert
    lines = _Lines()
    # The longer end of line makes the writer quote both of its characters inside cells, in all versions of Python.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow([name(c) for c in columns])
    cells = (
        [name(c) if isinstance(c, str) else _csv_cell(c) for c in column]
        for column in columns.values()
    )
    writer.writerows(zip(*cells, strict=True))
    return encodable("".join(lines))


def records(answer: Answer) -> str:
    """A JSON array with an object for each row, one a line; moments as ISO text, and null for what is not finite."""
    columns = {name: [_json_cell(c) for c in cells] for name, cells in answer.to_dict().items()}
    write = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    rows = (
        write(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
    )
    return encodable("[" + ",\n ".join(rows) + "]")


class _Lines(list[str]):
    """What a CSV writer writes to: lines that end as those of other tools do."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def _inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula; also behind the blanks and line breaks that some of them skip."""
    return (
        f"'{text}"
        if text.startswith(_STARTS_FORMULA) or text.lstrip().startswith(_STARTS_FORMULA)
        else text
    )


def _csv_cell(cell: Cell) -> Any:
    match cell:
        case bool():
            return str(cell).lower()
        case date():
            return cell.isoformat()
        case _:
            return cell


def _json_cell(cell: Cell) -> Any:
    match cell:
        case date():
            return cell.isoformat()
        case float() if not math.isfinite(cell):
            return None
        case _:
            return cell


def _key_fields(column: KeyColumn) -> dict[str, Any]:
    kind = "value" if isinstance(column, ValueColumn) else "key"
    return {
        kind: column.name,
        "values": [v if type(v) in (str, int) else _stored(v) for v in column.values],
    }


def _estimate_fields(column: EstimateColumn) -> dict[str, Any]:
    e = column.estimates
    return {
        "estimate": column.name,
        "integer": bool(column.integer),
        "bounds": [_stored(bound) for bound in column.bounds],
        "value": _numbers(e.value),
        "low": _numbers(e.low),
        "high": _numbers(e.high),
    }


def _numbers(array: Floats) -> list[Any]:
    numbers: list[Any] = array.tolist()
    if np.isfinite(array).all():
        return numbers
    return [x if math.isfinite(x) else None if math.isnan(x) else str(x) for x in numbers]


def _stored(value: object) -> Any:
    """A key, bound or confidence as JSON."""
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(float(value))}
        case None | str() | int() | float():
            return value
        case Fraction():
            return {"fraction": [value.numerator, value.denominator]}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case _:
            rule = "the keys of an answer are texts, numbers, truth values, dates, moments or NULL"
            raise InvalidInput(
                f"a key of type {type(value).__name__}", rule, "Convert it to one of them."
            )


def stored_value(value: object) -> Any:
    """A value of a key as JSON."""
    return _stored(value)


def value_of(stored: Any) -> Any:
    """The value that JSON holds of a key."""
    return _value(stored)


def _column(entry: dict[str, Any]) -> KeyColumn | EstimateColumn:
    if set(entry) == {"value", "values"}:
        return ValueColumn(
            text_of(entry["value"]), tuple(_value(v) for v in list_of(entry["values"]))
        )
    if set(entry) == {"key", "values"}:
        return KeyColumn(text_of(entry["key"]), tuple(_value(v) for v in list_of(entry["values"])))
    if (
        set(entry) != {"estimate", "integer", "bounds", "value", "low", "high"}
        or type(entry["integer"]) is not bool
    ):
        raise ValueError
    lower, upper = (_bound(bound) for bound in list_of(entry["bounds"]))
    value, low, high = (_floats(entry[end]) for end in ("value", "low", "high"))
    if not len(value) == len(low) == len(high):
        raise ValueError
    estimates = Estimates(value, low, high)
    if not (
        np.array_equal(estimates.low, low, equal_nan=True)
        and np.array_equal(estimates.high, high, equal_nan=True)
    ):
        raise ValueError  # an end on the wrong side, which would have been moved
    # As they are: to round a second time, or to move into bounds that lie between whole numbers, could change them.
    return EstimateColumn.finished(
        text_of(entry["estimate"]), estimates, entry["integer"], (lower, upper)
    )


def _floats(stored: Any) -> Floats:
    numbers = list_of(stored)
    kinds = set(map(type, numbers))
    if not kinds <= {float, str, type(None)}:
        raise ValueError
    if str in kinds:
        numbers = [_UNBOUNDED[x] if type(x) is str else x for x in numbers]
    array = np.array(numbers, np.float64)
    if np.isfinite(array).sum() != sum(type(x) is float for x in list_of(stored)):
        raise ValueError  # a number too large for a float
    return array


def _value(stored: Any) -> Any:
    if type(stored) in _PLAIN:
        return stored
    ((kind, inner),) = stored.items()
    match kind:
        case "date":
            return date.fromisoformat(inner)
        case "datetime":
            return datetime.fromisoformat(inner)
        case "decimal":
            return Decimal(text_of(inner))
        case "float":
            return math.nan if inner == "nan" else _UNBOUNDED[inner]
        case "fraction":
            numerator, denominator = list_of(inner)
            if type(numerator) is int and type(denominator) is int:
                return Fraction(numerator, denominator)
    raise ValueError


def _number(stored: Any) -> Number:
    value = _value(stored)
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise ValueError
    return value


def _bound(stored: Any) -> float | None:
    value = _value(stored)
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise ValueError
    return value
