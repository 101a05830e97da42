"""Lines of numbers, one for each unit: their norms, and what they are on a lattice; on either device."""

from __future__ import annotations

from typing import Any

from sordino.learn.torch_extra import torch

__all__ = ["norms_of", "whole_multiples"]


def norms_of(lines: Any) -> Any:
    """The norm of each line, in float64."""
    if lines.device.type == "cuda":
        from sordino.learn.gpu_products import line_norms_on_gpu

        return line_norms_on_gpu(lines)
    return torch.linalg.vector_norm(lines, dim=1, dtype=torch.float64)


def whole_multiples(numbers: Any, factor: Any) -> Any:
    """round(numbers * factor) in float64; zero where a unit's factor is zero, whatever its numbers are."""
    if numbers.device.type == "cuda":
        from sordino.learn.gpu_lattice import whole_multiples_on_gpu

        return whole_multiples_on_gpu(numbers, factor, torch.float64)
    lines = factor.reshape(-1, *[1] * (numbers.dim() - 1))
    rounded = (numbers.double() * lines).round_()
    dropped = lines == 0
    if bool(dropped.any()):
        rounded.masked_fill_(dropped, 0.0)
    return rounded
