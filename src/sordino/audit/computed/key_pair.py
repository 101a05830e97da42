"""The law of selecting keys, at every weight that one person can move: one key, published or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from flint import arb

from sordino.audit.computed.truth import Truth
from sordino.audit.reporting.report import Figure, Grid, Series
from sordino.errors import InvalidInput, TooLarge
from sordino.mechanisms.key_selection import KeySelection
from sordino.privacy.ball import ball, lower, upper, working

__all__ = ["KeyPair"]

_MOST = 20_000
_SCAN = 256
_TITLE = "How likely a key is to be published"


class _Event(NamedTuple):
    """A key is published, or not: its weight under P and under Q."""

    weight: int
    other: int
    published: bool


@dataclass(frozen=True)
class KeyPair(Truth):
    """All pairs of weights of one key that a person can join; for persons who can move one key only (l1 = linf)."""

    selection: KeySelection

    def __post_init__(self) -> None:
        s = self.selection
        if s.l1 != s.linf:
            rule = "the exact law is known for persons who move one key, l1 = linf"
            hint = "Audit it as a black box, or one with l1 = linf exactly."
            raise InvalidInput(repr(s), rule, hint)
        if (pairs := s.certain * s.linf) > _MOST:
            rule = f"at most {_MOST:,} pairs of weights are compared"
            hint = "Audit one with a larger epsilon or delta."
            raise TooLarge(f"{pairs:,} pairs of weights", rule, hint)

    @property
    def relation(self) -> str:
        return f"the weight of one key moves by at most {self.selection.linf}"

    @cached_property
    def _chances(self) -> list[arb]:
        s = self.selection
        with working(_SCAN):
            return [s.probability_ball(n) for n in range(s.certain + s.linf + 1)]

    def _events(self) -> Iterator[tuple[arb, arb, _Event]]:
        """P and Q of each event in each direction, at the precision of a scan."""
        for n in range(self.selection.certain + 1):
            for m in range(n + 1, n + self.selection.linf + 1):
                a, b = self._chances[n], self._chances[m]
                yield a, b, _Event(n, m, True)
                yield b, a, _Event(m, n, True)
                yield 1 - a, 1 - b, _Event(n, m, False)
                yield 1 - b, 1 - a, _Event(m, n, False)

    def delta_ball(self, epsilon: Fraction) -> arb:
        """The largest excess; of the two events of one pair one has none, as their excesses sum to 1 - e^epsilon."""
        factor, worst = ball(epsilon).exp(), arb(0)
        for event in self._worst(epsilon):
            p, q = (self.selection.probability_ball(weight) for weight in event[:2])
            p, q = (p, q) if event.published else (1 - p, 1 - q)
            worst = worst.max(p - factor * q)
        return worst

    def _worst(self, epsilon: Fraction) -> list[_Event]:
        """The events whose excess may be the largest, as far as the scan can tell."""
        with working(_SCAN):
            factor = ball(epsilon).exp()
            rated = [(p - factor * q, event) for p, q, event in self._events()]
            least = max((excess.lower() for excess, _ in rated), key=lambda end: end.mid())
            return [event for excess, event in rated if not excess.upper() < least]

    def epsilon_bounds(self, delta: Fraction) -> tuple[float, float]:
        low, high = 0.0, 0.0
        with working(_SCAN):
            for p, q, *_ in self._events():
                spare = p - ball(delta)
                if not spare > 0:
                    continue
                if q == 0:
                    return math.inf, math.inf
                needed = (spare / q).log()
                if needed > low:
                    low, high = max(low, lower(needed)), max(high, upper(needed))
                elif not needed < high:
                    high = max(high, upper(needed))
        return low, high

    def witness(self, epsilon: Fraction, delta: Fraction) -> str:  # noqa: ARG002
        with working(_SCAN):
            factor = ball(epsilon).exp()
            excess = (
                (float((p - factor * q).mid()), p, q, event) for p, q, event in self._events()
            )
            _, p, q, event = max(excess, key=lambda found: found[0])
            a, b = float(p.mid()), float(q.mid())
        what = "published" if event.published else "not published"
        return f"a key is {what}: probability {a:.6g} where its weight is {event.weight}, {b:.6g} where it is {event.other}"

    def profile(self, epsilons: list[float]) -> list[float]:
        events = [(float(p.mid()), float(q.mid())) for p, q, *_ in self._events()]
        return [max(0.0, *(p - math.exp(e) * q for p, q in events)) for e in epsilons]

    def table(self) -> Grid:
        few = list(enumerate(self._chances))[:: max(1, len(self._chances) // 12)]
        rows = tuple((str(n), f"{float(p.mid()):.6g}") for n, p in few)
        return Grid(_TITLE, ("weight", "probability"), rows)

    def outputs(self) -> Figure:
        x = tuple(map(float, range(len(self._chances))))
        y = tuple(float(p.mid()) for p in self._chances)
        return Figure(_TITLE, "weight", "probability", (Series("published", x, y),))
