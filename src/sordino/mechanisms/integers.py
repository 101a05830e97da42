"""Integers of any size in arrays: int64 where all fit, Python integers otherwise, and never wrapped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["INT64", "fits_int64", "narrow", "span"]

INT64 = 2**63


def fits_int64(value: int) -> bool:
    """Whether int64 can hold it."""
    return -INT64 <= value < INT64


def narrow(values: list[int]) -> npt.NDArray[Any]:
    """The integers, of which there is at least one, as int64 if all of them fit."""
    return np.array(
        values, np.int64 if fits_int64(min(values)) and fits_int64(max(values)) else object
    )


def span(values: npt.NDArray[Any]) -> int:
    """The largest magnitude, rounded up to a Python integer."""
    low: int = math.ceil(abs(values.min().item()))
    high: int = math.ceil(abs(values.max().item()))
    return max(low, high)
