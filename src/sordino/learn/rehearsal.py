"""What a model must not do, seen on made-up examples: change as they pass, or use weights where nobody looks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.clipped_sums import ClippedSums, captured_calls
from sordino.learn.layers import Call, Piece, PlainVector, RowPair, Rows, TokenRows
from sordino.learn.torch_extra import torch

__all__ = ["expect_whole_gradients", "unchanged"]

_APART = 0.1
"""Two gradients that differ by more than this share of their size are not the same, rounded in half precision."""

_FAINT = 2.0**-12
"""Nor are those that differ by more than this share of the whole gradient: what is zero but for rounding, such as that
of the bias of an attention's keys, agrees with nothing.
"""

_SOME = 8
"""The first few examples are looked at: Dropout can hide what happens in one."""


@contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """Refuse a model that is another after the block: what examples changed would be published without noise."""
    before = {name: (part, _bytes(part)) for name, part in _state(model)}
    yield
    for name, part in _state(model):
        known = before.get(name)
        if known is None or known[0] is not part or not torch.equal(known[1], _bytes(part)):
            rule = "examples that pass through the model change it, without noise"
            raise InvalidInput(
                f"{name!r} of the model", rule, "Leave out running means and the like."
            )


def _state(model: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers of a model, also those that are not stored with it."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


def _bytes(numbers: Any) -> Any:
    """A copy of numbers as bytes: NaN equals itself then."""
    return numbers.detach().clone().contiguous().reshape(-1).view(torch.uint8)


def expect_whole_gradients(sums: ClippedSums, losses: Callable[[Any], Any]) -> None:
    """Refuse a model with a weight that is also used outside of its layer's call, or under no_grad.

    Its gradient would not be that of the loss: as private as any, but of no use.
    """

    def by_autograd() -> list[Any]:
        with _same_randomness(), torch.enable_grad():
            return list(
                torch.autograd.grad(
                    losses(sums.model)[:_SOME].sum(),
                    list(sums.parameters.values()),
                    allow_unused=True,
                )
            )

    with _same_randomness():
        calls, _ = captured_calls(sums.model, sums.layers, sums.parameters, losses)
    found = {key: torch.zeros_like(part).double() for key, part in sums.parameters.items()}
    with torch.no_grad():
        for call in calls:
            for piece in sums.pieces_of(
                Call(call.layer, call.into[:_SOME], call.out_gradient[:_SOME])
            ):
                for parameter, gradient in _gradients(piece):
                    found[id(parameter)] += gradient
    wanted = dict(zip(sums.parameters, by_autograd(), strict=True))
    whole = math.hypot(*(float(one.double().norm()) for one in wanted.values() if one is not None))
    wrong = [key for key, gradient in wanted.items() if _differ(found[key], gradient, whole)]
    if not wrong or any(
        _differ(
            wanted[key], gradient, whole
        )  # a model with randomness of its own cannot be checked
        for key, gradient in zip(sums.parameters, by_autograd(), strict=True)
    ):
        return
    name = min(sums.names[key] for key in wrong)
    rule = "it is used outside of its layer's call, or where no gradient is taken"
    hint = "Use a weight only by calling its layer, or freeze it by requires_grad_(False)."
    raise InvalidInput(f"parameter {name!r}", rule, hint)


@contextmanager
def _same_randomness() -> Iterator[None]:
    """Dropout and the like draw the same inside each such block; what is drawn outside is not touched."""
    before, on_devices = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    try:
        torch.manual_seed(0)
        yield
    finally:
        torch.set_rng_state(before)
        torch.cuda.set_rng_state_all(on_devices)


def _differ(one: Any, other: Any, whole: float) -> bool:
    one = torch.zeros(1) if one is None else one
    other = torch.zeros_like(one) if other is None else other
    one, other = one.double().to(other.device), other.double()
    apart = float((one - other).norm())
    return apart > max(_APART * max(float(one.norm()), float(other.norm())), _FAINT * whole)


def _gradients(piece: Piece) -> list[tuple[Any, Any]]:
    """The parameters of a piece, each with its gradient of all examples together."""
    match piece:
        case Rows():
            into, out = piece.into_rows(piece.into).double(), piece.out_rows(piece.out).double()
            made = torch.einsum("ngtd,ngtp->gdp", out, into)
            return [(piece.parameter, piece.shaped(made))]
        case RowPair():
            made = piece.out.double().t() @ piece.into.double()
            biases = [] if piece.bias is None else [(piece.bias, piece.out.double().sum(0))]
            return [(piece.parameter, made), *biases]
        case TokenRows():
            out = piece.out.double()
            table = torch.zeros(piece.parameter.shape, dtype=torch.float64, device=out.device)
            table.index_add_(0, piece.tokens.reshape(-1), out.reshape(-1, out.shape[2]))
            return [(piece.parameter, table)]
        case PlainVector():
            made = piece.vectors.double().sum(0)
            return [(piece.parameter, made.reshape(piece.parameter.shape))]
