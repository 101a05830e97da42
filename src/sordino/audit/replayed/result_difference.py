"""Are two results the same in everything that can be seen of them: type, order, shape, bits? If not, where they differ.

Stricter than `==`: 1 is not 1.0, 0.0 is not -0.0, the order of a dictionary counts, and NaN is NaN. A result that
cannot be looked into is no reason to pass: `Opaque` is raised.
"""

from __future__ import annotations

import dataclasses
import pickle
import struct
import sys
from collections.abc import Mapping, Set
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import ModuleType
from typing import Any
from uuid import UUID

import numpy as np

from sordino.answer.answer import Answer
from sordino.audit.inputs.neighbors import brief
from sordino.privacy.wording import a_or_an

__all__ = ["Opaque", "difference"]

_PLAIN = (str, bytes, bytearray, int, Fraction, timedelta, tzinfo, range, slice, type, PurePath, UUID,
          type(None), type(...), Enum)  # fmt: skip
_CARRIERS = (str, bytes, int, float, list, tuple, dict, set, frozenset, np.ndarray)
Above = tuple[int, ...]
"""What holds the compared values: the identities of all that was entered."""
_DEEPEST = 100
_MADE_IN_PYTHON = 1 << 9
"""Py_TPFLAGS_HEAPTYPE."""


class Opaque(Exception):
    """A result that cannot be compared with another one; carries the name of its type."""


@dataclasses.dataclass(frozen=True)
class _Found:
    """What differs, how it is on one side and how on the other."""

    what: str
    one: str
    other: str


def difference(one: Any, other: Any, sides: tuple[str, str] = ("D", "D'")) -> str | None:
    """The first difference in words, None if there is none.

    Example:
        >>> difference({"n": 3, "mean": 1.5}, {"n": 3, "mean": 1.25})
        "['mean'] is 1.5 on D and 1.25 on D'"
        >>> difference([1, 2], [1.0, 2])
        "[0] is of type int on D and float on D'"
        >>> difference((1, float("nan")), (1, float("nan")))
    """
    found = _difference(one, other, "", ())
    if found is None:
        return None
    return f"{found.what} {found.one} on {sides[0]} and {found.other} on {sides[1]}"


def _difference(one: Any, other: Any, where: str, above: Above) -> _Found | None:
    place = where or "the result"
    if type(one) is not type(other):
        return _Found(f"{place} is of type", type(one).__name__, type(other).__name__)
    if id(one) in above or len(above) > _DEEPEST:
        raise Opaque(f"{a_or_an(type(one).__name__)} that holds itself")
    above = (*above, id(one))
    beside = _mappings(f"what {place} carries", _beside(one), _beside(other), f"{where}.", above)
    if beside is not None:
        return beside
    match one:
        case float():
            not_numbers = one != one and other != other
            same = struct.pack("d", one) == struct.pack("d", other) or not_numbers
        case complex():
            return _listed(place, [one.real, one.imag], [other.real, other.imag], where, above)
        case Decimal() | date() | time():
            same = repr(one) == repr(other)
        case _ if isinstance(one, _PLAIN):
            same = one == other
        case np.ma.MaskedArray():
            cells, others = ([np.ma.getmaskarray(x), x.filled(0)] for x in (one, other))
            return _listed(place, cells, others, where, above)
        case np.generic() | np.ndarray():
            return _arrays(place, np.asarray(one), np.asarray(other), where, above)
        case Answer():
            same = one.to_json() == other.to_json()
        case Mapping():
            return _mappings(place, one, other, where, above)
        case Set():
            same = sorted(map(repr, one)) == sorted(map(repr, other))
        case list() | tuple():
            return _listed(place, one, other, where, above)
        case _:
            return _objects(one, other, where, above)
    return None if same else _Found(f"{place} is", brief(one), brief(other))


def _beside(value: Any) -> dict[str, Any]:
    """What an object of a class derived from a plain type carries beside its value."""
    derived = isinstance(value, _CARRIERS) and type(value).__flags__ & _MADE_IN_PYTHON
    if not derived or isinstance(value, Enum):
        return {}
    return dict(getattr(value, "__dict__", {}))


