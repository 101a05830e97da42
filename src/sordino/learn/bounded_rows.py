"""Rows of numbers within declared bounds, as integer vectors of bounded norm, and their noisy sums.

Lemma. `on_lattice(rows, bound)` gives integer vectors, each a function of its row alone, of L2 norm at most bound *
SCALE. Entries are multiplied by SCALE and cut off towards zero. Squares of whole numbers add up exactly in any order,
so that no other row can change a norm. A vector longer than bound * SCALE * (1 - 2^-40) is shortened to that in
floats, which errs by less than 2^-45, and cut off again, which lengthens no vector.

Sums and matrix products in floats may add in an order that depends on other rows: NumPy adds up one row in another
order than two, where columns lie together in memory. Here and in the estimators they are of whole numbers below 2^53,
exact in every order; all else is done entry by entry, which does not depend on where an entry stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sordino.errors import InvalidInput
from sordino.mechanisms.gaussian import Gaussian
from sordino.privacy.exact import show

__all__ = [
    "SCALE",
    "Box",
    "exact_scores",
    "noisy_moments",
    "noisy_sums",
    "on_lattice",
    "shortened",
]

SCALE = 2**12
Floats = npt.NDArray[np.float64]

_ROWS_AT_A_TIME = 2**16
_NARROWEST, _WIDEST = 1e-150, 1e150


@dataclass(frozen=True, eq=False)
class Box:
    """Declared lower and upper limits of each feature."""

    low: Floats
    high: Floats

    @staticmethod
    def of(bounds: Any, features: int) -> Box:
        """From a pair of numbers, or of arrays with one number for each feature."""
        if bounds is None:
            rule = "limits of the features are declared, never taken from the data"
            raise InvalidInput(
                "no bounds",
                rule,
                "Pass bounds=(0, 1), or two arrays with one number for each feature.",
            )
        try:
            low, high = (np.broadcast_to(np.asarray(side, float), (features,)) for side in bounds)
        except (TypeError, ValueError):
            rule = f"they are a lower and an upper limit, for all or for each of the {features} features"
            raise InvalidInput(f"bounds={show(bounds)}", rule, "Pass bounds=(0, 1).") from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            rule = "every lower limit must be finite and below its upper limit"
            raise InvalidInput(f"bounds={show(bounds)}", rule, "Pass bounds=(0, 1).")
        with np.errstate(all="ignore"):
            widths = high - low
        if not ((widths > _NARROWEST).all() and (widths < _WIDEST).all()):
            rule = f"limits must be from {_NARROWEST:g} to {_WIDEST:g} apart"
            raise InvalidInput(f"bounds={show(bounds)}", rule, "Use other units for the features.")
        return Box(low, high)

    def unit(self, rows: Any) -> Floats:
        """The rows clamped and scaled to [0, 1]; what is no number becomes the middle."""
        with np.errstate(all="ignore"):
            scaled = (np.asarray(rows, float) - self.low) / (self.high - self.low)
        return np.asarray(np.clip(np.where(np.isnan(scaled), 0.5, scaled), 0.0, 1.0))


def on_lattice(rows: Floats, bound: float) -> Floats:
    """The rows as whole numbers (in floats) of norm at most bound * SCALE; longer ones are scaled down first."""
    whole = np.trunc(rows * float(SCALE))
    norms, most = np.sqrt(np.einsum("ij,ij->i", whole, whole)), bound * SCALE * (1 - 2.0**-40)
    factor = np.where(norms > most, most / np.maximum(norms, 1.0), 1.0)
    return np.asarray(np.trunc(whole * factor[:, None]))


def shortened(rows: Floats, norm: float) -> Floats:
    """The rows, each of norm at most `norm`, as multiples of 1 / SCALE: a function of the row alone."""
    return on_lattice(rows, norm) / SCALE


def exact_scores(whole: Floats, weights: Floats, most: float) -> Floats:
    """Products of whole rows, whose sums of magnitudes are at most `most`, with public weights on a lattice of their
    own.

    Each is exact, whatever the order of addition: a row's scores are functions of the row and the weights alone.
    Rounding the weights moves a score by at most `most`^2 * 2^-51 times the largest sum of a class's weights.
    """
    largest = float(np.abs(weights).sum(1).max())
    step = 2.0 ** max(-1000, math.ceil(math.log2(max(largest, 1e-300) * most)) - 51)
    return np.asarray(whole @ np.rint(weights / step).T * step)


def noisy_sums(rows: Floats, groups: Any, count: int, bound: float, mu: Fraction) -> Floats:
    """For each of `count` groups the sum of its rows on the lattice, with noise: one line each.

    Privacy: exactly mu-Gaussian-private for one row more or less, as a row is in one group and adds nothing elsewhere.
    """
    total = np.zeros((count, rows.shape[1]), np.int64)
    np.add.at(total, groups, on_lattice(rows, bound).astype(np.int64))
    noisy = _released(total.reshape(-1), Fraction(bound) * SCALE, mu) / SCALE
    return noisy.reshape(total.shape)


def noisy_moments(rows: Floats, bound: float, mu: Fraction) -> Floats:
    """The matrix of second moments, sum of row (outer) row, with symmetric noise; mu-Gaussian-private as above.

    Privacy: one row adds z (outer) z, whose upper triangle has L2 norm at most |z|^2, in whole numbers. Products and
    their sums over this many rows stay below 2^53, so that they are exact in floats.
    """
    parts, width = _parts(on_lattice(rows, bound), (bound * SCALE) ** 2), rows.shape[1]
    total = sum(
        (np.rint(part.T @ part).astype(np.int64) for part in parts),
        np.zeros((width, width), np.int64),
    )
    at = np.triu_indices(width)
    noisy = np.zeros((width, width))
    noisy[at] = _released(total[at], (Fraction(bound) * SCALE) ** 2, mu) / SCALE**2
    return noisy + np.triu(noisy, 1).T


def _parts(whole: Floats, most: float) -> list[Floats]:
    """As many rows at a time as can be added up below 2^53, where each adds at most `most`, a public number."""
    fit = int(2.0**53 / most) - 1
    if fit < 1:
        rule = "sums would leave what floats hold exactly"
        raise InvalidInput("rows of this norm", rule, "Pass fewer columns, or a smaller row_norm.")
    size = min(fit, _ROWS_AT_A_TIME)
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _released(total: npt.NDArray[np.int64], sensitivity: Fraction, mu: Fraction) -> Floats:
    released = Gaussian._for(sensitivity, sensitivity / mu, 1).release(np.ascontiguousarray(total))
    return np.asarray(released, float)
