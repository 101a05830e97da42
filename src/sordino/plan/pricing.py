"""Which noise, and how much of it: the smallest error for an epsilon, or the smallest charge for an error.

The error is that of what the reader will see, the geometric mean of the half-widths of all outputs. Both look at what
the session's meters still allow, which is public, and never at data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from sordino.accounting.charge import Charge
from sordino.accounting.filters import TwoMeterFilter
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.plan.cost import Cost
from sordino.plan.price import Price, price
from sordino.plan.releases import Family, Keys, Release, Sums
from sordino.privacy.exact import readable
from sordino.privacy.float_search import rough_log

__all__ = ["best_price"]

Asked = Mapping[Family, Sequence[Release]]
"""What is released, as it suits each family of noise."""
Errors = Callable[[Price], dict[str, float | None]]
Widths = Callable[[Price, float], list[float]]
"""The half-widths of all that is shown, where they depend on the number of rows for one that is assumed."""
_ROWS = 1000
_LEAST_SHARE, _MOST_SHARE, _LEAST_DELTA = 0.001, 0.5, Fraction(1, 10**300)
_LEAST, _MOST = Fraction(1, 10**6), Fraction(1000)


def best_price(
    asked: Asked, cost: Cost, meter: TwoMeterFilter, errors: Errors, widths: Widths
) -> tuple[Price, str]:
    """The price for the epsilon or for the error that was offered, and in words why this one."""
    if cost.epsilon is not None:
        best, why = _chosen(asked, cost.epsilon, cost, meter, widths)
    else:
        best, why = _cheapest(asked, cost, meter, errors)
    return best, why if meter.allows(
        best.charge
    ) else f"{why}; IT DOES NOT FIT into what is left of the budget"


def _chosen(
    asked: Asked, epsilon: Fraction, cost: Cost, meter: TwoMeterFilter, widths: Widths
) -> tuple[Price, str]:
    """At a given epsilon: the family with the smaller error among those that still fit, else the smaller one."""
    offers = [
        _offer(asked, family, epsilon, cost, meter) for family in _families(asked, cost, meter)
    ]
    if len(offers) == 1:
        return offers[0], "the only noise for this budget" if cost.mechanism is None else "as asked"
    smaller, larger, ratio = _compared(widths, *offers)
    if meter.allows(smaller.charge) or not meter.allows(larger.charge):
        return (
            smaller,
            f"the smaller error: {larger.family} noise would be {ratio:.3g} times as large in all",
        )
    return larger, f"{smaller.family} noise would be smaller but no longer fits into the budget"


def _compared(widths: Widths, one: Price, other: Price) -> tuple[Price, Price, float]:
    """The price with the smaller half-widths, the other one, and how many times larger its are in the geometric mean.

    Where they depend on the number of rows, a group is assumed in which the noise of either is a thousandth of it:
    there errors are proportional to the noise, and their ratio does not depend on the number any more.
    """
    rows = _ROWS * max(
        (release.rows_of_noise for price in (one, other) for release in price.sums), default=1.0
    )
    pairs = zip(widths(one, rows), widths(other, rows), strict=True)
    known = [_log_ratio(b, a) for a, b in pairs if max(a, b) > 0 and math.isfinite(a + b)]
    mean = sum(known) / len(known) if known else 0.0
    return (one, other, math.exp(mean)) if mean >= 0 else (other, one, math.exp(-mean))


def _log_ratio(one: float, other: float) -> float:
    """Of two half-widths; one that is rounded to nothing counts as a quarter of the other."""
    return (
        math.log(max(one, other / 4) / max(other, one / 4))
        if not one or not other
        else math.log(one / other)
    )


def _cheapest(asked: Asked, cost: Cost, meter: TwoMeterFilter, errors: Errors) -> tuple[Price, str]:
    """For a given error: in each family the least epsilon that reaches it;
    then the one that takes less of what is left.
    """
    offers = [
        _reaching(asked, family, cost, meter, errors) for family in _families(asked, cost, meter)
    ]
    best = min(offers, key=lambda offer: _share(offer.charge, meter))
    return (
        best,
        f"the cheapest that reaches the error: {100 * _share(best.charge, meter):.4g} % of what is left",
    )


def _families(asked: Asked, cost: Cost, meter: TwoMeterFilter) -> list[Family]:
    if cost.mechanism == "gaussian" and not meter.free_delta:
        rule = "Gaussian noise needs a delta, and this budget has none to spare"
        raise InvalidInput(
            'mechanism="gaussian"', rule, "Use Laplace noise, or set delta in [budget]."
        )
    if cost.mechanism is not None:
        return [cost.mechanism]
    return (
        ["laplace", "gaussian"]
        if meter.free_delta
        and any(isinstance(one, Sums) and not one.public for one in asked["laplace"])
        else ["laplace"]
    )


def _offer(
    asked: Asked, family: Family, epsilon: Fraction, cost: Cost, meter: TwoMeterFilter
) -> Price:
    """The price of one family at one epsilon, with the delta for private keys that was asked for,
    or a share of the rest.
    """
    delta, suited = cost.delta, asked[family]
    if delta is None and any(isinstance(one, Keys) and not one.public for one in suited):
        left = _expect_delta(meter)
        delta = _delta_for(
            price(suited, family, epsilon, meter.free_delta, left).charge, left, meter
        )
    return price(suited, family, epsilon, meter.free_delta, delta or Fraction(0))


def _expect_delta(meter: TwoMeterFilter) -> Fraction:
    """What is left of the delta that the owner keeps for private keys; refused if there is none."""
    kept, left = meter.reserved_delta, meter.remaining.delta
    declared = 'declare the keys: type = "category", values = [...]'
    if not kept:
        rule = "selecting private keys needs a delta kept for it, and this budget keeps none"
        raise InvalidInput("key_delta = 0", rule, f"Set key_delta in [budget], or {declared}.")
    if left < _LEAST_DELTA:
        rest = f"nothing of the delta {readable(kept)} that is kept for them"
        raise BudgetExceeded(
            "a delta for its private keys", rest, f"Raise key_delta in [budget], or {declared}."
        )
    return left


def _delta_for(charge: Charge, left: Fraction, meter: TwoMeterFilter) -> Fraction:
    """As large a share of what is left of delta as the charge takes of the better meter, rounded down.

    n equal questions that use a meter up so get equal deltas, and all fit. At least a thousandth is taken, below which
    a group needs hardly more persons to be shown, and at most half, so that it never ends.
    """
    share = min(max(_share(charge, meter), _LEAST_SHARE), _MOST_SHARE)
    unit = Fraction(10) ** (math.floor(rough_log(left * Fraction(share)) / math.log(10)) - 2)
    return max(math.floor(left * Fraction(share) / unit) * unit, _LEAST_DELTA)


def _reaching(
    asked: Asked, family: Family, cost: Cost, meter: TwoMeterFilter, errors: Errors
) -> Price:
    """The least epsilon, to four digits, at which every error is as small as asked."""

    def reaches(epsilon: Fraction) -> bool:
        return _within(errors(_offer(asked, family, epsilon, cost, meter)), cost)

    if not all(one.public for one in asked[family]) and not reaches(_MOST):
        rule = f"not even epsilon = {readable(_MOST)} reaches it"
        raise InvalidInput(f"error={_shown(cost)}", rule, "Allow a larger error.")
    low, high = _LEAST, _MOST
    if reaches(low):
        high = low
    while high / low > Fraction(10001, 10000):
        middle = _four_digits(Fraction(math.sqrt(low * high)))
        if middle in (low, high):
            break
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return _offer(asked, family, high, cost, meter)


def _four_digits(x: Fraction) -> Fraction:
    unit = Fraction(10) ** (math.floor(math.log10(x)) - 3)
    return math.ceil(x / unit) * unit


def _within(found: Mapping[str, float | None], cost: Cost) -> bool:
    asked = cost.error or Fraction(0)
    allowed = asked if isinstance(asked, Mapping) else dict.fromkeys(found, asked)
    unknown = set(allowed) - set(found)
    if unknown:
        rule = "there is no such aggregate in this query"
        raise InvalidInput(
            f"error of {sorted(unknown)[0]!r}", rule, f"Name some of {', '.join(found)}."
        )
    for name, most in allowed.items():
        error = found[name]
        if error is None:
            rule = f"the error of {name!r} depends on the data, so it has no price beforehand"
            hint = "For means and variances pass rows=..., a number of rows to assume; quantiles are priced by epsilon."
            raise InvalidInput(f"error={_shown(cost)}", rule, hint)
        if error > most:
            return False
    return True


def _shown(cost: Cost) -> str:
    if isinstance(cost.error, Mapping):
        return ", ".join(f"{name}: {readable(x)}" for name, x in cost.error.items())
    return readable(cost.error or Fraction(0))


def _share(charge: Charge, meter: TwoMeterFilter) -> float:
    """The part of what is left that a charge takes, by the meter that suits it best."""
    pairs = zip(charge.meters, meter.remaining.meters, strict=True)
    known = [(cost, left) for cost, left in pairs if cost is not None and left is not None]
    return min(
        (float(cost / left) if left else math.inf * bool(cost) for cost, left in known),
        default=math.inf,
    )
