"""The loss towards a group: what data that differ in up to `size` persons can be told apart by.

Neighbours of neighbours: every loss is converted by a theorem of its own, or refused. Proofs in group.md.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from numbers import Integral
from typing import Any

from sordino.accounting.total import Total, total
from sordino.errors import InvalidInput
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import show
from sordino.privacy.loss import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    EpsilonDeltaLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
    RenyiLoss,
    SampledFiniteLoss,
    ZcdpLoss,
)

__all__ = ["group"]

_MOST_CORNERS = 2000

Point = tuple[Fraction, Fraction]


def group(loss: Loss, size: int) -> Loss:
    """The loss for data that differ in up to `size` persons, each step a pair of neighbours.

    Privacy: as the loss's own. Sampled and shuffled noise is refused: what a group moves there is no chain of known
    pairs.

    Source: group.md.

    Example:
        >>> group(GaussianLoss(Fraction(1, 10)), 3)
        GaussianLoss(shift=0.3)
    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise InvalidInput(
            f"size={show(size)}",
            "a group must be a whole number of at least 1 person",
            "Pass size=3.",
        )
    k: Any = int(size)
    match loss:
        case _ if k == 1 and isinstance(loss, Loss):
            return loss
        case Total():
            return total((group(part, k), count) for part, count in loss.parts)
        case GaussianLoss() | LaplaceLoss():
            return type(loss)(k * loss.shift)
        case DiscreteGaussianLoss() | DiscreteLaplaceLoss():
            return type(loss)(k * loss.shift, loss.scale)
        case BoundedRangeLoss():
            return BoundedRangeLoss(k * loss.width)
        case EpsilonDeltaLoss():
            return _declared(loss, k)
        case ZcdpLoss():
            return ZcdpLoss(k * k * loss.bound)
        case RenyiLoss():
            return _renyi(loss, k)
        case FiniteLoss():
            return _finite(loss, k)
        case SampledFiniteLoss():
            return _finite(loss.pair, k)
    rule = f"no theorem here gives the loss of {k} persons from that of one"
    hint = "Convert its promise: group(EpsilonDeltaLoss(loss.epsilon(delta), delta), size)."
    if isinstance(loss, Loss):
        raise InvalidInput(show(loss), rule, hint)
    raise InvalidInput(
        f"loss={show(loss)}",
        "only a Loss can be converted to a group's",
        "Pass mechanism.loss(sensitivity).",
    )


def _declared(loss: EpsilonDeltaLoss, k: int) -> EpsilonDeltaLoss:
    def failure() -> Any:
        e = ball(loss.most)
        factor = (k * e).expm1() / e.expm1() if loss.most else ball(k)
        return ball(loss.failure) * factor

    chance = exact_upper(certified(failure)) if loss.failure else Fraction(0)
    if chance >= 1:
        rule = f"delta of {k} persons would be 1 or more, which promises nothing"
        raise InvalidInput(
            repr(loss), rule, "Take a smaller group, or a release with a smaller delta."
        )
    return EpsilonDeltaLoss(k * loss.most, chance)


def _renyi(loss: RenyiLoss, k: int) -> RenyiLoss:
    """For size 2^c: order a/2^c has at most 3^c times the divergence of order a, where a is at least 2^(c+1)."""
    doublings = (k - 1).bit_length()
    points = [
        (a / 2**doublings, 3**doublings * v) for a, v in loss.points if a >= 2 ** (doublings + 1)
    ]
    if not points:
        rule = f"a curve must know an order of at least {2 ** (doublings + 1)} for {k} persons"
        raise InvalidInput(repr(loss), rule, "Pass more orders.")
    return RenyiLoss(tuple(points))


def _finite(loss: FiniteLoss, k: int) -> FiniteLoss:
    """The best tests' curve, applied k times: the chance of an event under the last neighbour,
    by that under the first.
    """
    step = _hull([point for pair in loss._directions() for point in _accepting(loss, pair)])
    curve = step
    for _ in range(k - 1):
        curve = _hull(_composed(step, curve))
        if len(curve) > _MOST_CORNERS:
            rule = f"a finite loss of a group may have at most {_MOST_CORNERS} corners"
            raise InvalidInput(
                f"{len(curve)} corners",
                rule,
                "Take a smaller group, or a pair with fewer outcomes.",
            )
    edges = [(Fraction(0), Fraction(0)), *curve] if curve[0][1] else curve
    q, p = zip(*((x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(edges)), strict=True)
    return FiniteLoss(p, q)


def _accepting(loss: FiniteLoss, pair: Any) -> list[Point]:
    """(chance under q, chance under p) of the best events of the pair, and the two ends."""
    return [(alpha, 1 - beta) for alpha, beta in loss._corners(tuple((b, a) for a, b in pair))]


def _hull(points: list[Point]) -> list[Point]:
    """The corners of the least concave curve above the points, from chance 0 to 1."""
    best: dict[Fraction, Fraction] = {}
    for x, y in [*points, (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))]:
        best[x] = max(y, best.get(x, y))
    hull: list[Point] = []
    for x, y in sorted(best.items()):
        while len(hull) > 1 and _below(hull[-1], hull[-2], (x, y)):
            hull.pop()
        hull.append((x, y))
    return hull


def _below(point: Point, left: Point, right: Point) -> bool:
    """Whether a point is on or below the chord of its neighbours."""
    return (point[1] - left[1]) * (right[0] - left[0]) <= (right[1] - left[1]) * (
        point[0] - left[0]
    )


def _composed(outer: list[Point], inner: list[Point]) -> list[Point]:
    """outer(inner(x)) at every x where either has a corner."""
    points = [(x, _at(outer, y)) for x, y in inner]
    for corner, height in outer:
        for (x0, y0), (x1, y1) in pairwise(inner):
            if y0 < corner < y1:
                points.append((x0 + (x1 - x0) * (corner - y0) / (y1 - y0), height))
    return points


def _at(curve: list[Point], x: Fraction) -> Fraction:
    for (x0, y0), (x1, y1) in pairwise(curve):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return Fraction(1)
