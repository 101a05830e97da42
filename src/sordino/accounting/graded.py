"""One law of a privacy loss as a discrete one, from above or from below, with cells that are wide where little happens.

Lemmas 1 and 4 of total.md: `from_above` gives a loss that is at least as revealing, `from_below` one that is at most as
revealing. The values are no multiples of anything, so that one law needs few of them however many uses are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sordino.privacy.loss.law import Contrast, Floats, Law

__all__ = ["Discrete", "Graded", "Sketch", "View"]

_FAINT = 2.0**-1000
"""A probability below this may have lost digits to underflow."""
_STEP = 0.08
_MIDDLE = 0.1
"""The sketch has edges at the spread times this times the hyperbolic sine of multiples of the step."""
_FARTHEST = 600.0
_SUMMED = 2.0**-48
"""How far a sum of masses may be off, for the rounding of each."""
_ROUNDED = 2.0**-45
"""How far the float of an atom's value may be off, as a share of it."""
_MATTERS = 1e-12
"""A tilted probability that is more than noise."""
_LEAST_CROWD = 1 / 8
"""A cell spans at most so few cells of the sketch where it matters: what is likely at one end must not move far."""
_NARROWEST = 2.0**-14
"""The least width of a cell, in spreads: the law's error is that of cells which are at least half as wide."""


@dataclass(frozen=True)
class Discrete:
    """A discrete loss: the probabilities of its values, and of infinity; a value may be off by `rounding`."""

    values: Floats
    masses: Floats
    infinite: float = 0.0
    rounding: float = 0.0


@dataclass(frozen=True)
class Sketch:
    """A law in rough cells: what to choose tilts and finer cells by. Nothing certified depends on it."""

    edges: Floats
    masses: Floats
    losses: Floats
    below: Floats
    above: Floats

    @staticmethod
    @lru_cache(maxsize=64)
    def of(law: Law) -> Sketch:
        """Edges spaced evenly about 0 and geometrically farther out, within the law."""
        scale = _MIDDLE * law.spread
        half = (
            np.sinh(np.arange(_STEP, math.asinh(max(_FARTHEST, 40 * law.spread) / scale), _STEP))
            * scale
        )
        edges = np.concatenate([-half[::-1], [0.0], half])
        inside = edges[(edges > law.low) & (edges < law.high)]
        edges = np.concatenate([[max(law.low, -1e300)], inside, [min(law.high, 1e300)]])
        p, q = law.cells(edges)
        clear = (p > _FAINT) & (q > _FAINT)
        losses = (edges[:-1] + edges[1:]) / 2
        losses[clear] = np.clip(np.log(p[clear] / q[clear]), edges[:-1][clear], edges[1:][clear])
        return Sketch(edges, p, losses, np.cumsum(p), np.cumsum(p[::-1])[::-1])

    def kept(self, tail: float) -> slice:
        """The cells but for those on each side that together have at most this probability."""
        return slice(
            int(np.searchsorted(self.below, tail, side="right")),
            len(self.above) - int(np.searchsorted(self.above[::-1], tail, side="right")),
        )


class View(NamedTuple):
    """So many uses of the law, tilted, with losses in this range."""

    tilt: float
    uses: int
    above: float = -math.inf
    to: float = math.inf


