"""What the estimators in scikit-learn's interface share: a budget, declared bounds, payment, and a statement."""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sordino.accounting.charge import Charge
from sordino.errors import InvalidInput
from sordino.learn.bounded_rows import SCALE, Box, Floats
from sordino.learn.payment import expect_same_promise
from sordino.ledger.chain import digest
from sordino.ledger.ledger import Ledger
from sordino.ledger.receipt import Receipt, Request
from sordino.privacy.exact import four_digits, open_unit, positive, show
from sordino.privacy.loss import GaussianLoss, largest_mu
from sordino.privacy.neighbors import Neighbors

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClusterMixin,
        RegressorMixin,
        TransformerMixin,
    )
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
    "matrix_of",
    "numbers_of",
    "origin_of",
    "positive_number",
    "rational_root",
    "row_norm_number",
    "row_norm_of",
    "shape_of",
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
        mu = largest_mu(
            positive("epsilon", self.epsilon).lower, open_unit("delta", self.delta).lower
        )
        rows = matrix_of(X)
        if rows.shape[1] < 1:
            rule = "it has 0 feature(s) while a minimum of 1 is required"
            raise InvalidInput("data without columns", rule, "Pass columns of numbers.")
        box = Box.of(self.bounds, rows.shape[1])
        self.n_features_in_ = rows.shape[1]
        self._remember_names(X)
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
            raise InvalidInput(
                f"ledger={show(self.ledger)}", "it must be a Ledger", "Pass session.ledger."
            )
        expect_same_promise(self.ledger, "example", Neighbors.ADD_REMOVE)
        request = Request(
            f"fit-{uuid.uuid4().hex}", self._what, f"epsilon {self.epsilon}, delta {self.delta}"
        )
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
        rows = matrix_of(X)
        if rows.shape[1] != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            rule = f"X has {rows.shape[1]} features, but {expected}"
            raise InvalidInput(
                f"data of shape {rows.shape}", rule, "Pass the columns that it was fitted with."
            )
        self._expect_names(X)
        return self._box.unit(rows)

    def _remember_names(self, X: Any) -> None:  # noqa: N803
        """The columns of a data frame, as scikit-learn keeps them."""
        if (names := _column_names(X)) is not None:
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _expect_names(self, X: Any) -> None:  # noqa: N803
        """Refuse a data frame whose columns are others, or in another order."""
        names, known = _column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != known.tolist():
            rule = "the feature names should match those that were passed during fit"
            hint = f"Pass the columns {show(known.tolist())}, in this order."
            raise InvalidInput(f"columns {show(names)}", rule, hint)


def _column_names(X: Any) -> list[str] | None:  # noqa: N803
    """Those of a data frame, if all are texts."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _not_fitted(name: str) -> Exception:
    text = f"This {name} instance is not fitted yet. Call 'fit' first."
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InvalidInput(name, "it is not fitted yet", "Call fit first.")
    error: Exception = NotFittedError(text)
    return error


def _numbers(given: Any) -> Floats:
    """As floats. A cell that is no number becomes NaN: a fit that one cell could stop would tell of it."""
    if hasattr(given, "toarray"):
        rule = "sparse input is not supported"
        raise InvalidInput(f"data of type {type(given).__name__}", rule, "Pass X.toarray().")
    # what NumPy would take for its type depends on single cells
    found = _listed(given) if isinstance(given, list | tuple) else np.asarray(given)
    if found.dtype.kind == "c":
        raise InvalidInput(
            f"data of type {found.dtype}", "Complex data not supported", "Pass real numbers."
        )
    if found.dtype.kind not in "Obiuf":
        hint = "Encode texts as numbers over a public list of categories."
        raise InvalidInput(f"data that are {_kind(found)}", "rows are numbers", hint)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would tell of one cell
        warnings.simplefilter("ignore")
        if found.dtype.kind == "O":
            found = np.asarray(np.frompyfunc(_number, 1, 1)(found))
        return np.asarray(found, float)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except Exception:  # whatever a cell raises
        return math.nan


def _listed(given: list[Any] | tuple[Any, ...]) -> Any:
    """Lists as an array of objects. As many columns as the first row has; a row of another length has no cells."""
    width = _length(given[0]) if given else None
    if width is None:
        return np.fromiter(given, object, len(given))
    cells = (cell for row in given for cell in (row if _length(row) == width else [None] * width))
    return np.fromiter(cells, object, len(given) * width).reshape(len(given), width)


def _length(row: Any) -> int | None:
    """How many cells a row has; None for what is none."""
    if isinstance(row, str | bytes | dict | set) or not hasattr(row, "__iter__"):
        return None
    try:
        return len(row)
    except Exception:  # a number in NumPy's clothes
        return None


def _kind(found: Any) -> str:
    """What an array holds; its type would tell how long the longest text is."""
    return {"U": "texts", "S": "bytes"}.get(found.dtype.kind, f"of type {found.dtype}")


def matrix_of(X: Any) -> Floats:  # noqa: N803
    """Rows of numbers."""
    rows = _numbers(X)
    if rows.ndim != 2:
        rule = f"Expected 2D array, got {rows.ndim}D array instead"
        raise InvalidInput(  # how many rows there are is secret
            f"{rows.ndim}D data", rule, "Reshape your data: one line for each row."
        )
    return rows


def _flat(found: Any, rows: int) -> Any:
    if found.ndim == 2 and found.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            _conversion(),
            stacklevel=4,
        )
        found = found[:, 0]
    if found.shape != (rows,):
        rule = "there must be one target for each row"
        raise InvalidInput(f"{found.ndim}D targets", rule, "Pass a flat array.")
    return found


def _given(y: Any) -> Any:
    if y is None:
        rule = "the estimator requires y to be passed, but the target y is None"
        raise InvalidInput("no targets", rule, "Pass one target for each row.")
    return y


def _conversion() -> type[Warning]:
    try:
        from sklearn.exceptions import DataConversionWarning
    except ImportError:
        return UserWarning
    found: type[Warning] = DataConversionWarning
    return found


def targets_of(y: Any, rows: int) -> Any:
    """One target for each row."""
    return _flat(_listed(y) if isinstance(_given(y), list | tuple) else np.asarray(y), rows)


def numbers_of(y: Any, rows: int) -> Floats:
    """One number for each row, NaN where there is none."""
    return np.asarray(_flat(_numbers(_given(y)), rows))


def shape_of(X: Any) -> tuple[int, int]:  # noqa: N803
    """How many rows and columns there are."""
    rows, columns = matrix_of(X).shape
    return rows, columns


def positive_number(name: str, value: Any) -> float:
    """A number above zero that was passed as a parameter."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.number)
        or not 0 < value < 1e100
    ):
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a number above zero", "Pass 1.0 or the like."
        )
    return float(value)


