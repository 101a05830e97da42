"""What a plan of releases costs, by one formula each: a float epsilon for a given delta, never below what its theorem gives.

A plan is a sequence of (loss, how many times it is used). The theorems, their sources and the direction of every rounding
are in closed_forms.md. All hold for releases chosen adaptively, as long as the losses of the plan are fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

from flint import arb

from sordino.accounting.pure import epsilon_bounds, unit_delta, whole
from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.ball import ball, certified, exact_lower, upper, working
from sordino.privacy.exact import Number, float_upper, least_reading, show
from sordino.privacy.loss import GaussianLoss, Loss

__all__ = ["METHODS", "Plan", "advanced", "basic", "basic_split", "checked", "gdp", "optimal_pure", "rdp", "zcdp"]

Plan: TypeAlias = Sequence[tuple[Loss, int]]

_SEARCH_BITS = 128
_STRIDE, _FARTHEST = 4.0, 80.0  # in octaves of alpha - 1
_GOLDEN, _SECTIONS = (math.sqrt(5) - 1) / 2, 26


def checked(parts: Any, delta: Any) -> tuple[dict[Loss, int], Fraction]:
    """The plan with equal losses counted together, and the smaller reading of delta; a refusal if either makes no sense."""
    hint = "Pass pairs such as [(loss, 10)]."
    if isinstance(parts, str | bytes | Loss) or not isinstance(parts, Iterable):
        raise InvalidInput(f"parts={show(parts)}", "a plan must be a sequence of (loss, count)", hint)
    plan: dict[Loss, int] = {}
    for part in parts:
        if not isinstance(part, tuple | list) or len(part) != 2 or not isinstance(part[0], Loss):
            raise InvalidInput(show(part), "every part of a plan must be a loss and a count", hint)
        plan[part[0]] = plan.get(part[0], 0) + whole(part[1])
    if not plan:
        raise InvalidInput("an empty plan", "a plan must hold at least one loss", hint)
    return plan, unit_delta(delta)


def basic(parts: Plan, delta: Number = 0) -> float:
    """The sum of the pure epsilons, whatever delta is; inf if a loss has none.

    Source: closed_forms.md, Theorem 1.

    Example:
        >>> from sordino import LaplaceLoss
        >>> basic([(LaplaceLoss(Fraction(1, 10)), 30)])
        3.0
    """
    plan, _ = checked(parts, delta)
    pures = _pures(plan)
    return math.inf if pures is None else float_upper(sum((epsilon * count for epsilon, count in pures), Fraction(0)))


def basic_split(parts: Plan, delta: Number) -> float:
    """The sum of the losses' epsilons, each at an equal share of delta.

    Source: closed_forms.md, Theorem 2.
    """
    plan, exact = checked(parts, delta)
    share = exact / sum(plan.values())
    return _weighted_sum((loss.epsilon(share), count) for loss, count in plan.items())


def advanced(parts: Plan, delta: Number) -> float:
    """The best simple bound from pure epsilons alone; inf if a loss has none.

    Source: Kairouz, Oh, Viswanath (2015), Theorem 3.5, with all deltas of the parts zero; closed_forms.md, Theorem 3.
    """
    plan, exact = checked(parts, delta)
    pures = _pures(plan)
    if pures is None or exact == 0:
        return basic(parts)

    def form(log_term: Callable[[arb], arb]) -> float:
        def value() -> arb:
            drift = sum((count * ball(e) * ball(e / 2).tanh() for e, count in pures), arb(0))
            squares = ball(sum((count * e**2 for e, count in pures), Fraction(0)))
            return drift + (2 * squares * log_term(squares)).sqrt()

        return upper(certified(value))

    smooth = form(lambda squares: (arb(1).exp() + squares.sqrt() / ball(exact)).log())
    return min(basic(parts), smooth, form(lambda _: -ball(exact).log()))


def optimal_pure(parts: Plan, delta: Number) -> float:
    """The smallest epsilon that the pure epsilons alone allow; inf if a loss has none.

    Where too many different epsilons make it too large to compute (`pure.MOST_MIXED`), it is `advanced`.
    Source: Kairouz, Oh, Viswanath (2015), Theorem 3.3; Murtagh, Vadhan (2016), Theorem 1.5; closed_forms.md, Theorem 4.
    """
    plan, exact = checked(parts, delta)
    pures = _pures(plan)
    if pures is None:
        return math.inf
    try:
        return epsilon_bounds(pures, exact)[1]
    except TooLarge:
        return advanced(parts, delta)


def zcdp(parts: Plan, delta: Number) -> float:
    """The sum of the rhos, converted at the best order; inf if delta is 0.

    Source: Bun, Steinke (2016), Lemma 1.7; Canonne, Kamath, Steinke (2020), Proposition 12; closed_forms.md, Theorem 6.
    """
    plan, exact = checked(parts, delta)
    rhos = [(loss.rho(), count) for loss, count in plan.items()]
    if exact == 0 or any(rho == math.inf for rho, _ in rhos):
        return math.inf
    rho = sum((least_reading(rho) * count for rho, count in rhos), Fraction(0))
    return _converted(lambda alpha: ball(rho * alpha), exact)


def rdp(parts: Plan, delta: Number) -> float:
    """The sum of the Renyi divergences, converted at the best order, infinity (pure privacy) among them.

    Source: Mironov (2017), Proposition 1; Canonne, Kamath, Steinke (2020), Proposition 12; closed_forms.md, Theorem 6.
    """
    plan, exact = checked(parts, delta)
    pure = basic(parts)
    if exact == 0 or any(loss.infinite() for loss in plan):
        return pure
    return min(pure, _converted(lambda a: sum((count * loss.rdp_ball(a) for loss, count in plan.items()), arb(0)), exact))


def gdp(parts: Plan, delta: Number) -> float:
    """The exact epsilon of one Gaussian release with mu^2 the sum of the squared mus; exact if all losses are Gaussian.

    Source: Dong, Roth, Su (2022), Corollaries 3.3 and 2.13; closed_forms.md, Theorem 7.
    """
    plan, exact = checked(parts, delta)
    mus = [(loss.mu(), count) for loss, count in plan.items()]
    if any(mu == math.inf for mu, _ in mus):
        return math.inf
    squares = sum((least_reading(mu) ** 2 * count for mu, count in mus), Fraction(0))
    if squares == 0:  # the neighbours look the same
        return upper(certified(lambda: ball(-exact).log1p()))
    mu = -exact_lower(-certified(lambda: ball(squares).sqrt(), 128))
    return GaussianLoss(mu).epsilon(exact)


METHODS: Mapping[str, Callable[[Plan, Number], float]] = MappingProxyType({
    "basic": basic,
    "basic_split": basic_split,
    "advanced": advanced,
    "optimal_pure": optimal_pure,
    "zcdp": zcdp,
    "rdp": rdp,
    "gdp": gdp,
})  # fmt: skip
"""Every closed form by name, the oldest first."""


def _pures(plan: Mapping[Loss, int]) -> list[tuple[Fraction, int]] | None:
    """The pure epsilons, each with how often it occurs; None if a loss has none."""
    largest = [(loss.maximum(), count) for loss, count in plan.items()]
    return None if any(e == math.inf for e, _ in largest) else [(least_reading(e), count) for e, count in largest]


def _weighted_sum(terms: Iterable[tuple[float, int]]) -> float:
    """The sum of values times counts, rounded up."""
    pairs = list(terms)
    if any(value == math.inf for value, _ in pairs):
        return math.inf
    return float_upper(sum((least_reading(value) * count for value, count in pairs), Fraction(0)))


def _converted(divergence: Callable[[Fraction], arb], delta: Fraction) -> float:
    """The epsilon that Renyi divergences of all orders give for delta > 0, at the best order found.

    Every order gives a valid epsilon, so the order is searched for in floats and only the last evaluation is certified.
    """

    def epsilon(octave: float) -> arb:
        order = Fraction(2.0**octave)
        return divergence(1 + order) + ball(order / (1 + order)).log() - ball(delta * (1 + order)).log() / ball(order)

    def height(octave: float) -> float:
        value = float(epsilon(octave))
        return math.inf if math.isnan(value) else value

    with working(_SEARCH_BITS):
        octave = _lowest(height)
    return upper(certified(lambda: epsilon(octave)))


def _lowest(height: Callable[[float], float]) -> float:
    """Where a function that first falls and then rises is lowest: strides downhill from 0, then golden sections."""
    middle, here = 0.0, height(0.0)
    for stride in (_STRIDE, -_STRIDE):
        while abs(middle) < _FARTHEST and (there := height(middle + stride)) < here:
            middle, here = middle + stride, there
    low, high = middle - _STRIDE, middle + _STRIDE
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    heights = height(left), height(right)
    for _ in range(_SECTIONS):
        if heights[0] <= heights[1]:
            right, high, left = left, right, right - _GOLDEN * (right - low)
            heights = height(left), heights[0]
        else:
            left, low, right = right, left, left + _GOLDEN * (high - left)
            heights = heights[1], height(right)
    return left if heights[0] <= heights[1] else right
