"""Work that lets signals through: Ctrl-C amid a statement is KeyboardInterrupt, whatever the engine makes of it.

Python tells signals to the main thread only, and only between its own steps. An engine that looks for them itself
turns what their handlers raise into an error of its own. So the main thread waits, and another one works.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["interruptible"]

T = TypeVar("T")
_TICK = 0.05
"""How many seconds to wait at a time: where waiting itself is not interrupted (Windows), signals are seen as often."""


def interruptible(
    work: Callable[[], T], stop: Callable[[], None], tick: Callable[[], None] | None = None
) -> T:
    """What the work gives or raises; an exception of a signal stops it, waits for its end, and reaches the caller.

    `tick` is called again and again by the thread that waits.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=run, name="sordino engine")
    try:
        worker.start()
        while not done.wait(_TICK):
            if tick is not None:
                tick()
    except BaseException:
        while worker.is_alive():  # again and again: it may not have begun yet
            stop()
            done.wait(_TICK)
        raise
    worker.join()
    if failures:
        raise failures[0]
    return results[0]
