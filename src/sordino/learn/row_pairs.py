"""Gradients that are one outer product for each unit, g (a, 1)': of a Linear layer's weight and bias, on flat inputs.

No matrix of a unit is made. Rows are put on lattices in the model's own precision and multiplied for all units at
once, exactly, in float64 (step.md, *Pairs*).
"""

from __future__ import annotations

import math
from typing import Any

from sordino.learn.lattice import norms_of
from sordino.learn.layers import RowPair
from sordino.learn.torch_extra import torch

__all__ = ["MOST_EXPONENT", "RowPairs"]

MOST_EXPONENT = 100
"""Of the power of two by which an input is divided: what float64 loses of a gradient's squares stays nothing then."""

_LARGEST_FACTOR = 2.0**100


class RowPairs:
    """All pairs of some units, measured together: one line for each pair, one column for each unit.

    `limits` has three lines with a number for each pair: the greatest norm that an input may have on its lattice, how
    much rounding can add to it, and the constant beside the input, 1 where there is a bias.
    """

    def __init__(self, pieces: list[RowPair], limits: Any) -> None:
        self.pieces = pieces
        most, half, constant = limits[:, :, None]
        into = torch.hypot(torch.stack([norms_of(piece.into) for piece in pieces]), constant)
        ratio = into * (1 + 2.0**-30) / most
        exponents = torch.frexp(ratio).exponent.clamp(-MOST_EXPONENT, MOST_EXPONENT)
        self.scales = _power_of_two(exponents)
        self._inverses = _power_of_two(-exponents)
        fits = ratio <= self.scales  # also false where it is no number
        lengths = torch.where(fits, ratio * most / self.scales + half, math.inf)
        out = torch.stack([norms_of(piece.out) for piece in pieces])
        self.norms = lengths * out * self.scales * (1 + 2.0**-30)
        """Of each unit's gradient, with its input as it is on the lattice; rounded up."""

    def add(self, sums: dict[int, Any], factor: Any, good: Any, *, none_dropped: bool) -> None:
        """Add each unit's gradient times its factor, in whole numbers; nothing of units that are not good."""
        factors = factor * self.scales
        factors = torch.where(factors < _LARGEST_FACTOR, factors, 0.0)
        inverses = torch.where(good, self._inverses, 0.0)
        for piece, mine, inverse in zip(self.pieces, factors, inverses, strict=True):
            width = piece.into.shape[1]
            into = _rounded(piece.into, inverse)
            out = _rounded(piece.out, mine)
            if not none_dropped:
                dropped = ~good[:, None]
                into.masked_fill_(dropped, 0.0)
                out.masked_fill_(dropped, 0.0)
            if piece.bias is None:
                sums[id(piece.parameter)] += (out.double().t() @ into.double()).long()
                continue
            wide = into.new_empty(len(into), width + 1, dtype=torch.float64)
            wide[:, :width] = into
            wide[:, width] = inverse.round()
            whole = (out.double().t() @ wide).long()
            sums[id(piece.parameter)] += whole[:, :width]
            sums[id(piece.bias)] += whole[:, width]


def _power_of_two(exponents: Any) -> Any:
    """2 to these int32 powers, exactly, as float32."""
    return ((exponents + 127) << 23).view(torch.float32)


def _rounded(rows: Any, factors: Any) -> Any:
    """Each row times its factor, rounded to whole numbers."""
    precise = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
    return (precise * factors.to(precise.dtype)[:, None]).round_()
