"""`sordino plan`: what each of many questions may have, or how many fit, by three ways of adding up.

Basic composition adds epsilons. The ledger's meters hold however later questions depend on earlier answers. The
certified sum is for a list that is fixed before the first answer. Noise is worked out from the epsilon that is shown,
so that whoever asks with it gets what the table says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sordino.cli.numbers import digits_below, positive, rounded_up, tiny
from sordino.errors import InvalidInput

if TYPE_CHECKING:
    from sordino.accounting.charge import Charge
    from sordino.accounting.filters import TwoMeterFilter
    from sordino.mechanisms.additive import Additive
    from sordino.privacy.budget import Budget
    from sordino.privacy.loss import Loss

__all__ = ["FIXED", "LEDGER", "Offer", "counts", "each_of", "how_many", "plan"]

BASIC, LEDGER, FIXED = "basic composition", "the ledger", "a fixed list"
_CONFIDENCE = Fraction(95, 100)
_MOST_QUERIES = 10**9
_SEARCHED, _SUMMED, _COUNTED = 10**4, 10**6, 3 * 10**4
"""So many Laplace answers of a fixed list are searched, summed, counted; fewer for a small epsilon. More takes long."""
_MOST_EPSILON = 20
_MARGINS = (Fraction(1005, 1000), Fraction(102, 100), Fraction(105, 100))
"""By how much the scale of a long list is raised above that of a shorter one, times the square root of their ratio."""


class Noise(StrEnum):
    """Which noise to plan with."""

    laplace = "laplace"
    gaussian = "gaussian"
    both = "both"


class Format(StrEnum):
    """How the plan is written."""

    table = "table"
    json = "json"


@dataclass(frozen=True)
class Offer:
    """By one way of adding up: this many questions fit, each of which alone is (epsilon, delta)-private by this noise.

    `queries` is None where it would take too long to work out.
    """

    way: str
    queries: int | None
    epsilon: Fraction
    delta: Fraction
    mechanism: Additive

    @property
    def noise(self) -> str:
        """The family of the noise."""
        return type(self.mechanism).__name__.lower()

    @property
    def adaptive(self) -> bool:
        """Whether a question may depend on the answers before it."""
        return self.way != FIXED

    @property
    def error(self) -> float:
        """The half-width within which 95 % of the answers are."""
        return self.mechanism.interval(_CONFIDENCE)


def plan(
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="The epsilon of the whole budget.")
    ],
    delta: Annotated[
        str, typer.Option(metavar="NUMBER", help="The delta of the whole budget.")
    ] = "1e-6",
    queries: Annotated[
        int | None, typer.Option(help="How many questions: what may each have?")
    ] = None,
    each: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="The epsilon of each question: how many fit?"),
    ] = None,
    mechanism: Annotated[Noise, typer.Option(help="The noise to plan with.")] = Noise.both,
    sensitivity: Annotated[
        str, typer.Option(metavar="NUMBER", help="How far one person moves an answer.")
    ] = "1",
    rows: Annotated[
        int | None, typer.Option(help="Also show the error as a share of this many rows.")
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="A table for the eye, or JSON.")
    ] = Format.table,
) -> None:
    """Plan a budget: what each of N questions may have (--queries), or how many questions fit (--each).

    Example: sordino plan --epsilon 1 --delta 1e-6 --queries 100
    """
    from sordino.privacy.budget import Budget

    if (queries is None) == (each is None):
        value = "neither --queries nor --each" if queries is None else "both --queries and --each"
        raise InvalidInput(
            value, "a plan starts from one of them", "Write --queries 100, or --each 0.1."
        )
    budget = Budget(positive(epsilon, "--epsilon"), tiny(delta, "--delta"))
    moved = positive(sensitivity, "--sensitivity")
    if rows is not None and rows < 1:
        raise InvalidInput(
            f"--rows {rows}", "there must be at least one row", "Write --rows 200000."
        )
    kinds = _kinds(mechanism, budget)
    if queries is not None:
        title = (
            f"What each of {queries:,} questions may have"
            if queries != 1
            else "What one question may have"
        )
        offers = each_of(queries, budget, moved, kinds)
    else:
        alone = positive(each or "", "--each")
        title = f"How many questions of epsilon {rounded_up(alone)} fit"
        offers = how_many(alone, budget, moved, kinds)
    if format_ is Format.json:
        _print_json(budget, offers, rows)
    else:
        _print_table(title, budget, offers, rows, counting=queries is None)


def each_of(
    queries: int, budget: Budget, sensitivity: Fraction, kinds: Sequence[str]
) -> list[Offer]:
    """What each of this many questions may have: for each noise by basic composition,
    by the ledger, as a fixed list.
    """
    from sordino.accounting.filters import TwoMeterFilter

    if not 1 <= queries <= _MOST_QUERIES:
        raise InvalidInput(
            f"--queries {queries}", f"it must be 1 to {_MOST_QUERIES:,}", "Write --queries 100."
        )
    made = {"laplace": _laplace_offers, "gaussian": _gaussian_offers}
    return [
        offer
        for kind in kinds
        for offer in made[kind](TwoMeterFilter(budget), queries, sensitivity)
    ]


def how_many(
    each: Fraction, budget: Budget, sensitivity: Fraction, kinds: Sequence[str]
) -> list[Offer]:
    """How many questions fit that are (each, 0)-private with Laplace or (each, delta)-private with Gaussian noise."""
    from sordino.mechanisms.gaussian import Gaussian
    from sordino.mechanisms.laplace import Laplace

    step = Fraction(1, sensitivity.denominator)
    offers = []
    for kind in kinds:
        delta = budget.delta if kind == "gaussian" else Fraction(0)
        mechanism: Additive = (
            Gaussian.calibrated(sensitivity=sensitivity, epsilon=each, delta=delta, step=step)
            if kind == "gaussian"
            else Laplace.calibrated(sensitivity=sensitivity, epsilon=each, step=step)
        )
        found = counts(mechanism.loss(sensitivity), budget)
        offers += [Offer(way, count, each, delta, mechanism) for way, count in found.items()]
    return offers


def counts(loss: Loss, budget: Budget) -> dict[str, int | None]:
    """How many releases with this loss fit into a budget, by each way of adding up; None where it takes too long."""
    from sordino.accounting.filters import TwoMeterFilter
    from sordino.privacy.exact import float_lower
    from sordino.privacy.loss import GaussianLoss

    charge = _charge(loss)
    basic = _basic_count(loss, budget) if charge.pure is None else budget.epsilon // charge.pure
    ledger = TwoMeterFilter(budget).fits(charge)
    if isinstance(loss, GaussianLoss):  # its certified sum is what the meter adds up
        return {BASIC: basic, LEDGER: ledger, FIXED: ledger}
    most = float_lower(budget.epsilon)
    start = max(ledger, basic)  # what keeps the budget adaptively keeps it here
    reach = _within_reach(_COUNTED, budget) if loss.total_variation() > 10 * budget.delta else 0
    fixed = _most(lambda count: (count * loss).epsilon(budget.delta) <= most, start, reach)
    return {BASIC: basic, LEDGER: ledger, FIXED: fixed}


@lru_cache(maxsize=8)
def _charge(loss: Loss) -> Charge:
    """Worked out once for all budgets: the rho of some finite losses takes a second."""
    from sordino.accounting.charge import Charge

    return Charge.of(loss)


def _kinds(mechanism: Noise, budget: Budget) -> list[str]:
    if mechanism is Noise.gaussian and not budget.delta:
        raise InvalidInput(
            "--delta 0",
            "Gaussian noise needs a delta above 0",
            "Write --delta 1e-6, or use Laplace noise.",
        )
    if mechanism is Noise.both:
        return ["laplace", "gaussian"] if budget.delta else ["laplace"]
    return [mechanism.value]


def _laplace_offers(meter: TwoMeterFilter, queries: int, sensitivity: Fraction) -> list[Offer]:
    from sordino.accounting.charge import Charge
    from sordino.mechanisms.laplace import Laplace
    from sordino.privacy.loss import LaplaceLoss

    basic = digits_below(meter.budget.epsilon / queries)
    metered = _largest(
        lambda e: meter.fits(Charge.of(LaplaceLoss(e))) >= queries, basic, meter.budget.epsilon
    )
    fixed = _fixed_epsilon(meter.budget, queries, metered)
    step = Fraction(1, sensitivity.denominator)
    return [
        Offer(
            way,
            queries,
            each,
            Fraction(0),
            Laplace.calibrated(sensitivity=sensitivity, epsilon=each, step=step),
        )
        for way, each in ((BASIC, basic), (LEDGER, metered), (FIXED, fixed))
        if each is not None
    ]


def _gaussian_offers(meter: TwoMeterFilter, queries: int, sensitivity: Fraction) -> list[Offer]:
    """The certified sum of Gaussian losses is what the meter adds up: mu^2, exactly."""
    from sordino.mechanisms.gaussian import Gaussian
    from sordino.privacy.loss import GaussianLoss

    step, delta = Fraction(1, sensitivity.denominator), meter.budget.delta
    part, share = digits_below(meter.budget.epsilon / queries), delta / queries
    basic = Gaussian.calibrated(sensitivity=sensitivity, epsilon=part, delta=share, step=step)
    mu = _root_below((meter.caps.mu_squared or Fraction(0)) / queries)
    # 0: so little that delta covers it
    alone = max(digits_below(GaussianLoss(mu).epsilon(delta)), Fraction(0))
    scale = sensitivity / mu
    if alone:
        scale = max(
            scale, Gaussian.calibrated(sensitivity=sensitivity, epsilon=alone, delta=delta).scale
        )
    return [
        Offer(BASIC, queries, part, share, basic),
        *(Offer(way, queries, alone, delta, Gaussian(scale, step)) for way in (LEDGER, FIXED)),
    ]


def _largest(good: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """The largest good number of four digits, searched from a good one up to about another."""
    while good(high):
        low, high = high, 2 * high
    while high / low > Fraction(10001, 10000):
        middle = Fraction(math.sqrt(low * high))
        low, high = (middle, high) if good(middle) else (low, middle)
    above = digits_below(high)
    return above if good(above) else digits_below(low)


def _fixed_epsilon(budget: Budget, queries: int, adaptive: Fraction) -> Fraction | None:
    """The epsilon of each of this many Laplace answers whose certified sum fits; None if that takes too long."""
    from sordino.accounting.calibrate import smallest_scale
    from sordino.privacy.loss import LaplaceLoss

    if not budget.delta:
        return adaptive
    if queries > _within_reach(_SUMMED, budget):
        return None
    few = min(queries, _within_reach(_SEARCHED, budget))
    stretch = Fraction(math.sqrt(queries / few))
    scale = stretch * smallest_scale(
        lambda scale: few * LaplaceLoss(1 / scale),
        epsilon=budget.epsilon,
        delta=budget.delta,
        start=1 / (adaptive * stretch),
    )
    if few == queries:
        return max(digits_below(1 / scale), adaptive)
    for margin in _MARGINS:
        each = digits_below(1 / (scale * margin))
        if (queries * LaplaceLoss(each)).epsilon(budget.delta) <= budget.epsilon:
            return max(each, adaptive)
    return None


def _within_reach(most: int, budget: Budget) -> int:
    """How many of `most` answers are summed in about a second: fewer where epsilon is small; none at odd ends."""
    usual = 1000 * budget.delta <= budget.epsilon <= _MOST_EPSILON
    return math.ceil(most * min(Fraction(1), budget.epsilon)) if usual else 0


def _basic_count(loss: Loss, budget: Budget) -> int:
    """How many releases fit if each has an equal share of delta and their epsilons are added."""
    if not budget.delta:
        return 0
    return (
        _most(
            lambda count: count * max(0.0, loss.epsilon(budget.delta / count)) <= budget.epsilon,
            0,
            2**60,
        )
        or 0
    )


def _most(good: Callable[[int], bool], start: int, reach: int) -> int | None:
    """The largest good count from `start` on; None if the search would go beyond `reach`."""
    low, high = start, start + 1
    while high <= reach and good(high):
        low, high = high, 2 * high
    if high > reach:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _root_below(square: Fraction) -> Fraction:
    """The square root, rounded down."""
    return Fraction(math.isqrt(square.numerator * 4**200 // square.denominator), 2**200)


def _print_json(budget: Budget, offers: Sequence[Offer], rows: int | None) -> None:
    import json

    ways: list[dict[str, Any]] = []
    for o in offers:
        way = {
            "noise": o.noise,
            "way": o.way,
            "adaptive": o.adaptive,
            "queries": o.queries,
            "epsilon": float(o.epsilon),
        }
        way |= {"delta": float(o.delta), "scale": float(o.mechanism.scale), "error": o.error}
        ways.append(way if rows is None else way | {"relative_error": o.error / rows})
    whole = {"epsilon": float(budget.epsilon), "delta": float(budget.delta)}
    typer.echo(json.dumps({"budget": whole, "ways": ways}, indent=2))


def _print_table(
    title: str, budget: Budget, offers: Sequence[Offer], rows: int | None, *, counting: bool
) -> None:
    from sordino.cli.page import Page

    page = Page()
    page.heading(
        f"{title}, with epsilon {rounded_up(budget.epsilon)} and delta {rounded_up(budget.delta)} for all together"
    )
    page.say("")
    headings = [
        "noise",
        "added up by",
        "questions" if counting else "epsilon",
        "delta",
        "scale",
        "95 % error",
    ]
    lines = []
    for o in offers:
        amount = (
            ("left out" if o.queries is None else f"{o.queries:,}")
            if counting
            else rounded_up(o.epsilon)
        )
        numbers = [rounded_up(o.delta), rounded_up(o.mechanism.scale), f"±{rounded_up(o.error)}"]
        share = [] if rows is None else [f"{rounded_up(100 * o.error / rows, 2)} %"]
        lines.append([o.noise.title(), o.way, amount, *numbers, *share])
    page.table(headings if rows is None else [*headings, f"of {rows:,} rows"], lines, left=2)
    page.say("")
    if not counting:
        page.say(_advice(offers))
    page.say(
        "The ledger keeps the budget even if every question depends on the answers before it. A fixed list must be complete "
        "before the first answer; the ledger does not know of it. The error is that of one number which a person moves by "
        "at most the sensitivity."
    )
    laplace = [o for o in offers if o.noise == "laplace"]
    if laplace and not any(o.way == FIXED and o.queries is not None for o in laplace):
        page.say(
            "Left out: the certified sum of a fixed list of this many Laplace answers, which would take too long."
        )
    if not budget.delta:
        page.say("Without a delta epsilons can only be added, and there is no Gaussian noise.")


def _advice(offers: Sequence[Offer]) -> str:
    """How to ask so that the ledger lets all questions pass."""
    best = min((o for o in offers if o.way == LEDGER), key=lambda o: o.error)
    if not best.epsilon:
        return f"Delta alone covers an answer with {best.noise.title()} noise: no epsilon is as small. Plan a smaller delta."
    words = f"--epsilon {float(best.epsilon):.4g} --mechanism {best.noise}"
    return f"Ask each question with {words}: all fit, and the answer is within ±{rounded_up(best.error)}, 95 % of the time."
