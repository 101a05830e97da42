"""Kernels in Triton that multiply out each unit's matrix of a weight, and either measure it or add it up, rounded.

Both are one compiled kernel, and a unit's matrix is made of that unit's numbers alone in a fixed order: so what is
measured in one launch is, bit for bit, what is added up in the next. It is never written to memory. There is one
kernel for convolutions and one for layers whose rows are kept in half precision.
"""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from dataclasses import replace
from typing import Any

from sordino.learn.layers import Rows
from sordino.learn.torch_extra import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["GpuProduct", "GpuRowProduct", "in_halves", "line_norms_on_gpu"]

_LINE = 4096
_FEW_CHANNELS = 16
_PROGRAMS = 1056
_FEWEST_UNITS = 8
_MOST_UNITS = 2**10  # of 2^20 steps each: their sums fit into int32
# a unit's rows in half precision have at most this norm, so that no entry overflows
_HALF_BITS = 15
_LARGEST_SHIFT = 120
_LARGEST_FACTOR = 2.0**100
_WIDTH = 1024
# with what follows, as measured on an H200: 264 such programs run there at a time
_ROW_TILE = (128, 64, 128)
_ROW_WARPS, _ROW_STAGES, _ROW_PROGRAMS = 4, 2, 264

_WRITTEN = ["squares", "sums", "factors"]  # where these are must not choose another compiled kernel

