"""The exact law of a mechanism that draws all its randomness from a coin: every outcome of the coin is explored.

The function is run again and again, with the first decisions prescribed and the next ones open, until every decision
has been taken every way; each path twice, to notice randomness of its own. A path's probability is the product of its
decisions', an exact fraction; nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from sordino.errors import InvalidInput, TooLarge
from sordino.privacy.exact import Number, decimal_reading, show, whole

__all__ = ["Coin", "law"]

T = TypeVar("T")

_MOST = 100_000


@dataclass
class _Decision:
    """A question that the coin was asked: the chances of its answers, and which answer is taken now."""

    chances: tuple[Fraction, ...]
    taken: int

    @classmethod
    def first(cls, chances: tuple[Fraction, ...]) -> _Decision:
        return cls(chances, next(i for i, p in enumerate(chances) if p))

    def next(self) -> bool:
        """Take the next answer that can happen, if there is one."""
        following = (i for i in range(self.taken + 1, len(self.chances)) if self.chances[i])
        self.taken = next(following, len(self.chances))
        return self.taken < len(self.chances)


class Coin:
    """The randomness of a mechanism under `law`; made anew for each run."""

    def __init__(self, path: list[_Decision], most: int) -> None:
        self._path, self._most, self._asked = path, most, 0
        self.refusal: Exception | None = None
        """What went wrong, kept in case the function under study catches everything."""

    def event(self, probability: Number) -> bool:
        """True with this probability."""
        p = decimal_reading("probability", probability)
        if not 0 <= p <= 1:
            rule, hint = "a probability must lie between 0 and 1", "Pass Fraction(1, 2), 0.25, ..."
            raise self._refuse(InvalidInput(f"probability={show(probability)}", rule, hint))
        return self._ask((1 - p, p)) == 1

    def below(self, n: int) -> int:
        """One of 0, ..., n - 1, each equally likely."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            rule = "there must be a whole number of outcomes, at least one"
            raise self._refuse(InvalidInput(f"n={show(n)}", rule, "Pass how many there are."))
        if n > self._most:
            raise self._refuse(_too_many(f"a choice among {show(int(n))}", self._most))
        return self._ask((Fraction(1, int(n)),) * int(n))

    def choice(self, options: Sequence[T], weights: Sequence[Number] | None = None) -> T:
        """One of the options, with probabilities proportional to the weights, or equally likely."""
        if weights is None:
            return options[self.below(len(options))]
        read = [decimal_reading("weight", w) for w in weights]
        total = sum(read, Fraction(0))
        if len(read) != len(options) or min(read, default=Fraction(-1)) < 0 or total == 0:
            rule = "there must be one weight for each option, none negative and not all zero"
            hint = "Pass whole numbers or Fractions."
            raise self._refuse(InvalidInput(f"weights={show(weights)}", rule, hint))
        return options[self._ask(tuple(w / total for w in read))]

    def geometric(self, ratio: Number, most: int) -> int:
        """How often an event of probability `ratio` happens in a row, counted up to `most`."""
        count = 0
        while count < most and self.event(ratio):
            count += 1
        return count

    def _ask(self, chances: tuple[Fraction, ...]) -> int:
        """The place of the answer: as prescribed, or the first one beyond what is prescribed."""
        if 1 in chances:
            return chances.index(Fraction(1))
        if self._asked == self._most:
            what = f"more than {self._most:,} random decisions in one run"
            hint = "Cut its loops off, or raise most=."
            raise self._refuse(TooLarge(what, "the function may never stop", hint))
        if self._asked == len(self._path):
            self._path.append(_Decision.first(chances))
        decision = self._path[self._asked]
        if decision.chances != chances:
            what = f"asks for chances {show(chances)} instead of {show(decision.chances)}"
            raise self._refuse(_other_randomness(what))
        self._asked += 1
        return decision.taken

    def _refuse(self, error: Exception) -> Exception:
        self.refusal = error
        return error

    def finish(self) -> None:
        """Complain about what the function hid, or if it did not take all decisions that it took before."""
        if self.refusal is not None:
            raise self.refusal
        if self._asked < len(self._path):
            what = f"takes {self._asked} decisions instead of at least {len(self._path)}"
            raise _other_randomness(what)


Randomized = Callable[[Any, Coin], Hashable]


def law(function: Randomized, data: Any, most: int = _MOST) -> dict[Any, Fraction]:
    """The exact law of `function(data, coin)`: output -> probability, summing to 1.

    The function must take all its randomness from the coin (`event`, `below`, `choice`, `geometric`), return something
    hashable, and always stop. Exploring more than `most` paths is refused.

    Example:
        >>> def two_coins(answer, coin):  # tell the truth on heads, else toss for the answer
        ...     return answer if coin.event(Fraction(1, 2)) else coin.event(Fraction(1, 2))
        >>> law(two_coins, True)
        {False: Fraction(1, 4), True: Fraction(3, 4)}
    """
    whole("most", most, 1, 10**12, "Pass how many paths to explore.")
    path: list[_Decision] = []
    found: dict[Any, Fraction] = {}
    paths = 0
    while True:
        output = _run(function, data, path, most)
        again = _run(function, data, path, most)
        if output is not again and output != again:
            raise _other_randomness(f"returns {show(again)} instead of {show(output)}")
        chance = math.prod((d.chances[d.taken] for d in path), start=Fraction(1))
        found[output] = found.get(output, Fraction(0)) + chance
        paths += 1
        while path and not path[-1].next():
            path.pop()
        if not path:
            return found
        if paths == most:
            raise _too_many(f"more than {most:,} paths", most)


def _run(function: Randomized, data: Any, path: list[_Decision], most: int) -> Any:
    coin = Coin(path, most)
    output: Any = function(data, coin)
    coin.finish()
    try:
        hash(output)
    except TypeError:
        what, hint = (
            f"an output of type {type(output).__name__}",
            "Return a number, a text or a tuple.",
        )
        raise InvalidInput(what, "an output must be hashable", hint) from None
    return math.nan if isinstance(output, float) and math.isnan(output) else output


def _too_many(what: str, most: int) -> TooLarge:
    rule = f"the coin's outcomes are explored up to {most:,} paths"
    hint = "Use smaller data or coarser noise, raise most=, or audit it as a black box."
    return TooLarge(what, rule, hint)


def _other_randomness(what: str) -> InvalidInput:
    told = f"a function that, after the same decisions, {what}"
    rule = "its randomness must come from the coin alone, and it must not change its data"
    return InvalidInput(told, rule, "Ask the coin for every random step.")
