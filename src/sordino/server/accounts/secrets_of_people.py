"""Tokens of 256 bits, of which only a SHA-256 is kept; passwords by Argon2id, few at a time and few a minute."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections import deque
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
_AT_ONCE, _A_MINUTE = 2, 5


def new_token() -> str:
    """A token that nobody can guess."""
    return PREFIX + base64.urlsafe_b64encode(source().words(4).tobytes()).decode().rstrip("=")


def new_id() -> str:
    """A name of 128 random bits for what has none of its own."""
    return source().words(2).tobytes().hex()


def token_digest(token: str) -> str:
    """What is kept of a token. A random text of 256 bits needs no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Passwords:
    """Argon2id with its library's defaults of RFC 9106; at most two hashes at once, five tries a minute and account.

    A hash takes 64 MiB and a fifth of a second, so that an unlimited login would be a way to stop the server. Unknown names
    cost the same time as wrong passwords, and count against the same limit.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        self._tries: dict[str, deque[float]] = {}
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
            raise InvalidInput("a password", rule, "Choose a sentence that nobody else would write.")
        library = self._library()
        with self._room:
            return str(library.hash(password.encode("utf-8", "surrogatepass")))

    def allowed(self, name: str) -> bool:
        """Whether one more try for this name is allowed now; it counts as one."""
        now, key = self._clock(), hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            if len(self._tries) > 10_000:  # names are whatever strangers send
                self._tries = {k: t for k, t in self._tries.items() if t and t[-1] > now - 60}
            tries = self._tries.setdefault(key, deque())
            while tries and tries[0] <= now - 60:
                tries.popleft()
            if len(tries) >= _A_MINUTE:
                return False
            tries.append(now)
            return True

    def matches(self, stored: str | None, password: str) -> bool:
        """Whether a password is the one whose hash was kept; takes as long where there is none."""
        library = self._library()
        with self._room:
            try:
                library.verify(stored or self._nobody, password[:_MOST].encode("utf-8", "surrogatepass"))
            except Exception:  # wrong, or a hash that cannot be read
                return False
        return stored is not None and not hmac.compare_digest(stored, self._nobody)