if triton is not None:

    @triton.jit(do_not_specialize=["width"])  # type: ignore[untyped-decorator]
    def _squares(out, numbers, width, WIDTH: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        line, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        place = part * WIDTH + tl.arange(0, WIDTH)
        number = tl.load(numbers + line * width + place, mask=place < width, other=0.0).to(
            tl.float64
        )
        tl.store(out + line * tl.num_programs(1) + part, tl.sum(number * number, 0))

    @triton.jit(  # type: ignore[untyped-decorator]
        do_not_specialize=["adding", "units", "portion", "examples", "blocks"],
        do_not_specialize_on_alignment=_WRITTEN,
    )
    def _multiplied_out(  # type: ignore[no-untyped-def]
        squares, sums, factors, into, out, adding, units, portion, examples, blocks,
        LENGTH: tl.constexpr, D: tl.constexpr, C: tl.constexpr, OUT_WIDE: tl.constexpr,
        HIGH: tl.constexpr, WIDE: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SY: tl.constexpr, SX: tl.constexpr,
        PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr,
        BY_PLACE: tl.constexpr, ROWS: tl.constexpr, BP: tl.constexpr, BD: tl.constexpr, PRECISION: tl.constexpr,
    ) -> Any:  # fmt: skip
        """One tile of D x (KH KW C) numbers, for a portion of units: the sum over rows of gradient (outer) patch.

        The input is (examples, SY, SX, C, HIGH, WIDE): number (y, x) of an image is at (y // SY, x // SX) of part
        (y % SY, x % SX), so that neighbours in a row of patches are neighbours in memory whatever the stride is.
        """
        tile = tl.program_id(0)
        first = tl.program_id(1) * portion
        last = tl.minimum(first + portion, units)
        width: tl.constexpr = KH * KW * C
        part: tl.constexpr = C * HIGH * WIDE
        if BY_PLACE:  # a tile is of one place of the kernel
            tiles_c = (C + BP - 1) // BP
            place = (tile // tiles_c) % (KH * KW)
            c = (tile % tiles_c) * BP + tl.arange(0, BP)
            o = (tile // (tiles_c * KH * KW)) * BD + tl.arange(0, BD)
            q = place * C + c
            c_inside = c < C
            i, j = place // KW, place % KW
        else:
            tiles_c = (width + BP - 1) // BP
            q = (tile % tiles_c) * BP + tl.arange(0, BP)
            o = (tile // tiles_c) * BD + tl.arange(0, BD)
            c = q % C
            c_inside = q < width
            i, j = (q // C) // KW, (q // C) % KW
        # not below zero: by so many strides too far
        up, left = (
            i * DY + (PY * SY - PY),
            j * DX + (PX * SX - PX),
        )
        start = c * (HIGH * WIDE) + ((up % SY) * SX + left % SX) * part
        up, left = up // SY - PY, left // SX - PX
        steps = examples * blocks
        total = tl.zeros((BD, BP), tl.float32)
        added = tl.zeros((BD, BP), tl.int32)
        for turn in range((last - first) * steps):
            unit = first + turn // steps
            step = turn % steps
            example = (unit * examples + step // blocks).to(tl.int64)
            t = (step % blocks) * ROWS + tl.arange(0, ROWS)
            t_inside = t < LENGTH
            if BY_PLACE:
                y, x = t // OUT_WIDE + up, t % OUT_WIDE + left
                seen = (t_inside & (y >= 0) & (y < HIGH) & (x >= 0) & (x < WIDE))[None, :]
                at = (y * WIDE + x)[None, :]
            else:
                y, x = (
                    (t // OUT_WIDE)[None, :] + up[:, None],
                    (t % OUT_WIDE)[None, :] + left[:, None],
                )
                seen = (y >= 0) & (y < HIGH) & (x >= 0) & (x < WIDE) & t_inside[None, :]
                at = y * WIDE + x
            a_place = into + example * (SY * SX * part) + (start[:, None] + at)
            a = tl.load(a_place, mask=seen & c_inside[:, None], other=0.0)
            g_place = out + example * (LENGTH * D) + (o[:, None] * LENGTH + t[None, :])
            g = tl.load(g_place, mask=(o < D)[:, None] & t_inside[None, :], other=0.0)
            total = tl.dot(g, tl.trans(a), total, input_precision=PRECISION)
            if step == steps - 1:
                if adding != 0:
                    factor = tl.load(factors + unit)
                    # below 2^22 this addition rounds to a whole number, which is then in the last bits
                    whole = (total * factor + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
                    added += tl.where(factor == 0.0, 0, whole)
                else:
                    wide = total.to(tl.float64)
                    square = tl.sum(tl.sum(wide * wide, 1), 0)
                    tl.store(squares + unit.to(tl.int64) * tl.num_programs(0) + tile, square)
                total = tl.zeros((BD, BP), tl.float32)
        if adding != 0:
            inside = (o < D)[:, None] & c_inside[None, :]
            tl.atomic_add(
                sums + (o[:, None] * width + q[None, :]),
                added.to(tl.int64),
                mask=inside,
                sem="relaxed",
            )

    @triton.jit(do_not_specialize=["width", "parts"])  # type: ignore[untyped-decorator]
    def _halves(  # type: ignore[no-untyped-def]
        out, lacking, numbers, squares, width, parts, BITS: tl.constexpr, MOST: tl.constexpr, PARTS: tl.constexpr,
        WIDTH: tl.constexpr,
    ) -> Any:  # fmt: skip
        """Numbers of one unit times 2^shift, so that their norm is at most 2^BITS; `lacking` gets 2^-shift."""
        unit = tl.program_id(0).to(tl.int64)
        part = tl.arange(0, PARTS)
        square = tl.sum(tl.load(squares + unit * parts + part, mask=part < parts, other=0.0), 0)
        exponent = (
            (square.to(tl.int64, bitcast=True) >> 52) & 2047
        ) - 1023  # the square is below 2^(exponent + 1)
        shift = tl.minimum(tl.maximum(BITS - ((exponent + 2) >> 1), -MOST), MOST)
        shift = tl.where(exponent == 1024, 0, shift)
        factor = ((shift + 127) << 23).to(tl.int32).to(tl.float32, bitcast=True)
        place = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
        number = tl.load(numbers + unit * width + place, mask=place < width, other=0.0).to(
            tl.float32
        )
        tl.store(out + unit * width + place, (number * factor).to(tl.float16), mask=place < width)
        if tl.program_id(1) == 0:
            tl.store(lacking + unit, ((1023 - shift) << 52).to(tl.float64, bitcast=True))

    @triton.jit(  # type: ignore[untyped-decorator]
        do_not_specialize=["adding", "units", "portion", "length", "coarse"],
        do_not_specialize_on_alignment=_WRITTEN,
    )
    def _rows_multiplied_out(  # type: ignore[no-untyped-def]
        squares, sums, factors, scales, into, out, adding, units, portion, length, coarse,
        D: tl.constexpr, P: tl.constexpr, BD: tl.constexpr, BP: tl.constexpr, ROWS: tl.constexpr, LARGEST: tl.constexpr,
    ) -> Any:  # fmt: skip
        """One tile of D x P numbers, for a portion of units: the sum over rows of gradient (outer) input."""
        tile = tl.program_id(0)
        first = tl.program_id(1) * portion
        last = tl.minimum(first + portion, units)
        tiles_p: tl.constexpr = (P + BP - 1) // BP
        o = (tile // tiles_p) * BD + tl.arange(0, BD)
        q = (tile % tiles_p) * BP + tl.arange(0, BP)
        steps = (length + ROWS - 1) // ROWS
        total = tl.zeros((BD, BP), tl.float32)
        added = tl.zeros((BD, BP), tl.int32)
        for turn in range((last - first) * steps):
            unit = first + turn // steps
            step = turn % steps
            t = step * ROWS + tl.arange(0, ROWS)
            row = (unit.to(tl.int64) * length + t)[:, None]
            inside = (t < length)[:, None]
            g = tl.load(out + (row * D + o[None, :]), mask=inside & (o < D)[None, :], other=0.0)
            a = tl.load(into + (row * P + q[None, :]), mask=inside & (q < P)[None, :], other=0.0)
            total = tl.dot(tl.trans(g), a, total)
            if step == steps - 1:
                if adding != 0:
                    wanted = tl.load(factors + unit) * tl.load(scales + unit)
                    factor = tl.where(wanted < LARGEST, wanted, 0.0).to(tl.float32)
                    # below 2^22 this addition rounds to a whole number, which is then in the last bits
                    whole = (total * factor + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
                    added += tl.where(factor == 0.0, 0, whole)
                else:
                    wide = total.to(tl.float64)
                    square = tl.sum(tl.sum(wide * wide, 1), 0)
                    tl.store(squares + unit.to(tl.int64) * tl.num_programs(0) + tile, square)
                total = tl.zeros((BD, BP), tl.float32)
        if adding != 0:
            inside = (o < D)[:, None] & (q < P)[None, :]
            at = sums + (o[:, None] * P + q[None, :])
            tl.atomic_add(at, added.to(tl.int64) * coarse, mask=inside, sem="relaxed")


def _squares_of(lines: Any) -> Any:
    """Sums of squares of each line's parts, in float64."""
    count, width = lines.shape
    parts = -(-width // _LINE)
    out = torch.empty(count, parts, dtype=torch.float64, device=lines.device)
    _squares[(count, parts)](out, lines, width, _LINE)
    return out


def line_norms_on_gpu(lines: Any) -> Any:
    """The norm of each line in float64."""
    return _squares_of(lines.contiguous()).sum(1).sqrt()


def _is_tf32_allowed() -> bool:
    """Whether the user lets PyTorch's convolutions multiply with 11 bits, as tensor cores do fastest."""
    try:
        return bool(torch.backends.cudnn.allow_tf32)
    except RuntimeError:  # it was set by the newer name
        return bool(torch.backends.cudnn.conv.fp32_precision == "tf32")


def _parted(images: Any, sy: int, sx: int) -> Any:
    """(examples, channels, height, width) as (examples, sy, sx, channels,
    height / sy, width / sx), filled with zeros.
    """
    if sy == sx == 1:
        return images.contiguous()
    high, wide = images.shape[2:]
    images = torch.nn.functional.pad(images, (0, -wide % sx, 0, -high % sy))
    count, channels, high, wide = images.shape
    split = images.reshape(count, channels, high // sy, sy, wide // sx, sx)
    return split.permute(0, 3, 5, 1, 2, 4).contiguous()


def _cut(length: int, height: int, *, by_place: bool, tf32: bool) -> tuple[int, int, int]:
    """How many rows and gradients a program takes at a time,
    and how many turns are on their way: as measured on an H200.
    """
    high = 128 if height > 64 else 64
    if length <= 16:
        return 16, high, 3
    if tf32:
        return 32, high, 3 if by_place else 4
    return (32 if length <= 32 else 64, 64, 2) if by_place else (16, 64, 3)


class GpuProduct:
    """A convolution of one group for this kernel."""

    def __init__(self, piece: Rows) -> None:
        shape = piece.patches
        if shape is None:
            raise RuntimeError("rows without addresses")
        self._into, self._out = _parted(piece.into, *shape.stride), piece.out.contiguous()
        height, length, channels = piece.height, piece.length, shape.channels
        self.shape = 1, height, piece.width
        by_place = channels >= _FEW_CHANNELS
        lines = channels if by_place else piece.width
        tf32 = _is_tf32_allowed()
        rows, bd, self._stages = _cut(length, height, by_place=by_place, tf32=tf32)
        bp = 64 if lines > 32 else 32
        places = shape.kernel[0] * shape.kernel[1] if by_place else 1
        self._tiles = places * -(-lines // bp) * -(-height // bd)
        self._blocks = -(-length // rows)
        high, wide = -(-shape.height // shape.stride[0]), -(-shape.width // shape.stride[1])
        self._constants = (
            length, height, channels, shape.out_width, high, wide, *shape.kernel, *shape.stride, *shape.padding,
            *shape.dilation, by_place, rows, bp, bd, "tf32" if tf32 else "tf32x3",
        )  # fmt: skip

    def _launch(self, squares: Any, sums: Any, factors: Any, units: int, *, adding: bool) -> None:
        portions = max(1, min(-(-_PROGRAMS // self._tiles), units // _FEWEST_UNITS))
        portion = min(-(-units // portions), _MOST_UNITS)
        grid = self._tiles, -(-units // portion)
        examples = len(self._into) // units
        _multiplied_out[grid](
            squares, sums, factors, self._into, self._out, int(adding), units, portion, examples, self._blocks,
            *self._constants, num_warps=4, num_stages=self._stages,
        )  # fmt: skip

    def norms(self, units: int) -> Any:
        """The norm of each unit's matrix, in float64."""
        device = self._into.device
        squares = torch.empty(units, self._tiles, dtype=torch.float64, device=device)
        sums, factors = (
            torch.empty(1, dtype=torch.int64, device=device),
            torch.empty(1, device=device),
        )
        self._launch(squares, sums, factors, units, adding=False)
        return squares.sum(1).sqrt()

    def add(self, sums: Any, factors: Any) -> None:
        """Add round(matrix * factor of its unit) to the int64 sums."""
        squares = torch.empty(1, dtype=torch.float64, device=sums.device)
        self._launch(squares, sums, factors.contiguous(), len(factors), adding=True)


def _shifted(numbers: Any, units: int) -> tuple[Any, Any]:
    """Each unit's numbers in half precision, times a power of two of its own; and the power that they lack."""
    numbers = numbers.contiguous()
    width = numbers.numel() // units
    squares = _squares_of(numbers.reshape(units, width))
    parts = squares.shape[1]
    halves = torch.empty(numbers.shape, dtype=torch.float16, device=numbers.device)
    lacking = torch.empty(units, dtype=torch.float64, device=numbers.device)
    grid = units, -(-width // _WIDTH)
    most = triton.next_power_of_2(parts)
    _halves[grid](
        halves, lacking, numbers, squares, width, parts, _HALF_BITS, _LARGEST_SHIFT, most, _WIDTH
    )
    return halves, lacking


def in_halves(piece: Rows, per_unit: int) -> Rows:
    """The same with its rows in half precision, whose numbers have 11 bits as those of tensor cores have."""
    units = len(piece.into) // per_unit
    (into, first), (out, second) = (_shifted(some, units) for some in (piece.into, piece.out))
    scales = first * second
    if per_unit > 1:
        scales = scales.repeat_interleave(per_unit)
    return replace(piece, into=into, out=out, scales=scales)


class GpuRowProduct:
    """A layer's rows in half precision, for their kernel."""

    def __init__(self, piece: Rows) -> None:
        self._piece = piece
        bd, bp, rows = _ROW_TILE
        self._tiles = -(-piece.height // bd) * -(-piece.width // bp)
        self._constants = piece.height, piece.width, bd, bp, rows, _LARGEST_FACTOR

    def _scales(self, units: int) -> Any:
        return self._piece.scales[:: len(self._piece.scales) // units].contiguous()

    def _launch(
        self, squares: Any, sums: Any, factors: Any, scales: Any, coarse: int, *, adding: bool
    ) -> None:
        units = len(scales)
        portions = max(1, min(_ROW_PROGRAMS // self._tiles, units // _FEWEST_UNITS))
        portion = min(-(-units // portions), _MOST_UNITS)
        grid = self._tiles, -(-units // portion)
        length = len(self._piece.into) // units * self._piece.length
        _rows_multiplied_out[grid](
            squares, sums, factors, scales, self._piece.into, self._piece.out, int(adding), units, portion, length,
            coarse, *self._constants, num_warps=_ROW_WARPS, num_stages=_ROW_STAGES,
        )  # fmt: skip

    def norms(self, units: int) -> Any:
        """The norm of each unit's matrix, in float64."""
        scales = self._scales(units)
        squares = torch.empty(units, self._tiles, dtype=torch.float64, device=scales.device)
        sums = torch.empty(1, dtype=torch.int64, device=scales.device)
        self._launch(squares, sums, scales, scales, 0, adding=False)
        return squares.sum(1).sqrt() * scales

    def add(self, sums: Any, factors: Any, coarse: int) -> None:
        """Add `coarse` times round(matrix * factor of its unit) to the int64 sums;
        nothing where float32 is too small.
        """
        squares = torch.empty(1, dtype=torch.float64, device=sums.device)
        self._launch(
            squares, sums, factors.contiguous(), self._scales(len(factors)), coarse, adding=True
        )