def _listed(place: str, one: Any, other: Any, where: str, above: Above) -> _Found | None:
    if len(one) != len(other):
        return _Found(f"{place} has", f"{len(one)} entries", str(len(other)))
    for i, (a, b) in enumerate(zip(one, other, strict=True)):
        if found := _difference(a, b, f"{where}[{i}]", above):
            return found
    return None


def _mappings(place: str, one: Any, other: Any, where: str, above: Above) -> _Found | None:
    if set(one) != set(other):
        only = next(key for key in (*one, *other) if (key in one) != (key in other))
        if only in one:
            return _Found(f"{place} has", f"the key {brief(only)}", "not")
        return _Found(f"{place} has", f"no key {brief(only)}", "one")
    if list(one) != list(other):
        return _Found(f"{place} has its keys in the order", brief(list(one)), brief(list(other)))
    for key in one:
        if found := _difference(one[key], other[key], f"{where}[{brief(key)}]", above):
            return found
    return None


def _arrays(place: str, one: Any, other: Any, where: str, above: Above) -> _Found | None:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        a, b = (f"{x.dtype} of shape {x.shape}" for x in (one, other))
        return _Found(f"{place} is", a, b)
    if one.dtype.hasobject:
        return _listed(place, one.ravel().tolist(), other.ravel().tolist(), where, above)
    if one.tobytes() == other.tobytes():
        return None
    different = one != other
    if one.dtype.kind in "fc":
        different &= ~((one != one) & (other != other))
        different |= (np.signbit(one.real) != np.signbit(other.real)) & (one == other)
    if not np.any(different):  # NaNs of other bits
        return None
    first = tuple(int(i) for i in np.argwhere(different)[0])
    index = f"{where}[{', '.join(map(str, first))}]" if first else place
    return _Found(f"{index} is", brief(one[first]), brief(other[first]))


def _objects(one: Any, other: Any, where: str, above: Above) -> _Found | None:
    framed = _frame(one), _frame(other)
    if framed[0] is not None:
        return _difference(*framed, where, above)
    if callable(one) or isinstance(one, ModuleType):
        if one is other:
            return None
        raise Opaque(a_or_an(type(one).__name__))
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        a, b = ({name: getattr(x, name, None) for name in names} for x in (one, other))
        return _difference(a, b, where, above)
    if _plain_object(type(one)):
        return _difference(vars(one), vars(other), where, above)
    try:
        same = pickle.dumps(one) == pickle.dumps(other)
    except Exception:
        raise Opaque(a_or_an(type(one).__name__)) from None
    return None if same else _Found(f"{where or 'the result'} is", brief(one), brief(other))


def _plain_object(kind: type) -> bool:
    """Whether all that such an object holds is in its dictionary: an ordinary class of ordinary classes."""
    own, stored = kind.mro()[:-1], ("__reduce__", "__reduce_ex__", "__getstate__")
    return (
        all(c.__flags__ & _MADE_IN_PYTHON and "__slots__" not in vars(c) for c in own)
        and "__weakref__" in vars(own[-1])
        and all(getattr(kind, name) == getattr(object, name) for name in stored)
    )


def _frame(value: Any) -> Any:
    """A table as plain lists with its names, types and index; None if it is no table."""
    module = type(value).__module__.partition(".")[0]
    if module not in ("pandas", "polars", "pyarrow") or module not in sys.modules:
        return None
    if module == "pyarrow" and hasattr(value, "to_pylist"):
        return (str(getattr(value, "schema", getattr(value, "type", ""))), value.to_pylist())
    if module == "polars" and hasattr(value, "to_arrow"):
        return _frame(value.to_arrow())
    if hasattr(value, "index") and hasattr(value, "to_numpy"):
        types = [str(t) for t in value.dtypes] if hasattr(value, "columns") else str(value.dtype)
        names = list(value.columns) if hasattr(value, "columns") else value.name
        return (names, types, value.index.tolist(), value.to_numpy(object).ravel().tolist())
    return None
