"""Randomized response: each person answers truthfully with a known probability, else with another category at random.

Theorem. With truth probability t over k categories, each answer is log(t (k-1)/(1-t))-differentially private, and an
unbiased estimate of the true proportions can be computed from the answers alone. Proof in randomized_response.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from flint import arb

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import CHUNK, Bits
from sordino.mechanisms.discrete import bernoulli, uniform
from sordino.mechanisms.observer import drawn
from sordino.mechanisms.proportions import Estimate, estimate, half_width
from sordino.privacy import json_form
from sordino.privacy.ball import ball, exact_lower, working
from sordino.privacy.exact import Number, decimal_reading, positive, readable, show
from sordino.privacy.loss import FiniteLoss

__all__ = ["RandomizedResponse"]

Indices = npt.NDArray[np.int64]

_MOST_CATEGORIES = 2**31


@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse:
    """Truthful with probability `truth`, else one of the other categories, each equally likely.

    `categories` is their number, answers being 0, 1, ...; or their names.

    Privacy: log(truth (k-1)/(1-truth))-differentially private for the one who answers, whoever collects.

    Example:
        >>> coin = RandomizedResponse(truth=Fraction(3, 4))
        >>> coin.coefficients
        (Fraction(2, 1), Fraction(-1, 2))
        >>> round(coin.loss().maximum(), 6)
        1.098612
    """

    truth: Fraction
    categories: int
    names: tuple[str, ...] | None

    def __init__(self, truth: Number, categories: int | Sequence[str] = 2) -> None:
        count, names = _categories(categories)
        exact = decimal_reading("truth", truth)
        if not Fraction(1, count) <= exact < 1:
            rule = f"the truth probability over {count} categories must be at least 1/{count} (pure chance) and below 1"
            raise InvalidInput(
                f"truth={show(truth)}",
                rule,
                "Pass Fraction(3, 4), or use RandomizedResponse.calibrated.",
            )
        for name, value in (("truth", exact), ("categories", count), ("names", names)):
            object.__setattr__(self, name, value)

    @classmethod
    def calibrated(cls, *, epsilon: Number, categories: int | Sequence[str] = 2) -> Self:
        """The most truthful response that is epsilon-private: truth e^epsilon/(e^epsilon + k - 1), rounded down."""
        e = positive("epsilon", epsilon).lower
        count, _ = _categories(categories)
        # 56 bits of both truth - 1/k, which is about epsilon, and 1 - truth, which is about e^-epsilon; rounded down,
        # and one unit more, so that the loss is below epsilon by enough for balls of 96 bits to see it.
        tiny = max(0, e.denominator.bit_length() - e.numerator.bit_length())
        size = 56 + max(
            tiny + 2 * count.bit_length(), min(8192, math.ceil(e * Fraction(1443, 1000)))
        )
        with working(2 * size):
            numerator = exact_lower(arb(2) ** size / (1 + (count - 1) * ball(-e).exp()))
        return cls(Fraction(math.floor(numerator) - 1, 2**size), categories)

    @property
    def other(self) -> Fraction:
        """The probability of each category that is not the true one."""
        return (1 - self.truth) / (self.categories - 1)

    @property
    def coefficients(self) -> tuple[Fraction, Fraction]:
        """(a, b) such that a * (share of answers) + b is an unbiased estimate of the true proportion."""
        gap = self.truth - self.other
        if gap == 0:
            hint = "Use a larger truth probability."
            raise InvalidInput(
                f"truth={self.truth}", "answers at pure chance say nothing about the truth", hint
            )
        return 1 / gap, -self.other / gap

    def loss(self, sensitivity: Number = 1) -> FiniteLoss:
        """The privacy loss of one answer."""
        if sensitivity != 1:
            hint = "A person who answers n times spends n of these losses."
            raise InvalidInput(
                f"sensitivity={show(sensitivity)}", "a loss is that of one answer", hint
            )
        rest = (1 - self.truth - self.other,) if self.categories > 2 else ()
        return FiniteLoss((self.truth, self.other, *rest), (self.other, self.truth, *rest))

    def release(self, value: Any) -> Any:
        """The randomized answer for a true answer, or for a list or array of them, one person each."""
        indices = self._indices(value)
        if isinstance(value, list | tuple):
            listed = drawn(
                self,
                "release",
                indices.tolist(),
                lambda source: self._randomize(indices, source).tolist(),
            )
            return [self._name(i) for i in listed]
        like = np.asarray(value)
        true = _shaped(indices, like) if like.ndim else _shaped(indices, like).item()
        answers = drawn(
            self, "release", true, lambda source: _shaped(self._randomize(indices, source), like)
        )
        if answers.ndim == 0:
            return self._name(answers.item())
        return answers if self.names is None else np.array(self.names)[answers]

    def _name(self, index: int) -> int | str:
        return index if self.names is None else self.names[index]

    def _indices(self, value: Any) -> Indices:
        """The places of the answers among the categories, flat."""
        if isinstance(value, list | tuple):
            array = np.empty(len(value), object)
            for i, answer in enumerate(value):
                array[i] = answer
        else:
            array = np.asarray(value).ravel()
        if array.size == 0:
            raise InvalidInput(
                "no values", "there must be something to release", "Pass at least one answer."
            )
        if self.names is not None:
            places = {name: i for i, name in enumerate(self.names)}
            found = [places.get(x) if isinstance(x, str) else None for x in array.tolist()]
        elif array.dtype.kind in "biu":
            inside = (array >= 0) & (array < self.categories)
            if inside.all():
                return array.astype(np.int64)
            found = [int(x) if ok else None for x, ok in zip(array, inside, strict=True)]
        else:
            whole = (isinstance(x, int | np.integer) and 0 <= x < self.categories for x in array)
            found = [int(x) if ok else None for x, ok in zip(array, whole, strict=True)]
        if None in found:
            wrong = array[found.index(None)]
            allowed = f"0 to {self.categories - 1}" if self.names is None else ", ".join(self.names)
            raise InvalidInput(
                show(wrong),
                f"an answer must be one of the categories: {allowed}",
                "Declare every category.",
            )
        return np.array(found, np.int64)

    def _randomize(self, true: Indices, source: Bits) -> Indices:
        answers = np.empty_like(true)
        for start in range(0, len(true), CHUNK):
            block = true[start : start + CHUNK]
            truthful = bernoulli(self.truth, len(block), source)
            other = block + 1 + uniform(self.categories - 1, len(block), source)
            answers[start : start + CHUNK] = np.where(truthful, block, other % self.categories)
        return answers

    def estimate(self, answers: Any, confidence: Number = 0.95) -> Estimate:
        """The true proportions behind randomized answers."""
        return self.estimate_from_counts(
            np.bincount(self._indices(answers), minlength=self.categories), confidence
        )

    def estimate_from_counts(
        self, counts: Sequence[int] | Indices, confidence: Number = 0.95
    ) -> Estimate:
        """The true proportions behind the number of randomized answers in each category."""
        values = [int(c) for c in counts]
        if len(values) != self.categories or min(values) < 0 or sum(values) == 0:
            rule = f"there must be {self.categories} counts, none negative, not all zero"
            raise InvalidInput(
                f"counts={show(counts)}", rule, "Count the answers of every category, zeros too."
            )
        return estimate(values, *self.coefficients, confidence)

    def interval(self, confidence: Number = 0.95, *, answers: int) -> float:
        """The half-width of an estimated proportion from this many answers, at worst."""
        if isinstance(answers, bool) or not isinstance(answers, int) or answers < 1:
            raise InvalidInput(
                f"answers={show(answers)}",
                "there must be at least one answer",
                "Pass how many answer.",
            )
        return half_width(answers, self.coefficients[0], confidence)

    def pmf(self, report: int | str, value: int | str = 0) -> Fraction:
        """P[the answer is `report`] when the truth is `value`, exactly."""
        a, b = self._indices([report, value])
        return self.truth if a == b else self.other

    def cdf(self, report: int | str, value: int | str = 0) -> Fraction:
        """P[the answer is `report` or a category before it] when the truth is `value`, exactly."""
        a, b = (int(i) for i in self._indices([report, value]))
        return self.other * (a + 1) + (self.truth - self.other if b <= a else 0)

    def to_json(self) -> str:
        """The exact stored form."""
        fields: dict[str, json_form.Field] = {"truth": self.truth, "categories": self.categories}
        if self.names is not None:
            fields["names"] = self.names
        return json_form.dump("randomized_response", 1, fields)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The mechanism of stored fields."""
        return cls(json_form.rational(fields, "truth"), json_form.categories(fields))

    def __repr__(self) -> str:
        kinds = f", categories={list(self.names) if self.names else self.categories}"
        return f"RandomizedResponse(truth={readable(self.truth)}{kinds if self.names or self.categories > 2 else ''})"


def _shaped(flat: Indices, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Answers in the shape of the true ones, as truth values where those are."""
    shaped = flat.reshape(like.shape)
    return shaped.astype(bool) if like.dtype == bool else shaped


def _categories(given: Any) -> tuple[int, tuple[str, ...] | None]:
    hint = 'Pass their number, such as 3, or their names, such as ["yes", "no"].'
    if isinstance(given, int) and not isinstance(given, bool):
        if not 2 <= given <= _MOST_CATEGORIES:
            raise InvalidInput(
                f"categories={given}", f"there must be 2 to {_MOST_CATEGORIES} categories", hint
            )
        return given, None
    names = tuple(given) if isinstance(given, list | tuple) else ()
    if len(names) < 2 or len(set(names)) < len(names) or not all(isinstance(x, str) for x in names):
        raise InvalidInput(
            f"categories={show(given)}",
            "categories must be a whole number or different names",
            hint,
        )
    return len(names), names
