"""Exact Gaussian noise on a GPU: the same function of the bits as `RoundedNoise`, most of it decided in float32.

Theorem. `GpuNoise` adds to a tensor of sums what `GradientNoise` adds on the CPU, with the same law: exactly. Proof in
gpu_noise.md. A key is 256 bits of the secure stream of bits.py, taken afresh for each call and never used again.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sordino.errors import InvalidInput
from sordino.learn.gradient_noise import GradientNoise
from sordino.learn.torch_extra import torch
from sordino.mechanisms.bits import Bits
from sordino.mechanisms.observer import drawn
from sordino.mechanisms.rounded import NORMAL, RoundedNoise

__all__ = ["SHORT_DOUBT", "GpuNoise", "draw_rounded", "short_error"]

SHORT_DOUBT = 2.0**-18
"""How far the float32 magnitude can be from the true one, in units of the scale;
every input is tried on each device.
"""

_FLOOR = 2**20
"""Of the first 31 bits: smaller uniforms are not decided in float32."""

_LARGEST_SHORT = 2**14
_LARGEST = 2**22
_MOST = 2**35
_ROOM = 32


def short_error(device: Any) -> float:
    """The largest error of the float32 magnitude over all inputs that it may decide,
    on this device: tried one by one.
    """
    from sordino.learn.gpu_kernels import LANES, largest_error

    count = (2**31 - _FLOOR) // LANES
    out = torch.empty(count, dtype=torch.float64, device=device)
    largest_error[(count,)](out, _FLOOR, LANES)
    return float(out.max())


@lru_cache(maxsize=16)
def _expect_sound(device: str) -> None:
    """Refuse a device whose float32 arithmetic is not as good as the proof needs: half of `SHORT_DOUBT`."""
    error = short_error(device)
    if not error < SHORT_DOUBT / 2:
        rule = f"its float32 logarithm and division err by {error:.3g}, and the proof needs {SHORT_DOUBT / 2:.3g}"
        raise InvalidInput(f"device {device!r}", rule, "Train on the CPU, or on another GPU.")


def draw_rounded(
    scale: Fraction, count: int, device: Any, sums: Any = None, coarse: int = 0, *, source: Bits
) -> Any:
    """`count` exact draws of round(scale Z) as int32; of int64 `sums` k,
    2^j round(k/2^j + scale Z) with j = `coarse`.
    """
    from sordino.learn.gpu_kernels import LANES, draw_long, draw_short

    _expect_sound(str(device))
    if not 0 < count <= _MOST or not scale <= _LARGEST:
        rule = f"at most {_MOST} numbers of a scale up to {_LARGEST} are drawn at a time"
        raise InvalidInput(
            f"{count} numbers of scale {float(scale):g}",
            rule,
            "Draw fewer, or on a coarser lattice.",
        )
    key_and_scale = np.concatenate(
        [source.words(4).view(np.int32), np.array([float(scale)]).view(np.int32)]
    )
    key = torch.as_tensor(key_and_scale).to(device, non_blocking=True)
    add = sums is not None
    out = torch.empty(count, dtype=torch.int64 if add else torch.int32, device=device)
    tiles = -(-count // (16 * LANES))
    short = scale <= _LARGEST_SHORT
    chance = min(1.0, 4 * float(scale) * SHORT_DOUBT + 2 * _FLOOR / 2**31) if short else 0.0
    places = torch.empty(int(chance * 1.5 * count) + 65536, dtype=torch.int64, device=device)
    found = torch.zeros(2, dtype=torch.int32, device=device)
    float_scale = float(scale)
    given = sums if add else out
    if short:
        sure = 0.5 - float_scale * SHORT_DOUBT - 2.0**-22
        draw_short[(tiles,)](
            out, given, key, places, found, count, coarse, float_scale, sure, _FLOOR, add, LANES
        )
    most = len(places) if short else count
    room = int(most * 2.0**-36 * float_scale) + 65536
    open_places, open_words = (
        torch.empty(room, dtype=torch.int64, device=device) for _ in range(2)
    )
    draw_long[(-(-most // LANES),)](out, given, key, places, count, found, open_places, open_words, found[1:], coarse,
                                    2.0**-48, add, not short, LANES)  # fmt: skip
    many, left = found.tolist()
    if many > most:  # a chance below 2^-1000: nothing was lost, as the whole is drawn anew
        return draw_rounded(scale, count, device, sums, coarse, source=source)
    _refine_open(
        RoundedNoise(NORMAL, scale), out, sums, coarse, open_places, open_words, left, source
    )
    return out


def _refine_open(
    noise: RoundedNoise,
    out: Any,
    sums: Any,
    coarse: int,
    places: Any,
    words: Any,
    many: int,
    source: Bits,
) -> None:
    """Decide the few that are left in ball arithmetic, on the CPU."""
    if not many:
        return
    if many > len(places):
        raise RuntimeError("more numbers are undecided than can be")
    at = places[:many]
    values = [0] * many if sums is None else sums[at].tolist()
    decided = [
        ((value >> coarse) + noise._refine(word, source, Fraction(value % 2**coarse, 2**coarse)))
        << coarse
        for word, value in zip(words[:many].tolist(), values, strict=True)
    ]
    out[at] = torch.as_tensor(decided, dtype=out.dtype, device=out.device)


class GpuNoise:
    """`GradientNoise` for sums that are on a GPU, and stay there."""

    def __init__(self, noise: GradientNoise) -> None:
        self.noise = noise

    def noisy(self, sums: Any) -> Any:
        """The flat int64 sums with noise, rounded to multiples of 2^j steps."""
        j = self.noise.coarse_bits

        def draw(bits: Bits) -> Any:
            return draw_rounded(
                self.noise.scale / 2**j, sums.numel(), sums.device, sums, j, source=bits
            )

        return drawn(self.noise, "release", sums, draw)
