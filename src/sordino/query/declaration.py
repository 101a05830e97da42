"""Reads an owner's declaration, from TOML or from plain Python values: one reading function for both.

Every error names file and key, the rule, and what to write instead. No data is read here, and no object of the caller is
shown: a table in memory must not leak through the text of an error.
"""

from __future__ import annotations

import difflib
import json
import math
import numbers
import os
import re
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from sordino.errors import InvalidDeclaration, InvalidInput
from sordino.privacy.budget import Budget
from sordino.privacy.exact import bounds, decimal_reading, is_finite, readable, show
from sordino.privacy.neighbors import Neighbors
from sordino.query.dataset import Column, Dataset, Kind, Source, Table
from sordino.query.types import LARGEST, Day, Moment, Number, Text, Truth, Type

__all__ = ["UNFILLED", "Place", "key_text", "load", "name_fault", "python_budget", "python_ledger", "python_table",
           "python_tables", "source_kind", "table_name"]  # fmt: skip

UNFILLED = "TODO"
"""What a stub holds in place of the unit; it is never a column."""

_LONGEST_FILE, _LONGEST_NAME, _MOST_VALUES, _MOST_STEPS, _MOST_ROWS = 16 * 2**20, 200, 10**6, 2**53, 10**9
_SUFFIXES: Mapping[str, Literal["parquet", "csv", "duckdb"]] = {
    ".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv", ".duckdb": "duckdb",
}  # fmt: skip
_OTHER_WORDS = {
    "integer": "int", "bigint": "int", "number": "float", "double": "float", "decimal": "float", "real": "float",
    "boolean": "bool", "enum": "category", "string": "text", "str": "text", "varchar": "text", "timestamp": "datetime",
}  # fmt: skip
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
T = TypeVar("T")
D = TypeVar("D", date, datetime)


@dataclass(frozen=True)
class Place:
    """Where in a declaration something stands: the file, unless it is Python, and the keys that lead to it."""

    file: str | None = None
    keys: tuple[str, ...] = ()

    def at(self, key: str) -> Place:
        """The place of a key within this one."""
        short = key if len(key) <= _LONGEST_NAME else f"{key[: _LONGEST_NAME - 3]}..."
        return Place(self.file, (*self.keys, key_text(short)))

    def item(self, index: int) -> Place:
        """The place of one value of the list at this place."""
        return Place(self.file, (*self.keys[:-1], f"{self.keys[-1]}[{index}]"))

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, ".".join(self.keys)) if part) or "the dataset"

    def wrong(self, value: object, rule: str, hint: str) -> InvalidDeclaration:
        """The error that the value at this place breaks a rule."""
        return InvalidDeclaration(f"{self} = {_shown(value)}", rule, hint)

    def lacks(self, key: str, rule: str, hint: str) -> InvalidDeclaration:
        """The error that a key is missing at this place."""
        return InvalidDeclaration(f"{self} without {key}", rule, hint)


