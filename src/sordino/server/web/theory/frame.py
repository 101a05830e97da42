"""From numbers to the paths of an SVG: one frame with the numbers at its edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["HEIGHT", "WIDTH", "Frame", "circles"]

WIDTH, HEIGHT = 420, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 12, 30


@dataclass(frozen=True)
class Frame:
    """A rectangle of a picture. What is beyond its edges is drawn at most a little beyond, and clipped by the page."""

    left: float
    right: float
    low: float
    high: float
    margin: float = _LEFT

    def x(self, value: float) -> float:
        """Where a number of the horizontal axis is."""
        return self.margin + (value - self.left) / (self.right - self.left) * (
            WIDTH - self.margin - _RIGHT
        )

    def y(self, value: float) -> float:
        """Where a number of the vertical axis is."""
        inside = (value - self.low) / (self.high - self.low)
        return HEIGHT - _BOTTOM - min(max(inside, -0.1), 1.1) * (HEIGHT - _TOP - _BOTTOM)

    def line(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        """A line through points."""
        return (
            "M" + "L".join(f"{self.x(a):.1f} {self.y(b):.1f}" for a, b in zip(xs, ys, strict=True))
            if len(xs)
            else ""
        )

    def area(
        self, xs: Sequence[float], tops: Sequence[float], bottoms: Sequence[float] | None = None
    ) -> str:
        """What is between two lines, or between a line and the axis."""
        if not len(xs):
            return ""
        under = [self.low] * len(xs) if bottoms is None else bottoms
        return f"{self.line(xs, tops)}L{self.line(xs[::-1], under[::-1])[1:]}Z"

    def bars(self, bars: Iterable[tuple[float, float, float]]) -> str:
        """Bars: from, to, height."""
        return "".join(
            f"M{self.x(a):.1f} {self.y(self.low):.1f}V{self.y(h):.1f}H{self.x(b):.1f}V{self.y(self.low):.1f}Z"
            for a, b, h in bars
        )

    def upright(self, value: float) -> str:
        """A line from the bottom to the top."""
        return f"M{self.x(value):.1f} {HEIGHT - _BOTTOM}V{_TOP}"

    def dot(self, a: float, b: float, radius: float = 4) -> str:
        """A dot at a point."""
        return circles([(self.x(a), self.y(b))], radius)


def circles(centres: Iterable[tuple[float, float]], radius: float) -> str:
    """Circles as one path."""
    r = radius
    return "".join(
        f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0Z"
        for x, y in centres
    )
