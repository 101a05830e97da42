"""Certified ends of probabilities from counts, and what they say of epsilon and delta.

Every end is checked, not trusted: SciPy proposes it, and the binomial tail in ball arithmetic must agree that it is on
the safe side. The argument is in black_box.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv, ndtri

from sordino.privacy.ball import at_most, ball, certified, lower

__all__ = [
    "delta_lower",
    "epsilon_lower",
    "least_probability",
    "most_probability",
    "predicted",
    "predicted_jointly",
    "ratio_lower",
    "uniform_error",
]

Floats = npt.NDArray[np.float64]

_SLACK = 2.0**-40


def least_probability(hits: int, runs: int, alpha: float) -> float:
    """A probability below the true one, except with chance alpha: P[at least `hits` of `runs`] <= alpha under it."""
    if hits == 0:
        return 0.0
    guess, slack = float(betaincinv(hits, runs - hits + 1, alpha)), _SLACK
    while guess > 0:
        end = guess - slack * min(guess, 1 - guess)
        if end <= 0 or _surely(hits, runs, Fraction(end), alpha):
            return max(end, 0.0)
        slack *= 8
    return 0.0


def most_probability(hits: int, runs: int, alpha: float) -> float:
    """A probability above the true one, except with chance alpha: P[at most `hits` of `runs`] <= alpha under it."""
    if hits == runs:
        return 1.0
    guess, slack = float(betainccinv(hits + 1, runs - hits, alpha)), _SLACK
    while True:
        end = min(1.0, guess + slack * min(guess, 1 - guess))
        if end >= 1 or _surely(runs - hits, runs, 1 - Fraction(end), alpha):
            return end
        slack *= 8


def _surely(hits: int, runs: int, probability: Fraction, alpha: float) -> bool:
    """Whether P[at least `hits` of `runs`] <= alpha under this probability: an incomplete beta function, as a ball."""
    beta = ball(hits), ball(runs - hits + 1)
    return at_most(lambda: ball(probability).beta_lower(*beta, 1), Fraction(alpha))


def epsilon_lower(least: float, most: float, delta: Fraction) -> float:
    """The epsilon that is needed at least if an event has probability >= `least` here
    and <= `most` there; rounded down.
    """
    gap = Fraction(least) - delta
    if gap <= 0 or gap <= Fraction(most):
        return 0.0
    return max(0.0, lower(certified(lambda: (ball(gap) / ball(Fraction(most))).log())))


def delta_lower(least: float, most: float, epsilon: Fraction) -> float:
    """The delta that is needed at least at this epsilon; rounded down."""
    p, q = Fraction(least), Fraction(most)
    return max(0.0, lower(certified(lambda: ball(p) - ball(epsilon).exp() * ball(q))))


_ODDS, _LEVEL = 0.94, 0.05
"""The parts of alpha for the odds ratio and for the larger probability."""


def ratio_lower(
    only_here: int, only_there: int, most_hits: int, runs: int, alpha: float
) -> Fraction:
    """A number below p/q, except with chance alpha, if runs on the two inputs are independent (0 if nothing is shown).

    Of `runs` pairs, one run on each input, `only_here` are in the event on the first alone and `only_there` on the
    second alone; at most `most_hits` are in it on the first.
    """
    share = Fraction(least_probability(only_here, only_here + only_there, _ODDS * alpha))
    odds, most = share / (1 - share), Fraction(most_probability(most_hits, runs, _LEVEL * alpha))
    return odds * (1 - most) + most if odds > 1 else Fraction(0)


def uniform_error(runs: int, alpha: float) -> float:
    """How far all frequencies {score > t} stray to one side of their probabilities, except with chance alpha."""
    return min(1.0, math.sqrt(math.log(1 / alpha) / (2 * max(runs, 1))) * (1 + 1e-12))


def predicted(
    hits: Any, misses: Any, seen: tuple[int, int], final: tuple[int, int], alpha: float, delta: float, care: float = 1.0
) -> Floats:  # fmt: skip
    """The bound on epsilon to expect of events with this many hits and false hits among `seen` runs of each input.

    It allows for chance twice: `care` standard deviations of what was seen, and the certified ends of the final round.
    Where nothing can be expected it is negative, and rises with the evidence so far: how many of its standard
    deviations the difference of the frequencies is large. So an event that never happens promises least.
    """
    z = float(-ndtri(alpha / 2))
    p, q = _believed(hits, misses, seen, care)
    p_end = _wilson(p * final[0], final[0], -z)
    q_end = _wilson(q * final[1], final[1], z)
    nothing = -1 / (1 + _evidence(hits, misses, seen, delta))
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.log((p_end - delta) / q_end)
    return np.asarray(np.where(p_end - delta - q_end > 0, gained, nothing))


def _believed(hits: Any, misses: Any, seen: tuple[int, int], care: float) -> tuple[Floats, Floats]:
    """The two probabilities, each `care` standard deviations worse than seen."""
    p = _wilson(np.asarray(hits, float), seen[0], -care)
    return p, _wilson(np.asarray(misses, float), seen[1], care)


def _evidence(hits: Any, misses: Any, seen: tuple[int, int], delta: float) -> Floats:
    """The difference of two frequencies in standard deviations, 0 if it is on the wrong side."""
    m, n = (max(runs, 1) for runs in seen)
    p, q = np.asarray(hits, float) / m, np.asarray(misses, float) / n
    spread = np.sqrt(p * (1 - p) / m + q * (1 - q) / n + 1 / (m * n))
    return np.asarray(np.maximum(p - q - delta, 0.0) / spread)


def predicted_jointly(
    hits: Any, misses: Any, seen: tuple[int, int], final: int, alpha: float, care: float = 1.0
) -> Floats:
    """The same for `ratio_lower` with this many final pairs."""
    p, q = _believed(hits, misses, seen, care)
    here, there = final * p * (1 - q), final * q * (1 - p)
    pairs = np.maximum(here + there, 1e-9)
    share = _wilson(here, pairs, float(ndtri(_ODDS * alpha)))
    most = _wilson(p * final, final, float(-ndtri(_LEVEL * alpha)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = share / np.maximum(1 - share, 1e-300) * (1 - most) + most
        value = np.log(np.maximum(ratio, 1e-300))
    return np.asarray(np.maximum(value, -50.0))


def _wilson(hits: Floats, runs: Any, z: float) -> Floats:
    """One end of Wilson's interval: the upper one for z > 0, the lower one for z < 0."""
    square = z * z
    centre = hits + square / 2
    width = z * np.sqrt(np.maximum(hits * (1 - hits / runs), 0) + square / 4)
    return np.asarray(np.clip((centre + width) / (runs + square), 0.0, 1.0))
