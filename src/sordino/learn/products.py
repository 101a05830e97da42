"""Gradients of weights, multiplied out for each unit in float32, and their sums in whole numbers (step.md, *Products*).

How well float32 multiplies does not matter to the guarantee: the matrix that is measured is the matrix that is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sordino.learn.layers import Rows
from sordino.learn.torch_extra import torch

__all__ = ["PRODUCT_STEPS", "Product", "is_multiplied_out", "kept_for_product"]

PRODUCT_STEPS = 2**20
"""The clipping norm in steps of the lattice of products: coarser than that of sums,
so that float32 adds a few exactly.
"""

_AT_ONCE = 2**24 // PRODUCT_STEPS
_LEAST_SQUARED = 2.0**-60
_FEWEST_ROWS = 16


def is_multiplied_out(piece: Rows, per_unit: int) -> bool:
    """Whether a unit's matrix is made, or only sums of all units: by what is less work, as measured."""
    length = piece.length * per_unit
    if length == 1:
        return False
    if piece.out.device.type == "cuda":
        in_halves = (
            length >= _FEWEST_ROWS and piece.out.dtype == torch.float32 and _is_tf32_allowed()
        )
        return piece.patches is not None or in_halves
    rows = 10 * length * (piece.width + piece.height) * (length + 30)
    return length >= 12 or rows >= piece.width * piece.height * (35 - 3 * length)


def _is_tf32_allowed() -> bool:
    """Whether the user lets PyTorch multiply matrices with 11 bits."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32)
    except RuntimeError:  # it was set by the newer name
        return bool(torch.backends.cuda.matmul.fp32_precision == "tf32")


def kept_for_product(piece: Rows, per_unit: int) -> Rows:
    """What is kept of rows whose matrices are made: on a GPU those of Linear layers, in half precision."""
    if piece.out.device.type != "cuda" or piece.patches is not None:
        return piece
    from sordino.learn.gpu_products import in_halves

    return in_halves(piece, per_unit)


def _by_kernel(piece: Rows) -> bool:
    return piece.scales is not None or (
        piece.out.device.type == "cuda" and piece.groups == 1 and piece.patches is not None
    )


class Product:
    """The matrices of one piece: kept here, or on a GPU made by one kernel when they
    are measured and again when summed.
    """

    def __init__(self, piece: Rows, by_unit: Callable[[Any], Any]) -> None:
        self.piece = piece
        self._kernel: Any = None
        if _by_kernel(piece):
            from sordino.learn.gpu_products import GpuProduct, GpuRowProduct

            self._kernel = GpuProduct(piece) if piece.scales is None else GpuRowProduct(piece)
            return
        into, out = by_unit(piece.into_rows(piece.into)), by_unit(piece.out_rows(piece.out))
        self._made = (out.transpose(2, 3) @ into).float()

    @staticmethod
    def numbers(piece: Rows) -> int:
        """How many numbers are kept for each unit."""
        return 0 if _by_kernel(piece) else int(piece.parameter.numel())

    def norms(self, units: int) -> Any:
        """The norm of each unit's matrix in float64, rounded up."""
        if self._kernel is not None:
            return self._kernel.norms(units) * (1 + 2.0**-30)
        lines = torch.linalg.vector_norm(self._made, dim=3).double().flatten(1)
        error = (self._made.shape[3] + 16) * 2.0**-24
        return torch.linalg.vector_norm(lines, dim=1) * (1 + error) + _LEAST_SQUARED * math.sqrt(
            self._made[0].numel()
        )

    def add(self, total: Any, factor: Any, scale: int) -> None:
        """Add `scale` times round(matrix * factor of its unit) to the int64 `total`; zero where the factor is."""
        piece = self.piece
        if piece.scales is not None:
            self._kernel.add(total, factor, scale)
            return
        shape = piece.groups, piece.height, piece.width
        if self._kernel is not None:
            sums = torch.zeros(shape, dtype=torch.int64, device=total.device)
            self._kernel.add(sums, factor.float())
        else:
            whole = self._made.mul_(factor.float().reshape(-1, 1, 1, 1)).round_()
            dropped = factor == 0
            if whole.device.type == "cuda" or bool(dropped.any()):
                whole.masked_fill_(dropped.reshape(-1, 1, 1, 1), 0.0)
            # whole numbers below 2^24: exact in any order
            parts = [part.sum(0) for part in whole.split(_AT_ONCE)]
            sums = torch.stack(parts).long().sum(0) if len(parts) > 1 else parts[0].long()
        total += piece.shaped(sums * scale)
