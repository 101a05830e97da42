"""Tokens of 256 bits, of which only a SHA-256 is kept; passwords by Argon2id,
few at a time and slower after wrong ones.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import threading
import time
from typing import TYPE_CHECKING, Any

from sordino.errors import InvalidInput
from sordino.mechanisms.bits import source

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LINK", "LINK_LASTS", "PREFIX", "Passwords", "new_id", "new_token", "token_digest"]

PREFIX = "sordino_"
"""By which a token is recognised that lies where it should not."""
LINK, LINK_LASTS = "login link", 600.0
"""The label of a token that is good for one thing, to begin a session of the pages, once; and its seconds."""
_LEAST, _MOST = 12, 1024
_AT_ONCE = 2
_FREE, _LONGEST, _FORGOTTEN = 5, 60, 3600.0
_MOST_PLACES = 10_000


def new_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + base64.urlsafe_b64encode(source().words(4).tobytes()).decode().rstrip("=")


def new_id() -> str:
    """A name of 128 random bits for what has none of its own."""
    return source().words(2).tobytes().hex()


def token_digest(token: str) -> str:
    """What is kept of a token. A random text of 256 bits needs no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _place(name: str, address: str) -> str:
    return hashlib.sha256(f"{address}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()


class Passwords:
    """Argon2id with its library's defaults of RFC 9106; at most two hashes at once.

    After five wrong tries in a row for a name from one address the next has to wait: a second, then two, four, at most
    a minute. Others who know the name and try from elsewhere lock nobody out. A hash takes 64 MiB and a fifth of a
    second, so that all together try at most ten a second. Unknown names cost the same time, and wait as long.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._wrong: dict[str, tuple[int, float]] = {}
        """By name and address: how many wrong tries in a row, and when the last was."""
        self._lock = threading.Lock()
        self._hasher: Any = None
        self._nobody = ""

    def _library(self) -> Any:
        if self._hasher is None:
            try:
                import argon2
            except ModuleNotFoundError:
                hint = "Install it: pip install 'sordino[server]'"
                raise InvalidInput("a password", "passwords need argon2-cffi", hint) from None
            self._hasher = argon2.PasswordHasher()
            self._nobody = self._hasher.hash(new_token())
        return self._hasher

    def hashed(self, password: str) -> str:
        """The hash of a new password; refuses one that is too short or too long."""
        if not _LEAST <= len(password) <= _MOST:
            rule = f"a password has {_LEAST} to {_MOST} characters"
            raise InvalidInput(
                "a password", rule, "Choose a sentence that nobody else would write."
            )
        library = self._library()
        with self._room:
            return str(library.hash(password.encode("utf-8", "surrogatepass")))

    def wait(self, name: str, address: str) -> int:
        """Seconds until the next try for this name from there; 0: now, and then this counts as a wrong one."""
        now, key = self._clock(), _place(name, address)
        with self._lock:
            if len(self._wrong) > _MOST_PLACES:  # names are whatever strangers send
                self._wrong = {
                    k: found for k, found in self._wrong.items() if found[1] > now - _FORGOTTEN
                }
            count, last = self._wrong.get(key, (0, now))
            if now - last > _FORGOTTEN:
                count = 0
            left = last + (0 if count < _FREE else min(2 ** (count - _FREE), _LONGEST)) - now
            if left > 0:
                return math.ceil(left)
            self._wrong[key] = count + 1, now
            return 0

    def right(self, name: str, address: str) -> None:
        """What was tried last was right: it begins anew."""
        with self._lock:
            self._wrong.pop(_place(name, address), None)

    def matches(self, stored: str | None, password: str) -> bool:
        """Whether a password is the one whose hash was kept; takes as long where there is none."""
        library = self._library()
        with self._room:
            try:
                library.verify(
                    stored or self._nobody, password[:_MOST].encode("utf-8", "surrogatepass")
                )
            except Exception:  # wrong, or a hash that cannot be read
                return False
        return stored is not None and not hmac.compare_digest(stored, self._nobody)
