"""Composition is addition: a sum of privacy losses, itself a privacy loss with every view certified.

Valid for a fixed plan: which losses are added may not depend on answers. For adaptive choice use filters.py. The
theorem behind each view is in total.md.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from sordino.accounting.bracket import ACCURACY, Bracket, delta_bracket, epsilon_bracket
from sordino.accounting.closed_forms import rdp, rdp_delta, zcdp
from sordino.accounting.convolve import Sum
from sordino.accounting.grid import from_above
from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.ball import ball, certified, exact_lower, exact_upper
from sordino.privacy.exact import Number, bounds, closed_unit, float_lower, float_upper, show
from sordino.privacy.json_form import dump, loaded, nested
from sordino.privacy.loss import (
    BoundedRangeLoss,
    EpsilonDeltaLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Loss,
)
from sordino.privacy.loss.base import Floats, OutputPair
from sordino.privacy.loss.by_profile import trade_off_from
from sordino.privacy.loss.law import Law

__all__ = ["Total", "total"]

_MOST_FREE = 6
_FAINT = 2.0**-1000
"""Deltas below this are not told apart from 0 by floats."""
_LEAST_NORMAL = 2.0**-1022
_MOST_BITS = 10**6


def total(parts: Iterable[tuple[Loss, int]]) -> Loss:
    """The sum of losses, each used this many times; one loss used once is itself."""
    counter: Counter[Loss] = Counter()
    for loss, count in parts:
        for inner, times in loss.parts if isinstance(loss, Total) else ((loss, 1),):
            counter[inner] += times * count
    _expect_one_relation(counter)
    ordered = sorted(counter.items(), key=lambda item: item[0].to_json())
    if not ordered:
        raise InvalidInput("no losses", "a plan must hold at least one loss", "Add a loss to it.")
    if len(ordered) == 1 and ordered[0][1] == 1:
        return ordered[0][0]
    return Total(tuple(ordered))


def _expect_one_relation(losses: Iterable[Loss]) -> None:
    """Refuse a plan in which one loss is of an added or removed person and another of a replaced one."""
    known = {loss.relation: loss for loss in losses if loss.relation is not None}
    if len(known) > 1:
        both = " and ".join(f"{loss!r} ({relation.value})" for relation, loss in known.items())
        rule = "losses of a plan must be of one relation of neighbours: add_remove or replace"
        raise InvalidInput(
            both, rule, "Build all of them for the same relation, such as neighbors='replace'."
        )


@dataclass(frozen=True, repr=False)
class Total(Loss):
    """A sum of losses, each with how often it is used.

    Example:
        >>> from sordino import Gaussian, Laplace
        >>> plan = 100 * Laplace(10).loss(1) + Gaussian(5).loss(1)
        >>> plan
        GaussianLoss(shift=0.2) + 100 * LaplaceLoss(shift=0.1)
        >>> 4.79 < plan.epsilon(delta=1e-6) < 4.81
        True
    """

    parts: tuple[tuple[Loss, int], ...]

    @cached_property
    def _others(self) -> tuple[tuple[Loss, int], ...]:
        """The parts that are not Gaussian."""
        return tuple(
            (loss, count) for loss, count in self.parts if not isinstance(loss, GaussianLoss)
        )

    @cached_property
    def _gaussians(self) -> tuple[GaussianLoss, GaussianLoss] | None:
        """All Gaussian parts as one, a hair less and a hair more revealing than their sum:
        the shifts add in squares.
        """
        square = sum(
            (count * loss.shift**2 for loss, count in self.parts if isinstance(loss, GaussianLoss)),
            Fraction(0),
        )
        if square == 0:
            return None
        root = certified(lambda: ball(square).sqrt())
        return GaussianLoss(exact_lower(root)), GaussianLoss(exact_upper(root))

    def _directions(self, attained: bool = False) -> list[list[tuple[Law, int]]]:
        """The laws to add, for each way in which the pairs can be turned; `attained`: of releases that there are.

        Sampled losses turn together (the person is there, or not). A finite pair does not say which side has the
        person, so each that is not symmetric turns by itself; all uses of one turn alike.
        """
        laws = [
            (loss.attained_laws() if attained else loss.laws(), count, isinstance(loss, FiniteLoss))
            for loss, count in self._others
        ]
        if self._gaussians is not None:
            laws.append((self._gaussians[1].laws(), 1, False))
        laws = [
            entry
            for entry in laws
            if any(law.infinite or law.atoms != ((0.0, 1.0),) for law in entry[0])
        ]
        free = sum(alone and len(law) > 1 for law, _, alone in laws)
        if free > _MOST_FREE:
            rule = f"at most {_MOST_FREE} different finite losses of one plan may be asymmetric"
            raise TooLarge(
                f"{free} of them", rule, "Replace some by a symmetric pair that is worse."
            )
        if not laws:
            return []
        together = any(not alone and len(law) > 1 for law, _, alone in laws) or not free
        turns: list[list[tuple[Law, int]]] = []
        for turn in product((0, 1), repeat=free):
            for common in (0, 1) if together else (0,):
                own = iter(turn)
                sides = [next(own) if alone and len(law) > 1 else common for law, _, alone in laws]
                turns.append(
                    [
                        (law[side % len(law)], k)
                        for side, (law, k, _) in zip(sides, laws, strict=True)
                    ]
                )
        return turns if free or any(len(law) > 1 for law, _, _ in laws) else turns[:1]

    def _bracket(
        self,
        gaussian: Callable[[GaussianLoss], float],
        numeric: Callable[[list[tuple[Law, int]], float], Bracket],
        none: float,
    ) -> Bracket:
        """By the one formula for Gaussians where there is nothing else,
        else numerically; the worse direction counts.
        """
        if not self._others and self._gaussians is not None:
            low, high = (gaussian(loss) for loss in self._gaussians)
            return Bracket(low - 2.0**-50 * abs(low), high)
        lower, upper = none, none
        for parts in self._directions():
            found = numeric(parts, lower)
            lower, upper = max(lower, found.lower), max(upper, found.upper)
        if self._idealized:
            lower = max(
                (numeric(parts, none).lower for parts in self._directions(attained=True)),
                default=none,
            )
        return Bracket(lower, upper)

    @cached_property
    def _idealized(self) -> bool:
        """Whether a part's pair bounds its releases, but belongs to none of them."""
        return any(loss.idealized for loss, _ in self.parts)

    @property
    def by_moments(self) -> bool:
        return any(loss.by_moments for loss, _ in self.parts)

    @cached_property
    def _quick_renyi(self) -> bool:
        quick = (BoundedRangeLoss, EpsilonDeltaLoss, FiniteLoss, GaussianLoss, LaplaceLoss)
        return all(isinstance(loss, quick) for loss, _ in self.parts)

    def epsilon_bounds(self, delta: Number, accuracy: float = ACCURACY) -> Bracket:
        """The certified interval that holds epsilon(delta),
        at most `accuracy` of it wide unless the plan is very large.
        """
        read = closed_unit("delta", delta)
        if read.lower == 0:
            return Bracket(0.0, self.maximum())
        if read.lower < _FAINT and self._others:
            return Bracket(-math.inf, self.maximum())
        if read.upper == 1:
            hint = "Pass a small probability such as 1e-6."
            raise InvalidInput(f"delta={show(delta)}", "delta must be at least 0 and below 1", hint)
        if self.by_moments:  # any epsilon(delta) is at least log(1 - delta), and more is not known of releases so declared
            return Bracket(
                math.log1p(-float_upper(read.upper)) - 2.0**-40, rdp(self.parts, read.lower)
            )
        least = float_lower(read.lower)
        found = self._bracket(
            lambda g: g.epsilon(delta),
            lambda parts, known: epsilon_bracket(parts, least, accuracy, known),
            -math.inf,
        )
        # `least` may be below delta by a rounding, which lowers the true epsilon by far less than this
        lower = (
            found.lower - 2.0**-40 * (1 + abs(found.lower))
            if math.isfinite(found.lower)
            else found.lower
        )
        upper = min(found.upper, self.maximum())
        # concentration knows that no release is as bad as the pair that bounds all
        if self._idealized:
            by_moments = rdp if self._quick_renyi else zcdp
            upper = min(upper, by_moments(self.parts, read.lower))
        return Bracket(min(lower, upper), upper)

    def epsilon(self, delta: Number) -> float:
        return self.epsilon_bounds(delta).upper

    def delta_bounds(self, epsilon: Number, accuracy: float = ACCURACY) -> Bracket:
        """The certified interval that holds delta(epsilon)."""
        if isinstance(epsilon, float) and math.isinf(epsilon):
            return Bracket(*(2 * (super().delta(epsilon),)))
        read = bounds("epsilon", epsilon)
        if float_lower(read.lower) >= self.maximum():
            return Bracket(0.0, 0.0)
        least = max(0.0, -math.expm1(min(0.0, float(read.lower))))
        if self.by_moments:
            return Bracket(least * (1 - 2.0**-40), rdp_delta(self.parts, read.lower))
        found = self._bracket(
            lambda g: g.delta(epsilon),
            lambda parts, known: delta_bracket(parts, float_lower(read.lower), accuracy, known),
            least,
        )
        # below the largest loss delta is positive, and floats must not say otherwise; nor are faint ones known from
        # below
        lower = found.lower * (1 - 2.0**-40) if found.lower >= _FAINT else 0.0
        return Bracket(lower, min(1.0, max(found.upper, _LEAST_NORMAL)))

    def delta(self, epsilon: Number) -> float:
        return self.delta_bounds(epsilon).upper

    def delta_ball(self, epsilon: Fraction) -> arb:
        found = self.delta_bounds(epsilon)
        return arb(found.lower).union(arb(found.upper))

    def satisfies(self, epsilon: Fraction, delta: Fraction) -> bool:
        return Fraction(self.delta(epsilon)) <= delta

    def rdp_ball(self, alpha: Fraction) -> arb:
        return sum((count * loss.rdp_ball(alpha) for loss, count in self.parts), arb(0))

    def trade_off(self, alpha: Number) -> float:
        """From delta(epsilon) at many epsilons: 1 - delta - e^epsilon alpha and its mirror image bound the curve."""
        level = closed_unit("alpha", alpha).upper
        if level in (0, 1):
            return super().trade_off(alpha)
        return trade_off_from(self._profile, level)

    @cached_property
    def _profile(self) -> list[tuple[float, float]]:
        far = self.epsilon(1e-9)
        grid = np.linspace(0, far if math.isfinite(far) else 1.0, 65).tolist()
        return [(e, self.delta(e)) for e in grid]

    def trade_off_ball(self, alpha: Fraction) -> arb:
        return arb(self.trade_off(alpha)).union(1 - ball(alpha))

    def maximum(self) -> float:
        return self._sum(lambda loss: loss.exact_maximum())

    def rho(self) -> float:
        return self._sum(lambda loss: loss.exact_rho())

    def mu(self) -> float:
        square = self._sum(lambda loss: loss.exact_mu_squared())
        return math.sqrt(square) * (1 + 2.0**-50) if math.isfinite(square) else math.inf

    def _sum(self, view: Callable[[Loss], Fraction | None]) -> float:
        """A view that adds, rounded up."""
        each = [view(loss) for loss, _ in self.parts]
        known = [value for value in each if value is not None]
        if len(known) < len(each):
            return math.inf
        counts = (count for _, count in self.parts)
        return float_upper(sum(map(operator.mul, known, counts), Fraction(0)))

    def infinite(self) -> Fraction:
        certain = [(loss.infinite(), count) for loss, count in self.parts if loss.infinite()]
        if sum(count * chance.denominator.bit_length() for chance, count in certain) > _MOST_BITS:
            log = certified(
                lambda: sum((count * ball(-chance).log1p() for chance, count in certain), arb(0))
            )
            return min(Fraction(1), exact_upper(-log.expm1()))  # a hair more
        return 1 - math.prod(
            ((1 - chance) ** count for chance, count in certain), start=Fraction(1)
        )

    def pmf(self, grid: Any) -> Floats:
        if self.by_moments:
            rule = "a plan with a loss that is known by its Renyi divergences has no law"
            raise InvalidInput(repr(self), rule, "Ask for epsilon, delta, rdp or rho.")
        points = np.array([float(x) for x in grid])
        if len(points) < 2 or (np.diff(points) <= 0).any():
            raise InvalidInput(
                f"grid={show(grid)}",
                "a grid must hold increasing numbers",
                "Pass np.linspace(-2, 2, 401).",
            )
        spacing = float(np.diff(points).min()) / 4
        result = np.zeros(len(points) + 1)
        for parts in self._directions()[:1]:
            grids = Sum(
                tuple(
                    (from_above(law, spacing, law.atoms[-1][0] if law.atoms else 0.0, 1e-12), k)
                    for law, k in parts
                )
            )
            window = grids.window(0.0)
            places = np.searchsorted(points, window.values, side="left")
            masses = (window.masses + window.error) * math.exp(window.log_moment)
            result += np.bincount(places, masses, minlength=len(points) + 1)
            result[-1] += window.above + sum(k * part.infinite for part, k in grids.parts)
        return result

    def outputs(self) -> OutputPair | None:
        return None

    def laws(self) -> tuple[Law, ...]:
        raise InvalidInput(repr(self), "a total has no law of its own", "Add its parts instead.")

    def report(self, deltas: Iterable[Number] = (1e-5, 1e-6, 1e-10)) -> Any:
        """Epsilon at each delta by this accountant and by every closed form, side by side."""
        from sordino.accounting.report import Report

        return Report.of(self, deltas)

    def to_json(self) -> str:
        parts = [
            {"count": str(count), "loss": nested(loss.to_json())} for loss, count in self.parts
        ]
        return dump("total", 1, {"parts": parts})

    def __repr__(self) -> str:
        return " + ".join(
            f"{count} * {loss!r}" if count > 1 else repr(loss) for loss, count in self.parts
        )


def _load(fields: dict[str, Any]) -> Loss:
    rule = 'a stored total holds "parts", each with a "loss" and a "count"'
    try:
        return total(
            (loaded(part["loss"], Loss.from_json), _count(part["count"]))
            for part in fields["parts"]
        )
    except (KeyError, TypeError):
        raise InvalidInput(show(fields), rule, "Pass a text made by to_json().") from None


def _count(text: Any) -> int:
    if not isinstance(text, str) or not text.isdigit() or int(text) < 1:
        raise InvalidInput(
            f"count={show(text)}",
            "a count must be a whole number of at least 1",
            "Pass a text made by to_json().",
        )
    return int(text)


Loss.kinds["total", 1] = _load
