"""Self-attention made of Linear layers, whose gradients can be clipped example by example."""

from __future__ import annotations

from typing import Any

from sordino.errors import InvalidInput
from sordino.learn.torch_extra import has_torch, torch

__all__ = ["SelfAttention"]

_Module: Any = torch.nn.Module if has_torch() else object


class SelfAttention(_Module):  # type: ignore[misc]
    """Multi-head self-attention on (examples, length, width), in place of torch.nn.MultiheadAttention."""

    def __init__(
        self, width: int, heads: int, *, causal: bool = False, dropout: float = 0.0
    ) -> None:
        if width % heads:
            raise InvalidInput(
                f"heads={heads}", f"the width, {width}, must be a multiple of it", "Pass 4 or 8."
            )
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.query, self.key, self.value, self.out = (
            torch.nn.Linear(width, width) for _ in range(4)
        )

    def forward(self, x: Any) -> Any:
        """The mixture of values that each place attends to."""
        examples, length, width = x.shape

        def split(rows: Any) -> Any:
            return rows.reshape(examples, length, self.heads, width // self.heads).transpose(1, 2)

        mixed = torch.nn.functional.scaled_dot_product_attention(
            split(self.query(x)), split(self.key(x)), split(self.value(x)),
            is_causal=self.causal, dropout_p=self.dropout if self.training else 0.0,
        )  # fmt: skip
        return self.out(mixed.transpose(1, 2).reshape(examples, length, width))
