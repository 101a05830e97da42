"""A disk under SQLite that can fail, remember what it was told, or take its process with it, at any of its calls.

It is a file layer (VFS) of apsw, which brings an SQLite of its own, and a connection with the manners of `sqlite3`, so
that a store runs on it unchanged. A failed call reaches the caller even where SQLite itself would shrug it off, as it
does with a failed unlock; unlocking therefore never fails here.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import apsw

__all__ = ["CALLS", "FAULTS", "Call", "Disk", "Do", "Fault", "Hook"]

CALLS = ("open", "read", "write", "truncate", "sync", "delete", "size", "lock", "access")


class Call(NamedTuple):
    """A call of SQLite to its disk.

    `data` are the bytes written; `place` where, or the new size, or the size of a read.
    """

    kind: str
    path: str
    place: int = 0
    data: bytes = b""


Do: TypeAlias = Callable[[bytes], Any]
"""Carries the call out; takes the bytes to write, where it is a write."""
Hook: TypeAlias = Callable[[Call, Do], Any]
"""Stands between SQLite and the disk."""


def _straight(call: Call, do: Do) -> Any:
    return do(call.data)


class Disk:
    """Real files, with a hook before each call; one that does nothing until another is set."""

    _numbers = itertools.count()

    def __init__(self, hook: Hook = _straight) -> None:
        self.hook = hook
        self._layer = _Layer(f"faulty-{os.getpid()}-{next(self._numbers)}", self)

    def mend(self) -> None:
        """Let every call through from now on."""
        self.hook = _straight

    def connect(self, uri: str, /, **_: object) -> _Connection:
        """What `sqlite3.connect` would give."""
        return _Connection(uri, self._layer.name)

    def close(self) -> None:
        """Take the layer away again."""
        self._layer.unregister()


class _Layer(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        self.name, self.disk = name, disk
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        file: _File = self.disk.hook(
            Call("open", path, flags[0]), lambda _: _File(name, flags, path, self.disk)
        )
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.hook(
            Call("delete", filename, int(syncdir)),
            lambda _: super(_Layer, self).xDelete(filename, syncdir),
        )

    def xAccess(self, pathname: str, flags: int) -> bool:
        return bool(
            self.disk.hook(
                Call("access", pathname), lambda _: super(_Layer, self).xAccess(pathname, flags)
            )
        )


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], path: str, disk: Disk) -> None:
        self.path, self.disk = path, disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        def do(_: bytes) -> bytes:
            return super(_File, self).xRead(amount, offset)

        data: bytes = self.disk.hook(Call("read", self.path, amount), do)
        return data

    def xWrite(self, data: bytes, offset: int) -> None:
        def do(part: bytes) -> None:
            super(_File, self).xWrite(part, offset)

        self.disk.hook(Call("write", self.path, offset, bytes(data)), do)

    def xTruncate(self, newsize: int) -> None:
        self.disk.hook(
            Call("truncate", self.path, newsize), lambda _: super(_File, self).xTruncate(newsize)
        )

    def xSync(self, flags: int) -> None:
        self.disk.hook(Call("sync", self.path), lambda _: super(_File, self).xSync(flags))

    def xFileSize(self) -> int:
        return int(
            self.disk.hook(Call("size", self.path), lambda _: super(_File, self).xFileSize())
        )

    def xLock(self, level: int) -> None:
        self.disk.hook(Call("lock", self.path, level), lambda _: super(_File, self).xLock(level))


_KINDS: dict[int, type[sqlite3.Error]] = {
    apsw.SQLITE_CORRUPT: sqlite3.DatabaseError,
    apsw.SQLITE_NOTADB: sqlite3.DatabaseError,
    apsw.SQLITE_CONSTRAINT: sqlite3.IntegrityError,
    apsw.SQLITE_MISMATCH: sqlite3.IntegrityError,
    apsw.SQLITE_TOOBIG: sqlite3.DataError,
    apsw.SQLITE_MISUSE: sqlite3.InterfaceError,
}


def _translated(error: apsw.Error) -> sqlite3.Error:
    """The error as the module of the standard library would raise it."""
    if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError):
        return sqlite3.ProgrammingError("closed")
    code = getattr(error, "extendedresult", None)
    if code is None:
        return sqlite3.ProgrammingError(str(error))
    found = _KINDS.get(code & 0xFF, sqlite3.OperationalError)(str(error))
    found.sqlite_errorcode = code
    names = apsw.mapping_extended_result_codes if code > 0xFF else apsw.mapping_result_codes
    found.sqlite_errorname = str(names[code])
    return found


class _Cursor:
    def __init__(self, cursor: apsw.Cursor) -> None:
        self._cursor = cursor

    def fetchall(self) -> list[Any]:
        try:
            return list(self._cursor.fetchall())
        except apsw.Error as error:
            raise _translated(error) from None

    def fetchone(self) -> Any:
        try:
            return self._cursor.fetchone()
        except apsw.Error as error:
            raise _translated(error) from None

    def close(self) -> None:
        self._cursor.close(force=True)


class _Connection:
    def __init__(self, uri: str, layer: str) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        try:
            self._connection = apsw.Connection(uri, flags=flags, vfs=layer)
        except apsw.Error as error:
            raise _translated(error) from None
        self._connection.set_busy_timeout(30_000)

    @property
    def in_transaction(self) -> bool:
        try:
            return self._connection.in_transaction
        except apsw.Error as error:
            raise _translated(error) from None

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> _Cursor:
        try:
            return _Cursor(self._connection.execute(statement, values))
        except apsw.Error as error:
            raise _translated(error) from None

    def close(self) -> None:
        try:
            self._connection.close(force=True)
        except apsw.Error as error:
            raise _translated(error) from None


_CODES = {
    "open": apsw.SQLITE_CANTOPEN,
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "lock": apsw.SQLITE_IOERR_LOCK,
    "access": apsw.SQLITE_IOERR_ACCESS,
}
_LATE = {**_CODES, "delete": apsw.SQLITE_IOERR_DIR_FSYNC}

FAULTS: dict[str, tuple[str, ...]] = {
    "EIO": CALLS,
    "ENOSPC": ("open", "write"),
    "short write, EIO": ("write",),
    "short write, ENOSPC": ("write",),
    "done, but EIO": ("write", "truncate", "sync", "delete"),
    "short read": ("read",),
    "out of memory": CALLS,
    "EACCES": ("open", "delete"),
}
"""Kinds of faults, and the calls that they can befall."""


@dataclass
class Fault:
    """Fails the call with this number, counted over the calls that it can befall; with `lasting`, also all after it."""

    kind: str
    number: int
    lasting: bool = False
    calls: int = 0
    befell: list[Call] = field(default_factory=list)

    def __call__(self, call: Call, do: Do) -> Any:
        """The hook."""
        if call.kind not in FAULTS[self.kind]:
            return do(call.data)
        self.calls += 1
        if self.calls != self.number and not (self.lasting and self.calls > self.number):
            return do(call.data)
        self.befell.append(call)
        return self._fail(call, do)

    def _fail(self, call: Call, do: Do) -> Any:
        match self.kind:
            case "short read":
                return do(b"")[: call.place // 2]
            case "short write, EIO" | "short write, ENOSPC":
                do(call.data[: len(call.data) // 2])
            case "done, but EIO":
                do(call.data)
                raise apsw.exception_for(_LATE[call.kind])
            case "out of memory":
                raise apsw.exception_for(apsw.SQLITE_IOERR_NOMEM)
        if self.kind.endswith("ENOSPC"):
            raise apsw.exception_for(
                apsw.SQLITE_CANTOPEN if call.kind == "open" else apsw.SQLITE_FULL
            )
        raise apsw.exception_for(_CODES[call.kind])
