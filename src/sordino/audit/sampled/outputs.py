"""Outputs of any kind as a table of columns: numbers, and atoms for all that is not a number.

An output may be a number, text, None, an exception, or sequences, arrays, sets and dicts of such. Each place is a
column. Atoms are 63-bit hashes of their text, so that tables made in different batches and processes fit together.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Hashable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["MISSING", "Column", "Raised", "Table", "code", "concat", "encode", "mix"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Kind = TypeVar("Kind", bound=Hashable)

_MOST_COLUMNS = 4096
_DEEPEST = 64
_EXACT = 2**53
_LOW = 2**62 - 1
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_INSIDE = 4
_LONG = 16


@dataclass(frozen=True)
class Raised:
    """A run that ended with an exception, as an output."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


@dataclass(frozen=True)
class Column:
    """One place of the outputs.

    `atoms` is 0 where a number stands, `fine` holds what float64 loses of exact numbers.
    """

    numbers: Floats
    atoms: Codes | None = None
    fine: Codes | None = None

    def take(self, rows: slice) -> Column:
        """Some of the runs."""
        atoms, fine = (None if part is None else part[rows] for part in (self.atoms, self.fine))
        return Column(self.numbers[rows], atoms, fine)

    def is_number(self) -> npt.NDArray[np.bool_]:
        """Where numbers stand."""
        return np.ones(len(self.numbers), bool) if self.atoms is None else self.atoms == 0


