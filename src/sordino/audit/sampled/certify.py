"""From the counts of the final round to certain statements: black_box.md has the theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sordino.audit.claim import Claim
from sordino.audit.sampled.bounds import delta_lower, epsilon_lower, least_probability, most_probability, ratio_lower
from sordino.audit.sampled.event_words import number
from sordino.audit.sampled.events import Gauge, Reading
from sordino.mechanisms import bits
from sordino.mechanisms.bits import CHUNK
from sordino.privacy.ball import ball, certified, lower

__all__ = ["Certified", "certify", "rounded_down"]


@dataclass(frozen=True)
class Certified:
    """The epsilon and delta that are needed at least, and what is certain of the event, in words."""

    epsilon: float
    delta: float
    event: str


def certify(gauge: Gauge, readings: tuple[Reading, Reading], runs: int, claim: Claim, alpha: float) -> Certified:
    """What this many final runs on each input show; runs that failed or were not made in time count against a violation."""
    here, there = readings[::-1] if gauge.event.swapped else readings
    inputs = ("second", "first") if gauge.event.swapped else ("first", "second")
    if gauge.pairs:
        return _in_pairs(here, there, runs, alpha, inputs)
    least = least_probability(here.hits, runs, alpha / 2)
    most = most_probability(there.hits + runs - there.runs, runs, alpha / 2)
    words = (
        f"has probability at least {rounded_down(least)} on the {inputs[0]} input and at most {_up(most)} on the {inputs[1]}"
    )
    return Certified(epsilon_lower(least, most, claim.delta), delta_lower(least, most, claim.epsilon), words)


def _in_pairs(here: Reading, there: Reading, runs: int, alpha: float, inputs: tuple[str, str]) -> Certified:
    first, second = _in_random_order(here.marked(runs, False)), there.marked(runs, True)
    both = int((first & second).sum())
    missing = runs - sum(map(len, here.marks))
    ratio = ratio_lower(int(first.sum()) - both, int(second.sum()) - both, int(first.sum()) + missing, runs, alpha)
    if ratio <= 1:
        return Certified(0.0, 0.0, "is not certainly likelier on either input")
    epsilon = max(0.0, lower(certified(lambda: ball(ratio).log())))
    words = f"is at least {rounded_down(_float_below(ratio))} times as likely on the {inputs[0]} input as on the {inputs[1]}"
    return Certified(epsilon, 0.0, words)


def _in_random_order(marks: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Runs come in any order, a batch may even be sorted; pairs must not depend on it."""
    source = bits.source()
    words = [source.words(min(CHUNK, len(marks) - i)).copy() for i in range(0, len(marks), CHUNK)]
    return marks[np.argsort(np.concatenate(words))]


def _float_below(value: Fraction) -> float:
    return math.nextafter(float(value), 0.0)


def rounded_down(value: float) -> str:
    """Four digits, rounded down."""
    return _rounded(value, up=False)


def _up(value: float) -> str:
    return _rounded(value, up=True)


def _rounded(value: float, *, up: bool) -> str:
    if value == 0 or not math.isfinite(value):
        return number(value)
    places = 3 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**places
    return f"{(math.ceil(scaled) if up else math.floor(scaled)) / 10.0**places:.4g}"
