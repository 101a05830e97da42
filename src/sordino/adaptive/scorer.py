"""A holdout behind scikit-learn's interfaces: a scorer and a splitter, without depending on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.adaptive.guard import GRID, levels
from sordino.errors import InvalidInput
from sordino.privacy.exact import show

if TYPE_CHECKING:
    from sordino.adaptive.holdout import Holdout

__all__ = ["HoldoutScorer", "Metric", "WholeSplit", "metric_of"]

Metric: TypeAlias = Callable[[Any, Any], Any]
"""From true and predicted targets to one number in [0, 1] for each row."""
Indices: TypeAlias = npt.NDArray[np.intp]


def _accuracy(true: Any, predicted: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(np.asarray(true) == np.asarray(predicted))


def metric_of(metric: str | Metric) -> Metric:
    """The metric of that name, or the given one."""
    if metric == "accuracy":
        return _accuracy
    if isinstance(metric, str) or not callable(metric):
        rule = 'a metric is "accuracy", or a function of true and predicted targets with one number in [0, 1] for each row'
        raise InvalidInput(f"metric={show(metric)}", rule, "Pass lambda y, p: 1 - np.abs(y - p).")
    return metric


@dataclass(frozen=True, eq=False, repr=False)
class HoldoutScorer:
    """For `scoring=`: the score on the data at hand if the holdout agrees, else the holdout's own, with noise.

    It is a holdout's voice, not a copy of it: copies are the same object, so that scikit-learn can clone what holds it.
    """

    holdout: Holdout
    metric: Metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:  # noqa: N803
        """The guarded score of a fitted estimator; BudgetExceeded when the holdout is used up."""
        found = levels(np.asarray(self.metric(y, estimator.predict(X)), np.float64))
        train_value = Fraction(int(found.sum()), GRID * len(found))

        def phi(rows: Any, targets: Any) -> Any:
            return self.metric(targets, estimator.predict(rows))

        return self.holdout.check(train_value, phi).value

    def __copy__(self) -> HoldoutScorer:
        return self

    def __deepcopy__(self, memo: Any) -> HoldoutScorer:
        return self

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.holdout!r})"


class WholeSplit:
    """For `cv=`: one split that trains on all rows and hands the same rows to the scorer, since the holdout validates."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:  # noqa: N803, ARG002
        """All rows, twice."""
        rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803, ARG002
        """One."""
        return 1

    def __repr__(self) -> str:
        return "WholeSplit()"
