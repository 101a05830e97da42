"""A kernel in Triton for what a GroupNorm layer's gradients are made of, in one pass that keeps no images."""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from typing import Any

from sordino.learn.torch_extra import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["group_norm_sums_on_gpu"]

if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _group_sums(  # type: ignore[no-untyped-def]
        scaled, shifted, into, out, small, channels, length,
        EACH: tl.constexpr, MANY: tl.constexpr, FEW: tl.constexpr,
    ) -> Any:  # fmt: skip
        """For each channel of one group of one example:
        the sum of gradients times what was normalized, and of gradients.
        """
        first = tl.program_id(0) * channels + tl.program_id(1) * EACH
        start = first.to(tl.int64) * length
        count = EACH * length
        at = tl.arange(0, MANY)
        total = tl.zeros((MANY,), tl.float32)
        for block in range(0, count, MANY):
            total += tl.load(into + start + block + at, mask=block + at < count, other=0.0)
        mean = tl.sum(total, 0) / count
        total = tl.zeros((MANY,), tl.float32)
        for block in range(0, count, MANY):
            number = tl.load(into + start + block + at, mask=block + at < count, other=0.0)
            apart = tl.where(block + at < count, number - mean, 0.0)
            total += apart * apart
        inverse = 1.0 / tl.sqrt(tl.sum(total, 0) / count + small)
        near = tl.arange(0, FEW)
        for channel in range(EACH):
            here = start + channel * length
            products = tl.zeros((FEW,), tl.float32)
            gradients = tl.zeros((FEW,), tl.float32)
            for block in range(0, length, FEW):
                inside = block + near < length
                gradient = tl.load(out + here + block + near, mask=inside, other=0.0)
                number = tl.load(into + here + block + near, mask=inside, other=0.0)
                products += gradient * ((number - mean) * inverse)
                gradients += gradient
            tl.store(scaled + first + channel, tl.sum(products, 0))
            tl.store(shifted + first + channel, tl.sum(gradients, 0))


def group_norm_sums_on_gpu(into: Any, out: Any, groups: int, small: float) -> tuple[Any, Any]:
    """For each example and channel, the gradients of a GroupNorm's weight and bias."""
    into, out = into.contiguous(), out.contiguous()
    count, channels = into.shape[:2]
    length = into[0, 0].numel()
    scaled, shifted = (torch.empty(count, channels, device=into.device) for _ in range(2))
    few = 1 << max(5, min(10, (length - 1).bit_length()))
    many = 1 << max(5, min(11, (channels // groups * length - 1).bit_length()))
    _group_sums[(count, groups)](
        scaled, shifted, into, out, small, channels, length, channels // groups, many, few
    )
    return scaled, shifted
