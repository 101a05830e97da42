"""Sums of clipped gradients in whole numbers: what is proven in step.md, as code.

Every unit (an example, or a person with up to k examples) adds an integer vector of norm at most `CLIP_STEPS`, which
is a function of that unit and the model alone. Weights come by the cheapest of three ways: each unit's matrix is made
and put on a lattice (`products.py`); or rows are put on lattices and multiplied for all units at once, exactly, in
float64, which is simplest where a unit has one row (`row_pairs.py`). Sums are kept in int64.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.gradient_noise import CLIP_STEPS
from sordino.learn.lattice import norms_of, whole_multiples
from sordino.learn.layers import (
    Call,
    Piece,
    PlainVector,
    RowPair,
    Rows,
    TokenRows,
    can_be_paired,
    pieces_of,
    trainable_layers,
)
from sordino.learn.products import PRODUCT_STEPS, Product, is_multiplied_out, kept_for_product
from sordino.learn.row_pairs import MOST_EXPONENT, RowPairs
from sordino.learn.torch_extra import torch

__all__ = ["ClippedSums", "Shapes", "captured_calls"]

_ROUNDING = 0.51  # of an entry: half a step, and what float64 adds to it
_SHARE = 64  # one such part of the clipping norm may be lost to rounding
_MOST_BITS = 40.0  # of an entry before it is rounded, so that float64 errs by less than a hundredth of a step
_EXACT = 2.0**52
_FINEST = 2.0**12
_FLOAT32_EXACT = 2.0**23
_LARGEST_SHARE = 0.25
_ROOM = {"cpu": 2**22, "cuda": 2**28}  # numbers that are made of units at a time


@dataclass(frozen=True)
class Shapes:
    """What is public about the pieces of a gradient: which way they go, and how far rounding can move a unit."""

    forms: tuple[Form, ...]
    """What each piece is of, and its shape for one example."""
    products: tuple[bool, ...]
    """For each `Rows` in their order: whether units' matrices are made."""
    finenesses: tuple[float, ...]
    """For each other `Rows`: the root mean square that an input has on its lattice."""
    pairs: tuple[tuple[float, float, float], ...]
    """For each `RowPair`: the norm that an input has on its lattice at most, what rounding may add to it, and the
    constant beside it.
    """
    lost: float
    """E in step.md: how far rounding moves a unit's vector at most, in steps."""

    @staticmethod
    def of(pieces: list[Piece], per_unit: int) -> Shapes:
        """From one batch of any examples, as only the shapes matter."""
        rows = [piece for piece in pieces if isinstance(piece, Rows)]
        products = tuple(is_multiplied_out(piece, per_unit) for piece in rows)
        made = {id(piece) for piece, is_product in zip(rows, products, strict=True) if is_product}
        on_lattices = len(rows) - len(made) + sum(isinstance(piece, RowPair) for piece in pieces)
        finenesses, pairs, lost = [], [], dict[int, float]()
        for piece in pieces:
            match piece:
                case Rows() if id(piece) in made:
                    error = (
                        CLIP_STEPS // PRODUCT_STEPS * _ROUNDING * math.sqrt(piece.parameter.numel())
                    )
                case Rows():
                    source, out = _size(piece.into) * per_unit, _size(piece.out) * per_unit
                    spread = math.sqrt(piece.copies * source * out)
                    finenesses.append(_fineness(source, spread, on_lattices))
                    error = _ROUNDING * (finenesses[-1] + 0.5) * spread
                case RowPair():
                    constant = 0.0 if piece.bias is None else 1.0
                    source, out = _size(piece.into) + int(constant), _size(piece.out)
                    fine, root = (
                        _fineness(source, math.sqrt(source * out), on_lattices),
                        math.sqrt(source),
                    )
                    pairs.append((fine * root, 0.5 * root, constant))
                    error = _ROUNDING * (fine + 0.5) * math.sqrt(source * out)
                case TokenRows():
                    error = _ROUNDING * math.sqrt(
                        _size(piece.tokens) * per_unit * _size(piece.out) * per_unit
                    )
                case PlainVector():
                    error = _ROUNDING * math.sqrt(_size(piece.vectors))
            lost[id(piece.parameter)] = lost.get(id(piece.parameter), 0.0) + error
        total = math.hypot(*lost.values()) * (1 + 2.0**-20)
        if total > _LARGEST_SHARE * CLIP_STEPS:
            rule = "rounding to the lattice could take more than a quarter of the clipping norm"
            hint = "Use shorter sequences, smaller images or fewer examples per person."
            raise InvalidInput("layers of this size", rule, hint)
        return Shapes(tuple(map(_form, pieces)), products, tuple(finenesses), tuple(pairs), total)


