"""The private folder that the engine spills to: removed at the end, and what killed sessions left is removed by the
next.

A folder belongs to a session as long as the file `in-use` in it is locked, which ends with the process, however it
ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["Scratch"]

_PREFIX, _LOCK = "sordino-", "in-use"
_YOUNG = 60.0
"""Seconds in which a folder may not have its lock yet."""


class Scratch:
    """A folder for this process only; `close` removes it, and so does the end of the object."""

    def __init__(self) -> None:
        try:
            parent = Path(tempfile.gettempdir())
            str(parent).encode()  # the engine is told the path as text
            _remove_leftovers(parent)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            self._lock = (self.path / _LOCK).open("x")
        except (OSError, UnicodeEncodeError):
            where = os.environ.get("TMPDIR") or tempfile.tempdir or "the temporary folder"
            hint = "Set TMPDIR to a folder on a disk with space, readable by you only if it can be."
            raise InvalidInput(show(where), "no temporary folder can be made there", hint) from None
        _lock(self._lock)
        self.close = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())


def _lock(file: IO[str]) -> bool:
    """Whether the file is ours now.

    On Windows, which has no fcntl, an open file cannot be removed: that serves as well.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(folder: Path, lock: IO[str], process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftovers(parent: Path) -> None:
    """Remove the folders of this user's sessions that are no more."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            if (
                not stat.S_ISDIR(status.st_mode)
                or not own
                or time.time() - status.st_mtime < _YOUNG
            ):
                continue
            with (folder / _LOCK).open("r+") as lock:
                dead = _lock(lock)
            if dead:
                (folder / _LOCK).unlink()  # fails on Windows while the session lives
                shutil.rmtree(folder, ignore_errors=True)
