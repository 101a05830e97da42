"""What the estimators in scikit-learn's interface share: a budget, declared bounds, payment, and a statement."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import Box, Floats
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt, Request
from sordino.privacy.exact import four_digits, open_unit, positive, show
from sordino.privacy.loss import GaussianLoss, largest_mu

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin
except ImportError:  # scikit-learn is optional: without it they are plain classes
    BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin = (
        type(name, (), {}) for name in ("Base", "Classifier", "Cluster", "Regressor", "Transformer")
    )

__all__ = [
    "ClassifierMixin",
    "ClusterMixin",
    "PrivateEstimator",
    "RegressorMixin",
    "TransformerMixin",
    "classes_of",
    "numbers_of",
    "positive_number",
    "rational_root",
    "rows_in",
    "shared",
    "targets_of",
    "whole_number",
]


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is (epsilon, delta)-differentially private for adding or removing one row.

    `bounds` are the limits of the features; values beyond them are clamped, and what is no number becomes the middle:
    nothing about single rows is told. With a `ledger` each fit is charged there before data are read.
    """

    _what: ClassVar[str] = "fit a model"

    epsilon: Any
    delta: Any
    bounds: Any
    ledger: Ledger | None

    def _expect(self) -> None:
        """Refuse parameters of its own that cannot be, before anything is charged."""

    @contextmanager
    def _fitting(self, X: Any) -> Iterator[tuple[Floats, Fraction]]:  # noqa: N803
        """The rows, clamped and scaled to [0, 1], and the mu that may be spent; the fit is charged, or forfeited."""
        self._expect()
        mu = largest_mu(positive("epsilon", self.epsilon).lower, open_unit("delta", self.delta).lower)
        rows = _matrix(X)
        if rows.shape[0] < 1 or rows.shape[1] < 1:
            raise InvalidInput(f"data of shape {rows.shape}", "there is nothing to learn from", "Pass rows and columns.")
        box = Box.of(self.bounds, rows.shape[1])
        self.n_features_in_ = rows.shape[1]
        self._box = box
        self.receipt_: Receipt | None = self._paid(mu)
        self.privacy_ = (
            f"({four_digits(positive('epsilon', self.epsilon).upper)}, {show(self.delta)})-differentially private for "
            f"adding or removing one row, by exact Gaussian noise (mu {four_digits(mu)})"
        )
        try:
            yield box.unit(rows), mu
        except BaseException:
            if self.ledger is not None and self.receipt_ is not None:
                with suppress(Exception):
                    self.ledger.forfeit(self.receipt_)
            raise

    def _paid(self, mu: Fraction) -> Receipt | None:
        if self.ledger is None:
            return None
        if not isinstance(self.ledger, Ledger):
            raise InvalidInput(f"ledger={show(self.ledger)}", "it must be a Ledger", "Pass session.ledger.")
        request = Request(f"fit-{uuid.uuid4().hex}", self._what, f"epsilon {self.epsilon}, delta {self.delta}")
        return self.ledger.charge(Charge.of(GaussianLoss(mu)), request).receipt

    def _finish(self, *results: Floats) -> None:
        """The answer of the ledger: a digest of what was learned."""
        if self.ledger is not None and self.receipt_ is not None:
            kept = b"".join(np.ascontiguousarray(result).tobytes() for result in results)
            self.ledger.store(self.receipt_, digest(kept).encode())

    def _rows(self, X: Any) -> Floats:  # noqa: N803
        """Rows to predict for, in the form that was learned from."""
        if not hasattr(self, "n_features_in_"):
            raise _not_fitted(type(self).__name__)
        rows = _matrix(X)
        if rows.shape[1] != self.n_features_in_:
            rule = f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
            raise InvalidInput(f"data of shape {rows.shape}", rule, "Pass the columns that it was fitted with.")
        return self._box.unit(rows)


def _not_fitted(name: str) -> Exception:
    text = f"This {name} instance is not fitted yet. Call 'fit' first."
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InvalidInput(name, text, "Call fit.")
    error: Exception = NotFittedError(text)
    return error


def _matrix(X: Any) -> Floats:  # noqa: N803
    try:
        rows = np.asarray(X, float)
    except (TypeError, ValueError):
        hint = "Encode texts as numbers over a public list of categories."
        raise InvalidInput(f"data of type {type(X).__name__}", "rows are numbers", hint) from None
    if rows.ndim != 2:
        rule = f"Expected 2D array, got {rows.ndim}D array instead"
        raise InvalidInput(f"data of shape {rows.shape}", rule, "Reshape your data: one line for each row.")
    return rows


def targets_of(y: Any, rows: int) -> Any:
    """One target for each row."""
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (rows,):
        rule = f"there must be one target for each of the {rows} rows"
        raise InvalidInput(f"targets of shape {found.shape}", rule, "Pass a flat array.")
    return found


def numbers_of(y: Any, rows: int) -> Floats:
    """One number for each row."""
    try:
        return np.asarray(targets_of(y, rows), float)
    except (TypeError, ValueError):
        raise InvalidInput(f"targets of type {type(y).__name__}", "targets are numbers", "Pass a flat array.") from None


def rows_in(X: Any) -> int:  # noqa: N803
    """How many rows there are."""
    return len(_matrix(X))


def positive_number(name: str, value: Any) -> float:
    """A number above zero that was passed as a parameter."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < 1e100:
        raise InvalidInput(f"{name}={show(value)}", "it must be a number above zero", "Pass 1.0 or the like.")
    return float(value)


def whole_number(name: str, value: Any) -> int:
    """A whole number above zero that was passed as a parameter."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= 10**6:
        raise InvalidInput(f"{name}={show(value)}", "it must be a whole number above zero", "Pass 8 or so.")
    return int(value)


def classes_of(classes: Any, y: Any) -> tuple[Any, Any]:
    """The declared classes, and the place of each target among them; one that is none of them counts as the first."""
    if classes is None:
        rule = "which classes there are is declared, never taken from the data"
        raise InvalidInput("no classes", rule, "Pass classes=[0, 1].")
    known = np.unique(np.asarray(classes))
    if len(known) < 2:
        raise InvalidInput(f"classes={show(classes)}", "there must be at least two", "Pass classes=[0, 1].")
    try:
        places = np.minimum(np.searchsorted(known, y), len(known) - 1)
    except TypeError:
        rule = "targets must be of the type of the declared classes"
        raise InvalidInput(f"classes={show(classes)}", rule, "Pass the classes as they stand in the data.") from None
    return known, np.where(known[places] == y, places, 0)


def rational_root(x: Fraction) -> Fraction:
    """A fraction just below the root: what is spent by it is at most x when squared."""
    found = Fraction(math.isqrt(x.numerator * x.denominator * 4**64), x.denominator * 2**64)
    if found**2 > x:
        raise ArithmeticError("rounded up")
    return found


def shared(mu: Fraction, shares: list[Fraction]) -> list[Fraction]:
    """Parts of mu whose squares are these shares of its square, together at most 1; rounded down."""
    if sum(shares) > 1:
        raise ArithmeticError("more than all is shared")
    return [rational_root(mu**2 * share) for share in shares]
