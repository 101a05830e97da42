"""Generators of others get secret seeds while a trainer trains: those of PyTorch, NumPy and Python.

Random layers and datasets draw from them, and how much is drawn depends on samples. With a seed that others know, an
example more or less would move all others to other numbers that they know as well. No noise is drawn here.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np

from sordino.learn.torch_extra import torch
from sordino.mechanisms.bits import SecureBits

__all__ = ["secret_seeds"]


@contextlib.contextmanager
def secret_seeds() -> Iterator[None]:
    """Seeds that nobody knows; afterwards the generators are as they were."""
    before = torch.get_rng_state(), torch.cuda.get_rng_state_all()
    numbers, plain = np.random.get_state(), random.getstate()  # noqa: NPY002
    words = SecureBits().words(9).view(np.uint32)
    try:
        torch.manual_seed(int.from_bytes(words[:2].tobytes(), "little") >> 1)
        np.random.seed(words[2:10])  # noqa: NPY002
        random.seed(words[10:].tobytes())
        yield
    finally:
        torch.set_rng_state(before[0])
        torch.cuda.set_rng_state_all(before[1])
        np.random.set_state(numbers)  # noqa: NPY002
        random.setstate(plain)
