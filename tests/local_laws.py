"""The exact law of a randomized function, by walking every branch of its draws. Naive on purpose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from sordino.local import affine, direct, hadamard, hashing, one_bit, subset, unary
from sordino.local.hashing import POLYNOMIALS
from sordino.mechanisms import randomized_response

Law = dict[Hashable, Fraction]

_MODULES = (affine, direct, hadamard, hashing, one_bit, subset, unary, randomized_response)


class Walk:
    """One path through the tree of draws; the next path differs in its last choice that has another option."""

    def __init__(self) -> None:
        self.path: list[tuple[int, int]] = []
        self.at = 0
        self.weight = Fraction(1)

    def pick(self, weights: list[Fraction]) -> int:
        if self.at == len(self.path):
            self.path.append((0, len(weights)))
        chosen, _ = self.path[self.at]
        self.at += 1
        self.weight *= weights[chosen]
        return chosen

    def advance(self) -> bool:
        while self.path:
            chosen, options = self.path.pop()
            if chosen + 1 < options:
                self.path.append((chosen + 1, options))
                self.at, self.weight = 0, Fraction(1)
                return True
        return False

    def chance(self, probability: Fraction, _: Any = None) -> bool:
        if probability in (0, 1):
            return probability == 1
        return self.pick([probability, 1 - probability]) == 0

    def below(self, limit: int, _: Any = None) -> int:
        return self.pick([Fraction(1, limit)] * limit)

    def bernoulli(self, probability: Fraction, count: int, _: Any) -> npt.NDArray[np.bool_]:
        return np.array([self.chance(probability) for _ in range(count)])

    def uniform(self, limit: int, count: int, _: Any) -> npt.NDArray[np.int64]:
        return np.array([self.below(limit) for _ in range(count)], np.int64)

    def lanes(self, used: int) -> Callable[[Fraction, int, Any], npt.NDArray[np.uint64]]:
        """Words of which only the bits that matter are drawn: the fair coins' first bit, else the first `used` bits."""

        def draw(probability: Fraction, count: int, _: Any) -> npt.NDArray[np.uint64]:
            assert count == 1
            bits = [7] if probability == Fraction(1, 2) else range(used)
            return np.array([sum(self.chance(probability) << j for j in bits)], np.uint64)

        return draw


def law_of(run: Callable[[], Hashable], lanes: int = 0) -> Law:
    """The probability of every value that `run` can return."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    walk = Walk()
    with _drawing(walk, lanes):
        while True:
            law[run()] += walk.weight
            if not walk.advance():
                break
    assert sum(law.values()) == 1
    return dict(law)


@contextmanager
def _drawing(walk: Walk, lanes: int) -> Iterator[None]:
    with ExitStack() as stack:
        for module in _MODULES:
            for name in ("chance", "below", "bernoulli", "uniform"):
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, getattr(walk, name)))
        stack.enter_context(mock.patch.object(unary, "bernoulli_lanes", walk.lanes(lanes)))
        yield


def client_law(protocol: Any, value: Any) -> Law:
    """The law of `randomize_one`."""
    return law_of(lambda: protocol.randomize_one(value))


def batch_law(protocol: Any, value: Any) -> Law:
    """The law of `randomize` for one person."""

    def run() -> Hashable:
        column = protocol.randomize(np.array([value])).column
        return bytes(column[0]) if protocol.width else int(column[0])

    return law_of(run, lanes=getattr(protocol, "categories", 0))


def speaks_for(protocol: Any, report: Hashable) -> list[int]:
    """The supports of one report, one entry for each category."""
    column: Any = (
        np.frombuffer(report, np.uint8)[None, :]
        if isinstance(report, bytes)
        else np.array([report], np.int64)
    )
    return [int(c) for c in protocol.supports(column)]


def polynomial_product(a: int, b: int, order: int) -> int:
    """a b in a field of a power of two: multiplied term by term, then divided by the polynomial of the field."""
    total = 0
    for i in range(b.bit_length()):
        if b >> i & 1:
            total ^= a << i
    while total >= order:
        total ^= POLYNOMIALS[order] << total.bit_length() - order.bit_length()
    return total
