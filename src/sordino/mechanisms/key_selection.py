"""Which undeclared keys may be named: each key of the data by itself, with a probability that grows with its weight.

Theorem. If one person moves the weights of all keys together by at most `l1`, and that of one key by at most `linf`,
the set of published keys is (epsilon, delta)-differentially private. Proof in key_selection.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from flint import arb

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.exponential import is_below
from sordino.mechanisms.integers import INT64
from sordino.mechanisms.observer import drawn
from sordino.privacy.ball import ball, certified, working
from sordino.privacy.exact import Number, open_unit, positive, readable, show

__all__ = ["DOUBT", "KeySelection"]

DOUBT = 2.0**-40
"""Lemma 3: how far a float probability and a float uniform together can be from the true ones."""

_MASK = np.int64(INT64 - 1)
_FAST = 600
_MOST_BITS = 1 << 14


@dataclass(frozen=True, repr=False)
class KeySelection:
    """Publish a key of weight n with probability pi(n), the largest that this guarantee allows per unit of weight.

    Weights are whole. A person who weighs `linf` in each of l1/linf keys, or less in more keys, is protected all the
    same.

    Privacy: (epsilon, delta)-differentially private for neighbours whose weights differ by at most `l1` in total and
    at most `linf` at any key. Adding or removing a person who weighs at most F in a key and k F in all is l1 = k F,
    linf = F; replacing one is l1 = 2 k F, linf = F.

    Source: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection" (PoPETs 2022), Theorem
    1, with units of weight in place of persons.

    Example:
        >>> selection = KeySelection.calibrated(epsilon=1, delta=1e-5, l1=1, linf=1)
        >>> selection.half, selection.certain
        (12, 23)
        >>> selection.probability(1)
        1e-05
    """

    epsilon: Fraction
    delta: Fraction
    l1: int
    linf: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon).lower)
        object.__setattr__(
            self, "delta", open_unit("delta", self.delta, "Pass a small number such as 1e-6.").lower
        )
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (self.l1, self.linf))
        if not whole or not 1 <= self.linf <= self.l1:
            value, rule = (
                f"l1={show(self.l1)}, linf={show(self.linf)}",
                "these must be whole numbers with 1 <= linf <= l1",
            )
            raise InvalidInput(
                value,
                rule,
                "They say how far one person moves all weights, and the weight of one key.",
            )

    @classmethod
    def calibrated(cls, *, epsilon: Number, delta: Number, l1: int, linf: int) -> Self:
        """The selection that is exactly (epsilon, delta)-private; a float counts as the smaller of its two readings."""
        return cls(positive("epsilon", epsilon).lower, open_unit("delta", delta).lower, l1, linf)

    @property
    def unit_epsilon(self) -> Fraction:
        """The epsilon of one unit of weight."""
        return self.epsilon / self.l1

    def _factor(self) -> arb:
        """c: while pi is small, pi(n) = c (exp(n unit_epsilon) - 1)."""
        share = Fraction(self.linf, self.l1)
        return ball(self.delta * share) / ball(self.epsilon * share).expm1()

    def _rising(self, weight: int) -> arb:
        """The first branch of pi, up to `_turn`."""
        return self._factor() * ball(self.unit_epsilon * weight).expm1()

    @cached_property
    def _turn(self) -> int:
        """The first weight at which pi is past the point where keeping a key back becomes the harder promise."""

        def last_before() -> arb:
            limit = (1 - self._rising(1)) / (1 + ball(self.unit_epsilon).exp())
            return (limit / self._factor()).log1p() / ball(self.unit_epsilon)

        return _floor(last_before) + 1

    @cached_property
    def certain(self) -> int:
        """The weight from which a key is always published."""
        return self._turn + self._falls_to(Fraction(0))

    @cached_property
    def half(self) -> int:
        """The least weight at which a key is at least as likely to be published as not."""
        rising = _floor(lambda: (1 / (2 * self._factor())).log1p() / ball(self.unit_epsilon)) + 1
        return rising if rising <= self._turn else self._turn + self._falls_to(Fraction(1, 2))

    def _falls_to(self, level: Fraction) -> int:
        """How far behind `_turn` 1 - pi is no longer above `level`; at once if it never was."""

        def last_above() -> arb:
            c = self._factor()
            return ((1 - self._rising(self._turn) + c) / (ball(level) + c)).log() / ball(
                self.unit_epsilon
            )

        return max(0, _floor(last_above) + 1)

    def probability_ball(self, weight: int) -> arb:
        """pi(weight) at the working precision."""
        if weight <= 0 or weight >= self.certain:
            return arb(int(weight > 0))
        if weight <= self._turn:
            return self._rising(weight)
        fall = ball(-self.unit_epsilon * (weight - self._turn))
        return 1 - (1 - self._rising(self._turn)) * fall.exp() - self._factor() * fall.expm1()

    def probability(self, weight: int) -> float:
        """The probability that a key of this weight is published, to the last bit of a float."""
        value: arb = certified(lambda: self.probability_ball(weight))
        return float(value.mid())

    def select(self, weights: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of the keys with these weights are published; each is decided by itself."""
        checked = _weights(weights)
        return drawn(self, "select", checked, partial(self._select, checked))

    def _select(
        self, weights: npt.NDArray[np.int64], source: Bits, *, always_refine: bool = False
    ) -> npt.NDArray[np.bool_]:
        published = np.empty(len(weights), bool)
        fast = self._fast and not always_refine
        for start in range(0, len(weights), CHUNK):
            block = weights[start : start + CHUNK]
            words = source.words(len(block)) & _MASK
            if fast:
                margin = self._float_probabilities(block)
                margin -= words * 2.0**-63
                published[start : start + CHUNK] = margin > 0
                doubtful = np.flatnonzero(np.abs(margin, out=margin) <= DOUBT)
            else:
                doubtful = np.arange(len(block))
            for i in doubtful.tolist():
                published[start + i] = self._refine(int(words[i]), int(block[i]), source)
        return published

    def _refine(self, word: int, weight: int, source: Bits) -> bool:
        return is_below(word, 63, lambda: self.probability_ball(weight), source)

    @cached_property
    def _floats(self) -> tuple[float, float, float, float]:
        """c, log c, 1 - pi(_turn) and the epsilon of a unit, each rounded once from at least 96 known bits."""
        values = (
            self._factor,
            lambda: self._factor().log(),
            lambda: 1 - self._rising(self._turn),
            lambda: ball(self.unit_epsilon),
        )
        c, log_c, left, unit = (float(certified(value).mid()) for value in values)
        return c, log_c, left, unit

    @cached_property
    def _fast(self) -> bool:
        """Whether Lemma 3 holds for every weight."""
        _, log_c, _, _ = self._floats
        return (
            abs(log_c) <= _FAST
            and self.unit_epsilon * self._turn <= _FAST
            and self.unit_epsilon >= Fraction(1, 2**900)
        )

    def _float_probabilities(self, weights: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """pi in floats; -1 and 2 where it is exactly 0 and 1, so that nothing is doubtful there."""
        c, log_c, left, unit = self._floats
        turn = min(self._turn, INT64 - 1)
        rise = np.minimum(weights, turn) * unit
        result = -np.expm1(-rise) * np.exp(rise + log_c)
        late = np.flatnonzero(weights > turn)
        if late.size:
            fall = (turn - weights[late]) * unit
            result[late] = 1 - left * np.exp(fall) - c * np.expm1(fall)
        result[weights == 0] = -1
        if self.certain < INT64:
            result[weights >= self.certain] = 2
        return result

    def __repr__(self) -> str:
        sides = f"epsilon={readable(self.epsilon)}, delta={readable(self.delta)}"
        return f"KeySelection({sides}, l1={self.l1}, linf={self.linf})"


def _weights(weights: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(weights)
    if array.size == 0:
        return np.empty(0, np.int64)
    if (
        array.ndim != 1
        or array.dtype.kind not in "iu"
        or array.min() < 0
        or int(array.max()) >= INT64
    ):
        rule = "weights must be a flat list of whole numbers, at least 0 and below 2^63"
        raise InvalidInput(f"weights of dtype {array.dtype}", rule, "Pass one weight for each key.")
    return array.astype(np.int64, copy=False)


def _floor(compute: Callable[[], arb]) -> int:
    """The whole part of a number; of a number that cannot be told from an integer, that integer (see Lemma 2)."""
    size = 128
    while True:
        with working(size):
            value = compute()
            whole = (
                (value if size < _MOST_BITS else value + ball(Fraction(1, 2))).floor().unique_fmpz()
            )
        if whole is not None:
            return int(whole)
        size *= 2
