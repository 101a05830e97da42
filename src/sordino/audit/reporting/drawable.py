"""What of a figure can be drawn: points that are numbers of a sane size, and the names of places."""

from __future__ import annotations

from sordino.audit.reporting.report import Figure, Series

__all__ = ["drawable", "place_name", "spread_out"]

_LARGEST = 1e100
_SHARPEST = 1e-9


def drawable(series: Series) -> Series:
    """The series without the points that are infinite, NaN or absurdly large."""
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if abs(x) <= _LARGEST and abs(y) <= _LARGEST]
    return Series(series.name, tuple(x for x, _ in points), tuple(y for _, y in points))


def spread_out(low: float, high: float) -> bool:
    """Whether an axis can tell two numbers apart."""
    return high - low > _SHARPEST * max(abs(low), abs(high), 1 / _LARGEST)


def place_name(figure: Figure, x: float) -> str:
    """The name of a place on the x axis."""
    whole = round(x)
    return figure.ticks[whole] if whole == x and 0 <= whole < len(figure.ticks) else f"{x:.6g}"
