"""Reports and dossiers as JSON, for machines and for filing.

One object with `"kind": "audit report"` or `"audit dossier"` and `"v": 1`. Numbers read back to the same 64 bits; an
infinite one is "inf". The same report always gives the same text, and the meaning of a version never changes.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from sordino.audit.reporting.report import Dossier, Figure, Grid, Report, Series, Verdict
from sordino.errors import InvalidInput
from sordino.privacy.json_form import list_of, read, text_of, texts_of, truth_of, write

__all__ = ["VERSION", "dump", "load_dossier", "load_report"]

VERSION = 1
_REPORT, _DOSSIER = "audit report", "audit dossier"
_KINDS = frozenset({"bars", "lines"})
_METHODS = frozenset({"black box", "record and replay", "exact law"})
_UNBOUNDED = {"inf": math.inf, "-inf": -math.inf}
_PLAIN = ("name", "method", "summary", "witness", "relation", "version", "created")
_NUMBERS = ("epsilon", "delta", "epsilon_lower", "delta_lower")
_WHICH = "Report.from_json reads reports, Dossier.from_json dossiers."


def dump(what: Report | Dossier) -> str:
    """The text of a report or a dossier; it can always be encoded as UTF-8."""
    if isinstance(what, Report):
        return write(_REPORT, VERSION, _report_fields(what), indent=1)
    stored = {
        "title": what.title,
        "passed": what.passed,
        "reports": [_report_fields(report) for report in what.reports],
        "facts": what.facts,
        "notes": what.notes,
        "expected": what.expected,
    }
    return write(_DOSSIER, VERSION, stored, indent=1)


def load_report(text: str) -> Report:
    """The report of a stored text."""
    return read(text, _REPORT, VERSION, _REPORT, _report, hint=_WHICH)


def load_dossier(text: str) -> Dossier:
    """The dossier of a stored text."""
    return read(text, _DOSSIER, VERSION, _DOSSIER, _dossier, hint=_WHICH)


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
        raise InvalidInput("a report with NaN in it", "the numbers of a report are not NaN", "Leave that point out.")
    return value if math.isfinite(value) else str(value)


def _report(stored: Any) -> Report:
    _only(stored, {f.name for f in fields(Report)} | {"passed"})
    confidence, pair = stored["confidence"], stored["pair"]
    known: dict[str, Any] = {name: text_of(stored[name]) for name in _PLAIN}
    known |= {name: _number(stored[name]) for name in _NUMBERS}
    report = Report(
        **known,
        verdict=Verdict[text_of(stored["verdict"]).upper()],
        confidence=None if confidence is None else _number(confidence),
        pair=None if pair is None else _two(pair),
        facts=tuple(map(_two, list_of(stored["facts"]))),
        notes=texts_of(stored["notes"]),
        grids=tuple(map(_grid, list_of(stored["grids"]))),
        figures=tuple(map(_figure, list_of(stored["figures"]))),
    )
    if report.passed is not stored["passed"] or report.method not in _METHODS:
        raise ValueError
    return report


def _dossier(stored: Any) -> Dossier:
    _only(stored, {f.name for f in fields(Dossier)} | {"passed"})
    dossier = Dossier(
        text_of(stored["title"]),
        tuple(map(_report, list_of(stored["reports"]))),
        tuple(map(_two, list_of(stored["facts"]))),
        texts_of(stored["notes"]),
        tuple(map(truth_of, list_of(stored["expected"]))),
    )
    if dossier.passed is not stored["passed"]:
        raise ValueError
    return dossier


def _grid(stored: Any) -> Grid:
    _only(stored, {f.name for f in fields(Grid)})
    return Grid(text_of(stored["title"]), texts_of(stored["headings"]), tuple(map(texts_of, list_of(stored["rows"]))))


def _figure(stored: Any) -> Figure:
    _only(stored, {f.name for f in fields(Figure)})
    if stored["kind"] not in _KINDS:
        raise ValueError
    return Figure(
        text_of(stored["title"]),
        text_of(stored["x_label"]),
        text_of(stored["y_label"]),
        tuple(map(_series, list_of(stored["series"]))),
        stored["kind"],
        texts_of(stored["ticks"]),
        truth_of(stored["log_y"]),
    )


def _series(stored: Any) -> Series:
    _only(stored, {f.name for f in fields(Series)})
    x, y = (tuple(map(_number, list_of(stored[name]))) for name in ("x", "y"))
    if len(x) != len(y):
        raise ValueError
    return Series(text_of(stored["name"]), x, y)


def _only(stored: Any, names: set[str]) -> None:
    if not isinstance(stored, dict) or set(stored) != names:
        raise ValueError


def _number(stored: Any) -> float:
    if type(stored) is float and math.isfinite(stored):
        return stored
    if type(stored) is str:
        return _UNBOUNDED[stored]
    raise ValueError


def _two(stored: Any) -> tuple[str, str]:
    first, second = texts_of(stored)
    return first, second
