"""How far the inputs of a call are apart on two data, what the call costs at that distance, and both in words.

Laplace, Gaussian and randomized-response calls have the loss of exactly these inputs, key selection and quantiles an
upper bound. See replay.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sordino.accounting.bracket import Bracket
from sordino.accounting.charge import Charge
from sordino.audit.replayed.cost import NO_COST, Cost
from sordino.audit.replayed.distances import (
    Moved,
    exactly,
    keys_moved,
    moved,
    vector_steps,
    weight_moved,
)
from sordino.audit.replayed.recording import Call
from sordino.local.frequency import Frequency
from sordino.local.heavy_hitters import HeavyHitters
from sordino.local.one_bit import OneBitMean
from sordino.local.repeated import Repeated
from sordino.mechanisms.above_threshold import AboveThreshold
from sordino.mechanisms.exponential import bounded_range
from sordino.mechanisms.gaussian import Gaussian
from sordino.mechanisms.interval_draw import IntervalDraw
from sordino.mechanisms.key_selection import KeySelection
from sordino.mechanisms.laplace import Laplace
from sordino.mechanisms.noisy_max import NoisyMax
from sordino.mechanisms.public_chance import PublicChance
from sordino.mechanisms.randomized_response import RandomizedResponse
from sordino.mechanisms.scaled_gaussian import ScaledGaussian
from sordino.plan.plan import Plan
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import readable
from sordino.privacy.loss import GaussianLoss, LaplaceLoss, Loss
from sordino.privacy.wording import a_or_an
from sordino.query.aggregates.mode import ModeDraw
from sordino.query.aggregates.quantiles import QuantileDraw

__all__ = [
    "Distance",
    "call_cost",
    "call_distances",
    "cost_range",
    "declared_cost",
    "distance_cells",
    "norm_name",
    "plan_cost",
    "plan_distance",
    "root_upper",
    "sentence",
]

_MOST_DIFFERENT = 16


@dataclass(frozen=True)
class Distance:
    """How far the inputs of one call are apart in one norm, and how far they may be (None: not declared)."""

    norm: str
    observed: Fraction
    declared: Fraction | None
    broken: bool


def _distance(norm: str, observed: Fraction, declared: Fraction | None) -> Distance:
    """L2 distances are mostly irrational, and those who declare them in floats may be off by a rounding."""
    least = declared if declared is None or norm != "l2" else declared * (1 + Fraction(1, 10**12))
    return Distance(norm, observed, declared, least is not None and observed > least)


@lru_cache(maxsize=1024)
def _charge(loss: Loss) -> Charge:
    return Charge.of(loss)


def _of(loss: Loss, count: int = 1) -> Cost:
    return Cost(((loss, count),), charge=_charge(loss) * count)


def _bounded(epsilon: Fraction) -> Cost:
    """Draws by the exponential mechanism that are epsilon-private together."""
    if not epsilon:
        return NO_COST
    mu_squared, rho = bounded_range(epsilon)
    return Cost(epsilon=epsilon, charge=Charge(epsilon, mu_squared, rho))


def call_distances(
    known: Call, call: Call, declared: Fraction | None = None
) -> tuple[Distance, ...]:
    """How far the inputs of one call on two data are apart, in the norm of its mechanism."""
    mechanism, one, other = known.mechanism, known.value, call.value
    match mechanism:
        case Plan():
            return tuple(map(plan_distance, moved(mechanism, exactly(one), exactly(other))))
        case PublicChance():
            return ()
        case KeySelection():
            steps = _steps_apart(one, other)
            largest = _distance("linf", max(steps, default=Fraction(0)), Fraction(mechanism.linf))
            return _distance("l1", sum(steps, Fraction(0)), Fraction(mechanism.l1)), largest
    kind = _kind(mechanism)
    limit = kind.limit(mechanism) if declared is None else declared
    return (_distance(kind.norm, kind.apart(mechanism, one, other), limit),)


def call_cost(known: Call, call: Call) -> Cost:
    """What one call costs at the distance of its inputs."""
    mechanism, one, other = known.mechanism, known.value, call.value
    match mechanism:
        case Plan():
            return plan_cost(mechanism, one, other)
        case Laplace():
            return _laplace(mechanism, [d * mechanism.step for d in _steps_apart(one, other)])
    kind = _kind(mechanism)
    return kind.price(mechanism, kind.apart(mechanism, one, other))


def declared_cost(call: Call, declared: Fraction | None) -> Cost | None:
    """What a call costs if its inputs are as far apart as declared; None where nothing is declared."""
    if isinstance(call.mechanism, Plan):
        plan = call.mechanism
        cost = sum((_of(each.loss) for each in plan.sums if each.loss is not None), NO_COST)
        cost = sum((_bounded(drawn.epsilon) for drawn in plan.drawn), cost)
        selected = None if plan.selection is None else plan.selection.mechanism
        return cost if selected is None else cost + _selection(selected)
    kind = _kind(call.mechanism)
    limit = kind.limit(call.mechanism) if declared is None else declared
    return None if limit is None else kind.price(call.mechanism, limit)


@dataclass(frozen=True)
class _Kind:
    """How calls of one kind of mechanism are judged: the norm of its inputs, how far two are apart, how far they may be
    as the mechanism itself declares, and what they cost at a distance.
    """

    norm: str
    apart: Callable[[Any, Any, Any], Fraction]
    cost: Callable[[Any, Fraction], Cost]
    limit: Callable[[Any], Fraction | None] = lambda _: None

    def price(self, mechanism: Any, apart: Fraction) -> Cost:
        """What a call costs whose inputs are so far apart; nothing where they are equal."""
        return self.cost(mechanism, apart) if apart else NO_COST


def _kind(mechanism: Any) -> _Kind:
    found = next((_KINDS[base] for base in type(mechanism).__mro__ if base in _KINDS), None)
    if found is None:
        raise TypeError(f"{a_or_an(type(mechanism).__name__)} is not a known mechanism")
    return found


def _persons_changed(_: Any, one: Any, other: Any) -> Fraction:
    return Fraction(sum(1 for d in _steps_apart(one, other) if d))


def _steps_moved(mechanism: Any, one: Any, other: Any) -> Fraction:
    return sum(_steps_apart(one, other), Fraction(0)) * getattr(mechanism, "step", Fraction(1))


def _length_moved(mechanism: Gaussian, one: Any, other: Any) -> Fraction:
    return root_upper(_square(_steps_apart(one, other))) * mechanism.step


def _length_in_scales(mechanism: ScaledGaussian, one: Any, other: Any) -> Fraction:
    return root_upper(mechanism.mu_squared(np.asarray(one, object) - np.asarray(other, object)))


def _scores_apart(best: NoisyMax | AboveThreshold, one: Any, other: Any) -> Fraction:
    """The largest move of a score; of those that should all move one way, the largest up and down together."""
    moves = [int(x) - int(y) for x, y in zip(one, other, strict=True)]
    up, down = max([0, *moves]), -min([0, *moves])
    return best.step * (up + down if best.monotone else max(up, down))


def _weights_apart(_: Any, one: Any, other: Any) -> Fraction:
    a, b = (dict(zip(map(int, cells), map(int, w), strict=True)) for cells, w in (one, other))
    return Fraction(weight_moved({(): a}, {(): b}))


def _each_person(mechanism: Any, persons: Fraction) -> Cost:
    """Of each person who changed, the loss of a report; fewer than one person changes nothing."""
    return _of(mechanism.loss(), math.floor(persons)) if persons >= 1 else NO_COST


def _each_person_at_most(mechanism: Any, persons: Fraction) -> Cost:
    """The same where two truths may be nearer than the worst two, so that the loss is an upper bound."""
    loss, count = mechanism.loss(), math.floor(persons)
    charge = _charge(loss) * count
    return Cost(epsilon=Fraction(loss.maximum()) * count, charge=charge) if count else NO_COST


def _best_of_many(mechanism: NoisyMax, apart: Fraction) -> Cost:
    epsilon = mechanism.epsilon * apart / mechanism.sensitivity
    return Cost(epsilon=epsilon, charge=_charge(replace(mechanism, epsilon=epsilon).loss()))


def _alarm(mechanism: AboveThreshold, apart: Fraction) -> Cost:
    epsilon = mechanism.epsilon * apart / mechanism.sensitivity
    return Cost(epsilon=epsilon, charge=Charge.approximate(epsilon, 0))


def plan_distance(part: Moved) -> Distance:
    """One distance of a plan's parts, without squares; whether it is broken was decided on whole numbers."""
    observed, declared = Fraction(part.observed), Fraction(part.declared)
    if part.norm == "l2":
        observed, declared = root_upper(observed), root_upper(declared)
    return Distance(f"{part.part} {part.norm}", observed, declared, part.broken)


