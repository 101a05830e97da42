"""Kernels in Triton for norms: of plain numbers, and of sums of outer products that are never written to memory."""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from typing import Any

from sordino.learn.layers import Patches, Rows
from sordino.learn.torch_extra import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["TILES", "line_norms_on_gpu", "norms_on_gpu", "patch_rows_on_gpu"]

_WIDTH = 4096

if triton is not None:

    @triton.jit(do_not_specialize=["width"])  # type: ignore[untyped-decorator]
    def _squares(out, numbers, width, WIDTH: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        line, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        place = part * WIDTH + tl.arange(0, WIDTH)
        number = tl.load(numbers + line * width + place, mask=place < width, other=0.0).to(tl.float64)
        tl.store(out + line * tl.num_programs(1) + part, tl.sum(number * number, 0))

    @triton.jit  # type: ignore[untyped-decorator]
    def _outer_squares(  # type: ignore[no-untyped-def]
        result, into, out, length, p, d, into_size, out_size,
        HEIGHT: tl.constexpr, WIDE: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SY: tl.constexpr, SX: tl.constexpr,
        PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr, OUT_WIDE: tl.constexpr,
        ROWS: tl.constexpr, BP: tl.constexpr, BD: tl.constexpr, PRECISION: tl.constexpr,
    ) -> Any:  # fmt: skip
        """The sum of squares of one tile of one unit's matrix: gradient rows (outer) patches of the input, added up."""
        unit = tl.program_id(0).to(tl.int64)
        tile = tl.program_id(1)
        tiles_p = tl.cdiv(p, BP)
        q = (tile % tiles_p) * BP + tl.arange(0, BP)
        o = (tile // tiles_p) * BD + tl.arange(0, BD)
        channel, i, j = q // (KH * KW), (q // KW) % KH, q % KW
        corner = channel * (HEIGHT * WIDE)
        total = tl.zeros((BD, BP), tl.float32)
        for start in range(0, length, ROWS):
            t = start + tl.arange(0, ROWS)
            y = (t // OUT_WIDE)[:, None] * SY + (i * DY)[None, :] - PY
            x = (t % OUT_WIDE)[:, None] * SX + (j * DX)[None, :] - PX
            inside = (t[:, None] < length) & (q[None, :] < p) & (y >= 0) & (y < HEIGHT) & (x >= 0) & (x < WIDE)
            a = tl.load(into + unit * into_size + (corner[None, :] + y * WIDE + x), mask=inside, other=0.0)
            g_inside = (o[:, None] < d) & (t[None, :] < length)
            g = tl.load(out + unit * out_size + (o[:, None] * length + t[None, :]), mask=g_inside, other=0.0)
            total = tl.dot(g, a, total, input_precision=PRECISION)
        wide = total.to(tl.float64)
        squares = tl.sum(tl.sum(wide * wide, 1), 0)
        tl.store(result + unit * tl.num_programs(1) + tile, squares)

    @triton.jit  # type: ignore[untyped-decorator]
    def _patch_rows(  # type: ignore[no-untyped-def]
        rows, into, factors, length, p, into_size,
        HEIGHT: tl.constexpr, WIDE: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SY: tl.constexpr, SX: tl.constexpr,
        PY: tl.constexpr, PX: tl.constexpr, DY: tl.constexpr, DX: tl.constexpr, OUT_WIDE: tl.constexpr, WIDTH: tl.constexpr,
    ) -> Any:  # fmt: skip
        """Patches of the input, times the unit's factor and rounded, as rows in float64."""
        unit = tl.program_id(0).to(tl.int64)
        place = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
        t, q = place // p, place % p
        channel, i, j = q // (KH * KW), (q // KW) % KH, q % KW
        y = (t // OUT_WIDE) * SY + i * DY - PY
        x = (t % OUT_WIDE) * SX + j * DX - PX
        inside = (t < length) & (y >= 0) & (y < HEIGHT) & (x >= 0) & (x < WIDE)
        number = tl.load(into + unit * into_size + channel * (HEIGHT * WIDE) + y * WIDE + x, mask=inside, other=0.0)
        factor = tl.load(factors + unit)
        rounded = tl.where(factor == 0.0, 0.0, tl.floor(number.to(tl.float64) * factor + 0.5))
        tl.store(rows + unit * (length * p) + place, rounded, mask=t < length)


def _sizes(shape: Patches) -> tuple[int, ...]:
    return (shape.height, shape.width, *shape.kernel, *shape.stride, *shape.padding, *shape.dilation, shape.out_width)


def patch_rows_on_gpu(into: Any, shape: Patches, length: int, factors: Any) -> Any:
    """The rows (units, 1, T, p) of a convolution's input on its lattice, in float64 and one pass."""
    into = into.contiguous()
    p = shape.channels * shape.kernel[0] * shape.kernel[1]
    rows = torch.empty(len(into), 1, length, p, dtype=torch.float64, device=into.device)
    grid = len(into), -(-length * p // 1024)
    _patch_rows[grid](rows, into, factors.contiguous(), length, p, into[0].numel(), *_sizes(shape), 1024)
    return rows


def line_norms_on_gpu(lines: Any) -> Any:
    """The norm of each line in float64."""
    lines = lines.contiguous()
    count, width = lines.shape
    parts = -(-width // _WIDTH)
    out = torch.empty(count, parts, dtype=torch.float64, device=lines.device)
    _squares[(count, parts)](out, lines, width, _WIDTH)
    return out.sum(1).sqrt()


TILES: dict[str, Any] = {"rows": 32, "p": 128, "d": 128, "precision": "tf32x3", "warps": 8}
"""How the kernel of `norms_on_gpu` is cut."""


def norms_on_gpu(piece: Rows, into: Any, out: Any) -> tuple[Any, float]:
    """The norm of each unit's sum of outer products of gradients `out` and patches of `into`; and its relative error.

    Each float32 is two numbers of 11 bits there, of whose four products three are added, in float32: of T terms an error
    of at most (T + 16) 2^-20 of the product of norms.
    """
    shape = piece.patches
    if shape is None:
        raise RuntimeError("rows without addresses")
    d, p = len(piece.parameter), piece.parameter[0].numel()
    bp, bd = (32 if p < 64 else TILES["p"]), (64 if d <= 64 else TILES["d"])
    tiles = -(-p // bp) * -(-d // bd)
    result = torch.empty(len(into), tiles, dtype=torch.float64, device=into.device)
    _outer_squares[(len(into), tiles)](
        result, into, out, piece.length, p, d, into[0].numel(), out[0].numel(), *_sizes(shape),
        TILES["rows"], bp, bd, TILES["precision"], num_warps=TILES["warps"],
    )  # fmt: skip
    error = (piece.length + 16) * 2.0**-20
    return result.sum(1).sqrt(), error if TILES["precision"] == "tf32x3" else error + 2.0**-9
