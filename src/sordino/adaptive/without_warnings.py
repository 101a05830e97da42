"""A span in which functions of secret rows run: no warning is shown, and only a real signal from outside gets through.

Warnings may quote values. They are off for the whole process while any thread is within, and as before when the last
one leaves. An exception of a function may tell of a row, so none passes; an interrupt that a signal caused does.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np

__all__ = ["Interrupts", "undisturbed"]


class Interrupts:
    """What the handler of a real SIGINT raised, if one came."""

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def noted(self, raised: BaseException) -> None:
        """Remember it; a function may swallow or replace it."""
        self._raised = raised

    def check(self) -> None:
        """Let a real interrupt pass, without the function's own exceptions that hang on it."""
        if self._raised is not None:
            self._raised.__context__ = self._raised.__cause__ = None
            raise self._raised.with_traceback(None)


@contextmanager
def undisturbed() -> Iterator[Interrupts]:
    """No warnings, and the interrupts that come meanwhile."""
    with _signals() as interrupts, _silence(), np.errstate(all="ignore"):
        yield interrupts


@contextmanager
def _signals() -> Iterator[Interrupts]:
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return

    def handler(number: int, frame: FrameType | None) -> Any:
        try:
            return before(number, frame)
        except BaseException as error:
            interrupts.noted(error)
            raise

    try:
        with suppress(ValueError):  # not the main interpreter
            signal.signal(signal.SIGINT, handler)
        yield interrupts
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)


class _Warnings:
    """How many are within, and how warnings were before the first."""

    lock = threading.Lock()
    within = 0
    before: Any = None


@contextmanager
def _silence() -> Iterator[None]:
    with _Warnings.lock:
        if not _Warnings.within:
            _Warnings.before = warnings.catch_warnings()
            _Warnings.before.__enter__()
            warnings.simplefilter("ignore")
            warnings.showwarning = _drop
        _Warnings.within += 1
    try:
        yield
    finally:
        with _Warnings.lock:
            _Warnings.within -= 1
            if not _Warnings.within:
                _Warnings.before.__exit__(None, None, None)


def _drop(*_: Any, **__: Any) -> None:
    """Also what a function's own filters let through."""
