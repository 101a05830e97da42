"""A holdout behind scikit-learn's interfaces: a scorer and a splitter, without depending on it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from sordino.adaptive.guard import GRID, levels
from sordino.errors import InvalidInput
from sordino.privacy.exact import show

if TYPE_CHECKING:
    from sordino.adaptive.holdout import Holdout

__all__ = ["HoldoutScorer", "Metric", "WholeSplit", "expect_flat", "metric_of"]

Metric: TypeAlias = Callable[[Any, Any], Any]
"""From true and predicted targets to one number in [0, 1] for each row, the larger the better."""
Indices: TypeAlias = npt.NDArray[np.intp]

_FEW = 5
_BY_ROW = (
    "Pass a metric of rows, such as lambda y, p: y == p; a mean of them is taken by the holdout."
)


def _accuracy(true: Any, predicted: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(np.asarray(true) == np.asarray(predicted))


def metric_of(metric: str | Metric) -> Metric:
    """The metric of that name, or the given one."""
    if metric == "accuracy":
        return _accuracy
    if isinstance(metric, str) or not callable(metric):
        rule = 'a metric is "accuracy", or a function of true and predicted targets with one number in [0, 1] for each row'
        raise InvalidInput(f"metric={show(metric)}", rule, "Pass lambda y, p: 1 - np.abs(y - p).")
    if not _takes_two(metric):
        value = (
            "a scorer"
            if "estimator" in inspect.signature(metric).parameters
            else f"metric={show(metric)}"
        )
        raise InvalidInput(
            value, "a metric is a function of two arguments, true and predicted targets", _BY_ROW
        )
    return metric


def _takes_two(metric: Metric) -> bool:
    """Whether it can be called with two arguments; of some functions written in C this is not known before."""
    try:
        inspect.signature(metric).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


@dataclass(frozen=True, eq=False, repr=False)
class HoldoutScorer:
    """For `scoring=`: the score on the data at hand if the holdout agrees, else the holdout's own, with noise.

    A metric must be larger where it is better, and in [0, 1]: beyond it is clamped, and a search takes the largest
    score. It is a holdout's voice, not a copy of it: copies are the same object, so that scikit-learn can clone what
    holds it.
    """

    holdout: Holdout
    metric: Metric

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:  # noqa: N803
        """The guarded score of a fitted estimator; BudgetExceeded when the holdout is used up.

        The metric is first computed, and the question rehearsed, on the rows given here, which must not be the
        holdout's.
        """
        expect_flat(y)

        def phi(rows: Any, targets: Any) -> Any:
            return self.metric(targets, estimator.predict(rows))

        found = np.asarray(phi(X, y))
        if (
            found.shape != np.shape(y)
            or found.dtype.kind not in "biuf"
            or np.isnan(found.astype(np.float64)).any()
        ):
            value = f"a metric that returned {f'shape {found.shape}' if found.ndim else show(found[()])}"
            raise InvalidInput(
                value, f"a metric must score each of {len(y)} rows by a number", _BY_ROW
            )
        train_value = Fraction(int(levels(found.astype(np.float64)).sum()), GRID * len(found))
        return self.holdout.check_like(train_value, phi, (_few(X), _few(y))).value

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self.holdout.__reduce_ex__(protocol)

    def __copy__(self) -> HoldoutScorer:
        return self

    def __deepcopy__(self, memo: Any) -> HoldoutScorer:
        return self

    def __repr__(self) -> str:
        return f"HoldoutScorer({self.holdout!r})"


def expect_flat(targets: Any) -> None:
    """Refuse targets that are not one for each row: a column of them would be compared with each prediction."""
    shape = np.shape(targets)
    if len(shape) != 1 or not shape[0]:
        rule = "targets must be flat, one for each row, and at least one"
        raise InvalidInput(
            f"targets of shape {shape}", rule, 'Pass y.ravel(), or one column: frame["y"].'
        )


def _few(part: Any) -> Any:
    return part.iloc[:_FEW] if hasattr(part, "iloc") else part[:_FEW]


class WholeSplit:
    """For `cv=`: one split that trains on all rows and hands the same rows to the scorer, since the holdout validates.

    Only `holdout.scorer()` may score with it: `scoring="accuracy"` would report the accuracy on the training rows.
    """

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:  # noqa: N803, ARG002
        """All rows, twice."""
        rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
        yield rows, rows

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: N803, ARG002
        """One."""
        return 1

    def __repr__(self) -> str:
        return "WholeSplit()"
