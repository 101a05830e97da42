"""Reports and dossiers as JSON, for machines and for filing.

One object with `"kind": "audit report"` or `"audit dossier"` and `"v": 1`. Numbers read back to the same 64 bits; an
infinite one is "inf". The same report always gives the same text, and the meaning of a version never changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

from sordino.audit.reporting.report import Dossier, Figure, Grid, Report, Series, Verdict
from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["VERSION", "dump", "load_dossier", "load_report"]

VERSION = 1
_REPORT, _DOSSIER = "audit report", "audit dossier"
_KINDS = frozenset({"bars", "lines"})
_METHODS = frozenset({"black box", "record and replay", "exact law"})
_UNBOUNDED = {"inf": math.inf, "-inf": -math.inf}
_PLAIN = ("name", "method", "summary", "witness", "relation", "version", "created")
_NUMBERS = ("epsilon", "delta", "epsilon_lower", "delta_lower")
_Kept = TypeVar("_Kept", Report, Dossier)


def dump(what: Report | Dossier) -> str:
    """The text of a report or a dossier; it can always be encoded as UTF-8."""
    if isinstance(what, Report):
        stored = {"kind": _REPORT, "v": VERSION, **_report_fields(what)}
    else:
        stored = {
            "kind": _DOSSIER,
            "v": VERSION,
            "title": what.title,
            "passed": what.passed,
            "reports": [_report_fields(report) for report in what.reports],
            "facts": what.facts,
            "notes": what.notes,
            "expected": what.expected,
        }
    text = json.dumps(stored, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate as its escape, which JSON reads back


def load_report(text: str) -> Report:
    """The report of a stored text."""
    return _loaded(text, _REPORT, _report)


def load_dossier(text: str) -> Dossier:
    """The dossier of a stored text."""
    return _loaded(text, _DOSSIER, _dossier)


def _report_fields(report: Report) -> dict[str, Any]:
    return {
        **{name: getattr(report, name) for name in (*_PLAIN, "pair", "facts", "notes")},
        **{name: _stored(getattr(report, name)) for name in _NUMBERS},
        "verdict": report.verdict.name.lower(),
        "passed": report.passed,
        "confidence": None if report.confidence is None else _stored(report.confidence),
        "grids": [{"title": g.title, "headings": g.headings, "rows": g.rows} for g in report.grids],
        "figures": [_figure_fields(figure) for figure in report.figures],
    }


def _figure_fields(figure: Figure) -> dict[str, Any]:
    series = [{"name": s.name, "x": [_stored(x) for x in s.x], "y": [_stored(y) for y in s.y]} for s in figure.series]
    return {**{f.name: getattr(figure, f.name) for f in fields(figure)}, "series": series}


def _stored(number: float) -> float | str:
    value = float(number)
    if math.isnan(value):
        raise InvalidInput("a report with NaN in it", "a number of a report must be one", "Leave that point out.")
    return value if math.isfinite(value) else str(value)


def _loaded(text: str, kind: str, read: Callable[[Any], _Kept]) -> _Kept:
    try:
        stored = json.loads(text, parse_constant=_refuse) if isinstance(text, str) else None
        found, version = stored.pop("kind"), stored.pop("v")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _damaged(text, kind) from None
    if found != kind:
        hint = "Report.from_json reads reports, Dossier.from_json dossiers."
        raise InvalidInput(f"kind {show(found)}", f'this is not of kind "{kind}"', hint)
    if type(version) is int and version > VERSION:
        rule = f"this Sordino reads audits up to version {VERSION}"
        raise InvalidInput(f"an {kind} of version {version}", rule, "Install a newer Sordino.")
    try:
        if type(version) is not int or version != VERSION:
            raise ValueError
        return read(stored)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _damaged(text, kind) from None


def _report(stored: Any) -> Report:
    _only(stored, {f.name for f in fields(Report)} | {"passed"})
    confidence, pair = stored["confidence"], stored["pair"]
    known: dict[str, Any] = {name: _text(stored[name]) for name in _PLAIN}
    known |= {name: _number(stored[name]) for name in _NUMBERS}
    report = Report(
        **known,
        verdict=Verdict[_text(stored["verdict"]).upper()],
        confidence=None if confidence is None else _number(confidence),
        pair=None if pair is None else _two(pair),
        facts=tuple(map(_two, _list(stored["facts"]))),
        notes=_texts(stored["notes"]),
        grids=tuple(map(_grid, _list(stored["grids"]))),
        figures=tuple(map(_figure, _list(stored["figures"]))),
    )
    if report.passed is not stored["passed"] or report.method not in _METHODS:
        raise ValueError
    return report


def _dossier(stored: Any) -> Dossier:
    _only(stored, {f.name for f in fields(Dossier)} | {"passed"})
    dossier = Dossier(
        _text(stored["title"]),
        tuple(map(_report, _list(stored["reports"]))),
        tuple(map(_two, _list(stored["facts"]))),
        _texts(stored["notes"]),
        tuple(map(_truth, _list(stored["expected"]))),
    )
    if dossier.passed is not stored["passed"]:
        raise ValueError
    return dossier


def _grid(stored: Any) -> Grid:
    _only(stored, {f.name for f in fields(Grid)})
    return Grid(_text(stored["title"]), _texts(stored["headings"]), tuple(map(_texts, _list(stored["rows"]))))


def _figure(stored: Any) -> Figure:
    _only(stored, {f.name for f in fields(Figure)})
    if stored["kind"] not in _KINDS:
        raise ValueError
    return Figure(
        _text(stored["title"]),
        _text(stored["x_label"]),
        _text(stored["y_label"]),
        tuple(map(_series, _list(stored["series"]))),
        stored["kind"],
        _texts(stored["ticks"]),
        _truth(stored["log_y"]),
    )


def _series(stored: Any) -> Series:
    _only(stored, {f.name for f in fields(Series)})
    x, y = (tuple(map(_number, _list(stored[name]))) for name in ("x", "y"))
    if len(x) != len(y):
        raise ValueError
    return Series(_text(stored["name"]), x, y)


def _only(stored: Any, names: set[str]) -> None:
    if not isinstance(stored, dict) or set(stored) != names:
        raise ValueError


def _number(stored: Any) -> float:
    if type(stored) is float and math.isfinite(stored):
        return stored
    if type(stored) is str:
        return _UNBOUNDED[stored]
    raise ValueError


def _text(stored: Any) -> str:
    if type(stored) is not str:
        raise ValueError
    return stored


def _truth(stored: Any) -> bool:
    if type(stored) is not bool:
        raise ValueError
    return stored


def _list(stored: Any) -> list[Any]:
    if type(stored) is not list:
        raise ValueError
    return stored


def _texts(stored: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(stored)))


def _two(stored: Any) -> tuple[str, str]:
    first, second = _texts(stored)
    return first, second


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _damaged(text: object, kind: str) -> InvalidInput:
    what = f"a text of {len(text):,} characters" if isinstance(text, str) else f"a {type(text).__name__}"
    return InvalidInput(what, f"it is not a stored {kind}, or it is damaged", "Pass a text made by to_json(), unchanged.")
