"""What a model must not do, seen on made-up examples: change as they pass, mix them, use weights where nobody looks."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.clipped_sums import ClippedSums, captured_calls
from sordino.learn.layers import Call, Piece, PlainVector, RowPair, Rows, TokenRows
from sordino.learn.torch_extra import torch

__all__ = ["expect_examples_apart", "expect_whole_gradients", "unchanged"]

_APART = 0.1
"""Two gradients that differ by more than this share of their size are not the same, rounded in half precision."""

_FAINT = 2.0**-12
"""Nor are those that differ by more than this share of the whole gradient: what is zero but for rounding, such as that
of the bias of an attention's keys, agrees with nothing.
"""

_SOME = 8
"""The first few examples are looked at: Dropout can hide what happens in one."""

_CHANCE = 32
"""What differs by more than so many times what it differs by from run to run, differs for a reason."""

_DEEPEST = 4
"""Lists of lists that a module keeps are looked into so far."""

_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training"}
"""Attributes of a module that PyTorch keeps; what is in them is looked at by name, or says nothing of examples."""


@contextmanager
def unchanged(model: Any, loss: Any = None) -> Iterator[None]:
    """Refuse a model, or a loss that is a module, if it is another after the block: what examples changed would be
    published without noise, or would reach what others add.
    """
    parts = [("the model", model)]
    if isinstance(loss, torch.nn.Module):
        parts.append(("the loss", loss))
    before = [_state(part) for _, part in parts]
    yield
    for (what, part), known in zip(parts, before, strict=True):
        now = _state(part)
        changed = [name for name in {**known, **now} if known.get(name) != now.get(name)]
        if changed:
            rule = f"examples that pass through {what} change it, without noise"
            hint = "Leave out running means, counters, activations that are kept, and the like."
            raise InvalidInput(f"{changed[0]!r} of {what}", rule, hint)


def _state(model: Any) -> dict[str, Any]:
    """What a model keeps, by name: parameters and buffers, also those that are not stored with it, and the numbers
    and texts among the attributes of its modules.
    """
    found = dict[str, Any]()
    for some in (
        model.named_parameters(remove_duplicate=False),
        model.named_buffers(remove_duplicate=False),
    ):
        found |= {name: (id(part), _print_of(part)) for name, part in some}
    for place, module in model.named_modules():
        for key, value in vars(module).items():
            if key not in _OWN and not key.endswith("_hooks"):
                found[f"{place}.{key}".lstrip(".")] = _print_of(value)
    return found


def _print_of(value: Any, depth: int = _DEEPEST) -> Any:
    """What tells two values of an attribute apart, if it is numbers, texts, or lists of such; else its type."""
    if isinstance(value, torch.Tensor):
        return _Numbers(value) if value.layout is torch.strided else str(value.layout)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value)
    if depth and isinstance(value, Mapping):
        return [(repr(key), _print_of(each, depth - 1)) for key, each in list(value.items())]
    if depth and isinstance(value, list | tuple | deque):
        return [_print_of(each, depth - 1) for each in list(value)]
    return type(value).__name__


class _Numbers:
    """A copy of a tensor, equal to what has the same bytes: NaN equals itself then."""

    def __init__(self, numbers: Any) -> None:
        self._form = numbers.shape, numbers.dtype, numbers.device
        self._bytes = numbers.detach().clone().contiguous().reshape(-1).view(torch.uint8)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Numbers)
            and self._form == other._form
            and bool(torch.equal(self._bytes, other._bytes))
        )

    __hash__ = None  # type: ignore[assignment]


def expect_examples_apart(
    sums: ClippedSums, losses: Callable[[Any, Any], Any], batch: Any, others: Any
) -> None:
    """Refuse a model or loss in which an example's loss, or what its gradient is made of, depends on other examples.

    `batch` and `others` are two pairs of inputs and targets, different in every row. Each row has a code, and no code
    is a part of another: so for any two rows there is a turn in which one is changed and the other is not. What holds
    of a row that is not changed must not change by a bit, wherever the gradient flows.
    """
    by_chance = False

    def seen(x: Any, y: Any) -> list[Any]:
        nonlocal by_chance
        with _same_randomness() as drawn:
            calls, each = captured_calls(sums.model, sums.layers, sums.parameters, losses(x, y))
            by_chance = by_chance or drawn()
        return [each, *(part for call in calls for part in (call.into, call.out_gradient))]

    count = len(batch[0])
    if count < 2:
        return
    whole, chance = seen(*batch), None
    for turn in _turns(count):
        kept = torch.as_tensor(~turn)
        changed = torch.as_tensor(turn)
        mixed = [
            _with_rows(ours, theirs, changed) for ours, theirs in zip(batch, others, strict=True)
        ]
        apart = _apart(whole, seen(*mixed), kept)
        if not any(apart):
            continue
        if chance is None:
            chance = _apart(whole, seen(*batch), torch.ones(count, dtype=torch.bool))
        if len(chance) != len(apart) or any(
            off > _CHANCE * own for off, own in zip(apart, chance, strict=True)
        ):
            rule = "the loss of one example depends on other examples of the batch"
            hint = "Leave out what mixes a batch, such as means over its first axis; or pass physical_batch=1."
            raise InvalidInput("this model", rule, hint)
    if by_chance or chance is not None:  # what is drawn belongs to places
        return
    if any(_moved_by_place(whole, seen(*(part.roll(1, 0) for part in batch)))):
        rule = "the loss of an example depends on its place in the batch, which others can change"
        raise InvalidInput("this model", rule, "Leave out what counts along the first axis.")


def _moved_by_place(whole: list[Any], rolled: list[Any]) -> Iterator[bool]:
    """For each part, whether it differs by more than rounding, also that of half precision, where rows are one on."""
    for one, other in zip(whole, rolled, strict=True):
        every = torch.ones(len(one), dtype=torch.bool)
        size = float(one.double().abs().nan_to_num(0.0, 0.0, 0.0).max()) if one.numel() else 0.0
        yield _largest(one.roll(1, 0), other, every) > _APART * size


def _turns(count: int) -> Iterator[Any]:
    """Sets of rows such that for any two rows one of them is in a set in which the other is not."""
    length = next(n for n in itertools.count(2) if math.comb(n, n // 2) >= count)
    codes = list(itertools.islice(itertools.combinations(range(length), length // 2), count))
    for turn in range(length):
        yield np.array([turn in code for code in codes])


def _with_rows(ours: Any, theirs: Any, changed: Any) -> Any:
    whole = ours.clone()
    whole[changed.to(whole.device)] = theirs[changed.to(theirs.device)]
    return whole


def _apart(some: list[Any], others: list[Any], kept: Any) -> list[float]:
    """By how much what is seen of the rows that are kept differs; infinitely, where not even its shape is the same."""
    if [part.shape for part in some] != [part.shape for part in others]:
        return [math.inf]
    return [_largest(one, other, kept) for one, other in zip(some, others, strict=True)]


def _largest(one: Any, other: Any, kept: Any) -> float:
    one, other = (part[kept.to(part.device)].double() for part in (one, other))
    same = (one == other) | (one.isnan() & other.isnan())
    off = torch.where(same, 0.0, (one - other).abs()).nan_to_num(nan=math.inf)
    return float(off.max()) if off.numel() else 0.0


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
def _same_randomness() -> Iterator[Callable[[], bool]]:
    """Dropout and the like draw the same inside each such block; what is drawn outside is not touched.

    Gives a function that tells whether anything was drawn so far.
    """
    before = _random_states()
    try:
        torch.manual_seed(0)
        first = _random_states()
        yield (
            lambda: (
                not all(
                    torch.equal(one, other)
                    for one, other in zip(first, _random_states(), strict=True)
                )
            )
        )
    finally:
        torch.set_rng_state(before[0])
        torch.cuda.set_rng_state_all(before[1:])


def _random_states() -> list[Any]:
    return [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]


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
