"""What a plan of releases costs, by one formula each: a float epsilon for a given delta, never below what its theorem
gives.

A plan is a sequence of (loss, how many times it is used). The theorems, their sources and the direction of every
rounding are in closed_forms.md. All hold for releases chosen adaptively, as long as the losses of the plan are fixed
beforehand.
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
from sordino.privacy.ball import ball, certified, exact_lower, upper
from sordino.privacy.exact import Number, bounds, float_upper, least_reading, show
from sordino.privacy.loss import EpsilonDeltaLoss, GaussianLoss, Loss, MomentLoss
from sordino.privacy.renyi_conversion import delta_from, epsilon_from

__all__ = ["METHODS", "Plan", "advanced", "basic", "basic_split", "checked", "gdp", "optimal_pure", "rdp", "rdp_delta",
           "zcdp"]  # fmt: skip

Plan: TypeAlias = Sequence[tuple[Loss, int]]

_MOST_EXACT = 10_000  # uses of a declared delta that are composed exactly


def checked(parts: Any, delta: Any) -> tuple[dict[Loss, int], Fraction]:
    """The plan with equal losses counted together, and the smaller reading of delta;
    a refusal if either makes no sense.
    """
    hint = "Pass pairs such as [(loss, 10)]."
    if isinstance(parts, str | bytes | Loss) or not isinstance(parts, Iterable):
        raise InvalidInput(
            f"parts={show(parts)}", "a plan must be a sequence of (loss, count)", hint
        )
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
    return (
        math.inf
        if pures is None
        else float_upper(sum((epsilon * count for epsilon, count in pures), Fraction(0)))
    )


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
    return epsilon_from(lambda alpha: ball(rho * alpha), exact)


def rdp(parts: Plan, delta: Number) -> float:
    """The sum of the Renyi divergences, converted at the best order, infinity (pure privacy) among them.

    Source: Mironov (2017), Proposition 1; Canonne, Kamath, Steinke (2020), Proposition 12; closed_forms.md, Theorem 6.
    """
    plan, exact = checked(parts, delta)
    pure = basic(parts)
    certain, rest = _certain_apart(plan)
    if exact <= certain or any(loss.infinite() for loss in rest):
        return pure
    return min(
        pure, epsilon_from(_divergences(rest), (exact - certain) / (1 - certain), _orders(rest))
    )


def rdp_delta(parts: Plan, epsilon: Number) -> float:
    """The delta that the Renyi divergences give for an epsilon, rounded up and at most 1.

    Source: as `rdp`.
    """
    plan, _ = checked(parts, 0)
    exact = bounds("epsilon", epsilon).lower
    certain, rest = _certain_apart(plan)
    if any(loss.infinite() for loss in rest):
        return 1.0
    found = certified(lambda: delta_from(_divergences(rest), exact, _orders(rest)))
    return min(1.0, upper(certified(lambda: ball(certain) + ball(1 - certain) * found)))


def _divergences(plan: Mapping[Loss, int]) -> Callable[[Fraction], arb]:
    return lambda alpha: sum((count * loss.rdp_ball(alpha) for loss, count in plan.items()), arb(0))


def _orders(plan: Mapping[Loss, int]) -> list[Fraction]:
    return [order for loss in plan if isinstance(loss, MomentLoss) for order in loss.orders]


def _certain_apart(plan: Mapping[Loss, int]) -> tuple[Fraction, dict[Loss, int]]:
    """The chance that some declared delta gives everything away, and the plan given that none does.

    An (epsilon, delta) event is a coin that everybody sees: everything with probability delta, else a pure release. So
    H(total) = chance + (1 - chance) H(rest), exactly (declared.md, Theorem 1).
    """
    kept = Fraction(1)
    rest: dict[Loss, int] = {}
    for loss, count in plan.items():
        pure = loss
        if isinstance(loss, EpsilonDeltaLoss) and loss.failure:
            none = (
                (1 - loss.failure) ** count
                if count <= _MOST_EXACT
                else max(Fraction(0), 1 - count * loss.failure)
            )
            kept, pure = kept * none, EpsilonDeltaLoss(loss.most)
        rest[pure] = rest.get(pure, 0) + count
    return 1 - kept, rest


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
    return (
        None
        if any(e == math.inf for e, _ in largest)
        else [(least_reading(e), count) for e, count in largest]
    )


def _weighted_sum(terms: Iterable[tuple[float, int]]) -> float:
    """The sum of values times counts, rounded up."""
    pairs = list(terms)
    if any(value == math.inf for value, _ in pairs):
        return math.inf
    return float_upper(sum((least_reading(value) * count for value, count in pairs), Fraction(0)))
