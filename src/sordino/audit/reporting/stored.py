"""Reports and dossiers as JSON, for machines and for filing.

One object with `"kind": "audit report"` or `"audit dossier"` and `"v": 1`. Numbers read back to the same 64 bits; an
infinite one is "inf". The same report always gives the same text, and the meaning of a version never changes. The
fields are those of the dataclasses, read back by their types, and `passed` beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sordino.audit.reporting.report import Dossier, Report, Verdict
from sordino.errors import InvalidInput
from sordino.privacy.json_form import list_of, read, text_of, truth_of, write

__all__ = ["VERSION", "dump", "load"]

VERSION = 1
_UNBOUNDED = {"inf": math.inf, "-inf": -math.inf}
_WHICH = "Report.from_json reads reports, Dossier.from_json dossiers."

Told = TypeVar("Told", bound=Report | Dossier)


def dump(told: Report | Dossier) -> str:
    """The text of a report or a dossier; it can always be encoded as UTF-8."""
    return write(_kind(type(told)), VERSION, _plain(told), indent=1)


def load(kind: type[Told], text: str) -> Told:
    """The report or the dossier of a stored text."""
    name = _kind(kind)
    made: Told = read(text, name, VERSION, name, partial(_built, kind), hint=_WHICH)
    return made


def _kind(kind: type[Any]) -> str:
    return "audit report" if kind is Report else "audit dossier"


def _plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, Verdict):
        return value.name.lower()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _plain_number(float(value))
    if not is_dataclass(value):
        return value
    plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return {**plain, "passed": value.passed} if isinstance(value, Report | Dossier) else plain


def _plain_number(value: float) -> float | str:
    if math.isnan(value):
        rule = "the numbers of a report are not NaN"
        raise InvalidInput("a report with NaN in it", rule, "Leave that point out.")
    return value if math.isfinite(value) else str(value)


def _built(kind: Any, stored: Any) -> Any:
    """The value of a type that was stored; ValueError, LookupError or TypeError if it is none."""
    if kind in _READERS:
        return _READERS[kind](stored)
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return arguments[arguments.index(text_of(stored))]
    if get_origin(kind) is tuple:
        parts = list_of(stored)
        kinds = (arguments[0],) * len(parts) if arguments[-1] is ... else arguments
        return tuple(_built(part, one) for part, one in zip(kinds, parts, strict=True))
    if type(None) in arguments:
        return None if stored is None else _built(arguments[0], stored)
    types, passed = _types(kind), {"passed"} if kind in (Report, Dossier) else set[str]()
    if set(stored) != types.keys() | passed:
        raise ValueError
    made = kind(**{name: _built(each, stored[name]) for name, each in types.items()})
    if passed and made.passed is not stored["passed"]:
        raise ValueError
    return made


@cache
def _types(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _number(stored: Any) -> float:
    if type(stored) is float and math.isfinite(stored):
        return stored
    return _UNBOUNDED[text_of(stored)]


_READERS: dict[Any, Callable[[Any], Any]] = {
    str: text_of,
    bool: truth_of,
    float: _number,
    Verdict: lambda stored: Verdict[text_of(stored).upper()],
}
