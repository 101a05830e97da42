"""The one door to random bits: what a mechanism draws, an audit can watch.

A mechanism hands `drawn` what it was given and how to draw, and gets its bits there and nowhere else; so none can be
overlooked. Usually nobody watches. A watcher decides what a call returns, so it can freeze outputs, never choose bits.
It belongs to the context (`contextvars`) that set it: other threads, and threads started inside, are neither seen nor
touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from sordino.mechanisms import bits
from sordino.mechanisms.bits import Bits

__all__ = ["Watcher", "drawn", "watching"]

Output = TypeVar("Output")


class Watcher(Protocol):
    """What is asked instead of the mechanism itself; `draw()` is the mechanism's own output."""

    def __call__(self, mechanism: Any, operation: str, value: Any, draw: Callable[[], Any]) -> Any:
        """The output of this call."""


_current: ContextVar[Watcher | None] = ContextVar("sordino_watcher", default=None)


def drawn(mechanism: Any, operation: str, value: Any, draw: Callable[[Bits], Output]) -> Output:
    """The output of one call of a mechanism: `draw` with the bits of this thread, or what the watcher decides.

    `value` is all that the call depends on beside the mechanism's parameters. What `draw` calls inside is part of this
    call and not seen again.
    """
    watcher = _current.get()
    if watcher is None:
        return draw(bits.source())

    def alone() -> Output:
        with watching(None):
            return draw(bits.source())

    output: Output = watcher(mechanism, operation, value, alone)
    return output


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Let this watcher see the calls made inside the block."""
    token = _current.set(watcher)
    try:
        yield
    finally:
        _current.reset(token)