def plan_cost(plan: Plan, one: Any, other: Any) -> Cost:
    """What an answer costs at the distance of the exact groups behind it."""
    a, b = exactly(one), exactly(other)
    cost = NO_COST
    for release in plan.sums:
        steps = vector_steps(a.vectors[release.name], b.vectors[release.name])
        if isinstance(release.mechanism, Laplace):
            cost += _laplace(release.mechanism, steps)
        elif release.mechanism is not None:
            cost += _gaussian(release.mechanism, steps)
    for drawn in plan.drawn:
        if not drawn.public:
            weight = weight_moved(a.cells[drawn.name], b.cells[drawn.name])
            cost += _bounded(drawn.epsilon * weight / drawn.moved)
    selection = None if plan.selection is None else plan.selection.mechanism
    return cost + _selection(selection) if selection is not None and any(keys_moved(a, b)) else cost


def _laplace(mechanism: Laplace, steps: Iterable[Fraction | int]) -> Cost:
    """Each coordinate by itself, which is exact; the charge for all together."""
    shifts = Counter(Fraction(d) / mechanism.scale for d in steps if d)
    if not shifts:
        return NO_COST
    whole = LaplaceLoss(sum((shift * count for shift, count in shifts.items()), Fraction(0)))
    if len(shifts) > _MOST_DIFFERENT:
        return Cost(((whole, 1),), charge=_charge(whole), lumped=True)
    losses = tuple((LaplaceLoss(shift), count) for shift, count in shifts.items())
    return Cost(losses, charge=_charge(whole))


