"""Shuffling: what reports reveal to someone who sees all of them, but not whose is whose.

Theorem. Towards such a reader the shuffled reports of n persons are far more private than one report: the loss is that
of counting, among n 2/(odds + 1) clones or fewer, of which of two kinds the one is who differs. Proof in shuffled.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from sordino.errors import InvalidInput
from sordino.local.direct import Direct
from sordino.local.frequency import Frequency
from sordino.local.heavy_hitters import HeavyHitters
from sordino.local.one_bit import OneBitMean
from sordino.local.repeated import Repeated
from sordino.privacy.ball import ball, certified, exact_upper
from sordino.privacy.exact import show
from sordino.privacy.loss import FiniteLoss, Loss
from sordino.privacy.loss.shuffled import ShuffledBinaryLoss, ShuffledLoss

__all__ = ["shuffled"]

_LARGEST = 101
"""Protocols have at most 100, and their losses are rounded up."""


def shuffled(report: Any, persons: int) -> ShuffledLoss | ShuffledBinaryLoss:
    """The loss of the reports of this many persons, shuffled; `report` is their protocol, or the loss of one report.

    Privacy: for one person's answer replaced, towards whoever sees the shuffled reports, if at least `persons` persons
    send one report each by the same protocol. Towards the shuffler the loss stays that of one report.

    Example:
        >>> survey = Direct(odds=3, categories=["yes", "no"])
        >>> round(survey.loss().epsilon(1e-6), 4), round(shuffled(survey, persons=10_000).epsilon(1e-6), 4)
        (1.0986, 0.0399)
    """
    if isinstance(report, OneBitMean) or (isinstance(report, Direct) and report.categories == 2):
        return ShuffledBinaryLoss(report.odds, persons)
    if isinstance(report, Direct) and report.categories > 2:
        return ShuffledLoss(
            report.odds, report.other, (report.categories - 2) * report.other, persons
        )
    if isinstance(report, Repeated):
        rule = "what several rounds reveal is not the sum of what one round does"
        raise InvalidInput(
            f"report={show(report)}", rule, "Pass its .first, for the only round that is shuffled."
        )
    loss = report.loss() if isinstance(report, Frequency | HeavyHitters) else report
    if not isinstance(loss, Loss):
        hint = "Pass a protocol such as local.Direct.calibrated(...), or its .loss()."
        raise InvalidInput(
            f"report={show(report)}", "a local protocol or the loss of one report is shuffled", hint
        )
    odds, distance = _odds_and_distance(loss)
    clone = min(distance / (odds - 1), 1 / (odds + 1))
    return ShuffledLoss(odds, clone, (1 - clone * (odds + 1)) / odds, persons)


def _odds_and_distance(loss: Loss) -> tuple[Fraction, Fraction]:
    """The largest ratio of probabilities and the total variation, or a little more."""
    top = loss.maximum()
    if not 0 < top < _LARGEST:
        rule = f"the loss of one report must be pure, above 0 and below {_LARGEST}"
        raise InvalidInput(f"a loss of at most {top}", rule, "Shuffle reports of a local protocol.")
    if isinstance(loss, FiniteLoss):
        pairs = [(a, b) for a, b in zip(loss.p, loss.q, strict=True) if a]
        distance = sum((abs(a - b) for a, b in pairs), Fraction(0)) / 2
        return max(max(a / b, b / a) for a, b in pairs), distance
    odds = exact_upper(certified(lambda: ball(Fraction(top)).exp()))
    return odds, Fraction(math.nextafter(loss.total_variation(), 1.0))
