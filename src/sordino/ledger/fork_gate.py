"""No process is forked while one of its threads is inside SQLite.

A forked child has one thread, and a copy of all that SQLite knows: also of locks that another thread was holding, which
nobody gives back there. It would wait for them in vain, even in a new session, or crash when it closes what it inherited.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator

__all__ = ["PATIENCE", "enter", "entered", "is_clean", "leave"]

PATIENCE = 60.0
"""How many seconds a fork waits for other threads at most; a child that was forked then is refused."""

# can be taken again by its thread: the garbage collector may close a connection at any step, also in here
_changed = threading.Condition(threading.RLock())
_inside: Counter[int] = Counter()
_forking: int | None = None
"""The thread that forks, if one does."""
_clean = True


def enter() -> int:
    """This thread goes into SQLite: waits while another one forks. Returns which thread it is, for `leave`."""
    me = threading.get_ident()
    with _changed:
        while _forking not in (None, me) and not _inside[me]:
            _changed.wait()
        _inside[me] += 1
    return me


def leave(thread: int) -> None:
    """The thread comes out again, once for each time that it went in; another one may say so for it."""
    with _changed:
        _inside[thread] -= 1
        if _inside[thread] <= 0:
            del _inside[thread]
            _changed.notify_all()


@contextlib.contextmanager
def entered() -> Iterator[None]:
    """Inside for a while."""
    thread = enter()
    try:
        yield
    finally:
        leave(thread)


def is_clean() -> bool:
    """Whether this process was forked when no thread was inside; True in one that was not forked."""
    return _clean


def _others() -> bool:
    return any(thread != threading.get_ident() for thread in list(_inside))


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
