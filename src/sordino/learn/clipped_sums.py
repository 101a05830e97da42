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
    """For each `Rows` in their order: the root mean square that an input has on its lattice."""
    lost: float
    """E in step.md: how far rounding moves a unit's vector at most, in steps."""

    @staticmethod
    def of(pieces: list[Piece], per_unit: int) -> Shapes:
        """From one batch of any examples, as only the shapes matter."""
        count = sum(isinstance(piece, Rows) for piece in pieces)
        finenesses, lost = [], dict[int, float]()
        for piece in pieces:
            match piece:
                case Rows():
                    source, out = _size(piece.into) * per_unit, _size(piece.out) * per_unit
                    spread = math.sqrt(piece.copies * source * out)
                    fineness = min(CLIP_STEPS / (_SHARE * math.sqrt(count) * _ROUNDING * spread), _FINEST)
                    fineness = max(1.0, min(fineness, _FLOAT32_EXACT / math.sqrt(source)))
                    error = _ROUNDING * (fineness + 0.5) * spread
                    finenesses.append(fineness)
                case TokenRows():
                    error = _ROUNDING * math.sqrt(_size(piece.tokens) * per_unit * _size(piece.out) * per_unit)
                case PlainVector():
                    error = _ROUNDING * math.sqrt(_size(piece.vectors))
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


@contextmanager
def _deterministic() -> Iterator[None]:
    """The same numbers for the same unit each time, also in cuDNN's convolutions."""
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    try:
        yield
    finally:
        torch.backends.cudnn.deterministic = before


def captured_calls(
    model: Any, layers: dict[str, Any], trained: dict[int, Any], loss: Callable[[Any], Any]
) -> tuple[list[Call], Any]:
    """The calls of all layers in one backward pass of the sum of losses, and the losses; `loss` runs the model."""
    kept: list[Call] = []
    with _captured(layers, trained, kept), torch.enable_grad(), _deterministic():
        losses = loss(model)
        if losses.requires_grad:
            losses.sum().backward()
    return kept, losses.detach()


