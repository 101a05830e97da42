"""Who watches the calls of mechanisms: usually nobody; an audit, while it records or replays a function.

A watcher sees what a mechanism is given and decides what it returns, so it can freeze outputs, never choose bits. It belongs
to the context (`contextvars`) that set it: other threads, and threads started inside, are neither seen nor touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["Watcher", "current", "watched", "watching"]


class Watcher(Protocol):
    """What is asked instead of the mechanism itself; `draw()` is the mechanism's own output."""

    def __call__(self, mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        """The output of this call."""


current: ContextVar[Watcher | None] = ContextVar("sordino_watcher", default=None)
"""Mechanisms read this once in each call."""


def watched(watcher: Watcher, mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
    """The output of a call as the watcher decides; what the mechanism calls inside is part of it and not seen again."""

    def alone() -> Any:
        with watching(None):
            return draw()

    return watcher(mechanism, operation, value, alone)


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Let this watcher see the calls made inside the block."""
    token = current.set(watcher)
    try:
        yield
    finally:
        current.reset(token)
