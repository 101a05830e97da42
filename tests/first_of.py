"""Parameters of which `make test` takes the first, and `make slow` all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["first_of"]


def first_of(count: int, values: Iterable[Any]) -> list[Any]:
    """The first values as they are, the others marked `slow`."""
    listed = list(values)
    rest = [value if isinstance(value, tuple) else (value,) for value in listed[count:]]
    return [*listed[:count], *(pytest.param(*value, marks=pytest.mark.slow) for value in rest)]