def row_norm_number(declared: Any) -> None:
    """Refuse a norm that is none, or below what the lattice of rows can tell from zero."""
    if declared is not None and positive_number("row_norm", declared) < 1 / SCALE:
        rule = f"rows are put on a lattice of step 1/{SCALE}, where nothing would be left of them"
        raise InvalidInput(
            f"row_norm={show(declared)}",
            rule,
            "Pass the norm of your longest rows, scaled to [0, 1].",
        )


def row_norm_of(declared: Any, longest: float) -> float:
    """The norm to which rows are shortened: what was declared, or that of the longest row of the box."""
    return longest if declared is None else min(float(declared), longest)


def origin_of(declared: Any, width: int) -> tuple[float, float]:
    """From where rows of the unit box are seen, a number for all features, and their norm from there at most.

    From the middle no row is farther than half of a diagonal; where rows are declared to be shorter than that, as those
    of one-hot columns are, from zero.
    """
    half = math.sqrt(width) / 2
    return (0.0, float(declared)) if declared is not None and declared < half else (0.5, half)


def whole_number(name: str, value: Any) -> int:
    """A whole number above zero that was passed as a parameter."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not 1 <= value <= 10**6
    ):
        raise InvalidInput(
            f"{name}={show(value)}", "it must be a whole number above zero", "Pass 8 or so."
        )
    return int(value)


def classes_of(classes: Any, y: Any) -> tuple[Any, Any]:
    """The declared classes, and the place of each target among them; one that is none of them counts as the first."""
    if classes is None:
        rule = "which classes there are is declared, never taken from the data"
        raise InvalidInput("no classes", rule, "Pass classes=[0, 1].")
    try:
        listed = np.asarray(list(classes) if isinstance(classes, set | frozenset) else classes)
        known = np.unique(listed)
    except (TypeError, ValueError):  # None beside numbers, objects, lines of different lengths
        known = listed = np.empty(0)
    if len(known) < 2 or listed.ndim != 1 or bool((known != known).any()):
        rule = "they are at least two numbers, or at least two texts"
        raise InvalidInput(f"classes={show(classes)}", rule, "Pass classes=[0, 1].")
    if y.dtype.kind in "biuf" and known.dtype.kind in "biuf":
        places = np.minimum(np.searchsorted(known, y), len(known) - 1)
        return known, np.where(known[places] == y, places, 0)
    if y.dtype.kind != "O" and (y.dtype.kind in "biuf") != (known.dtype.kind in "biuf"):
        rule = f"targets that are {_kind(y)} are never one of them"
        raise InvalidInput(
            f"classes={show(classes)}", rule, "Pass the classes as they stand in the data."
        )
    index = {value: place for place, value in enumerate(known.tolist())}
    return known, np.array([_place(index, value) for value in y.tolist()], int)


def _place(index: dict[Any, int], value: Any) -> int:
    try:
        return index.get(value, 0)
    except Exception:  # a list, which no class is; or whatever a target raises
        return 0


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
