"""Sums of clipped gradients in whole numbers: what is proven in step.md, as code.

Every unit (an example, or a person with up to k examples) adds an integer vector of norm at most `CLIP_STEPS`, which is a
function of that unit and the model alone. Weighted products of integers in float64 stay below 2^53, so they are exact in
any order; their sums are kept in int64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.gradient_noise import CLIP_STEPS
from sordino.learn.layers import Call, Piece, PlainVector, Rows, TokenRows, pieces_of, trainable_layers
from sordino.learn.torch_extra import torch

__all__ = ["ClippedSums", "Shapes", "captured_calls"]

_ROUNDING = 0.51  # of an entry: half a step, and what float64 adds to it
_SHARE = 64  # one such part of the clipping norm may be lost to rounding
_MOST_BITS = 40.0  # of an entry before it is rounded, so that float64 errs by less than a hundredth of a step
_EXACT = 2.0**52
_FINEST = 2.0**12
_FLOAT32_EXACT = 2.0**23
_LARGEST_SHARE = 0.25
_CHUNK = {"cpu": 2**26, "cuda": 2**30}


@dataclass(frozen=True)
class Shapes:
    """What is public about the pieces of a gradient: how fine inputs are, and how far rounding can move a unit."""

    finenesses: tuple[float, ...]
    """For each piece in the order of `pieces_of`: the root mean square that an input has on its lattice."""
    lost: float
    """E in step.md: how far rounding moves a unit's vector at most, in steps."""

    @staticmethod
    def of(pieces: list[Piece], per_unit: int) -> Shapes:
        """From one batch of any examples, as only the shapes matter."""
        count = sum(isinstance(piece, Rows) for piece in pieces)
        finenesses, lost = [], dict[int, float]()
        for piece in pieces:
            fineness, error = 1.0, 0.0
            match piece:
                case Rows():
                    source, out = _size(piece.source) * per_unit, _size(piece.out) * per_unit
                    spread = math.sqrt(piece.copies * source * out)
                    fineness = min(CLIP_STEPS / (_SHARE * math.sqrt(count) * _ROUNDING * spread), _FINEST)
                    fineness = max(1.0, min(fineness, _FLOAT32_EXACT / math.sqrt(source)))
                    error = _ROUNDING * (fineness + 0.5) * spread
                case TokenRows():
                    error = _ROUNDING * math.sqrt(_size(piece.tokens) * per_unit * _size(piece.out) * per_unit)
                case PlainVector():
                    error = _ROUNDING * math.sqrt(_size(piece.vectors))
            finenesses.append(fineness)
            lost[id(piece.parameter)] = lost.get(id(piece.parameter), 0.0) + error
        total = math.hypot(*lost.values()) * (1 + 2.0**-20)
        if total > _LARGEST_SHARE * CLIP_STEPS:
            rule = "rounding to the lattice could take more than a quarter of the clipping norm"
            hint = "Use shorter sequences, smaller images or fewer examples per person."
            raise InvalidInput("layers of this size", rule, hint)
        return Shapes(tuple(finenesses), total)


def _size(tensor: Any) -> int:
    """The numbers of one example."""
    return int(tensor[0].numel())


@contextmanager
def _captured(layers: dict[str, Any], trained: dict[int, Any], kept: list[Call]) -> Iterator[None]:
    """Inside, each call of a layer leaves its input and the gradient of its output; no gradient of a weight is computed."""

    def hook(layer: Any, arguments: tuple[Any, ...], out: Any) -> Any:
        into = arguments[0].detach()
        if not out.requires_grad:
            out = out.detach().requires_grad_()
        out.register_hook(lambda gradient: kept.append(Call(layer, into, gradient)))
        return out

    handles = [layer.register_forward_hook(hook) for layer in layers.values()]
    for parameter in trained.values():
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for parameter in trained.values():
            parameter.requires_grad_(True)


def captured_calls(
    model: Any, layers: dict[str, Any], trained: dict[int, Any], loss: Callable[[Any], Any]
) -> tuple[list[Call], Any]:
    """The calls of all layers in one backward pass of the sum of losses, and the losses; `loss` runs the model."""
    kept: list[Call] = []
    with _captured(layers, trained, kept), torch.enable_grad():
        losses = loss(model)
        if losses.requires_grad:
            losses.sum().backward()
    return kept, losses.detach()


@dataclass(frozen=True, eq=False)
class _Unit:
    """One piece for all units of a physical batch, with what its lattice needs."""

    piece: Piece
    norm: Any  # of the gradient, rounded up
    scale: Any  # the step of the input's lattice, for each unit
    size_into: Any  # of the input on its lattice
    size_out: Any  # of the output gradient