Form = tuple[int, tuple[int, ...], tuple[int, ...]]


def _form(piece: Piece) -> Form:
    match piece:
        case Rows() | RowPair():
            into, out = piece.into, piece.out
        case TokenRows():
            into, out = piece.tokens, piece.out
        case PlainVector():
            into = out = piece.vectors
    return id(piece.parameter), tuple(into.shape[1:]), tuple(out.shape[1:])


def _fineness(source: int, spread: float, on_lattices: int) -> float:
    share = math.sqrt(on_lattices) * _SHARE
    fineness = min(CLIP_STEPS / (share * _ROUNDING * spread), _FINEST)
    return max(1.0, min(fineness, _FLOAT32_EXACT / math.sqrt(source)))


def _size(tensor: Any) -> int:
    """The numbers of one example."""
    return int(tensor[0].numel())


@contextmanager
def _captured(
    model: Any, layers: dict[str, Any], trained: dict[int, Any], keep: Callable[[Call], None]
) -> Iterator[None]:
    """Inside, `keep` gets each call's input and the gradient of its output; no gradient of a weight is computed."""
    in_place = any(getattr(module, "inplace", False) for module in model.modules())

    def hook(layer: Any, arguments: tuple[Any, ...], out: Any) -> Any:
        into = arguments[0].detach()
        waiting, before = [into], into._version
        first = not out.requires_grad
        if first:
            out = out.detach().requires_grad_()

        def arrived(gradient: Any) -> None:
            into = waiting.pop()
            if into._version != before:
                raise RuntimeError("what went into a layer was changed in place after it")
            with torch.no_grad():
                keep(Call(layer, into, gradient))

        out.register_hook(arrived)
        return out.clone() if first and in_place else out

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
    return kept, _passes(model, layers, trained, loss, kept.append)


def _passes(
    model: Any,
    layers: dict[str, Any],
    trained: dict[int, Any],
    loss: Callable[[Any], Any],
    keep: Callable[[Call], None],
) -> Any:
    with _captured(model, layers, trained, keep), torch.enable_grad(), _deterministic():
        losses = loss(model)
        if losses.requires_grad:
            losses.sum().backward()
    return losses.detach()


