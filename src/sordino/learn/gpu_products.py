"""A kernel in Triton that multiplies out each unit's matrix of a weight, and either measures it or adds it up, rounded.

Both are one compiled kernel, and a unit's matrix is made of that unit's numbers alone in a fixed order: so what is measured
in one launch is, bit for bit, what is added up in the next. It is never written to memory.
"""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from typing import Any

from sordino.learn.layers import Rows
from sordino.learn.torch_extra import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["GpuProduct", "line_norms_on_gpu"]

_LINE = 4096
_FEW_CHANNELS = 16
_PROGRAMS = 528
_FEWEST_UNITS = 8
_MOST_UNITS = 2**10  # of 2^20 steps each: their sums fit into int32

if triton is not None:

    @triton.jit(do_not_specialize=["width"])  # type: ignore[untyped-decorator]
    def _squares(out, numbers, width, WIDTH: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        line, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        place = part * WIDTH + tl.arange(0, WIDTH)
        number = tl.load(numbers + line * width + place, mask=place < width, other=0.0).to(tl.float64)
        tl.store(out + line * tl.num_programs(1) + part, tl.sum(number * number, 0))

    @triton.jit(do_not_specialize=["adding", "units", "portion", "examples"])  # type: ignore[untyped-decorator]
    def _multiplied_out(  # type: ignore[no-untyped-def]
        squares, sums, factors, into, out, adding, units, portion, examples,
        LENGTH: tl.constexpr, D: tl.constexpr, C: tl.constexpr, OUT_WIDE: tl.constexpr,
        HIGH: tl.constexpr, WIDE: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SY: tl.constexpr, SX: tl.constexpr,
        PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr, CHANNELS_LAST: tl.constexpr,
        BY_PLACE: tl.constexpr, ROWS: tl.constexpr, BP: tl.constexpr, BD: tl.constexpr, PRECISION: tl.constexpr,
    ) -> Any:  # fmt: skip
        """One tile of D x (KH KW C) numbers, for a portion of units: the sum over rows of gradient (outer) patch."""
        tile = tl.program_id(0)
        first = tl.program_id(1) * portion
        last = tl.minimum(first + portion, units)
        P: tl.constexpr = KH * KW * C
        INTO_SIZE: tl.constexpr = C * HIGH * WIDE
        BLOCKS: tl.constexpr = (LENGTH + ROWS - 1) // ROWS
        if BY_PLACE:  # a tile is of one place of the kernel
            tiles_c = (C + BP - 1) // BP
            place = (tile // tiles_c) % (KH * KW)
            c = (tile % tiles_c) * BP + tl.arange(0, BP)
            o = (tile // (tiles_c * KH * KW)) * BD + tl.arange(0, BD)
            q = place * C + c
            c_inside = c < C
            i, j = place // KW, place % KW
        else:
            tiles_c = (P + BP - 1) // BP
            q = (tile % tiles_c) * BP + tl.arange(0, BP)
            o = (tile // tiles_c) * BD + tl.arange(0, BD)
            c = q % C
            c_inside = q < P
            i, j = (q // C) // KW, (q // C) % KW
        steps = examples * BLOCKS
        total = tl.zeros((BD, BP), tl.float32)
        added = tl.zeros((BD, BP), tl.int32)
        for turn in range(0, (last - first) * steps):
            unit = first + turn // steps
            step = turn % steps
            example = (unit * examples + step // BLOCKS).to(tl.int64)
            t = (step % BLOCKS) * ROWS + tl.arange(0, ROWS)
            t_inside = t < LENGTH
            if CHANNELS_LAST:
                a_place = into + example * INTO_SIZE + t[:, None] * C + c[None, :]
                a = tl.load(a_place, mask=t_inside[:, None] & c_inside[None, :], other=0.0)
                g_place = out + example * (LENGTH * D) + t[:, None] * D + o[None, :]
                g = tl.trans(tl.load(g_place, mask=t_inside[:, None] & (o < D)[None, :], other=0.0))
            else:
                if BY_PLACE:
                    y = (t // OUT_WIDE) * SY + i * DY - PY
                    x = (t % OUT_WIDE) * SX + j * DX - PX
                    seen = t_inside & (y >= 0) & (y < HIGH) & (x >= 0) & (x < WIDE)
                    a_place = into + example * INTO_SIZE + c[:, None] * (HIGH * WIDE) + (y * WIDE + x)[None, :]
                    a = tl.trans(tl.load(a_place, mask=c_inside[:, None] & seen[None, :], other=0.0))
                else:
                    y = ((t // OUT_WIDE) * SY - PY)[None, :] + (i * DY)[:, None]
                    x = ((t % OUT_WIDE) * SX - PX)[None, :] + (j * DX)[:, None]
                    seen = (y >= 0) & (y < HIGH) & (x >= 0) & (x < WIDE) & t_inside[None, :] & c_inside[:, None]
                    a_place = into + example * INTO_SIZE + (c[:, None] * (HIGH * WIDE) + y * WIDE + x)
                    a = tl.trans(tl.load(a_place, mask=seen, other=0.0))
                g_place = out + example * (LENGTH * D) + o[:, None] * LENGTH + t[None, :]
                g = tl.load(g_place, mask=(o < D)[:, None] & t_inside[None, :], other=0.0)
            total = tl.dot(g, a, total, input_precision=PRECISION)
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
            tl.atomic_add(sums + (o[:, None] * P + q[None, :]), added.to(tl.int64), mask=inside, sem="relaxed")


def line_norms_on_gpu(lines: Any) -> Any:
    """The norm of each line in float64."""
    lines = lines.contiguous()
    count, width = lines.shape
    parts = -(-width // _LINE)
    out = torch.empty(count, parts, dtype=torch.float64, device=lines.device)
    _squares[(count, parts)](out, lines, width, _LINE)
    return out.sum(1).sqrt()


def _is_tf32_allowed(*, convolution: bool) -> bool:
    """Whether the user lets PyTorch multiply with 11 bits, as tensor cores do fastest."""
    place = torch.backends.cudnn if convolution else torch.backends.cuda.matmul
    try:
        return bool(place.allow_tf32)
    except RuntimeError:  # it was set by the newer name
        return bool((torch.backends.cudnn.conv if convolution else place).fp32_precision == "tf32")


class GpuProduct:
    """One piece for this kernel: a Linear layer on rows, or a convolution of one group."""

    def __init__(self, piece: Rows) -> None:
        shape = piece.patches
        self._into, self._out = piece.into.contiguous(), piece.out.contiguous()
        height, length = piece.height, piece.length
        if shape is None:
            channels, by_place = piece.width, True
            sizes: tuple[Any, ...] = (length, 1, length, 1, 1, 1, 1, 0, 0, 1, 1, True)
        else:
            channels, by_place = shape.channels, shape.channels >= _FEW_CHANNELS
            sizes = (shape.out_width, shape.height, shape.width, *shape.kernel, *shape.stride, *shape.padding)
            sizes += (*shape.dilation, False)
        self.shape = 1, height, piece.width
        lines = channels if by_place else piece.width
        rows = 16 if length <= 16 else 32
        bp = 128 if lines > 64 else 64 if lines > 32 else 32
        bd = 128 if height > 64 else 64
        places = piece.width // channels if by_place else 1
        self._tiles = places * -(-lines // bp) * -(-height // bd)
        precision = "tf32" if _is_tf32_allowed(convolution=shape is not None) else "tf32x3"
        self._constants = (length, height, channels, *sizes, by_place, rows, bp, bd, precision)
        self._warps = 8 if bp * bd >= 128 * 128 else 4

    def _launch(self, squares: Any, sums: Any, factors: Any, units: int, *, adding: bool) -> None:
        portions = max(1, min(-(-_PROGRAMS // self._tiles), units // _FEWEST_UNITS))
        portion = min(-(-units // portions), _MOST_UNITS)
        grid = self._tiles, -(-units // portion)
        examples = len(self._into) // units
        _multiplied_out[grid](
            squares, sums, factors, self._into, self._out, int(adding), units, portion, examples, *self._constants,
            num_warps=self._warps,
        )  # fmt: skip

    def norms(self, units: int) -> Any:
        """The norm of each unit's matrix, in float64."""
        device = self._into.device
        squares = torch.empty(units, self._tiles, dtype=torch.float64, device=device)
        sums, factors = torch.empty(1, dtype=torch.int64, device=device), torch.empty(1, device=device)
        self._launch(squares, sums, factors, units, adding=False)
        return squares.sum(1).sqrt()

    def add(self, sums: Any, factors: Any) -> None:
        """Add round(matrix * factor of its unit) to the int64 sums."""
        squares = torch.empty(1, dtype=torch.float64, device=sums.device)
        self._launch(squares, sums, factors.contiguous(), len(factors), adding=True)