@dataclass(frozen=True)
class Table:
    """Outputs by place, one row for each run; `shape` codes types and sizes, `names` says what codes stand for."""

    size: int
    columns: dict[str, Column]
    shape: Codes
    names: dict[int, str]
    opaque: frozenset[str] = frozenset()
    """What outputs held that could not be looked into."""

    def take(self, rows: slice) -> Table:
        """Some of the runs."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Table(len(self.shape[rows]), columns, self.shape[rows], self.names, self.opaque)

    def only(self, places: Collection[str]) -> Table:
        """Some of the columns."""
        kept = {name: column for name, column in self.columns.items() if name in places}
        return Table(self.size, kept, self.shape, self.names, self.opaque)

    def raised(self) -> int:
        """In how many runs an exception was the output."""
        return int(np.isin(self.shape, _raised_kinds(self.names)).sum())

    def column(self, name: str) -> Column:
        """A column, all missing where no output had such a place."""
        found = self.columns.get(name)
        return found or Column(np.zeros(self.size), np.full(self.size, MISSING))


def code(text: str) -> int:
    """A positive 63-bit number that stands for a text."""
    digest = blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1 | 1


MISSING = code("missing")
_NAN, _INF, _MINUS_INF = code("NaN"), code("inf"), code("-inf")
_STANDARD = {MISSING: "missing", _NAN: "NaN", _INF: "inf", _MINUS_INF: "-inf"}


def mix(seed: Any, value: Any) -> Codes:
    """Two codes, or arrays of them, made one."""
    with np.errstate(over="ignore"):
        z = np.asarray(seed, np.int64).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.asarray(value, np.int64).astype(np.uint64)
        z = (z ^ (z >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    mixed: Codes = ((z ^ (z >> np.uint64(29))) >> np.uint64(1) | np.uint64(1)).astype(np.int64)
    return mixed


def _raised_kinds(names: dict[int, str]) -> list[int]:
    return [code for code, name in names.items() if name.startswith("raises ")]


def encode(outputs: Sequence[Any] | npt.NDArray[Any]) -> Table:
    """The table of a batch of outputs, one along the first axis."""
    sheet = _Sheet(len(outputs))
    if isinstance(outputs, np.ndarray):
        return sheet.table(sheet.array(outputs, _Place(slice(None))))
    return sheet.table(sheet.fill(list(outputs), _Place(slice(None))))


def concat(tables: Sequence[Table]) -> Table:
    """Tables one below the other."""
    if len(tables) == 1:
        return tables[0]
    names = {code: text for table in tables for code, text in table.names.items()}
    columns = {}
    for name in dict.fromkeys(name for table in tables for name in table.columns):
        parts = [table.column(name) for table in tables]
        numbers = np.concatenate([part.numbers for part in parts])
        atoms = _joined([part.atoms for part in parts], parts)
        columns[name] = Column(numbers, atoms, _joined([part.fine for part in parts], parts))
    size = sum(table.size for table in tables)
    opaque = frozenset[str]().union(*(table.opaque for table in tables))
    return Table(size, columns, np.concatenate([table.shape for table in tables]), names, opaque)


def _joined(arrays: list[Codes | None], parts: list[Column]) -> Codes | None:
    if all(array is None for array in arrays):
        return None
    pairs = zip(arrays, parts, strict=True)
    return np.concatenate(
        [np.zeros(len(p.numbers), np.int64) if a is None else a for a, p in pairs]
    )


@dataclass(frozen=True)
class _Place:
    """Where values go: to these runs of a column, so deep inside the outputs."""

    rows: Any
    name: str = ""
    depth: int = 0

    def inside(self, key: object) -> _Place:
        """The place of a part of the value."""
        return _Place(self.rows, f"{self.name}[{key!r}]", self.depth + 1)

    def beside(self, what: str) -> _Place:
        """The place of something else that is told of the value."""
        return replace(self, name=f"{self.name}.{what}")


class _Sheet:
    """A table while it is being filled; rows that a column never gets stay missing."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.numbers: dict[str, Floats] = {}
        self.atoms: dict[str, Codes] = {}
        self.fine: dict[str, Codes] = {}
        self.names = dict(_STANDARD)
        self.opaque = set[str]()

    def table(self, shape: Codes | int) -> Table:
        columns = {}
        for name, numbers in self.numbers.items():
            atoms = self.atoms[name] if self.atoms[name].any() else None
            columns[name] = Column(numbers, atoms, self.fine.get(name))
        shapes = np.broadcast_to(np.asarray(shape, np.int64), self.size)
        return Table(self.size, columns, shapes, self.names, frozenset(self.opaque))

    def _put(self, at: _Place, numbers: Any, atoms: Any = 0) -> None:
        if at.name not in self.numbers:
            if len(self.numbers) >= _MOST_COLUMNS:
                self.opaque.add(f"places beyond the first {_MOST_COLUMNS}")
                return
            self.numbers[at.name] = np.zeros(self.size)
            self.atoms[at.name] = np.full(self.size, MISSING)
        self.numbers[at.name][at.rows] = numbers
        self.atoms[at.name][at.rows] = atoms

    def _put_fine(self, at: _Place, values: Any) -> None:
        if at.name in self.numbers:
            self.fine.setdefault(at.name, np.zeros(self.size, np.int64))[at.rows] = values

    def _some(self, at: _Place, own: list[int]) -> _Place:
        """The place of some of the values there."""
        return replace(at, rows=np.arange(self.size)[at.rows][own])

    def _kind(self, text: str) -> int:
        kind = code(text)
        self.names.setdefault(kind, text)
        return kind

    def array(self, values: npt.NDArray[Any], at: _Place) -> Codes | int:
        """Fill in an array, rows along its first axis; the code of its shape."""
        if values.dtype.kind in "OUSV" or np.ma.isMaskedArray(values):
            return self.fill(values.tolist(), at)
        if values.dtype.kind in "mM":
            times = "datetime64[ns]" if values.dtype.kind == "M" else "timedelta64[ns]"
            values = values.astype(times).view(np.int64)
        if values.ndim == 1:
            self._numbers(values, at)
            return self._kind(values.dtype.name)
        flat = values.reshape(len(values), -1)
        inner: Codes | int = self._kind("nothing")
        for i in range(min(flat.shape[1], _MOST_COLUMNS + 1)):
            inner = self.array(flat[:, i], at.inside(i))
        sizes = " x ".join(str(n) for n in values.shape[1:])
        return self._kind(f"{sizes} of {self.names[int(inner)]}")

    def _numbers(self, values: npt.NDArray[Any], at: _Place) -> None:
        if values.dtype.kind == "c":
            self._floats(values.real, at.beside("real"))
            self._floats(values.imag, at.beside("imag"))
        elif values.dtype.kind not in "iu":
            self._floats(values, at)
        else:
            self._put(at, values)
            if values.size and max(abs(int(values.max())), abs(int(values.min()))) > _EXACT:
                self._put_fine(at, values & values.dtype.type(_LOW))

    def _floats(self, values: npt.NDArray[Any], at: _Place) -> None:
        numbers = values.astype(np.float64)
        atoms: Any = 0
        if not np.isfinite(numbers).all():
            odd = [np.isnan(numbers), numbers == np.inf, numbers == -np.inf]
            atoms = np.select(odd, [_NAN, _INF, _MINUS_INF], default=0)
            numbers = np.where(atoms == 0, numbers, 0.0)
        self._put(at, numbers, atoms)

    def fill(self, values: list[Any], at: _Place) -> Codes | int:
        """Fill in values of any kinds; codes of their shapes."""
        if np.ma.MaskedArray in set(map(type, values)):
            values = [value.tolist() if np.ma.isMaskedArray(value) else value for value in values]
        classes = {t: _class(t) for t in set(map(type, values))}
        kinds = sorted(set(classes.values()))
        return self._each(kinds, lambda value: classes[type(value)], self._one_class, values, at)

    def _each(
        self, kinds: Sequence[Kind], kind_of: Callable[[Any], Kind],
        fill: Callable[[Kind, list[Any], _Place], Codes | int], values: list[Any], at: _Place,
    ) -> Codes | int:  # fmt: skip
        """Fill in the values of one kind after another; codes of their shapes."""
        if len(kinds) == 1:
            return fill(kinds[0], values, at)
        places: dict[Kind, list[int]] = {kind: [] for kind in kinds}
        for i, value in enumerate(values):
            places[kind_of(value)].append(i)
        shapes = np.zeros(len(values), np.int64)
        for kind, own in places.items():
            shapes[own] = fill(kind, [values[i] for i in own], self._some(at, own))
        return shapes

    def _one_class(self, label: str, values: list[Any], at: _Place) -> Codes | int:
        kind, _, own = label.partition(":")
        if kind in ("bool", "float"):
            self._floats(np.array(values, np.float64), at)
        elif kind == "int":
            self._integers([int(value) for value in values], at)
        elif kind in ("Fraction", "Decimal"):
            self._floats(np.array([_near(value) for value in values]), at)
            self._put_fine(at, [_fineness(value) for value in values])
        elif kind == "time":
            self._floats(np.array([_moment(value) for value in values]), at)
        elif kind == "complex":
            self._numbers(np.array(values, complex), at)
        elif kind in ("list", "tuple", "array", "set", "dict") and at.depth < _DEEPEST:
            return self._nested(kind, values, at)
        elif kind == "raised":
            self._texts([value.text for value in values], at.beside("error"))
            return np.array([self._kind(f"raises {value.kind}") for value in values], np.int64)
        else:
            self._texts([self._text(value) for value in values], at)
        return self._kind(own or kind)

    def _text(self, value: Any) -> str:
        if value is None or isinstance(value, str | bytes | type):
            return value if isinstance(value, str) else repr(value)
        try:
            text = f"{type(value).__name__} {bytes(value) if isinstance(value, memoryview) else value!r}"
        except Exception:
            text = f"{type(value).__name__} that cannot be shown"
        plain = _ADDRESS.sub("", text)
        if plain != text or text.endswith("cannot be shown"):
            self.opaque.add(f"objects of type {type(value).__name__}")
        return plain

    def _integers(self, values: list[int], at: _Place) -> None:
        self._put(at, [_near(value) for value in values])
        if max(map(abs, values)) > _EXACT:
            self._put_fine(at, [value & _LOW for value in values])
            self._put(at.beside("low"), [float(value & (_EXACT - 1)) for value in values])

    def _texts(self, texts: list[str], at: _Place) -> None:
        """Texts, and beside them the numbers inside them and the lengths of long ones."""
        codes = {text: code(text) for text in set(texts)}
        if len(self.names) < 100_000:
            self.names.update((c, text) for text, c in codes.items())
        self._put(at, 0.0, np.array([codes[text] for text in texts], np.int64))
        digits = (text for text in codes if any(map(str.isdigit, text)))
        found = {text: _NUMBER.findall(text)[:_INSIDE] for text in digits}
        for i in range(max(map(len, found.values()), default=0)):
            own = [j for j, text in enumerate(texts) if len(found.get(text, ())) > i]
            numbers = np.array([float(found[texts[j]][i]) for j in own])
            self._floats(numbers, self._some(at, own).beside(f"number {i + 1}"))
        long = [j for j, text in enumerate(texts) if len(text) > _LONG]
        if long:
            lengths = [float(len(texts[j])) for j in long]
            self._put(self._some(at, long).beside("length"), lengths)

    def _nested(self, kind: str, values: list[Any], at: _Place) -> Codes | int:
        """By size, or by keys; then place by place."""
        if kind == "dict":
            values = [_as_dict(value) for value in values]
        elif kind == "tuple" and isinstance(values[0], np.void):
            values = [value.item() for value in values]
        form, fill = partial(_form, kind), partial(self._same_form, kind)
        return self._each(list(dict.fromkeys(map(form, values))), form, fill, values, at)

    def _same_form(self, kind: str, form: Any, values: list[Any], at: _Place) -> Codes | int:
        if kind == "array":
            return self.array(np.stack(values), at)
        if kind == "set":
            values = [sorted(value, key=lambda x: (type(x).__name__, repr(x))) for value in values]
        few = slice(_MOST_COLUMNS + 1)
        if kind == "dict":
            title, keys = f"dict of {len(form)}", list(form[few])
            shapes: Codes | int = self._kind(f"{title} {list(map(str, form))}")
        else:
            title, keys = f"{kind} of {form}", list(range(form)[few])
            shapes = self._kind(title)
        first, same = shapes, True
        texts = []
        for key in keys:
            inner = self.fill([value[key] for value in values], at.inside(key))
            same = same and isinstance(inner, int)
            texts.append(self.names.get(inner, "") if isinstance(inner, int) else "any")
            shapes = mix(shapes, inner)
        if not keys:
            self._put(at, 0.0, self._kind(f"empty {kind}"))
        if same:
            shapes = int(shapes)
            self.names.setdefault(shapes, f"{title}: {_brief(texts)}")
        else:
            for shape in np.unique(np.asarray(shapes))[:1000].tolist():
                self.names.setdefault(shape, f"{self.names[int(first)]}, mixed")
        return shapes


