"""Freedman's paradox as data: features that say nothing of the labels, chosen by a holdout until they seem to.

Features and labels are independent fair bits, so no classifier is right more than half of the time on fresh rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sordino.adaptive.guard import Phi
from sordino.adaptive.holdout import Holdout
from sordino.errors import BudgetExceeded, InvalidInput
from sordino.mechanisms import bits
from sordino.privacy.exact import Number, show

__all__ = ["Curve", "Freedman", "freedman"]

Bools = npt.NDArray[np.bool_]

_SIZES = (1, 3, 7, 15, 25, 35, 51, 75, 101, 151, 201, 301, 401, 501)
"""How many features vote; odd, so that no vote ties."""

_MOST = 10**6


@dataclass(frozen=True)
class Curve:
    """The accuracy of classifiers of growing size: on the training rows, as the holdout tells it, and on fresh rows."""

    sizes: tuple[int, ...]
    train: tuple[float, ...]
    holdout: tuple[float, ...]
    fresh: tuple[float, ...]

    @property
    def fooled(self) -> float:
        """How far the holdout was from the truth, one half, at worst."""
        return max((abs(value - 0.5) for value in self.holdout), default=0.0)


@dataclass(frozen=True)
class Freedman:
    """The same noise analysed twice: with a `plain` holdout, which answers exactly, and with a `guarded` one.

    `corrected` is how many values the guarded holdout had to correct.
    """

    rows: int
    features: int
    plain: Curve
    guarded: Curve
    corrected: int


@dataclass(frozen=True, repr=False)
class _Part:
    features: Bools
    labels: Bools

    @classmethod
    def drawn(cls, rows: int, features: int) -> _Part:
        """Fair bits; each feature is contiguous, as features are asked about one at a time."""
        return cls(_bits(rows * features).reshape(features, rows).T, _bits(rows))

    def mean(self, phi: Phi) -> float:
        return float(phi(self.features, self.labels).mean())

    def agreements(self) -> npt.NDArray[np.float64]:
        """For each feature, how often it equals the label."""
        return np.array([self.mean(_Feature(j)) for j in range(self.features.shape[1])])


@dataclass(frozen=True)
class _Feature:
    """Where one feature equals the label."""

    place: int
    by_row: ClassVar[bool] = True

    def __call__(self, features: Bools, labels: Bools) -> Bools:
        equal: Bools = features[:, self.place] == labels
        return equal


@dataclass(frozen=True, repr=False)
class _Majority:
    """Where the majority of some features equals the label; some vote the other way round."""

    features: npt.NDArray[np.intp]
    against: Bools
    by_row: ClassVar[bool] = True

    def __call__(self, features: Bools, labels: Bools) -> Bools:
        votes = (features[:, self.features] ^ self.against).sum(axis=1)
        right: Bools = (2 * votes > len(self.features)) == labels
        return right


def freedman(
    *,
    rows: int = 5_000,
    features: int = 5_000,
    epsilon: Number = 4,
    threshold: Number = 0.05,
    most: int = 30,
) -> Freedman:
    """Select features of pure noise by training rows and a holdout of this many rows each; see how accurate it looks.

    The analyst keeps the features whose agreement with the label leans the same way, by at least 1/(2 sqrt(rows)), on
    the training rows and on the holdout, and lets those vote that lean the most on the training rows. `epsilon`,
    `threshold` and `most` are those of the guarded `Holdout`; when it can correct no more, the curve ends.

    Source: the experiment of Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, "The reusable holdout" (2015).
    """
    _at_least("rows", rows, 1_000)
    _at_least("features", features, 100)
    train, held, fresh = (_Part.drawn(rows, features) for _ in range(3))
    holdout = Holdout((held.features, held.labels), epsilon=epsilon, threshold=threshold, most=most)
    plain = _analysed(
        train, fresh, lambda _value, phi: float(phi(held.features, held.labels).mean())
    )
    guarded = _analysed(train, fresh, lambda value, phi: holdout.check(value, phi).value)
    return Freedman(rows, features, plain, guarded, holdout.most - holdout.left)


def _analysed(train: _Part, fresh: _Part, ask: Callable[[float, Phi], float]) -> Curve:
    """The whole analysis, which sees the holdout only through `ask`, given the value on the training rows."""
    points = []
    try:
        for classifier in _classifiers(train, ask):
            value = train.mean(classifier)
            points.append(
                (len(classifier.features), value, ask(value, classifier), fresh.mean(classifier))
            )
    except BudgetExceeded:
        pass
    sizes, *accuracies = zip(*points, strict=True) if points else ((), (), (), ())
    return Curve(sizes, *accuracies)


def _classifiers(train: _Part, ask: Callable[[float, Phi], float]) -> Iterator[_Majority]:
    """Ever larger majorities of the features that seem to say something on both parts."""
    on_train = train.agreements()
    on_holdout = np.array([ask(value, _Feature(j)) for j, value in enumerate(on_train.tolist())])
    leans, others = on_train - 0.5, on_holdout - 0.5
    least = 0.5 / math.sqrt(len(train.labels))
    kept = np.flatnonzero(
        (np.minimum(np.abs(leans), np.abs(others)) >= least) & (leans * others > 0)
    )
    ordered = kept[np.argsort(-np.abs(leans[kept]), kind="stable")]
    for size in (size for size in _SIZES if size <= len(ordered)):
        yield _Majority(ordered[:size], leans[ordered[:size]] < 0)


def _bits(count: int) -> Bools:
    """Independent fair bits."""
    words = -(-count // 64)
    chunks = [
        bits.source().words(min(bits.CHUNK, words - i)).copy() for i in range(0, words, bits.CHUNK)
    ]
    return np.unpackbits(np.concatenate(chunks).view(np.uint8), count=count).view(np.bool_)


def _at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        rule = f"{name} must be a whole number from {least} to {_MOST}"
        raise InvalidInput(
            f"{name}={show(value)}",
            rule,
            "Pass a larger one." if value in range(least) else "Pass 5000.",
        )
