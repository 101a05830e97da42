"""No process is forked while one of its threads is inside SQLite.

A forked child has one thread, and a copy of all that SQLite knows: also of locks that another thread was holding,
which nobody gives back there. It would wait for them in vain, even in a new session, or crash when it closes what it
inherited.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

__all__ = ["PATIENCE", "Stay", "enter", "entered", "is_clean", "leave"]

PATIENCE = 60.0
"""How many seconds a fork waits for other threads at most; a child that was forked then is refused."""


class Stay:
    """One time that a thread is inside."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


# The garbage collector may close a connection, and so come by here, at any step, also amid one of ours. So the lock can
# be taken again by its thread, and what is inside is a set: to add and to discard are one step each, which counting is
# not.
_changed = threading.Condition(threading.RLock())
_inside: set[Stay] = set()
_forking: int | None = None
"""The thread that forks, if one does."""
_clean = True


def enter() -> Stay:
    """This thread goes into SQLite: waits while another one forks. What it returns is for `leave`."""
    stay = Stay()
    with _changed:
        while _forking not in (None, stay.thread) and stay.thread not in _threads():
            _changed.wait()
        _inside.add(stay)
    return stay


def leave(stay: Stay) -> None:
    """The thread comes out again; another one may say so for it."""
    with _changed:
        _inside.discard(stay)
        _changed.notify_all()


@contextlib.contextmanager
def entered() -> Iterator[None]:
    """Inside for a while."""
    stay = enter()
    try:
        yield
    finally:
        leave(stay)


def is_clean() -> bool:
    """Whether this process was forked when no thread was inside; True in one that was not forked."""
    return _clean


def _threads() -> set[int]:
    return {stay.thread for stay in _inside.copy()}


def _others() -> bool:
    return bool(_threads() - {threading.get_ident()})


def _before() -> None:
    """Wait until all others are out, and keep them out; the lock is held until the fork is over."""
    global _forking
    _changed.acquire()
    _forking = threading.get_ident()
    _changed.wait_for(lambda: not _others(), PATIENCE)


def _in_parent() -> None:
    global _forking
    _forking = None
    _changed.notify_all()
    _changed.release()


def _in_child() -> None:
    global _forking, _clean, _changed
    _clean = _clean and not _inside  # also if the forking thread itself was inside
    _forking = None
    _inside.clear()
    _changed = threading.Condition(threading.RLock())


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