def _brief(texts: list[str]) -> str:
    if len(set(texts)) == 1:
        return f"all {texts[0]}"
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "")


def _class(kind: type) -> str:
    """Which of the ways to fill a column a type takes, and its name where NumPy has several."""
    if issubclass(kind, Raised):
        return "raised"
    if issubclass(kind, Enum):
        return kind.__name__
    for name, types in _CLASSES:
        if issubclass(kind, types):
            several = issubclass(kind, np.generic) and name != "tuple"
            return f"{name}:{kind.__name__}" if several else name
    frame = any(hasattr(kind, method) for method in ("to_pydict", "to_dict"))
    return "dict" if frame or dataclasses.is_dataclass(kind) else kind.__name__


_CLASSES: tuple[tuple[str, Any], ...] = (
    ("bool", bool | np.bool_),
    ("time", date | timedelta | np.datetime64 | np.timedelta64),
    ("int", int | np.integer),
    ("float", float | np.floating),
    ("complex", complex | np.complexfloating),
    ("Fraction", Fraction),
    ("Decimal", Decimal),
    ("array", np.ndarray),
    ("list", list),
    ("tuple", tuple | np.void),
    ("set", Set),
    ("dict", dict),
)


def _moment(value: Any) -> float:
    """A time or a duration in seconds or days; only comparisons matter."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()
    if isinstance(value, date):
        return float(value.toordinal())
    return math.nan if np.isnat(value) else float(value.astype(np.int64))


def _as_dict(value: Any) -> dict[Any, Any]:
    """The fields of a dataclass, the cells of a frame of Arrow, pandas or Polars."""
    if isinstance(value, dict):
        return value
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "to_pydict"):
        return dict(value.to_pydict())
    if hasattr(value, "iloc"):
        return dict(value.to_dict("list") if hasattr(value, "columns") else value.to_dict())
    try:
        return dict(value.to_dict(as_series=False))
    except TypeError:
        return dict(value.to_dict())


def _form(kind: str, value: Any) -> Hashable:
    if kind == "array":
        return (value.shape, value.dtype.str)
    if kind == "dict":
        return tuple(value)
    return len(value)


def _near(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.finfo(np.float64).max * (1 if value > 0 else -1)


def _fineness(value: Any) -> int:
    """What tells exact numbers apart that are one float: the denominator, or the decimal places."""
    if isinstance(value, Fraction):
        return value.denominator & _LOW
    _, digits, exponent = value.as_tuple()
    return (code(repr((digits, exponent))) if isinstance(exponent, int) else 0) & _LOW