class ClippedSums:
    """Collects physical batches of a fixed shape into integer sums, one for each parameter."""

    def __init__(self, model: Any, clip: float, *, units: int, per_unit: int = 1) -> None:
        self.model, self.clip, self.units, self.per_unit = model, clip, units, per_unit
        self.layers = trainable_layers(model)
        self.names = {
            id(parameter): f"{name}.{key}".lstrip(".")
            for name, layer in self.layers.items()
            for key, parameter in layer.named_parameters(recurse=False)
            if parameter.requires_grad
        }
        self.parameters = {
            id(parameter): parameter
            for layer in self.layers.values()
            for parameter in layer.parameters(recurse=False)
            if id(parameter) in self.names
        }
        self.step = clip / CLIP_STEPS
        self.shapes: Shapes | None = None
        self.sums: dict[int, Any] = {}
        self.clear()

    def clear(self) -> None:
        """Begin a new sum."""
        self.sums = {
            key: torch.zeros(parameter.shape, dtype=torch.int64, device=parameter.device)
            for key, parameter in self.parameters.items()
        }

    def learn_shapes(self, calls: list[Call]) -> None:
        """Fix what is public, from a batch of made-up examples."""
        pieces = [piece for call in calls for piece in pieces_of(call, set(self.parameters))]
        missing = set(self.parameters) - {id(piece.parameter) for piece in pieces}
        if missing:
            name = self.names[min(missing, key=lambda key: self.names[key])]
            rule = "the loss does not depend on it"
            raise InvalidInput(f"parameter {name!r}", rule, "Use it in the model, or freeze it by requires_grad_(False).")
        self.shapes = Shapes.of(pieces, self.per_unit)

    def add(self, loss: Callable[[Any], Any]) -> Any:
        """Add one physical batch of units * per_unit examples; `loss` runs the model and gives one loss for each example.

        Returns the losses, which are secret. Privacy: step.md, Theorem 1.
        """
        calls, losses = captured_calls(self.model, self.layers, self.parameters, loss)
        if self.shapes is None:
            raise RuntimeError("shapes are learned first")
        with torch.no_grad():
            pieces = [piece for call in calls for piece in pieces_of(call, set(self.parameters))]
            if len(pieces) != len(self.shapes.finenesses):
                raise RuntimeError("the model calls other layers than on the made-up examples")
            units = [self._measured(piece, fine) for piece, fine in zip(pieces, self.shapes.finenesses, strict=True)]
            weights, good = self._weights(units)
            for unit in units:
                self._sum(unit, weights, good)
        return losses

    def _weights(self, units: list[_Unit]) -> tuple[Any, Any]:
        """How much of each unit's gradient counts, and which units count at all: those whose numbers are all finite."""
        assert self.shapes is not None  # noqa: S101
        norms: dict[int, Any] = {}
        weight = torch.ones_like(units[0].norm)
        for unit in units:
            key = id(unit.piece.parameter)
            norms[key] = norms[key] + unit.norm if key in norms else unit.norm
            steps = unit.size_out * unit.scale / self.step
            exact = _EXACT / self.units / (unit.size_into + 1)
            weight = torch.minimum(weight, torch.clamp(exact, max=2.0**_MOST_BITS) / (steps + 1))
        norm = torch.stack(list(norms.values())).square().sum(0).sqrt()
        room = (CLIP_STEPS - self.shapes.lost) * self.step * (1 - 2.0**-20)
        weight = torch.minimum(weight, room / torch.clamp(norm, min=room))
        good = torch.isfinite(norm) & torch.isfinite(weight)
        return torch.where(good, weight, 0.0), good

    def _by_unit(self, rows: Any) -> Any:
        """(examples, groups, T, n) as (units, groups, k T, n)."""
        if self.per_unit == 1:
            return rows
        count, groups, length, width = rows.shape
        split = rows.reshape(count // self.per_unit, self.per_unit, groups, length, width).transpose(1, 2)
        return split.reshape(count // self.per_unit, groups, self.per_unit * length, width)

    def _flat(self, tensor: Any) -> Any:
        """All numbers of each unit, in float64."""
        return tensor.reshape(len(tensor) // self.per_unit, -1).double()

    def _measured(self, piece: Piece, fineness: float) -> _Unit:
        match piece:
            case PlainVector():
                vectors = self._summed(piece)
                norm = vectors.norm(dim=1)
                return _Unit(piece, norm * (1 + 2.0**-30), torch.ones_like(norm), torch.zeros_like(norm), norm)
            case TokenRows():
                return self._measured_tokens(piece)
            case Rows():
                return self._measured_rows(piece, fineness)

    def _summed(self, piece: PlainVector) -> Any:
        vectors = piece.vectors.double()
        return vectors.reshape(-1, self.per_unit, vectors.shape[1]).sum(1)

    def _measured_tokens(self, piece: TokenRows) -> _Unit:
        tokens = piece.tokens.reshape(len(piece.tokens) // self.per_unit, -1)
        out = self._by_unit(piece.out[:, None])[:, 0].double()
        size = out.flatten(1).norm(dim=1)
        same = tokens[:, :, None] == tokens[:, None, :]
        squared = (out @ out.transpose(1, 2) * same).sum((1, 2))
        length = math.sqrt(tokens.shape[1])
        norm = (squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * (length * size).square()).sqrt()
        return _Unit(piece, norm, torch.ones_like(norm), torch.full_like(norm, length), size)

    def _measured_rows(self, piece: Rows, fineness: float) -> _Unit:
        size = self._flat(piece.source).norm(dim=1)
        wanted = fineness * math.sqrt(_size(piece.source) * self.per_unit)
        exponent = torch.ceil(torch.log2(size / wanted) + 2.0**-20)
        scale = torch.where((size > 0) & torch.isfinite(size), torch.exp2(exponent.clamp(-900, 900)), 1.0)
        size_out = self._flat(piece.out).norm(dim=1)
        norms, sizes = [], []
        single = piece.out.shape[1] == 1 and piece.out.shape[2] * self.per_unit == 1
        for chunk in self._chunks(piece):
            into = self._rows(piece, scale, chunk, torch.float32)
            sizes.append(into.flatten(1).double().norm(dim=1))
            if not single:
                norms.append(self._norm(into, self._out(piece, chunk), sizes[-1], size_out[chunk]))
        size_into = torch.cat(sizes)
        norm = size_into * size_out * (1 + 2.0**-30) if single else torch.cat(norms)
        numbers = piece.copies * _size(piece.source) * self.per_unit
        norm = torch.where(size_into <= (fineness + 0.5) * math.sqrt(numbers) * (1 + 2.0**-20), norm, math.inf)
        return _Unit(piece, norm * scale, scale, size_into, size_out)

    def _norm(self, into: Any, out: Any, size_into: Any, size_out: Any) -> Any:
        """The norm of each unit's sum of outer products, rounded up: by Gram matrices, or by the sum itself."""
        length, p, d = into.shape[2], into.shape[3], out.shape[3]
        size = size_into * size_out
        if length * (p + d) < p * d:
            into, out = into.double(), out.double()
            squared = (into @ into.transpose(2, 3) * (out @ out.transpose(2, 3))).sum((1, 2, 3))
            return (squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * size.square()).sqrt()
        unit_out = (out.double() / size_out.clamp(min=1e-300).reshape(-1, 1, 1, 1)).float()  # no underflow in float32
        product = _float32_product(unit_out.transpose(2, 3), into)
        norm = torch.linalg.vector_norm(product, dim=(1, 2, 3), dtype=torch.float64) * size_out
        return norm * (1 + 2.0**-30) + (length + 16) * 2.0**-24 * 1.01 * size

    def _chunks(self, piece: Rows) -> Iterator[slice]:
        """Slices of units whose rows, and their sum where it is made, fit into a fixed room."""
        length, d, p = piece.out.shape[2], piece.out.shape[3], piece.parameter[0].numel()
        numbers = (length * (p + d) + (0 if length == 1 else p * d)) * self.per_unit * piece.out.shape[1]
        most = max(1, _CHUNK.get(piece.out.device.type, 2**26) // (8 * numbers))
        for start in range(0, self.units, most):
            yield slice(start, min(start + most, self.units))

    def _rows(self, piece: Rows, scale: Any, chunk: slice, dtype: Any) -> Any:
        """The input's rows on the lattice, for some units: whole numbers."""
        some = piece.source[chunk.start * self.per_unit : chunk.stop * self.per_unit]
        step = scale[chunk].repeat_interleave(self.per_unit).reshape(-1, *[1] * (some.dim() - 1))
        return self._by_unit(piece.into(torch.round(some.double() / step).to(dtype)))

    def _out(self, piece: Rows, chunk: slice) -> Any:
        return self._by_unit(piece.out[chunk.start * self.per_unit : chunk.stop * self.per_unit])

    def _sum(self, unit: _Unit, weights: Any, good: Any) -> None:
        """Add what each unit's gradient is on the lattice."""
        piece, total = unit.piece, self.sums[id(unit.piece.parameter)]
        factor = weights * unit.scale / self.step

        def whole(numbers: Any, chunk: slice = slice(None)) -> Any:
            shape = (-1, *[1] * (numbers.dim() - 1))
            rounded = torch.round(numbers.double() * factor[chunk].reshape(shape))
            return torch.where(good[chunk].reshape(shape), rounded, 0.0)

        match piece:
            case PlainVector():
                total += whole(self._summed(piece)).sum(0).reshape(total.shape).long()
            case TokenRows():
                out = whole(self._by_unit(piece.out[:, None])[:, 0])
                table = torch.zeros(total.shape, dtype=torch.float64, device=total.device)
                total += table.index_add_(0, piece.tokens.reshape(-1), out.reshape(-1, out.shape[2])).long()
            case Rows():
                for chunk in self._chunks(piece):
                    into = self._rows(piece, unit.scale, chunk, torch.float64)
                    into = torch.where(good[chunk].reshape(-1, 1, 1, 1), into, 0.0)
                    out = whole(self._out(piece, chunk), chunk)
                    left = out.permute(1, 3, 0, 2).flatten(2)
                    total += (left @ into.transpose(0, 1).flatten(1, 2)).reshape(total.shape).long()


def _float32_product(left: Any, right: Any) -> Any:
    """In true float32: NVIDIA's shorter format has 10 bits, and the bound in `_norm` counts on 24."""
    if left.device.type != "cuda":
        return left @ right
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        return left @ right
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
