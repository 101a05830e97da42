"""A kernel in Triton that puts numbers on a lattice in one pass: round(number * factor of its unit), in float64."""

# No `from __future__ import annotations`: Triton reads the annotations of its kernels.
from typing import Any

from sordino.learn.torch_extra import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be looked at without it
    triton = None

__all__ = ["whole_multiples_on_gpu"]

_WIDTH = 1024

if triton is not None:

    @triton.jit(do_not_specialize=["count", "width"])  # type: ignore[untyped-decorator]
    def _whole(out, numbers, factors, count, width, WIDTH: tl.constexpr) -> Any:  # type: ignore[no-untyped-def]
        place = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
        inside = place < count
        factor = tl.load(factors + place // width, mask=inside, other=0.0)
        number = tl.load(numbers + place, mask=inside, other=0.0).to(tl.float64)
        rounded = tl.where(factor == 0.0, 0.0, tl.floor(number * factor + 0.5))
        tl.store(out + place, rounded.to(out.dtype.element_ty), mask=inside)


def whole_multiples_on_gpu(numbers: Any, factor: Any, dtype: Any) -> Any:
    """As `whole_multiples`, halves upwards."""
    numbers = numbers.contiguous()
    out = torch.empty(numbers.shape, dtype=dtype, device=numbers.device)
    count = numbers.numel()
    if count:
        _whole[(-(-count // _WIDTH),)](
            out, numbers, factor.contiguous(), count, count // len(numbers), _WIDTH
        )
    return out