def key_text(key: str) -> str:
    """A key as TOML spells it: bare where it can be, else quoted."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _shown(value: object) -> str:
    """A value for an error text; what could hold data is named by its type only."""
    match value:
        case bool() | None:
            return str(value).lower()
        case str():
            return show(str(value))
        case Fraction():
            return readable(value)
        case Decimal():
            return str(value)[:80]
        case numbers.Number():
            return show(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            return f"a table of {len(value)} keys"
        case list() | tuple():
            return f"a list of {len(value)} values"
        case _:
            return f"an object of type {type(value).__name__}"


def _closest(word: str, known: Iterable[str]) -> str:
    """A question that proposes the known word that was probably meant, and the list of all."""
    words = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(word.casefold(), words, n=1)
    question = f"Did you mean {key_text(words[close[0]])}? " if close else ""
    first = [key_text(w) for w in words.values()][:20]
    return f"{question}Known here: {', '.join(first) or 'nothing'}{' and more' if len(words) > 20 else ''}."


def _section(place: Place, value: Any, known: Sequence[str] | None = None) -> dict[str, Any]:
    """A section with text keys, all of them known unless any name may stand there."""
    if not isinstance(value, Mapping):
        example = "Write it as { key = value }." if place.file else "Pass a dict."
        raise place.wrong(value, "a section with keys belongs here", example)
    for key in value:
        if not isinstance(key, str):
            raise place.wrong(key, "a key must be text", "Put it in quotes.")
        if known is not None and key not in known:
            raise InvalidDeclaration(str(place.at(key)), "it is not a known key", _closest(key, known))
    return dict(value)


def name_fault(name: object) -> str | None:
    """What is wrong with a name of a table or column, if anything."""
    if not isinstance(name, str) or not name.strip():
        return "a name must be text that is not empty"
    if len(name) > _LONGEST_NAME:
        return f"a name has at most {_LONGEST_NAME} characters"
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in name):
        return "a name holds no control characters"
    return None


def _names(place: Place, names: Iterable[Any], what: str) -> None:
    """Refuse bad names, and two that SQL, which does not see case, could not tell apart."""
    seen: dict[str, str] = {}
    for name in names:
        if fault := name_fault(name):
            raise InvalidDeclaration(f"{place}: the {what} name {_shown(name)}", fault, "Rename it.")
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            rule = "SQL does not tell names apart that differ only in case"
            raise InvalidDeclaration(f"{place}: the {what}s {show(other)} and {show(name)}", rule, "Rename one of them.")


def _number(place: Place, value: Any) -> Fraction:
    """A finite number exactly as written; a float by its shortest decimal."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        hint = "Write it without quotes." if isinstance(value, str) else "Write a number such as 0 or 0.5."
        raise place.wrong(value, "it must be a number", hint)
    if not is_finite(value):
        raise place.wrong(value, "it must be a finite number", "Write a public limit such as 1000.")
    if not value:
        return Fraction(0)
    # A written exponent of a billion would fill the memory when made exact, so its size is looked at first.
    if isinstance(value, Decimal):
        fits = abs(value.adjusted()) <= 300 and len(value.as_tuple().digits) <= 300
    else:
        fits = not isinstance(value, numbers.Rational) or max(abs(int(value.numerator)), int(value.denominator)) <= 10**300
    exact = decimal_reading(place.keys[-1], value) if fits else Fraction(0)
    if not Fraction(1, 10**300) <= abs(exact) <= 10**300:
        raise place.wrong(value, "it must be 0, or between 1e-300 and 1e300 in size", "Write an ordinary number.")
    return exact


def _whole(place: Place, value: Any) -> Fraction:
    exact = _number(place, value)
    if exact.denominator != 1:
        hint = f"Write {math.floor(exact)} or {math.ceil(exact)}, or declare the column as a float."
        raise place.wrong(value, "it must be a whole number", hint)
    if abs(exact) >= LARGEST:
        raise place.wrong(value, "it must be smaller than 2^62 in size", "Declare the column as a float with a step.")
    return exact