def _gaussian(mechanism: Gaussian, steps: Iterable[Fraction | int]) -> Cost:
    square = _square(steps)
    return _of(GaussianLoss(root_upper(square) / mechanism.scale)) if square else NO_COST


def _selection(selection: KeySelection) -> Cost:
    """A selection is all of its (epsilon, delta) where any weight moves."""
    charge = Charge.approximate(selection.epsilon, selection.delta)
    return Cost(epsilon=selection.epsilon, delta=selection.delta, charge=charge)


def _steps_apart(one: Any, other: Any) -> list[Fraction]:
    a, b = (np.asarray(x, object).ravel().tolist() for x in (one, other))
    return [Fraction(abs(int(x) - int(y))) for x, y in zip(a, b, strict=True)]


def _square(steps: Iterable[Fraction | int]) -> Fraction:
    return Fraction(sum(d * d for d in steps))


def root_upper(square: Fraction) -> Fraction:
    """The square root: exact where it is rational, else rounded up in the hundredth binary digit."""
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    return exact_upper(certified(lambda: ball(square).sqrt()))


def distance_cells(distance: Distance) -> tuple[str, str, str]:
    """Distance, declared distance and share in words."""
    observed = f"{readable(distance.observed)} ({norm_name(distance.norm)})"
    if distance.declared is None:
        return observed, "not declared", ""
    share = distance.observed / distance.declared if distance.declared else 0
    words = "over 100%" if distance.broken else f"{float(share):.1%}"
    return observed, readable(distance.declared), words


def norm_name(norm: str) -> str:
    """A norm as people write it."""
    return norm.replace("l0", "L0").replace("l1", "L1").replace("l2", "L2").replace("linf", "Linf")


def cost_range(found: Bracket) -> str:
    """Between which epsilons a cost lies; one number where that is known."""
    if math.isinf(found.lower):
        return "more than any epsilon"
    if math.isinf(found.upper):
        return f"at least epsilon {found.lower:.6g}"
    if found.upper - found.lower <= 2e-3 * found.upper:
        return f"epsilon {found.upper:.6g}"
    return f"between epsilon {found.lower:.6g} and {found.upper:.6g}"


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


_DRAWN = _Kind("l1", _weights_apart, lambda draw, moved: _bounded(draw.whole_rate * moved))
_BY_PERSON = _Kind("answers changed", _persons_changed, _each_person)
_KINDS = {
    Laplace: _Kind("l1", _steps_moved, lambda m, apart: _of(m.loss(apart)), lambda m: m.calibrated_for),
    Gaussian: _Kind("l2", _length_moved, lambda m, apart: _of(m.loss(apart)), lambda m: m.calibrated_for),
    ScaledGaussian: _Kind("l2", _length_in_scales, lambda _, apart: _of(GaussianLoss(apart)),
                          lambda m: None if m.declared is None else root_upper(m.declared)),
    KeySelection: _Kind("l1", _steps_moved, lambda m, _: _selection(m), lambda m: Fraction(m.l1)),
    NoisyMax: _Kind("linf", _scores_apart, _best_of_many, lambda m: m.sensitivity),
    AboveThreshold: _Kind("linf", _scores_apart, _alarm, lambda m: m.sensitivity),
    QuantileDraw: _DRAWN, ModeDraw: _DRAWN, IntervalDraw: _DRAWN,
    RandomizedResponse: _BY_PERSON, Frequency: _BY_PERSON,
    OneBitMean: replace(_BY_PERSON, cost=_each_person_at_most),
    HeavyHitters: replace(_BY_PERSON, cost=_each_person_at_most),
    # its answers are part of what must be equal
    Repeated: _Kind("answers changed", lambda *_: Fraction(0), lambda *_: NO_COST, lambda _: Fraction(0)),
    PublicChance: _Kind("", lambda *_: Fraction(0), lambda *_: NO_COST, lambda _: Fraction(0)),
}  # fmt: skip
"""By type of mechanism, or of the nearest class that it is derived from."""
