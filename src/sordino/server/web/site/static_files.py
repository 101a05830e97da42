"""Stylesheet and scripts, read once. Their address holds a hash of all of them, so that a browser may keep them for
good.

Modules import each other by relative addresses, which therefore stay within one version. Nothing here is secret, so
that it may be compressed.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["FOLDER", "PREFIX", "StaticFile", "files", "static_address", "version"]

FOLDER = Path(__file__).with_name("static")
PREFIX = "/static/"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class StaticFile:
    """One file, as it is and compressed."""

    kind: str
    body: bytes
    small: bytes


@cache
def files() -> Mapping[str, StaticFile]:
    """All files by name; whatever is of no known kind is not served."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in _KINDS:
            body = path.read_bytes()
            name = path.relative_to(FOLDER).as_posix()
            found[name] = StaticFile(_KINDS[path.suffix], body, gzip.compress(body, 9, mtime=0))
    return found


@cache
def version() -> str:
    """A hash of all files."""
    whole = hashlib.sha256()
    for name, file in files().items():
        whole.update(f"{name}:{len(file.body)}:".encode() + file.body)
    return whole.hexdigest()[:16]


def static_address(name: str) -> str:
    """Where a file is served."""
    if name not in files():
        raise LookupError(name)
    return f"{PREFIX}{version()}/{name}"
