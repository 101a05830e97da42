"""A forked child never lets go of the connections that it inherited.

The threads of DuckDB are not there in the child: to close a connection, or to let Python drop it at the end, crashes
the process. So the child keeps each of them for good. The system takes the memory back, and the parent's are as they
were.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

__all__ = ["keep_in_children"]

_connections: weakref.WeakSet[Any] = weakref.WeakSet()


def keep_in_children(connection: Any) -> None:
    """Children that are forked while this connection is there do not end it, nor does their end."""
    _connections.add(connection)


def _in_child() -> None:
    for connection in _connections:
        # one reference that nobody gives back: a list would be emptied when the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(after_in_child=_in_child)