@dataclass(frozen=True)
class Graded:
    """The cells of one law."""

    law: Law
    edges: Floats
    cells: Contrast

    @staticmethod
    def of(law: Law, tilt: float, tail: float, count: int, moved: float) -> Graded:
        """Cells for one view of the law."""
        return Graded.of_views(law, [View(tilt, count)], tail, moved)

    @staticmethod
    def of_views(law: Law, views: Sequence[View], tail: float, moved: float) -> Graded:
        """Cells such that in each view the uses have squared widths of about `moved` in the mean of the tilted law.

        The widths are as the inverse cube roots of the tilted density, which makes few cells; where one use in all of
        them matters, the square of a width is at most about `moved`. What has less probability than `tail` is cut off
        on each side.
        """
        if not law.high > law.low:
            none = np.zeros(0)
            return Graded(law, none, Contrast(none, none, none, none))
        sketch = Sketch.of(law)
        kept = sketch.kept(tail)
        ends = np.append(sketch.edges[kept], sketch.edges[kept.stop])
        masses, losses = sketch.masses[kept], sketch.losses[kept]
        crowd = np.zeros(len(masses))
        for view in views:
            seen = (losses > view.above) & (losses <= view.to)
            if seen.any():
                crowd[seen] = np.maximum(
                    crowd[seen],
                    _crowd(masses[seen], losses[seen], np.diff(ends)[seen], view, moved),
                )
        at = np.concatenate([[0.0], np.cumsum(crowd)])
        edges = np.interp(np.linspace(0, at[-1], max(16, math.ceil(at[-1]))), at, ends)
        edges[0], edges[-1] = ends[0], ends[-1]
        least = _NARROWEST * law.spread
        if (np.diff(edges) < least).any():
            edges = _apart(edges, least)
        return Graded(law, edges, law.contrasted(np.concatenate([[-math.inf], edges, [math.inf]])))

    def from_above(self) -> Discrete:
        """Every value split between the ends of its cell so that P- and Q-probabilities stay: connect the dots.

        What lies above the cells counts as infinite; what lies below them moves up to the first edge.
        """
        law, more = self.law, 1 + 2 * self.law.error
        values, masses = _atoms(law)
        infinite = law.infinite
        if len(self.edges):
            p, q, excess, excess_error = self.cells
            infinite += float(p[-1])
            inner, start = p[1:-1], np.expm1(self.edges[:-1])
            moved = (
                excess[1:-1]
                - q[1:-1] * start
                + 2 * (excess_error[1:-1] + law.error * q[1:-1] * np.abs(start))
            )
            up = np.where(
                q[1:-1] > _FAINT, np.clip(moved / -np.expm1(-np.diff(self.edges)), 0, inner), inner
            )
            own = np.concatenate([p[:1] + inner[:1] - up[:1], inner[1:] - up[1:], [0.0]])
            own[1:] += up
            values, masses = np.append(values, self.edges), np.append(masses, own)
        return _positive(
            law, *_whole_from_above(values, masses * more, infinite * more), infinite * more
        )

    def from_below(self) -> Discrete:
        """All of a cell merged into one outcome, and what lies outside the cells dropped."""
        law = self.law
        values, masses = _atoms(law)
        if len(self.edges):
            p, q, excess, excess_error = (x[1:-1] for x in self.cells)
            losses = self.edges[:-1].copy()  # no loss in a cell is less
            clear = (p > _FAINT) & (q > _FAINT)
            mine, other, more = p[clear], q[clear], excess[clear]
            near = 2 * np.abs(more) < other
            merged = np.where(
                near, np.log1p(np.where(near, more, 0.0) / other), np.log(mine / other)
            )
            error = np.where(
                near, 2 * (excess_error[clear] + law.error * np.abs(more)) / mine, 4 * law.error
            )
            error += 2.0**-50 * np.abs(merged)
            losses[clear] = np.maximum(losses[clear], merged - error)
            values, masses = np.append(values, losses), np.append(masses, p)
        masses = masses * (1 - 2 * law.error)
        below = float(self.cells.p[0]) * (1 + 2 * law.error) if len(self.edges) else 0.0
        # what is missing to one, but for what may lie below the cells, is at least at the least value
        missing = 1 - law.infinite - below - math.fsum(masses.tolist()) - _SUMMED
        missing = min(missing, 4 * law.error)  # no more than the law's own error explains
        if missing > 0:
            values, masses = np.append(values, values.min()), np.append(masses, missing)
        return _positive(law, values, masses, law.infinite)


def _crowd(masses: Floats, losses: Floats, widths: Floats, view: View, moved: float) -> Floats:
    """How many cells each cell of the sketch is cut into for one view."""
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + view.tilt * losses
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    density = chances / widths
    neighbours = np.concatenate([density[:1], density, density[-1:]])
    # not too wide at a flank
    density = np.maximum(density, np.maximum(neighbours[:-2], neighbours[2:]))
    crowd = np.cbrt(density) * widths
    crowd *= math.sqrt(crowd.sum() * view.uses / moved)
    least = np.maximum(widths / math.sqrt(moved), _LEAST_CROWD)
    crowd = np.where(chances * view.uses > _MATTERS, np.maximum(crowd, least), crowd)
    # what moves up must not outweigh all by its tilt
    top = int(np.argmax(chances)) if math.isinf(view.above) else 0
    crowd[top:] = np.maximum(crowd[top:], widths[top:] * (view.tilt + 1))
    return np.asarray(crowd)


def _atoms(law: Law) -> tuple[Floats, Floats]:
    return np.array([v for v, _ in law.atoms]), np.array([p for _, p in law.atoms])


def _whole_from_above(values: Floats, masses: Floats, infinite: float) -> tuple[Floats, Floats]:
    """Enlarged masses without what they have beyond one: it is taken from the least values,
    so that no tail gets lighter.
    """
    order = np.argsort(values, kind="stable")
    values, masses = values[order], masses[order]
    surplus = math.fsum(masses.tolist()) + infinite - 1 - _SUMMED
    if surplus > 0:
        masses = np.maximum(
            masses - np.clip(surplus - (np.cumsum(masses) - masses), 0.0, masses), 0.0
        )
    return values, masses


def _positive(law: Law, values: Floats, masses: Floats, infinite: float) -> Discrete:
    """Edges are what they are and merged losses were lowered, so only the values of atoms have been rounded."""
    kept = masses > 0
    rounding = _ROUNDED * max((abs(value) for value, _ in law.atoms), default=0.0)
    return Discrete(values[kept], masses[kept], infinite, rounding)


def _apart(edges: Floats, least: float) -> Floats:
    """Some of the edges, at least so far apart, the ends among them."""
    kept = [float(edges[0])]
    for edge in edges[1:-1].tolist():
        if edge - kept[-1] >= least and edges[-1] - edge >= least:
            kept.append(edge)
    return np.array([*kept, float(edges[-1])])
