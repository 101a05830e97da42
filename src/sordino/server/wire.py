"""Messages between web and an engine process, over a private Unix socket: a JSON object, and some bytes beside it.

The engine process reads plain JSON and nothing else: whoever takes over web cannot make it run anything. Who is at the
other end is asked of the kernel, and must be the same user.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sordino.errors import InvalidInput
from sordino.privacy.exact import show

__all__ = ["Closed", "is_own_user", "listen", "pack", "private_folder", "receive", "sizes"]

_SIZES = struct.Struct("!II")
LARGEST_REQUEST = 2**20
LARGEST_REPLY = 2**30
HEAD = _SIZES.size


class Closed(Exception):
    """The other side has gone, or does not speak this language."""


def pack(message: Mapping[str, Any], body: bytes = b"") -> bytes:
    """A message as it travels."""
    text = json.dumps(message, allow_nan=False).encode()
    return _SIZES.pack(len(text), len(body)) + text + body


def sizes(head: bytes, largest: int) -> tuple[int, int]:
    """How long the two parts of a message are, from its first bytes."""
    text, body = _SIZES.unpack(head)
    if text + body > largest:
        raise Closed
    return text, body


def receive(connection: socket.socket, largest: int) -> tuple[dict[str, Any], bytes]:
    """The next message; Closed if there is none, or none that can be understood."""
    text, body = sizes(_exactly(connection, HEAD), largest)
    found, rest = _exactly(connection, text), _exactly(connection, body)
    try:
        message = json.loads(found)
    except (ValueError, RecursionError):
        raise Closed from None
    if not isinstance(message, dict):
        raise Closed
    return message, rest


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        try:
            part = connection.recv(min(count, 2**20))
        except OSError:
            raise Closed from None
        if not part:
            raise Closed
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def private_folder(path: Path) -> Path:
    """A folder that only this user can enter, made if it is not there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        rule = "others may enter it, or own it, and could speak to the engine processes"
        raise InvalidInput(f"the folder {show(str(path))}", rule, f"Run: chmod 700 {path}")
    return path


def listen(path: Path) -> socket.socket:
    """A socket at a path in a private folder; one that a dead process left is replaced."""
    private_folder(path.parent)
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(16)
    return listening


def is_own_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user, by the word of the kernel."""
    if not hasattr(socket, "SO_PEERCRED"):  # not Linux: the folder alone keeps others out
        return True
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", told)[1] == os.getuid())
