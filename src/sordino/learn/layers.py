"""Which layers can be trained, and what one example's gradient is made of in each.

A gradient is a sum of outer products of rows (`Rows`: weights of Linear and Conv; `TokenRows`: of Embedding), one such
product (`RowPair`: weight and bias of Linear on flat inputs) or a plain vector (`PlainVector`: other biases and the
weights of norms). All are functions of one example's activations and output gradients only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.torch_extra import torch

__all__ = [
    "Call",
    "Patches",
    "Piece",
    "PlainVector",
    "RowPair",
    "Rows",
    "TokenRows",
    "can_be_paired",
    "pieces_of",
    "trainable_layers",
]

_MIXING = {
    "BatchNorm1d": "GroupNorm or LayerNorm",
    "BatchNorm2d": "GroupNorm",
    "BatchNorm3d": "GroupNorm",
    "SyncBatchNorm": "GroupNorm",
    "LazyBatchNorm1d": "GroupNorm or LayerNorm",
    "LazyBatchNorm2d": "GroupNorm",
    "LazyBatchNorm3d": "GroupNorm",
}
_INSTEAD = {
    "MultiheadAttention": "sordino.learn.SelfAttention, or separate Linear layers for query, key and value",
    "TransformerEncoderLayer": "sordino.learn.SelfAttention with Linear and LayerNorm layers",
    "TransformerDecoderLayer": "sordino.learn.SelfAttention with Linear and LayerNorm layers",
    "LSTM": "Linear layers applied step by step, or convolutions",
    "GRU": "Linear layers applied step by step, or convolutions",
    "RNN": "Linear layers applied step by step, or convolutions",
}
_SUPPORTED = "Linear, Conv1d, Conv2d, Embedding, LayerNorm and GroupNorm"


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a layer: what went in, and the gradient of what came out; the first axis counts examples."""

    layer: Any
    into: Any
    out_gradient: Any


@dataclass(frozen=True)
class Patches:
    """Where the rows of a convolution are: entry (channel, i, j) of row (y,
    x) is input[channel, y sy + i dy - py, ...].
    """

    channels: int
    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    out_width: int


@dataclass(frozen=True, eq=False)
class Rows:
    """The gradient of `parameter` for one example is the sum over rows t of out[t] (outer) into[t], group by group.

    `into` is the layer's input and `out` the gradient of its output, with examples on the first axis. `into_rows`
    copies entries, each at most `copies` times, into rows of shape (examples, groups, T, p); `out_rows` does it once
    each, into (examples, groups, T, d). `shaped` brings sums of products, (groups, d, p), into the parameter's order.
    """

    parameter: Any
    into: Any
    out: Any
    into_rows: Callable[[Any], Any]
    out_rows: Callable[[Any], Any]
    copies: int
    length: int
    groups: int
    shaped: Callable[[Any], Any]
    patches: Patches | None = None
    """The same rows by address, for convolutions."""
    scales: Any = None
    """For each example, where `into` and `out` are in half precision: a power of two that their products lack."""

    @property
    def width(self) -> int:
        """p: the numbers of a row of the input."""
        return int(self.parameter[0].numel())

    @property
    def height(self) -> int:
        """d: the numbers of a row of the output, in one group."""
        return len(self.parameter) // self.groups


