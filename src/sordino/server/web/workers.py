"""Processes for what takes its time, so that the web process stays free for others and its ticks come in time."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from sordino.errors import TooLarge
from sordino.server.garbage import forget_old_garbage

__all__ = ["Workers"]

T = TypeVar("T")
_PATIENCE = 20.0
"""Seconds after which something is given up."""


class Workers:
    """This many processes, or, with none, threads of this one. `what` they make is told in refusals, such as "plan".

    `prepare` is called in each process before anything else, so that whatever is loaded at first use is loaded.
    """

    def __init__(
        self, what: str, processes: int, prepare: Callable[[], None] | None = None
    ) -> None:
        self._what, self._processes, self._prepare = what, processes, prepare or _nothing
        self._pool = self._new()

    def _new(self) -> Executor:
        if not self._processes:
            return ThreadPoolExecutor(2, self._what)
        return ProcessPoolExecutor(
            self._processes, multiprocessing.get_context("spawn"), _begin, (self._prepare,)
        )

    def warm(self) -> None:
        """Let the first calls be no slower than others: all processes start now."""
        for _ in range(self._processes):
            self._pool.submit(_nothing)

    async def run(self, make: Callable[[], T]) -> T:
        """What a call returns; TooLarge if it takes too long."""
        pool = self._pool
        try:
            return await asyncio.wait_for(
                asyncio.get_running_loop().run_in_executor(pool, make), _PATIENCE
            )
        except TimeoutError:
            self._replace(pool)
            rule = f"its {self._what} takes too long to make"
            raise TooLarge(
                "this question", rule, "Ask for fewer groups, or in simpler terms."
            ) from None
        except BrokenProcessPool:
            self._replace(pool)
            raise TooLarge(
                "this question", f"its {self._what} could not be made", "Ask in simpler terms."
            ) from None
        except RecursionError:
            raise TooLarge(
                "this question", "it is nested too deeply", "Ask in simpler terms."
            ) from None

    def _replace(self, pool: Executor) -> None:
        """A process that is stuck is ended; those who wait beside it are told that nothing could be made."""
        if self._pool is pool:
            self._pool = self._new()
            _end(pool)

    def close(self) -> None:
        """End the processes."""
        _end(self._pool)


def _end(pool: Executor) -> None:
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        with contextlib.suppress(Exception):
            process.kill()
    pool.shutdown(wait=False, cancel_futures=True)


def _nothing() -> None:
    pass


def _begin(prepare: Callable[[], None]) -> None:
    """It leaves interrupts to the one that started it, and ends with it, however that ends."""
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare()
    forget_old_garbage()


def _end_with_parent() -> None:
    import os

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