@dataclass(frozen=True, eq=False)
class _Measured:
    """All pieces of some units; one line for each piece, one column for each unit."""

    rows: list[Rows]
    tokens: list[TokenRows]
    plain: list[PlainVector]
    products: list[Product]
    pairs: RowPairs | None
    norms: Any  # of the gradients, rounded up
    scales: Any  # the steps of the inputs' lattices, for `rows`
    sizes_into: Any  # of the inputs on their lattices, rounded up; for `rows` and `tokens`
    sizes_out: Any  # of the output gradients; likewise

    @property
    def pieces(self) -> list[Piece]:
        pairs = [] if self.pairs is None else self.pairs.pieces
        made = [product.piece for product in self.products]
        return [*self.rows, *self.tokens, *self.plain, *made, *pairs]


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
        self._paired: set[int] = set()
        self._constants: dict[str, Any] = {}
        sizes = [parameter.numel() for parameter in self.parameters.values()]
        self.flat = torch.zeros(
            sum(sizes), dtype=torch.int64, device=next(iter(self.parameters.values())).device
        )
        """All sums in one line; `sums` are views of it."""
        self.sums: dict[int, Any] = {
            key: part.reshape(parameter.shape)
            for (key, parameter), part in zip(
                self.parameters.items(), self.flat.split(sizes), strict=True
            )
        }

    def clear(self) -> None:
        """Begin a new sum."""
        self.flat.zero_()

    def learn_shapes(self, calls: list[Call]) -> None:
        """Fix what is public, from a batch of made-up examples."""
        trained, times = set(self.parameters), Counter(id(call.layer) for call in calls)
        self._paired = {
            id(call.layer)
            for call in calls
            if self.per_unit == 1 and times[id(call.layer)] == 1 and can_be_paired(call, trained)
        }
        pieces = [piece for call in calls for piece in self.pieces_of(call)]
        missing = trained - {id(piece.parameter) for piece in pieces}
        missing -= {id(piece.bias) for piece in pieces if isinstance(piece, RowPair)}
        if missing:
            name = self.names[min(missing, key=lambda key: self.names[key])]
            rule = "the loss does not depend on it"
            raise InvalidInput(
                f"parameter {name!r}",
                rule,
                "Use it in the model, or freeze it by requires_grad_(False).",
            )
        self.shapes = Shapes.of(pieces, self.per_unit)

    def pieces_of(self, call: Call) -> list[Piece]:
        """What this call adds to the gradients of what is trained."""
        return pieces_of(call, set(self.parameters), paired=id(call.layer) in self._paired)

    def add(self, loss: Callable[[Any], Any]) -> Any:
        """Add one physical batch of units * per_unit examples; `loss` runs the model and gives one loss for each
        example.

        Returns the losses, which are secret. Privacy: step.md, Theorem 1.
        """
        if self.shapes is None:
            raise RuntimeError("shapes are learned first")
        pieces, forms, ways = list[Piece](), list[Form](), iter(self.shapes.products)

        def keep(call: Call) -> None:
            for piece in self.pieces_of(call):
                forms.append(_form(piece))
                kept = isinstance(piece, Rows) and next(ways, False)
                pieces.append(
                    kept_for_product(piece, self.per_unit)
                    if isinstance(piece, Rows) and kept
                    else piece
                )

        losses = _passes(self.model, self.layers, self.parameters, loss, keep)
        if tuple(forms) != self.shapes.forms:  # bounds on rounding would be of other shapes
            raise RuntimeError("the model calls other layers than on the made-up examples")
        with torch.no_grad():
            for some in self._parts(pieces):
                measured = self._measure(some)
                self._sum(measured, *self._weights(measured))
        return losses

    def _parts(self, pieces: list[Piece]) -> Iterator[list[Piece]]:
        """The pieces of as many units at a time as what is made of them fits into a fixed room."""
        room = _ROOM.get(pieces[0].parameter.device.type, 2**22)
        most = max(1, room // max(1, self._numbers_made(pieces)))
        if most >= self.units:
            yield pieces
            return
        for start in range(0, self.units, most):
            examples = slice(start * self.per_unit, min(start + most, self.units) * self.per_unit)
            yield [_of(piece, examples) for piece in pieces]

    def _numbers_made(self, pieces: list[Piece]) -> int:
        """How many numbers are held at a time for each unit."""
        rows = [piece for piece in pieces if isinstance(piece, Rows)]
        pairs = [piece for piece in pieces if isinstance(piece, RowPair)]
        products = () if self.shapes is None else self.shapes.products
        kept, passing = 0, max((2 * sum(piece.parameter.shape) for piece in pairs), default=0)
        for piece, is_product in zip(rows, products, strict=True):
            if is_product:
                kept += Product.numbers(piece)
            else:
                passing = max(
                    passing,
                    2 * piece.length * self.per_unit * piece.groups * (piece.width + piece.height),
                )
        return kept + passing

    def set_gradients(self, noisy: Any, factor: float) -> None:
        """Give each parameter its part of the released sums, times `factor`, as the gradient."""
        gradient = noisy.double().mul_(factor).float()
        parts = gradient.split([parameter.numel() for parameter in self.parameters.values()])
        for parameter, part in zip(self.parameters.values(), parts, strict=True):
            parameter.grad = part.reshape(parameter.shape).to(parameter.dtype)

    def _weights(self, found: _Measured) -> tuple[Any, Any]:
        """How much of each unit's gradient counts, and which units count at all: those whose numbers are all finite."""
        if self.shapes is None:
            raise RuntimeError("shapes are learned first")
        norms = found.norms
        keys = [id(piece.parameter) for piece in found.pieces]
        if len(set(keys)) < len(keys):
            first = {key: place for place, key in enumerate(dict.fromkeys(keys))}
            places = self._constant("places", norms.device, [first[key] for key in keys])
            norms = norms.new_zeros(len(first), norms.shape[1]).index_add_(0, places, norms)
        norm = norms.square().sum(0).sqrt()
        room = (CLIP_STEPS - self.shapes.lost) * self.step * (1 - 2.0**-20)
        weight = room / norm.clamp(min=room)
        if len(found.sizes_into):
            steps = found.sizes_out / self.step
            steps[: len(found.rows)] *= found.scales
            exact = (_EXACT / self.units / (found.sizes_into + 1)).clamp(max=2.0**_MOST_BITS) / (
                steps + 1
            )
            weight = torch.minimum(exact.amin(0), weight)
        good = torch.isfinite(norm) & torch.isfinite(weight)
        return torch.where(good, weight, 0.0), good

    def _by_unit(self, rows: Any) -> Any:
        """(examples, groups, T, n) as (units, groups, k T, n)."""
        if self.per_unit == 1:
            return rows
        count, groups, length, width = rows.shape
        split = rows.reshape(
            count // self.per_unit, self.per_unit, groups, length, width
        ).transpose(1, 2)
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
        tokens = [piece for piece in pieces if isinstance(piece, TokenRows)]
        plain = [piece for piece in pieces if isinstance(piece, PlainVector)]
        every = [piece for piece in pieces if isinstance(piece, Rows)]
        paired = [piece for piece in pieces if isinstance(piece, RowPair)]
        if self.shapes is None:
            raise RuntimeError("shapes are learned first")
        device = pieces[0].parameter.device
        products = [
            Product(piece, self._by_unit)
            for piece, made in zip(every, self.shapes.products, strict=True)
            if made
        ]
        rows = [piece for piece, made in zip(every, self.shapes.products, strict=True) if not made]
        outs = [piece.out for piece in rows] + [piece.out for piece in tokens]
        sizes_out = [self._norm_of(out) for out in outs]
        scales, sizes_into, norms = self._measure_rows(rows, sizes_out)
        for piece, size in zip(tokens, sizes_out[len(rows) :], strict=True):
            norms.append(self._token_norms(piece, size))
            sizes_into.append(torch.full_like(size, math.sqrt(_size(piece.tokens) * self.per_unit)))
        norms += self._plain_norms(plain)
        units = (
            len(pieces[0].vectors if isinstance(pieces[0], PlainVector) else pieces[0].out)
            // self.per_unit
        )
        norms += [made.norms(units) for made in products]
        pairs = None
        if paired:
            limits = self._constant("pairs", device, list(zip(*self.shapes.pairs, strict=True)))
            pairs = RowPairs(paired, limits)
            norms += pairs.norms.unbind()
        empty = torch.zeros(0, units, dtype=torch.float64, device=device)
        lines = (
            torch.stack(some) if some else empty for some in (norms, scales, sizes_into, sizes_out)
        )
        return _Measured(rows, tokens, plain, products, pairs, *lines)

    def _measure_rows(self, rows: list[Rows], sizes_out: list[Any]) -> tuple[list[Any], ...]:
        """For each piece: the step of its input's lattice, the input's norm there, and that of the gradient."""
        scales, sizes_into, norms = list[Any](), list[Any](), list[Any]()
        finenesses = () if self.shapes is None else self.shapes.finenesses
        for piece, fine, size_out in zip(rows, finenesses, sizes_out, strict=False):
            root, copies = math.sqrt(_size(piece.into) * self.per_unit), math.sqrt(piece.copies)
            size = self._norm_of(piece.into)
            exponents = torch.ceil(torch.log2(size / (fine * root)) + 2.0**-20)
            exponents = exponents.clamp(-MOST_EXPONENT, MOST_EXPONENT)
            scale = torch.where((size > 0) & torch.isfinite(size), torch.exp2(exponents), 1.0)
            into = copies * (size / scale + 0.5 * root) * (1 + 2.0**-30)
            into = torch.where(
                into <= copies * (fine + 0.5) * root * (1 + 2.0**-20), into, math.inf
            )
            scales.append(scale)
            sizes_into.append(into)
            norms.append(self._row_norms(piece, scale, into * size_out) * scale)
        return scales, sizes_into, norms

    def _plain_norms(self, plain: list[PlainVector]) -> list[Any]:
        """For each piece the norms of its units; those of one width are measured together."""
        widths = dict[int, list[int]]()
        for place, piece in enumerate(plain):
            widths.setdefault(piece.vectors.shape[1], []).append(place)
        found: list[Any] = [None] * len(plain)
        for places in widths.values():
            together = torch.cat([plain[place].vectors for place in places])
            sizes = self._summed(together).norm(dim=1).reshape(len(places), -1)
            for place, line in zip(places, sizes.unbind(), strict=True):
                found[place] = line * (1 + 2.0**-30)
        return found

    def _summed(self, vectors: Any) -> Any:
        vectors = vectors.double()
        return (
            vectors
            if self.per_unit == 1
            else vectors.reshape(-1, self.per_unit, vectors.shape[1]).sum(1)
        )

    def _token_norms(self, piece: TokenRows, size: Any) -> Any:
        tokens = piece.tokens.reshape(len(piece.tokens) // self.per_unit, -1)
        out = self._by_unit(piece.out[:, None])[:, 0].double()
        same = tokens[:, :, None] == tokens[:, None, :]
        squared = (out @ out.transpose(1, 2)).mul_(same).sum((1, 2))
        return (
            squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * tokens.shape[1] * size.square()
        ).sqrt()

    def _row_norms(self, piece: Rows, scale: Any, size: Any) -> Any:
        """The norm of each unit's sum of outer products, of inputs on their lattice; rounded up."""
        into = self._into_rows(piece, 1 / scale)
        out = self._by_unit(piece.out_rows(piece.out)).double()
        squared = (into @ into.transpose(2, 3)).mul_(out @ out.transpose(2, 3)).sum((1, 2, 3))
        return (squared.clamp(min=0) * (1 + 2.0**-30) + 2.0**-30 * size.square()).sqrt()

    def _into_rows(self, piece: Rows, factor: Any) -> Any:
        return self._by_unit(piece.into_rows(self._lattice(piece.into, factor)))

    def _lattice(self, tensor: Any, factor: Any) -> Any:
        """Each unit's numbers times its factor, rounded to whole ones; zero where the factor is."""
        if self.per_unit > 1:
            factor = factor.repeat_interleave(self.per_unit)
        return whole_multiples(tensor, factor)

    def _sum(self, found: _Measured, weights: Any, good: Any) -> None:
        """Add what each unit's gradient is on the lattice."""
        factor = torch.where(good, weights / self.step, 0.0)
        factors = torch.where(good, factor * found.scales, 0.0)
        inverses = torch.where(good, 1 / found.scales, 0.0)
        for i, piece in enumerate(found.rows):
            into = self._into_rows(piece, inverses[i])
            out = self._by_unit(piece.out_rows(self._lattice(piece.out, factors[i])))
            left, right = (rows.transpose(0, 1).flatten(1, 2) for rows in (out, into))
            self.sums[id(piece.parameter)] += piece.shaped((left.transpose(1, 2) @ right).long())
        for tokens in found.tokens:
            total = self.sums[id(tokens.parameter)]
            out = self._lattice(tokens.out, factor)
            table = torch.zeros(total.shape, dtype=torch.float64, device=total.device)
            total += table.index_add_(
                0, tokens.tokens.reshape(-1), out.reshape(-1, out.shape[2])
            ).long()
        if found.plain:
            every = self._summed(torch.cat([piece.vectors for piece in found.plain], 1))
            whole = whole_multiples(every, factor).sum(0).long()
            parts = whole.split([piece.vectors.shape[1] for piece in found.plain])
            for vector, part in zip(found.plain, parts, strict=True):
                self.sums[id(vector.parameter)] += part.reshape(vector.parameter.shape)
        coarse = CLIP_STEPS // PRODUCT_STEPS
        finer = factor / coarse
        for made in found.products:
            made.add(self.sums[id(made.piece.parameter)], finer, coarse)
        if found.pairs is not None:
            on_cpu = self.flat.device.type == "cpu"  # asking a GPU would make it wait
            none_dropped = on_cpu and bool(good.all())
            found.pairs.add(self.sums, factor, good, none_dropped=none_dropped)


def _of(piece: Piece, examples: slice) -> Piece:
    """The same for some examples."""
    match piece:
        case Rows():
            scales = None if piece.scales is None else piece.scales[examples]
            return replace(piece, into=piece.into[examples], out=piece.out[examples], scales=scales)
        case RowPair():
            return replace(piece, into=piece.into[examples], out=piece.out[examples])
        case TokenRows():
            return replace(piece, tokens=piece.tokens[examples], out=piece.out[examples])
        case PlainVector():
            return replace(piece, vectors=piece.vectors[examples])