def _count(place: Place, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= int(value) <= _MOST_ROWS:
        raise place.wrong(
            value, "it must be a whole number from 1 to a billion", f"Write {place.keys[-1]} = 10 or the like."
        )
    return int(value)


def _yes_or_no(place: Place, value: Any) -> bool:
    if not isinstance(value, bool):
        raise place.wrong(value, "it must be true or false", f"Write {place.keys[-1]} = true or {place.keys[-1]} = false.")
    return value


def _limits(place: Place, entries: Mapping[str, Any], read: Callable[[Place, Any], T]) -> tuple[T, T] | None:
    given = [end for end in ("min", "max") if end in entries]
    if len(given) == 1:
        absent = "max" if given == ["min"] else "min"
        rule = "a column has both min and max, or neither"
        raise place.lacks(absent, rule, f"Add {absent} = ... (a public limit), or leave out {given[0]}.")
    return (read(place.at("min"), entries["min"]), read(place.at("max"), entries["max"])) if given else None


def _power_of_ten_below(value: Fraction) -> Fraction:
    """The largest power of ten that is not above a positive number."""
    exponent = len(str(value.numerator)) - len(str(value.denominator)) + 1
    while Fraction(10) ** exponent > value:
        exponent -= 1
    return Fraction(10) ** exponent


def _lattice(place: Place, lower: Fraction, upper: Fraction, step: Fraction, origin: str) -> None:
    """Refuse bounds that are no multiples of the step, or too many steps."""
    for end, value in (("min", lower), ("max", upper)):
        if (value / step).denominator != 1:
            below, above = math.floor(value / step) * step, math.ceil(value / step) * step
            rule = f"it must be a whole multiple of the step, which is {readable(step)}{origin}"
            hint = f"Write {end} = {readable(below)} or {end} = {readable(above)}, or another step."
            raise InvalidDeclaration(f"{place.at(end)} = {readable(value)}", rule, hint)
    if (upper - lower) / step > _MOST_STEPS:
        least = readable(_power_of_ten_below((upper - lower) / _MOST_STEPS) * 10)
        rule = f"there may be at most 2^53 steps from min to max, and the step is {readable(step)}{origin}"
        hint = f'Write narrower limits, or type = "float" with step = {least}.'
        raise InvalidDeclaration(f"{place} from {readable(lower)} to {readable(upper)}", rule, hint)


def _int(place: Place, entries: Mapping[str, Any], nullable: bool) -> Number:
    limits = _limits(place, entries, _whole)
    if limits is None:
        return Number(step=Fraction(1), nullable=nullable)
    _below(place, *limits)
    _lattice(place, *limits, Fraction(1), "")
    return Number(*limits, step=Fraction(1), nullable=nullable)


def _float(place: Place, entries: Mapping[str, Any], nullable: bool) -> Number:
    limits, step = _limits(place, entries, _number), None
    if "step" in entries:
        step = _number(place.at("step"), entries["step"])
        if step <= 0:
            raise place.at("step").wrong(entries["step"], "it must be greater than zero", "Write step = 0.01 or the like.")
    if limits is None:
        return Number(step=step, nullable=nullable)
    lower, upper = limits
    _below(place, lower, upper)
    origin = "" if step else " (undeclared, so the largest power of ten up to a millionth of max - min)"
    step = step or _power_of_ten_below((upper - lower) / 10**6)
    _lattice(place, lower, upper, step, origin)
    if (largest := max(abs(lower), abs(upper))) / step > _MOST_STEPS:
        least = readable(_power_of_ten_below(largest / _MOST_STEPS) * 10)
        rule = f"a double cannot tell steps of {readable(step)} apart at {readable(largest)}{origin}"
        raise InvalidDeclaration(str(place), rule, f"Write step = {least}.")
    return Number(lower, upper, step, nullable=nullable)


def _below(place: Place, lower: Fraction, upper: Fraction) -> None:
    if lower >= upper:
        value = f"{place} with min = {readable(lower)}, max = {readable(upper)}"
        raise InvalidDeclaration(value, "min must be below max", "Swap them, or widen the limits.")


def _bool(place: Place, entries: Mapping[str, Any], nullable: bool) -> Truth:  # noqa: ARG001 (one signature for all kinds)
    return Truth(nullable)


def _category(place: Place, entries: Mapping[str, Any], nullable: bool) -> Type:
    example = 'values = ["A", "B"]'
    if "values" not in entries:
        rule = "a category lists its possible values, which are public"
        raise place.lacks("values", rule, f'Add {example}, or write type = "text" if they are not public.')
    place, values = place.at("values"), entries["values"]
    if not isinstance(values, list | tuple) or not values:
        raise place.wrong(values, "it must be a list of at least one value", f"Write {example}.")
    if len(values) > _MOST_VALUES:
        raise place.wrong(values, f"a category has at most {_MOST_VALUES:,} values", 'Write type = "text" instead.')
    seen: dict[Any, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | numbers.Integral):
            hint = 'Write text in quotes or whole numbers; for true and false, type = "bool".'
            raise place.item(i).wrong(value, "a value must be text or a whole number", hint)
        if isinstance(value, str) != isinstance(values[0], str):
            raise place.item(i).wrong(
                value, "the values must be all text or all whole numbers", "Quote all or none of them."
            )
        if isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
            raise place.item(i).wrong(value, "text must be Unicode without NUL characters", "Leave this value out.")
        if value in seen:
            raise place.item(i).wrong(value, f"it is listed before, as values[{seen[value]}]", "List each value once.")
        seen[value] = i
    if isinstance(values[0], str):
        return Text(tuple(map(str, values)), max(map(len, values)), nullable)
    whole = tuple(int(_whole(place.item(i), value)) for i, value in enumerate(values))
    lower, upper = Fraction(min(whole)), Fraction(max(whole))
    _lattice(place, lower, upper, Fraction(1), "")
    return Number(lower, upper, Fraction(1), whole, nullable)


def _text(place: Place, entries: Mapping[str, Any], nullable: bool) -> Text:
    longest = _count(place.at("max_length"), entries["max_length"]) if "max_length" in entries else None
    return Text(None, longest, nullable)


def _day(place: Place, value: Any) -> date:
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            raise place.wrong(value, "there is no such day", "Write a day from 0001-01-01 to 9999-12-31.") from None
    written = text[:10] if isinstance(text, str) and _DATETIME.fullmatch(text) else "2024-01-31"
    raise place.wrong(value, "it must be a date", f"Write {place.keys[-1]} = {written}.")


def _moment(place: Place, value: Any) -> datetime:
    # Timestamps of other libraries are datetimes, too, even pandas' NaT: their ISO text is checked like a written one.
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and _DATETIME.fullmatch(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise place.wrong(value, "there is no such moment", "Write one such as 2024-01-31T23:59:59.") from None
    day = text[:10] if isinstance(text, str) and _DATE.match(text) else "2024-01-31"
    rule = "it must be a date with a time of day, in microseconds at most, without time zone"
    raise place.wrong(
        value, rule, f"Write {place.keys[-1]} = {day}T{'00:00:00' if place.keys[-1] == 'min' else '23:59:59'}."
    )


def _date(place: Place, entries: Mapping[str, Any], nullable: bool) -> Day:
    limits = _in_order(place, _limits(place, entries, _day))
    return Day(*limits, nullable=nullable) if limits else Day(nullable=nullable)


def _datetime(place: Place, entries: Mapping[str, Any], nullable: bool) -> Moment:
    limits = _in_order(place, _limits(place, entries, _moment))
    return Moment(*limits, nullable=nullable) if limits else Moment(nullable=nullable)


def _in_order(place: Place, limits: tuple[D, D] | None) -> tuple[D, D] | None:
    if limits is not None and limits[0] > limits[1]:
        value = f"{place} with min = {limits[0].isoformat()}, max = {limits[1].isoformat()}"
        raise InvalidDeclaration(value, "min must not be after max", "Swap them.")
    return limits


_READERS: Mapping[Kind, tuple[tuple[str, ...], Callable[[Place, Mapping[str, Any], bool], Type]]] = {
    "int": (("min", "max"), _int),
    "float": (("min", "max", "step"), _float),
    "bool": ((), _bool),
    "category": (("values",), _category),
    "text": (("max_length",), _text),
    "date": (("min", "max"), _date),
    "datetime": (("min", "max"), _datetime),
}
_KINDS: tuple[Kind, ...] = get_args(Kind)


def _column(place: Place, value: Any) -> Column:
    if isinstance(value, str):
        hint = f'Write {place.keys[-1]} = {{ type = "%s" }}.' % (_kind(value) or "text")
        raise place.wrong(value, "a column is described by a section", hint)
    entries = _section(place, value)
    if "type" not in entries:
        raise place.lacks("type", "every column has a type", f'Add type = "int" or another of {", ".join(_KINDS)}.')
    written = entries["type"]
    word = written if isinstance(written, str) else ""
    kind = next((k for k in _KINDS if k == word), None)
    if kind is None:
        meant = _kind(word)
        hint = f'Write type = "{meant}".' if meant else "Write one of these."
        raise place.at("type").wrong(written, f"a type is one of {', '.join(_KINDS)}", hint)
    keys, read = _READERS[kind]
    _section(place, entries, ("type", *keys, "nullable"))
    nullable = _yes_or_no(place.at("nullable"), entries.get("nullable", True))
    return Column(kind, read(place, entries, nullable))


def _kind(word: str) -> str | None:
    """The type that was probably meant."""
    word = word.strip().casefold()
    return next(iter(difflib.get_close_matches(_OTHER_WORDS.get(word, word), _KINDS, n=1)), None)


def source_kind(path: Path) -> Literal["parquet", "csv", "duckdb"] | None:
    """Which kind of file a name promises, if it is one that can be read."""
    return next((kind for suffix, kind in _SUFFIXES.items() if path.name.lower().endswith(suffix)), None)


def table_name(path: Path) -> str:
    """The name of a table after its file, without the ending."""
    suffix = next((s for s in _SUFFIXES if path.name.lower().endswith(s)), "")
    return path.name[: len(path.name) - len(suffix)]


def _source(place: Place, value: Any, table: Any, folder: Path) -> Source:
    if not isinstance(value, str | os.PathLike):
        if table is not None:
            raise place.at("table").wrong(table, "only a DuckDB file has tables inside", "Leave table out.")
        return Source("frame", frame=_frame(place.at("source"), value))
    text, at = os.fspath(value), place.at("source")
    if not isinstance(text, str) or not text.strip() or any(unicodedata.category(c) in {"Cc", "Cs"} for c in text):
        raise at.wrong(text, "a source is the path of a file", 'Write source = "visits.parquet" or the like.')
    address = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text)
    if address or re.search(r"\b(host|password|dbname)\s*=", text):
        # An address may hold a password: only its scheme is shown.
        shown = f"an address {address.group()}..." if address else "a connection string"
        hint = "Export the table to a Parquet or DuckDB file."
        raise InvalidDeclaration(f"{at} with {shown}", "databases and addresses are not supported yet", hint)
    if any(c in text for c in "*?["):
        raise at.wrong(text, "a source is one file, not a pattern", "Put the rows into one Parquet or DuckDB file.")
    kind = source_kind(Path(text))
    if kind is None:
        hint = "Read it with Dataset.load." if text.lower().endswith(".toml") else "Convert it, to Parquet if you can."
        raise at.wrong(text, f"a source ends in {', '.join(_SUFFIXES)}", hint)
    if table is not None and kind != "duckdb":
        raise place.at("table").wrong(table, "only a DuckDB file has tables inside", "Leave table out.")
    if table is not None and (fault := name_fault(table)):
        raise place.at("table").wrong(table, fault, 'Write table = "visits" or the like.')
    return Source(kind, (folder / text).absolute(), table)


def _frame(place: Place, value: Any) -> Any:
    """An object in memory that holds a table; looked up among loaded libraries, so that none is imported for it."""
    for library, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        kind = getattr(sys.modules.get(library), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return value
    rule = "a source is the path of a file, a pandas or polars DataFrame, or a pyarrow Table"
    hint = "Collect it first: source.collect()." if type(value).__name__ == "LazyFrame" else "Pass one of these."
    if isinstance(value, Mapping):
        hint = "Pass several tables as tables={...}."
    raise place.wrong(value, rule, hint)


_OF_ALL = ("source", "table", "public", "columns")
_OF_PROTECTED = ("unit", "neighbors", "max_rows", "max_groups")


def _table(place: Place, name: str, value: Any, folder: Path) -> Table:
    entries = _section(place, value, (*_OF_ALL, *_OF_PROTECTED, "key"))
    if "source" not in entries:
        raise place.lacks("source", "a table has a source", f'Add source = "{name}.parquet" or the like.')
    source = _source(place, entries["source"], entries.get("table"), folder)
    public = _yes_or_no(place.at("public"), entries.get("public", False))
    described = _section(place.at("columns"), entries.get("columns", {}))
    _names(place.at("columns"), described, "column")
    columns = {column: _column(place.at("columns").at(column), described[column]) for column in described}
    if public:
        for key in _OF_PROTECTED:
            if key in entries:
                raise place.at(key).wrong(
                    entries[key], "a public table protects nobody", f"Leave out {key}, or public = true."
                )
        return Table(name, source, columns, public=True, key=_key(place.at("key"), entries.get("key"), columns))
    if "key" in entries:
        raise place.at("key").wrong(entries["key"], "only a public table has a key", "Leave out key, or add public = true.")
    person = _person(place, entries, columns)
    limits = {key: _count(place.at(key), entries[key]) for key in ("max_rows", "max_groups") if key in entries}
    for key, limit in limits.items():
        if person is None and limit != 1:
            rule = 'with unit = "row" every person has one row, so it can only be 1'
            raise place.at(key).wrong(limit, rule, f"Leave out {key}, or name the column of the person as unit.")
    neighbors = _neighbors(place.at("neighbors"), entries.get("neighbors", Neighbors.ADD_REMOVE))
    return Table(name, source, columns, person, neighbors, limits.get("max_rows"), limits.get("max_groups"))


def _person(place: Place, entries: Mapping[str, Any], columns: Mapping[str, Column]) -> str | None:
    rule = "a table must say who is protected"
    hint = 'Write unit = "row" if each row is another person, or unit = "patient_id" for the column that names the person.'
    if "unit" not in entries:
        raise place.lacks("unit", rule, f"{hint} A table without private data has public = true instead.")
    place, unit = place.at("unit"), entries["unit"]
    if fault := name_fault(unit):
        raise place.wrong(unit, fault, hint)
    if unit == UNFILLED:
        raise place.wrong(unit, f"it is still to be filled in: {rule}", hint)
    same = {name.casefold(): name for name in columns}
    if unit.casefold() == "row":
        if unit != "row" or "row" in same:
            clash = 'unit = "row" means that each row is another person, and no column may be called so beside it'
            raise place.wrong(unit, clash, 'Write unit = "row" in small letters, or rename the column.')
        return None
    return same.get(unit.casefold(), str(unit))


def _neighbors(place: Place, value: Any) -> Neighbors:
    if isinstance(value, Neighbors):
        return value
    known, word = {member.value: member for member in Neighbors}, value if isinstance(value, str) else ""
    if word not in known:
        rule = "neighbors is add_remove, or replace where the number of persons is public"
        raise place.wrong(value, rule, _closest(word, known))
    return known[word]


def _key(place: Place, value: Any, columns: Mapping[str, Column]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not value:
        raise place.wrong(value, "a key is a list of columns", 'Write key = ["code"] or the like.')
    same = {name.casefold(): name for name in columns}
    key: list[str] = []
    for i, name in enumerate(value):
        if not isinstance(name, str) or name.casefold() not in same:
            hint = _closest(name if isinstance(name, str) else "", columns)
            raise place.item(i).wrong(name, "a key is made of declared columns", hint)
        if same[name.casefold()] in key:
            raise place.item(i).wrong(name, "the key lists it twice", "List each column once.")
        key.append(same[name.casefold()])
    return tuple(key)


def _settled(name: str, table: Table) -> Table:
    """A table under its name in the dataset, by which a DuckDB file knows it unless another is declared."""
    source = table.source
    if source.kind == "duckdb" and source.table is None:
        source = replace(source, table=name)
    return replace(table, name=name, source=source)


def _tables(place: Place, value: Any, folder: Path) -> dict[str, Table]:
    tables = _section(place, value)
    if not tables:
        raise InvalidDeclaration(
            str(place), "a dataset has at least one table", "Add a section [tables.visits] or the like."
        )
    _names(place, tables, "table")
    read = {n: t if isinstance(t, Table) else _table(place.at(n), n, t, folder) for n, t in tables.items()}
    return {name: _settled(name, table) for name, table in read.items()}


def _budget(place: Place, value: Any) -> tuple[Budget, Any]:
    """The budget of a section, and its `key_delta` as written."""
    entries = _section(place, value, ("epsilon", "delta", "key_delta"))
    if "epsilon" not in entries:
        raise place.lacks("epsilon", "a budget has an epsilon", "Add epsilon = 1.0 or the like.")
    for key, number in entries.items():
        _number(place.at(key), number)
    try:
        return Budget(entries["epsilon"], entries.get("delta", Fraction(0))), entries.get("key_delta")
    except InvalidInput as error:
        key = "delta" if error.value.startswith("delta") else "epsilon"
        raise place.at(key).wrong(entries[key], error.rule, error.hint) from None


def _reserved(place: Place, value: Any, budget: Budget | None, tables: Iterable[Table]) -> Fraction | None:
    """The part of delta that is kept for private keys: as declared, else half of it if there can be any."""
    if value is None:
        if budget is None:
            return None
        return budget.delta / 2 if any(table.has_private_keys for table in tables) else Fraction(0)
    if _number(place, value) < 0 or bounds("key_delta", value).lower > (budget.delta if budget else 1):
        most = f" {readable(budget.delta)}" if budget else ", below 1"
        rule = f"it is a part of the budget's delta{most}"
        raise place.wrong(value, rule, "Write a number from 0 to delta, or leave it out.")
    return bounds("key_delta", value).lower


def _ledger(place: Place, value: Any, folder: Path) -> str | None:
    if value is None:
        return None
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or any(unicodedata.category(c) in {"Cc", "Cs"} for c in text):
        raise place.wrong(text if text is None else "", "a ledger is the path of a file", 'Write path = "visits.ledger".')
    # The same ledger from wherever the program is started: another one would forget what was spent.
    return text if "://" in text else str((folder / text).absolute())


def load(path: str | os.PathLike[str]) -> Dataset:
    """The dataset that a TOML file declares."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InvalidDeclaration(_shown(path), "a declaration is the path of a TOML file", 'Pass "visits.toml" or the like.')
    file = Path(path)
    place, folder = Place(file.name), file.absolute().parent
    entries = _section(place, _parsed(file), ("budget", "ledger", "tables"))
    if "tables" not in entries:
        raise place.lacks("tables", "a dataset has at least one table", "Add a section [tables.visits] or the like.")
    tables = _tables(place.at("tables"), entries["tables"], folder)
    budget, key_delta = _budget(place.at("budget"), entries["budget"]) if "budget" in entries else (None, None)
    reserved = _reserved(place.at("budget").at("key_delta"), key_delta, budget, tables.values())
    kept = _section(place.at("ledger"), entries.get("ledger", {}), ("path",))
    ledger = _ledger(place.at("ledger").at("path"), kept.get("path"), folder)
    return Dataset(tables=tables, budget=budget, reserved_delta=reserved, ledger=ledger, file=file.absolute())


def _parsed(file: Path) -> dict[str, Any]:
    # Only a .toml is opened: the complaint of a parser about a data file would quote the data.
    if not file.name.lower().endswith(".toml"):
        hint = "Write one with Dataset.schema_stub, or declare in Python: so.Dataset(source, unit=..., columns=...)."
        raise InvalidDeclaration(show(file.name), "a declaration is a file that ends in .toml", hint)
    try:
        if file.stat().st_size > _LONGEST_FILE:
            raise InvalidDeclaration(file.name, "a declaration has at most 16 MiB", "Declare long categories as text.")
        text = file.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidDeclaration):
            raise
        rule = "the file is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "the file cannot be read"
        rule = "there is no such file" if isinstance(error, FileNotFoundError) else rule
        raise InvalidDeclaration(
            show(str(file)), rule, "Check the path; relative ones start at the current folder."
        ) from None
    try:
        return tomllib.loads(text, parse_float=_decimal)
    except RecursionError:
        raise InvalidDeclaration(
            file.name, "its lists are nested too deeply", "Write it as in docs/declaration.md."
        ) from None
    except ValueError as error:
        what, line = re.fullmatch(r"(.*?)(?: \(at (.*)\))?", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
        where = f"{file.name}, {line}" if line else file.name
        hint = 'Text stands in double quotes, a section on one line: { type = "int", min = 0, max = 110 }.'
        raise InvalidDeclaration(where, f"it is not valid TOML ({what.strip().rstrip('.')})", hint) from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent of more than 18 digits, which is refused as not finite
        return Decimal("inf")


def python_table(name: Any, entries: Mapping[str, Any]) -> Table:
    """One table declared by arguments, named by its file unless told."""
    if name is None:
        source = entries.get("source")
        text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        name = table_name(Path(text)) if isinstance(text, str) and text else "data"
    if fault := name_fault(name):
        raise Place().at("name").wrong(name, fault, 'Pass name="visits" or the like.')
    return _table(Place(), name, entries, Path.cwd())


def python_tables(one: Mapping[str, Any], several: Any) -> dict[str, Table]:
    """The tables declared by arguments: one by its source, or several by name."""
    if several is None:
        if "source" not in one:
            rule = "a dataset has a source, or tables"
            raise Place().lacks("source", rule, 'Pass so.Dataset("visits.parquet", unit=..., columns=...).')
        table = python_table(one.get("name"), {k: v for k, v in one.items() if k != "name"})
        return {table.name: _settled(table.name, table)}
    if one:
        key = next(iter(one))
        rule = "beside tables it has no meaning"
        raise Place().at(key).wrong(one[key], rule, f"Pass it to the table: so.Table.declare(source, {key}=...).")
    return _tables(Place().at("tables"), several, Path.cwd())


def python_budget(budget: Any, reserved: Any, tables: Iterable[Table]) -> tuple[Budget | None, Fraction | None]:
    """The budget and the part of its delta for private keys, from a `Budget` or the keys of `[budget]`."""
    place, key_delta = Place().at("reserved_delta"), None
    if budget is not None and not isinstance(budget, Budget):
        budget, key_delta = _budget(Place().at("budget"), budget)
    if key_delta is not None:
        if reserved is not None:
            raise place.wrong(reserved, "it is the same thing as key_delta in the budget", "Pass one of them.")
        place = Place().at("budget").at("key_delta")
    return budget, _reserved(place, reserved if key_delta is None else key_delta, budget, tables)


def python_ledger(value: Any) -> str | None:
    """The ledger as an address or an absolute path."""
    return _ledger(Place().at("ledger"), value, Path.cwd())
