"""PyTorch, which is optional: imported when it is first used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sordino.errors import InvalidInput

__all__ = ["has_torch", "torch"]


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return find_spec("torch") is not None


class _Torch:
    """Stands for the module; a refusal that names the extra where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        try:
            import torch
        except ImportError:
            rule = "training of models needs PyTorch, which is not installed"
            raise InvalidInput("sordino.learn", rule, "pip install 'sordino[torch]'") from None
        return getattr(torch, name)


torch: Any = _Torch()
