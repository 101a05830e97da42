"""How far the values of a holdout can be from the sample and from the population; every error is rounded up.

Two arguments, of which the better counts: private answers cannot be fitted to ("pure"), nor can answers that say little
("counting"). Theorems and proofs in holdout.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sordino.adaptive.guard import GRID
from sordino.adaptive.transfer import Guarantee, failure_of, whole_number
from sordino.mechanisms.above_threshold import AboveThreshold
from sordino.mechanisms.laplace import Laplace
from sordino.privacy.exact import Number, float_upper

__all__ = ["HoldoutAccuracy"]

_MARGIN = 1 + 2.0**-40
"""The formulas below are a few float operations on numbers that were rounded up, each within a few units of 2^-53."""
_MOST_QUESTIONS = 10**9


@dataclass(frozen=True)
class HoldoutAccuracy:
    """What is public of a holdout: its rows, epsilon and two mechanisms, and that a correction is one of `told` values.

    The values are 0, 1/(told - 1), ..., 1.
    """

    rows: int
    epsilon: Fraction
    above: AboveThreshold
    noise: Laplace
    told: int

    def guarantee(self, questions: int, confidence: Number) -> Guarantee:
        """For all values at once, if this many questions are asked at most."""
        k, failure = whole_number("questions", questions, _MOST_QUESTIONS), failure_of(confidence)
        sample = min(1.0, self._sample(k, failure) * _MARGIN)
        ways = {"pure": self._pure(k, failure), "counting": self._counting(k, failure)}
        method = min(ways, key=lambda name: ways[name])
        population = min(1.0, ways[method] * _MARGIN)
        source = f"holdout.md, Theorem {3 if method == 'pure' else 4}"
        return Guarantee(method, source, True, "laplace", self.noise.scale, sample, population)

    def so_far(self, asked: int, confidence: Fraction) -> Guarantee:
        """For the values given so far; all that are ever read hold at once (transfer.md, "Read at any time")."""
        j = max(0, asked - 1).bit_length()
        return self.guarantee(
            min(2**j, _MOST_QUESTIONS), 1 - (1 - confidence) / ((j + 1) * (j + 2))
        )

    def _pure(self, k: int, failure: float) -> float:
        """Theorem 3."""
        return math.tanh(float_upper(self.epsilon) / 4) + self._off(k, failure, failure, 1.0)

    def _counting(self, k: int, failure: float) -> float:
        """Theorem 4, half of what may fail for each part."""
        gap = math.sqrt((self._log_questions(k) + math.log(4 / failure)) / (2 * self.rows))
        return gap + self._sample(k, failure / 2)

    def _sample(self, k: int, failure: float) -> float:
        """Lemma 1: how far values are from the holdout's means."""
        return self._off(k, failure / 2, failure / 2, 0.0)

    def _off(self, k: int, line: float, each: float, more: float) -> float:
        """The threshold and the noises' quantiles, passed with probability `line` and `each`; `more` 1 means beyond."""
        noises = k / 2 + min(k, self.above.most)
        scale = float_upper(max(self.above.question_noise.scale, self.noise.scale))
        bar = float_upper(self.above.threshold_noise.scale) * (max(0.0, -math.log(2 * line)) + more)
        rounded = float_upper(
            Fraction(1, 2 * (self.told - 1)) + 2 * self.above.step + Fraction(1, GRID)
        )
        return (
            float_upper(self.above.threshold)
            + bar
            + scale * (math.log(noises / each) + more)
            + rounded
        )

    def _log_questions(self, k: int) -> float:
        """Lemma 2: the log of how many different questions the values can lead to, at most."""
        m, values = min(k, self.above.most), math.log(self.told)
        return min(
            m * (1 + math.log(k / m)) + (m - 1) * values, k * math.log(self.told + 1) - values
        )
