"""Logging in to the API and to the pages, and what the pages' forms carry so that no other site can send them.

A session of the pages is a token in a `__Host-` cookie. A browser sends a cookie by itself, so that it alone changes
nothing: whatever changes something also carries a key that only our own pages know, and comes from this server's
origin.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import unquote

from fastapi import Request, Response

from sordino.server.accounts.people import EVERYWHERE, Scope, Token
from sordino.server.accounts.secrets_of_people import LINK, Passwords
from sordino.server.accounts.store import Store
from sordino.server.web.refusals import Refused

__all__ = [
    "COOKIE",
    "FORM_FIELD",
    "FORM_HEADER",
    "LASTS",
    "Sessions",
    "cookie_of",
    "expect_own_origin",
    "form_key",
    "sent_from",
    "sent_home",
    "sent_out",
]

COOKIE = "__Host-sordino"
FORM_FIELD = "form_key"
FORM_HEADER = b"x-sordino-form"
LASTS = 12 * 3600.0
_AT_ONCE, _MOST_WAITING = 2, 20
T = TypeVar("T")


def cookie_of(headers: Mapping[bytes, bytes], name: str = COOKIE) -> str | None:
    """The value of a cookie."""
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return unquote(value)
    return None


def form_key(session: str, secret: bytes) -> str:
    """What forms of a session carry; neither can be told from the other without the server's secret."""
    return hmac.new(
        secret, b"sordino form " + session.encode("utf-8", "surrogatepass"), hashlib.sha256
    ).hexdigest()


def expect_own_origin(headers: Mapping[bytes, bytes]) -> None:
    """Forms are sent from this server's own pages only."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    own = {b"%s://%s" % (scheme, headers.get(b"host", b"")) for scheme in (b"http", b"https")}
    if site not in (None, b"same-origin", b"none") or (origin is not None and origin not in own):
        raise Refused(403, "forbidden", "this form was sent from another site")


class Sessions:
    """Tokens for whoever shows a password, a login of an identity provider, or a link of this machine."""

    def __init__(self, store: Store, *, provider: bool = False) -> None:
        self._store, self.passwords, self.has_provider = store, Passwords(), provider
        self._hashing, self._hashes = ThreadPoolExecutor(_AT_ONCE, "passwords"), 0

    async def hashing(self, work: Callable[..., T], *given: Any) -> T:
        """Do slow work about passwords, in threads of its own: strangers who try some keep nobody else waiting."""
        if self._hashes >= _AT_ONCE + _MOST_WAITING:
            rule = "too many people log in at once"
            raise Refused(
                429, "too-many-requests", rule, "Try again soon.", headers={"Retry-After": "5"}
            )
        self._hashes += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._hashing, work, *given)
        finally:
            self._hashes -= 1

    async def by_password(
        self, name: str, password: str, *, page: bool, address: str
    ) -> tuple[str, Token]:
        """A session for a name and a password that was sent from an address."""
        await self.expect_password(name, password, address)
        return await self.begin(name, page=page)

    async def expect_password(self, name: str, password: str, address: str) -> None:
        """Refuse a wrong password; after some of them the next try waits."""
        if wait := self.passwords.wait(name, address):
            rule = "too many wrong tries for this name"
            raise Refused(
                429,
                "too-many-requests",
                rule,
                f"Wait {wait} seconds.",
                headers={"Retry-After": str(wait)},
            )
        stored = self._store.password_of(name)
        if not await self.hashing(self.passwords.matches, stored, password):
            raise Refused(
                401,
                "unauthenticated",
                "name or password is wrong",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self.passwords.right(name, address)

    async def by_link(self, code: str) -> str:
        """A session of the pages for a link, which is used up by it."""
        found = self._store.principal(code)
        if found is None or found.token.label != LINK or found.token.scopes:
            rule = "this link was used before, or is too old"
            raise Refused(410, "not-found", rule, "Start `sordino workbench` again, or log in.")
        self._store.revoke(found.token.id)  # nothing is waited for between the look and this
        return (await self.begin(found.name, page=True))[0]

    async def begin(self, name: str, *, page: bool) -> tuple[str, Token]:
        """A token for twelve hours."""
        label = "pages" if page else "login"
        return await asyncio.to_thread(
            lambda: self._store.add_token(name, label, frozenset(Scope), EVERYWHERE, LASTS, page=page)
        )  # fmt: skip

    def end(self, token: Token) -> None:
        """Log out."""
        self._store.revoke(token.id)


def sent_from(request: Request) -> str:
    """The address that a request came from; of a proxy that is not named in the settings, the proxy's."""
    return request.client.host if request.client else ""


def sent_home(session: str, to: str = "/") -> Response:
    """To a page of this server, with the cookie of a session."""
    cookie = f"{COOKIE}={session}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={int(LASTS)}"
    return Response(status_code=303, headers={"Location": to, "Set-Cookie": cookie})


def sent_out() -> Response:
    """To the login page, without a session; what the browser kept of pages is dropped."""
    cookie = f"{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0"
    headers = {"Location": "/login", "Set-Cookie": cookie, "Clear-Site-Data": '"cache", "storage"'}
    return Response(status_code=303, headers=headers)