@dataclass(frozen=True, eq=False)
class RowPair:
    """The gradient of `parameter` for one example is out (outer) into, and that of `bias`, if there is one, is out."""

    parameter: Any
    bias: Any
    into: Any
    out: Any


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The gradient of an embedding: out[t] is added to the row of token t. `out` is (examples, T, d)."""

    parameter: Any
    tokens: Any
    out: Any


@dataclass(frozen=True, eq=False)
class PlainVector:
    """The gradient of `parameter` itself, one flat vector for each example."""

    parameter: Any
    vectors: Any


Piece = Rows | RowPair | TokenRows | PlainVector


def trainable_layers(model: Any) -> dict[str, Any]:
    """The layers that hold parameters to be trained, by name; refuses models that cannot be trained, layer by layer."""
    found: dict[str, Any] = {}
    owners: dict[int, str] = {}
    for name, layer in model.named_modules():
        kind = type(layer).__name__
        if kind in _MIXING:
            rule = "it mixes the examples of a batch, so that no example has a gradient of its own"
            raise InvalidInput(
                f"layer {name or kind!r} ({kind})", rule, f"Use {_MIXING[kind]} instead."
            )
        if kind.startswith("InstanceNorm") and getattr(layer, "track_running_stats", False):
            rule = "its running statistics are taken from examples without noise"
            raise InvalidInput(
                f"layer {name!r} ({kind})", rule, "Set track_running_stats=False, or use GroupNorm."
            )
        own = [
            (key, value)
            for key, value in layer.named_parameters(recurse=False)
            if value.requires_grad
        ]
        if not own:
            continue
        _expect_trainable(name or kind, layer)
        for key, value in own:
            if id(value) in owners:
                rule = f"its {key} is also that of layer {owners[id(value)]!r}"
                raise InvalidInput(
                    f"layer {name!r} ({kind})", rule, "Give each layer parameters of its own."
                )
            owners[id(value)] = name
        found[name] = layer
    if not found:
        rule = "no parameter of the model is to be trained"
        raise InvalidInput(
            f"a model of type {type(model).__name__}",
            rule,
            "Set requires_grad on what shall be learned.",
        )
    return found


def _expect_trainable(name: str, layer: Any) -> None:
    """Refuse a layer with parameters that is not supported."""
    kind, nn = type(layer).__name__, torch.nn
    shown = f"layer {name!r} ({kind})"
    if type(layer) not in (
        nn.Linear,
        nn.Conv1d,
        nn.Conv2d,
        nn.Embedding,
        nn.LayerNorm,
        nn.GroupNorm,
    ):
        hint = _INSTEAD.get(kind, "layers of these types")
        raise InvalidInput(
            shown,
            f"only {_SUPPORTED} are supported",
            f"Use {hint}, or freeze it by requires_grad_(False).",
        )
    if type(layer) in (nn.Conv1d, nn.Conv2d) and (
        layer.padding_mode != "zeros" or isinstance(layer.padding, str)
    ):
        raise InvalidInput(
            shown, "its padding must be numbers, and of zeros", "Write padding=1 and the like."
        )
    if type(layer) is nn.Embedding and (
        layer.max_norm is not None or layer.scale_grad_by_freq or layer.sparse
    ):
        rule = "max_norm, scale_grad_by_freq and sparse depend on other examples of the batch"
        raise InvalidInput(shown, rule, "Leave them out.")


def can_be_paired(call: Call, trained: set[int]) -> bool:
    """Whether weight and bias of this layer have one outer product for each example."""
    layer = call.layer
    return type(layer) is torch.nn.Linear and call.into.dim() == 2 and id(layer.weight) in trained


def pieces_of(call: Call, trained: set[int], *, paired: bool = False) -> list[Piece]:
    """What the gradients of one call's parameters are made of, of those whose id is among `trained`."""
    layer, nn = call.layer, torch.nn
    kind = type(layer)
    if paired:
        bias = layer.bias if layer.bias is not None and id(layer.bias) in trained else None
        return [RowPair(layer.weight, bias, call.into, call.out_gradient)]
    if kind is nn.Linear:
        found = _linear(call)
    elif kind in (nn.Conv1d, nn.Conv2d):
        found = _convolution(call)
    elif kind is nn.Embedding:
        out = call.out_gradient.reshape(len(call.into), -1, layer.embedding_dim)
        tokens = call.into.reshape(len(call.into), -1)
        if layer.padding_idx is not None:
            out = out * (tokens != layer.padding_idx)[..., None]
        found = [TokenRows(layer.weight, tokens, out)]
    elif kind is nn.LayerNorm:
        shape = layer.normalized_shape
        plain = torch.nn.functional.layer_norm(call.into, shape, None, None, layer.eps)
        found = _scaled(call, lambda g: g.reshape(len(g), -1, layer.weight.numel()).sum(1), plain)
    elif (
        call.into.device.type == "cuda"
        and layer.weight is not None
        and call.into.dtype == torch.float32
    ):
        from sordino.learn.gpu_group_norm import group_norm_sums_on_gpu

        sums = group_norm_sums_on_gpu(call.into, call.out_gradient, layer.num_groups, layer.eps)
        parameters = layer.weight, layer.bias
        found = [
            PlainVector(*pair) for pair in zip(parameters, sums, strict=True) if pair[0] is not None
        ]
    else:
        plain = torch.nn.functional.group_norm(call.into, layer.num_groups, None, None, layer.eps)
        found = _scaled(call, lambda g: g.reshape(*g.shape[:2], -1).sum(2), plain)
    return [piece for piece in found if id(piece.parameter) in trained]


