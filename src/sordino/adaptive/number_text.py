"""Shares and half-widths for the eye: few digits, enough for the width; widths are rounded up."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal

__all__ = ["places", "rounded", "rounded_up"]

_LEAST, _MOST = 4, 8


def places(width: float) -> int:
    """How many decimals show a value that is known up to `width`: three digits of the width, from four to eight."""
    return min(_MOST, max(_LEAST, 2 - math.floor(math.log10(width)))) if width > 0 else _LEAST


def rounded(value: float, decimals: int = _LEAST) -> str:
    """The nearest value with this many decimals.

    Example:
        >>> rounded(0.29917176), rounded(0.9), rounded(1.0)
        ('0.2992', '0.9', '1')
    """
    return _plain(f"{value:.{decimals}f}")


def rounded_up(value: float, decimals: int = _LEAST) -> str:
    """The next value with this many decimals that is not smaller.

    Example:
        >>> rounded_up(0.06950643), rounded_up(0.5)
        ('0.0696', '0.5')
    """
    return _plain(f"{Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING):f}")


def _plain(text: str) -> str:
    return text.rstrip("0").rstrip(".")
