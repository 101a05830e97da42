"""The law of a sum of few discrete losses, outcome by outcome: no grid, no transform."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sordino.accounting.convolve import Window
from sordino.privacy.loss.law import Floats, Law

__all__ = ["enumerated"]

_MOST = 2**17


def enumerated(parts: Sequence[tuple[Law, int]]) -> tuple[Window, float, float] | None:
    """The sum's law, the relative error of its probabilities and the error of its values.

    None where a law is continuous or there are too many outcomes.
    """
    outcomes, logs = 1, 1.0
    for law, count in parts:
        outcomes *= math.comb(count + len(law.atoms) - 1, count)
        if law.high > law.low or outcomes > _MOST:
            return None
        logs += count * (
            math.log(count + 1) + max(-math.log(probability) for _, probability in law.atoms)
        )
    values, masses = np.zeros(1), np.ones(1)
    for law, count in parts:
        more_values, more_masses = _power(law, count)
        values = np.add.outer(values, more_values).ravel()
        masses = np.multiply.outer(masses, more_masses).ravel()
    order = np.argsort(values)
    window = Window(
        values[order], masses[order], tilt=0.0, log_moment=0.0, error=0.0, above=0.0, below=0.0
    )
    # the logarithms that a probability is the exponential of add up to at most `logs`, and each errs by a few 2^-53 of
    # it
    return (
        window,
        2.0**-40 + 2.0**-48 * logs,
        2.0**-40 * (1 + max(abs(values.min()), abs(values.max()))),
    )


def _power(law: Law, count: int) -> tuple[Floats, Floats]:
    """The sum of `count` copies of one discrete law: every way to share them among its atoms,
    with multinomial weights.
    """
    shares = [(count, 0.0, 0.0)]
    for value, probability in law.atoms[:-1]:
        shares = [
            (left - n, total + n * value, log + n * math.log(probability) - math.lgamma(n + 1))
            for left, total, log in shares
            for n in range(left + 1)
        ]
    value, probability = law.atoms[-1]
    full = math.lgamma(count + 1)
    values = [total + left * value for left, total, _ in shares]
    logs = [
        full + log + left * math.log(probability) - math.lgamma(left + 1) for left, _, log in shares
    ]
    return np.array(values), np.exp(np.array(logs))