def _linear(call: Call) -> list[Piece]:
    layer, count = call.layer, len(call.into)
    into = call.into.reshape(count, -1, layer.in_features)
    out = call.out_gradient.reshape(count, -1, layer.out_features)

    def rows(some: Any) -> Any:
        return some[:, None]

    found = Rows(layer.weight, into, out, rows, rows, 1, into.shape[1], 1, lambda sums: sums[0])
    return [found, PlainVector(layer.bias, out.sum(1))]


def _convolution(call: Call) -> list[Piece]:
    layer, into, out = call.layer, call.into, call.out_gradient
    sizes = [layer.kernel_size, layer.stride, layer.padding, layer.dilation]
    if into.dim() == 3:  # Conv1d is Conv2d on an image of one line
        into, out = into[:, :, None], out[:, :, None]
        sizes = [(0 if place == 2 else 1, *size) for place, size in enumerate(sizes)]
    groups, shape, length = layer.groups, tuple(out.shape[2:]), out.shape[2] * out.shape[3]
    kernel, stride, padding, dilation = sizes
    channels = into.shape[1] // groups

    def into_rows(some: Any) -> Any:
        return _patches(some, sizes, shape, groups).reshape(len(some), groups, length, -1)

    def out_rows(some: Any) -> Any:
        return some.reshape(len(some), groups, layer.out_channels // groups, length).transpose(2, 3)

    def shaped(sums: Any) -> Any:
        by_place = sums.reshape(layer.out_channels, *kernel, channels)
        return by_place.permute(0, 3, 1, 2).reshape(layer.weight.shape)

    patches = Patches(
        into.shape[1], into.shape[2], into.shape[3], kernel, stride, padding, dilation, shape[1]
    )
    copies = layer.weight[0, 0].numel()
    found = Rows(
        layer.weight, into, out, into_rows, out_rows, copies, length, groups, shaped, patches
    )
    return [found, PlainVector(layer.bias, out.sum((2, 3)))]


def _patches(x: Any, sizes: list[Any], shape: tuple[int, ...], groups: int) -> Any:
    """What each place of the output sees, as (examples, groups, height, width, kernel height, kernel width, channels).

    Channels come last, so that a row is made of long lines of memory: copying is most of the work.
    """
    kernel, stride, padding, dilation = sizes
    lines = x.permute(0, 2, 3, 1).contiguous()
    lines = torch.nn.functional.pad(lines, (0, 0, padding[1], padding[1], padding[0], padding[0]))
    examples, rows, columns, _ = lines.stride()
    channels = x.shape[1] // groups
    return lines.as_strided(
        (len(x), groups, *shape, *kernel, channels),
        (
            examples,
            channels,
            rows * stride[0],
            columns * stride[1],
            rows * dilation[0],
            columns * dilation[1],
            1,
        ),
    )


def _scaled(call: Call, summed: Callable[[Any], Any], plain: Any) -> list[Piece]:
    """Layers that scale and shift what they normalized."""
    layer, g = call.layer, call.out_gradient
    if layer.weight is None:
        return []
    found: list[Piece] = [PlainVector(layer.weight, summed(g * plain))]
    return [*found, PlainVector(layer.bias, summed(g))] if layer.bias is not None else found
