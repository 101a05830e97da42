"""Deadlines: what an engine runs is stopped when its time is over, and fails like anything else that fails there."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from sordino.engines.engine import Exact, Run
from sordino.errors import EngineFailed
from sordino.plan.statement import Statement

__all__ = ["TimedRun", "stopped_after", "within"]

_AGAIN = 0.05
"""How many seconds after a stop the next one follows: the statement may not have begun when the first came."""


class TimedRun(Protocol):
    """What runs one statement for this many seconds at most."""

    def __call__(self, statement: Statement, deadline: float | None = None) -> Exact:
        """The exact sums, or EngineFailed."""


@contextlib.contextmanager
def stopped_after(seconds: float | None, stop: Callable[[], None]) -> Iterator[None]:
    """Within, `stop` is called after this many seconds, and again until the end; never once it was left."""
    if seconds is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            stop()
            wait = _AGAIN

    watcher = threading.Thread(target=watch, name="sordino deadline", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def within(run: TimedRun, seconds: float | None) -> Run:
    """What runs the statements of one question, which take this many seconds together at most,
    counted from the first.
    """
    if seconds is None:
        return run
    end: list[float] = []

    def timed(statement: Statement) -> Exact:
        now = time.monotonic()
        if not end:
            end.append(now + seconds)
        if now >= end[0]:
            raise EngineFailed
        return run(statement, end[0] - now)

    return timed