@dataclass(frozen=True, eq=False)
class _Measured:
    """All pieces of one physical batch; one line for each of them, one column for each unit."""

    rows: list[Rows]
    tokens: list[TokenRows]
    plain: list[PlainVector]
    norms: Any  # of the gradients, rounded up
    scales: Any  # the steps of the inputs' lattices, for `rows`
    sizes_into: Any  # of the inputs on their lattices, rounded up
    sizes_out: Any  # of the output gradients

    @property
    def pieces(self) -> list[Piece]:
        return [*self.rows, *self.tokens, *self.plain]


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
        self._constants: dict[str, Any] = {}
        sizes = [parameter.numel() for parameter in self.parameters.values()]
        self.flat = torch.zeros(sum(sizes), dtype=torch.int64, device=next(iter(self.parameters.values())).device)
        """All sums in one line; `sums` are views of it."""
        self.sums: dict[int, Any] = {
            key: part.reshape(parameter.shape)
            for (key, parameter), part in zip(self.parameters.items(), self.flat.split(sizes), strict=True)
        }

    def clear(self) -> None:
        """Begin a new sum."""
        self.flat.zero_()

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
        with torch.no_grad():
            measured = self._measure([piece for call in calls for piece in pieces_of(call, set(self.parameters))])
            self._sum(measured, *self._weights(measured))
        return losses

    def set_gradients(self, noisy: Any, factor: float) -> None:
        """Give each parameter its part of the released sums, times `factor`, as the gradient."""
        gradient = (noisy.double() * factor).float()
        parts = gradient.split([parameter.numel() for parameter in self.parameters.values()])
        for parameter, part in zip(self.parameters.values(), parts, strict=True):
            parameter.grad = part.reshape(parameter.shape).to(parameter.dtype)

    def _weights(self, found: _Measured) -> tuple[Any, Any]:
        """How much of each unit's gradient counts, and which units count at all: those whose numbers are all finite."""
        if self.shapes is None:
            raise RuntimeError("shapes are learned first")
        keys = {key: place for place, key in enumerate(self.parameters)}
        places = self._constant("places", found.norms.device, [keys[id(piece.parameter)] for piece in found.pieces])
        norms = torch.zeros(len(keys), self.units, dtype=torch.float64, device=found.norms.device)
        norm = norms.index_add_(0, places, found.norms).square().sum(0).sqrt()
        steps = found.sizes_out / self.step
        steps[: len(found.rows)] *= found.scales
        exact = (_EXACT / self.units / (found.sizes_into + 1)).clamp(max=2.0**_MOST_BITS) / (steps + 1)
        room = (CLIP_STEPS - self.shapes.lost) * self.step * (1 - 2.0**-20)
        weight = torch.minimum(exact.amin(0).clamp(max=1.0), room / norm.clamp(min=room))
        good = torch.isfinite(norm) & torch.isfinite(weight)
        return torch.where(good, weight, 0.0), good

    def _by_unit(self, rows: Any) -> Any:
        """(examples, groups, T, n) as (units, groups, k T, n)."""
        if self.per_unit == 1:
            return rows
        count, groups, length, width = rows.shape
        split = rows.reshape(count // self.per_unit, self.per_unit, groups, length, width).transpose(1, 2)
        return split.reshape(count // self.per_unit, groups, self.per_unit * length, width)

    def _constant(self, name: str, device: Any, values: list[Any]) -> Any:
        """Public numbers as a tensor, made once."""
        if name not in self._constants:
            dtype = torch.int64 if name == "places" else torch.float64
            self._constants[name] = torch.tensor(values, dtype=dtype).to(device)
        return self._constants[name]

    def _norm_of(self, tensor: Any) -> Any:
        """The norm of each unit's numbers, in float64."""
        return norms_of(tensor.reshape(len(tensor) // self.per_unit, -1))

    def _measure(self, pieces: list[Piece]) -> _Measured:
        rows = [piece for piece in pieces if isinstance(piece, Rows)]
        tokens = [piece for piece in pieces if isinstance(piece, TokenRows)]
        plain = [piece for piece in pieces if isinstance(piece, PlainVector)]
        if self.shapes is None or len(rows) != len(self.shapes.finenesses):
            raise RuntimeError("the model calls other layers than on the made-up examples")
        device = pieces[0].parameter.device
        outs = [piece.out for piece in rows] + [piece.out for piece in tokens]
        sizes_out = torch.stack([self._norm_of(out) for out in outs] + self._plain_norms(plain))
        numbers = self._constant("numbers", device, [[float(_size(piece.into) * self.per_unit)] for piece in rows])
        copies = self._constant("copies", device, [[float(piece.copies)] for piece in rows])
        fine = self._constant("fine", device, [[fineness] for fineness in self.shapes.finenesses])
        empty = torch.zeros(0, self.units, dtype=torch.float64, device=device)
        sizes = torch.stack([self._norm_of(piece.into) for piece in rows]) if rows else empty
        exponents = torch.ceil(torch.log2(sizes / (fine * numbers.sqrt())) + 2.0**-20).clamp(-900, 900)
        scales = torch.where((sizes > 0) & torch.isfinite(sizes), torch.exp2(exponents), 1.0)
        into = copies.sqrt() * (sizes / scales + 0.5 * numbers.sqrt()) * (1 + 2.0**-30)
        into = torch.where(into <= copies.sqrt() * (fine + 0.5) * numbers.sqrt() * (1 + 2.0**-20), into, math.inf)
        norms = [self._row_norms(piece, scales[i], into[i], sizes_out[i]) for i, piece in enumerate(rows)]
        norms += [self._token_norms(piece, sizes_out[len(rows) + i]) for i, piece in enumerate(tokens)]
        norms += list(sizes_out[len(norms) :] * (1 + 2.0**-30))
        others = torch.zeros(len(pieces) - len(rows), self.units, dtype=torch.float64, device=device)
        for i, piece in enumerate(tokens):
            others[i] = math.sqrt(_size(piece.tokens) * self.per_unit)
        return _Measured(rows, tokens, plain, torch.stack(norms), scales, torch.cat([into, others]), sizes_out)

    def _plain_norms(self, plain: list[PlainVector]) -> list[Any]:
        return [self._summed(piece.vectors).norm(dim=1) for piece in plain]

    def _summed(self, vectors: Any) -> Any:
        vectors = vectors.double()
        return vectors if self.per_unit == 1 else vectors.reshape(-1, self.per_unit, vectors.shape[1]).sum(1)

    def _token_norms(self, piece: TokenRows, size: Any) -> Any:
        tokens = piece.tokens.reshape(len(piece.tokens) // self.per_unit, -1)
        out = self._by_unit(piece.out[:, None])[:, 0].double()
        same = tokens[:, :, None] == tokens[:, None, :]
        squared = (out @ out.transpose(1, 2)).mul_(same).sum((1, 2))
        return (squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * tokens.shape[1] * size.square()).sqrt()

    def _row_norms(self, piece: Rows, scale: Any, size_into: Any, size_out: Any) -> Any:
        """The norm of each unit's sum of outer products, of inputs on their lattice; rounded up."""
        size = size_into * size_out
        if piece.groups * piece.length * self.per_unit == 1:
            return size * scale * (1 + 2.0**-30)
        if self._by_kernel(piece):
            from sordino.learn.gpu_norms import norms_on_gpu

            every = slice(0, self.units)
            into = self._lattice(piece.into, 1 / scale, every, torch.float32)
            inverse = (1 / size_out.clamp(min=1e-300)).reshape(-1, 1, 1, 1)
            norm, error = norms_on_gpu(piece, into, (piece.out * inverse).float().contiguous())
            return (norm * size_out * (1 + 2.0**-30) + error * size) * scale
        gram = self._by_gram(piece)
        norms = []
        for chunk in self._chunks(piece):
            whole = self._lattice(piece.into, 1 / scale, chunk, torch.float64 if gram else torch.float32)
            into = self._by_unit(piece.into_rows(whole))
            out = self._by_unit(piece.out_rows(self._part(piece.out, chunk)))
            norms.append(self._norm(into, out, size[chunk], size_out[chunk], gram=gram))
        return torch.cat(norms) * scale

    def _by_kernel(self, piece: Rows) -> bool:
        """Whether kernels of our own read this piece: a convolution on a GPU."""
        return piece.out.device.type == "cuda" and self.per_unit == 1 and piece.groups == 1 and piece.patches is not None

    def _into_rows(self, piece: Rows, factor: Any, chunk: slice) -> Any:
        """The input's rows on its lattice, in float64."""
        if self._by_kernel(piece) and piece.patches is not None:
            from sordino.learn.gpu_norms import patch_rows_on_gpu

            return patch_rows_on_gpu(self._part(piece.into, chunk), piece.patches, piece.length, factor[chunk])
        return piece.into_rows(self._lattice(piece.into, factor, chunk, torch.float64))

    def _by_gram(self, piece: Rows) -> bool:
        """Whether Gram matrices are less work than the sum of outer products itself."""
        length, p = piece.length * self.per_unit, int(piece.parameter[0].numel())
        d = len(piece.parameter) // piece.groups
        return length * (p + d) < p * d

    def _norm(self, into: Any, out: Any, size: Any, size_out: Any, *, gram: bool) -> Any:
        if gram:
            out = out.double()
            squared = (into @ into.transpose(2, 3)).mul_(out @ out.transpose(2, 3)).sum((1, 2, 3))
            return (squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * size.square()).sqrt()
        inverse = (1 / size_out.clamp(min=1e-300)).reshape(-1, 1, 1, 1)
        unit_out = (out * inverse).float()  # so that nothing underflows in float32
        product, relative = _product(unit_out.transpose(2, 3), into)
        norm = torch.linalg.vector_norm(product.flatten(1), dim=1, dtype=torch.float64) * size_out
        return norm * (1 + 2.0**-30) + relative * size

    def _chunks(self, piece: Rows) -> Iterator[slice]:
        """Slices of units whose rows, and their sum where it is made, fit into a fixed room."""
        length, d, p = piece.length, len(piece.parameter), piece.parameter[0].numel()
        made = 0 if length == 1 or self._by_gram(piece) else p * d
        numbers = (length * (p * piece.groups + d) + made) * self.per_unit
        most = max(1, _CHUNK.get(piece.out.device.type, 2**26) // (8 * numbers))
        for start in range(0, self.units, most):
            yield slice(start, min(start + most, self.units))

    def _part(self, tensor: Any, chunk: slice) -> Any:
        """The examples of some units."""
        return tensor[chunk.start * self.per_unit : chunk.stop * self.per_unit]

    def _lattice(self, tensor: Any, factor: Any, chunk: slice, dtype: Any) -> Any:
        """Each unit's numbers times its factor, rounded to whole ones; zero where the factor is."""
        some, factor = self._part(tensor, chunk), factor[chunk]
        if self.per_unit > 1:
            factor = factor.repeat_interleave(self.per_unit)
        return whole_multiples(some, factor, dtype)

    def _sum(self, found: _Measured, weights: Any, good: Any) -> None:
        """Add what each unit's gradient is on the lattice."""
        factor = torch.where(good, weights / self.step, 0.0)
        factors = torch.where(good, factor * found.scales, 0.0)
        inverses = torch.where(good, 1 / found.scales, 0.0)
        for i, piece in enumerate(found.rows):
            total = self.sums[id(piece.parameter)]
            for chunk in self._chunks(piece):
                into = self._into_rows(piece, inverses[i], chunk)
                out = piece.out_rows(self._lattice(piece.out, factors[i], chunk, torch.float64))
                if piece.patches is not None and out.device.type == "cpu":  # no copies of patches
                    total += (out.transpose(2, 3) @ into).sum(0).reshape(total.shape).long()
                    continue
                left, right = (rows.transpose(0, 1).flatten(1, 2) for rows in (out, into))
                total += (left.transpose(1, 2) @ right).reshape(total.shape).long()
        for tokens in found.tokens:
            total = self.sums[id(tokens.parameter)]
            out = self._lattice(tokens.out, factor, slice(0, self.units), torch.float64)
            table = torch.zeros(total.shape, dtype=torch.float64, device=total.device)
            total += table.index_add_(0, tokens.tokens.reshape(-1), out.reshape(-1, out.shape[2])).long()
        if found.plain:
            every = self._summed(torch.cat([piece.vectors for piece in found.plain], 1))
            whole = whole_multiples(every, factor, torch.float64).sum(0).long()
            parts = whole.split([piece.vectors.shape[1] for piece in found.plain])
            for vector, part in zip(found.plain, parts, strict=True):
                self.sums[id(vector.parameter)] += part.reshape(vector.parameter.shape)


def norms_of(tensor: Any) -> Any:
    """The norm of each line, in float64."""
    if tensor.device.type == "cuda":
        from sordino.learn.gpu_norms import line_norms_on_gpu

        return line_norms_on_gpu(tensor)
    return torch.linalg.vector_norm(tensor, dim=1, dtype=torch.float64)


def whole_multiples(numbers: Any, factor: Any, dtype: Any) -> Any:
    """round(numbers * factor) in float64, as `dtype`; zero where a unit's factor is zero, whatever its numbers are."""
    if numbers.device.type == "cuda":
        from sordino.learn.gpu_lattice import whole_multiples_on_gpu

        return whole_multiples_on_gpu(numbers, factor, dtype)
    shape = (-1, *[1] * (numbers.dim() - 1))
    rounded = (numbers * factor.reshape(shape)).round_()
    return torch.where((factor != 0).reshape(shape), rounded, 0.0).to(dtype)


def _product(left: Any, right: Any) -> tuple[Any, float]:
    """A matrix product in true float32, and by how much of the product of norms it can be off."""
    error = (left.shape[3] + 16) * 2.0**-24 * 1.01
    if left.device.type != "cuda":
        return left @ right, error
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        return left @ right, error
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
