"""The loss of randomized reports that are shuffled before anyone sees them: everyone hides among everyone's reports.

Neighbours are collections in which one person's true answer is replaced. A report is of the kinds that tell the two
truths apart with probability `clone` each whoever sends it, and of the third kind with `rest`. Proof in
local/shuffled.md.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from flint import arb

from sordino.errors import InvalidInput
from sordino.privacy import json_form
from sordino.privacy.ball import ball, holds
from sordino.privacy.exact import Number, closed_unit, decimal_reading, readable, show
from sordino.privacy.loss.base import Loss, OutputPair
from sordino.privacy.loss.binary_count import count_mixture
from sordino.privacy.loss.by_pair import PairLoss
from sordino.privacy.loss.clones import Mixture, mixture
from sordino.privacy.loss.finite import FiniteLoss
from sordino.privacy.loss.law import Law, cells_of
from sordino.privacy.neighbors import Neighbors

__all__ = ["MixtureLoss", "ShuffledBinaryLoss", "ShuffledLoss"]

_MOST_PERSONS = 2**40
_CAPPED = 96


class MixtureLoss(PairLoss):
    """A loss that is a mixture of binary responses, of one answer replaced: every view is exact for the mixture.

    Its maximum is that of one report: shuffling makes it rare, not impossible.
    """

    @property
    def relation(self) -> Neighbors:
        return Neighbors.REPLACE

    @property
    @abstractmethod
    def mixture(self) -> Mixture:
        """Binary responses of many strengths, of which the shuffled reports reveal no more than one drawn at random."""

    @cached_property
    def pair(self) -> FiniteLoss:
        """The same as one pair of finite distributions."""
        halves = [(w * (1 + t) / 2, w * (1 - t) / 2) for t, w in self._strengths]
        even = (self._even,) if self._even else ()
        return FiniteLoss(
            (*(x for ab in halves for x in ab), *even),
            (*(x for a, b in halves for x in (b, a)), *even),
        )

    def capped(self, delta: Number) -> FiniteLoss:
        """The same with its strongest responses, together at most as likely as delta, counted as giving everything
        away.

        Filters charge such a loss by `delta` and a small remainder, where the whole loss costs what its rarest
        outcomes do. It has few outcomes, so that this is quick, and costs a little more for it.
        """
        limit = closed_unit("delta", delta).lower
        kept, lost = list(self._strengths), Fraction(0)
        while kept and lost + kept[-1][1] <= limit:
            lost += kept.pop()[1]
        coarse = _coarser([(Fraction(0), self._even), *kept])
        p = [x for t, w in coarse for x in (w * (1 + t) / 2, w * (1 - t) / 2)] + [lost, Fraction(0)]
        q = [x for t, w in coarse for x in (w * (1 - t) / 2, w * (1 + t) / 2)] + [Fraction(0), lost]
        return FiniteLoss(tuple(p), tuple(q))

    @cached_property
    def _strengths(self) -> list[tuple[Fraction, Fraction]]:
        pairs = zip(self.mixture.thetas, self.mixture.weights, strict=True)
        return [(t, w) for t, w in pairs if t and w]

    @property
    def _even(self) -> Fraction:
        """The probability of an outcome that tells nothing."""
        return 1 - sum((w for _, w in self._strengths), Fraction(0))

    @cached_property
    def _ladder(self) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
        """The ratios P/Q in rising order, and the probabilities under P and Q of everything from each on."""
        falling = [
            ((1 + t) / (1 - t), w * (1 + t) / 2, w * (1 - t) / 2)
            for t, w in reversed(self._strengths)
        ]
        middle = [(Fraction(1), self._even, self._even)] if self._even else []
        falling += middle + [(1 / r, b, a) for r, a, b in reversed(falling)]
        over_p, over_q = (list(accumulate(x[i] for x in falling)) for i in (1, 2))
        return [r for r, _, _ in reversed(falling)], over_p[::-1], over_q[::-1]

    def _above(self, value: Fraction) -> tuple[Fraction, Fraction]:
        """P[L > value] and Q[L > value], exactly: e^value is irrational unless value is 0,
        so one can always compare.
        """
        ratios, over_p, over_q = self._ladder

        def is_above(ratio: Fraction) -> bool:
            def compare() -> bool | None:
                gap = ball(ratio).log() - ball(value)
                return True if gap > 0 else False if gap < 0 else None

            return ratio > 1 if value == 0 else holds(compare)

        at = bisect_left(ratios, True, key=is_above)
        return (over_p[at], over_q[at]) if at < len(ratios) else (Fraction(0), Fraction(0))

    def delta_ball(self, epsilon: Fraction) -> arb:
        p, q = self._above(epsilon)
        return ball(p) - ball(epsilon).exp() * ball(q)

    def cdf_ball(self, value: Fraction) -> arb:
        return ball(1 - self._above(value)[0])

    def mass_ball(self, low: Fraction, high: Fraction) -> arb:
        return ball(self._above(low)[0] - self._above(high)[0])

    def outputs(self) -> OutputPair | None:
        return None

    def laws(self) -> tuple[Law, ...]:
        return (self._law,)

    @cached_property
    def _law(self) -> Law:
        thetas = np.array([float(t) for t, _ in self._strengths])
        halves = np.array([float(w) / 2 for _, w in self._strengths])
        top = np.log1p(thetas) - np.log1p(-thetas)
        values = np.concatenate([-top[::-1], [0.0], top])
        small, large, even = halves * (1 - thetas), halves * (1 + thetas), float(self._even)
        p = np.concatenate([small[::-1], [even], large])
        q = np.concatenate([large[::-1], [even], small])

        return Law((), -np.inf, np.inf, float(np.sqrt(p @ values**2)), cells_of(values, p, q))


@dataclass(frozen=True, repr=False)
class ShuffledLoss(MixtureLoss):
    """The privacy loss of the reports of `persons` persons, shuffled, towards whoever sees all of them.

    Privacy: for one answer replaced, if all use one protocol that is log(odds)-differentially private, each sends one
    report, and the shuffler, who sees who sent what, does not tell. `rest` is zero only where `clone` is 1/(odds + 1).

    Source: Feldman, McMillan and Talwar 2022 (arXiv 2208.04591), with the proof in local/shuffled.md.

    Example:
        >>> loss = ShuffledLoss(Fraction(3), clone=Fraction(1, 4), rest=Fraction(0), persons=10_000)
        >>> round(loss.epsilon(1e-6), 4), round(loss.maximum(), 4)
        (0.0489, 1.0986)
    """

    odds: Fraction
    clone: Fraction
    rest: Fraction
    persons: int

    def __post_init__(self) -> None:
        for name in ("odds", "clone", "rest"):
            object.__setattr__(self, name, decimal_reading(name, getattr(self, name)))
        hint = "Use sordino.local.shuffled(protocol, persons), which derives them."
        if self.odds <= 1:
            raise InvalidInput(f"odds={show(self.odds)}", "odds must be above 1", hint)
        if not 0 < self.clone * (self.odds + 1) <= 1:
            rule = "clone must be above 0 and at most 1/(odds + 1)"
            raise InvalidInput(f"clone={readable(self.clone)}", rule, hint)
        if not 0 <= self.rest <= 1 - 2 * self.clone or (self.rest == 0) != (
            self.clone * (self.odds + 1) == 1
        ):
            rule = "rest must be at most 1 - 2 clone, and zero exactly where clone is 1/(odds + 1)"
            raise InvalidInput(f"rest={readable(self.rest)}", rule, hint)
        object.__setattr__(self, "persons", _persons(self.persons))

    @cached_property
    def mixture(self) -> Mixture:
        return mixture(self.persons, self.odds, self.clone, self.rest)

    def to_json(self) -> str:
        fields: dict[str, json_form.Field] = {
            "odds": self.odds,
            "clone": self.clone,
            "rest": self.rest,
            "persons": self.persons,
        }
        return json_form.dump("shuffled", 1, fields)

    def __repr__(self) -> str:
        shares = (
            f"odds={readable(self.odds)}, clone={readable(self.clone)}, rest={readable(self.rest)}"
        )
        return f"ShuffledLoss({shares}, persons={self.persons})"


@dataclass(frozen=True, repr=False)
class ShuffledBinaryLoss(MixtureLoss):
    """The privacy loss of the binary reports of `persons` persons, shuffled, towards whoever sees their count.

    Less than `ShuffledLoss` knows of any protocol: the others' truths are at worst some number of ones, and given it
    the count has a known law. epsilon(delta) is about a thousandth above the worst of these laws, or nearer.

    Privacy: for one answer replaced, if each sends one report of two values, the more likely one at most log(odds)
    likelier under one answer than under another, and the shuffler, who sees who sent what, does not tell.

    Source: Theorems 4 and 5 of local/shuffled.md.

    Example:
        >>> loss = ShuffledBinaryLoss(Fraction(3), persons=10_000)
        >>> round(loss.epsilon(1e-6), 4), round(loss.maximum(), 4)
        (0.0399, 1.0986)
    """

    odds: Fraction
    persons: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "odds", decimal_reading("odds", self.odds))
        if self.odds <= 1:
            hint = "Use sordino.local.shuffled(protocol, persons), which derives them."
            raise InvalidInput(f"odds={show(self.odds)}", "odds must be above 1", hint)
        object.__setattr__(self, "persons", _persons(self.persons))

    @cached_property
    def mixture(self) -> Mixture:
        exact = count_mixture(self.persons, self.odds)
        return exact or mixture(self.persons, self.odds, 1 / (self.odds + 1), Fraction(0))

    def to_json(self) -> str:
        return json_form.dump("shuffled_binary", 1, {"odds": self.odds, "persons": self.persons})

    def __repr__(self) -> str:
        return f"ShuffledBinaryLoss(odds={readable(self.odds)}, persons={self.persons})"


def _persons(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= _MOST_PERSONS:
        rule = "persons must be a whole number from 1 to 2^40"
        raise InvalidInput(
            f"persons={show(n)}",
            rule,
            "Pass how many reports are shuffled together, such as 40000.",
        )
    return int(n)


def _coarser(strengths: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """A few of the strengths, each other one split between its neighbours so that the mean stays,
    which reveals more.
    """
    last = len(strengths) - 1
    anchors = sorted({*range(0, last + 1, -(-last // _CAPPED) or 1), last})
    weights = {i: strengths[i][1] for i in anchors}
    for low, high in pairwise(anchors):
        a, b = strengths[low][0], strengths[high][0]
        for t, w in strengths[low + 1 : high]:
            up = w * (t - a) / (b - a)
            weights[high] += up
            weights[low] += w - up
    return [(strengths[i][0], w) for i, w in weights.items()]


def _load(fields: dict[str, Any]) -> ShuffledLoss:
    odds, clone, rest = (json_form.rational(fields, name) for name in ("odds", "clone", "rest"))
    return ShuffledLoss(odds, clone, rest, json_form.whole(fields, "persons"))


Loss.kinds["shuffled", 1] = _load
Loss.kinds["shuffled_binary", 1] = lambda fields: ShuffledBinaryLoss(
    json_form.rational(fields, "odds"), json_form.whole(fields, "persons")
)
