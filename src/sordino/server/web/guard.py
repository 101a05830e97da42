"""What every request passes before and after its route, in one pure ASGI wrapper.

Before: who sends it, a limit on its body and on the time that it takes. After: fixed headers, and a body whose length
says no more than how many 4 KiB it fills. Whatever fails inside becomes one fixed sentence. One line for each request
goes to the security log: who, which route, which outcome; never a question, an answer or a literal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hmac import compare_digest
from typing import Any
from urllib.parse import quote

from sordino.errors import SordinoError
from sordino.server.accounts.people import Principal
from sordino.server.accounts.rights import OPEN
from sordino.server.accounts.secrets_of_people import new_id
from sordino.server.accounts.store import Store
from sordino.server.web.hosts import HostCheck, any_host
from sordino.server.web.refusals import Refused, as_problem
from sordino.server.web.sessions import FORM_HEADER, cookie_of, expect_own_origin, form_key

__all__ = ["BLOCK", "HEADERS", "MOST_BODY", "NO_POLICY", "Guard", "page_policy"]

MOST_BODY = 64 * 1024
BLOCK = 4096
_STATIC = "/static/"
_BODY_TIME = 10.0
HEADERS = (
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)  # fmt: skip
NO_POLICY = b"default-src 'none'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
"""What is no page loads nothing and runs nothing, if a browser should show it all the same."""
_PADDED = (b"application/json", b"application/problem+json", b"text/html", b"text/plain")
_log = logging.getLogger("sordino.security")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def page_policy(nonce: str) -> bytes:
    """What a page may load and run: this server's own files. No text becomes a script (Trusted Types, without
    policies).

    The editor writes its styles by a script: sheets carry the nonce, and style attributes are allowed.
    """
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ).encode()


class Guard:
    """The wrapper around the routes."""

    def __init__(
        self,
        app: Any,
        store: Store,
        requests: Counter[tuple[str, int]],
        hosts: HostCheck = any_host,
    ) -> None:
        self._app, self._store, self._requests, self._hosts = app, store, requests, hosts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        nonce = new_id()
        started, sent = time.monotonic(), _Padded(send, scope, nonce)
        who: Principal | None = None
        try:
            headers = dict(scope["headers"])
            if not self._hosts(headers.get(b"host", b"")):
                hint = (
                    'Whoever runs it lists its names in serve.toml: hosts = ["data.example.org"].'
                )
                raise Refused(421, "forbidden", "this server does not answer to that name", hint)
            session = cookie_of(headers)
            key = "" if session is None else form_key(session, self._store.form_secret)
            who = self._who(headers, session)
            if (
                who is not None
                and who.token.page
                and scope["method"] != "GET"
                and not _is_own(scope, headers, key)
            ):
                # a cookie is sent by browsers on their own: it changes nothing by itself
                who = None
            scope.setdefault("state", {}).update(
                who=who, nonce=nonce, form_key=key if who and who.token.page else ""
            )
            if who is None and scope["path"] not in OPEN and not scope["path"].startswith(_STATIC):
                raise _unknown(scope, headers)
            length = headers.get(b"content-length", b"0")
            if not length.isdigit() or len(length) > 9 or int(length) > MOST_BODY:
                raise _too_large()
            await self._app(scope, _Limited(receive, started, sent), sent)
        except (Refused, SordinoError) as error:
            await sent.problem(error)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a bug: its text may quote a question
            _log.error(
                json.dumps({"event": "failed", "kind": type(error).__name__, "at": _place(error)})
            )
            await sent.problem(
                Refused(500, "unexpected", "something failed inside Sordino", "Please report it.")
            )
        finally:
            route = str(
                getattr(scope.get("route"), "name", None)
                or getattr(scope.get("endpoint"), "__name__", "none")
            )
            self._requests[route, sent.status] += 1
            self._tell(scope, who, route, sent.status)

    def _who(self, headers: Mapping[bytes, bytes], session: str | None) -> Principal | None:
        """By a bearer token; or by the cookie of somebody who logged in to the pages."""
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind:
            found = self._store.principal(text.strip()) if kind.lower() == "bearer" else None
            return None if found is None or found.token.page or not found.token.scopes else found
        found = None if session is None else self._store.principal(session)
        return found if found is not None and found.token.page else None

    @staticmethod
    def _tell(
        scope: MutableMapping[str, Any], who: Principal | None, route: str, status: int
    ) -> None:
        client = scope.get("client")
        facts = {
            "event": "request", "method": scope["method"][:10], "route": route, "status": status,
            "who": None if who is None else who.name, "token": None if who is None else who.token.id,
            "from": client[0] if client else None,
        }  # fmt: skip
        _log.log(logging.WARNING if status in (401, 403) else logging.INFO, json.dumps(facts))


def _is_own(scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes], key: str) -> bool:
    """Whether a request that changes something was made by our own pages: from here, with the key of the session.

    A form carries its key in a field, which `site.py` looks at: forms are sent to pages, never to the API.
    """
    expect_own_origin(headers)
    if compare_digest(headers.get(FORM_HEADER, b""), key.encode()):
        return True
    kind = headers.get(b"content-type", b"").split(b";")[0].strip()
    is_page = not scope["path"].startswith(("/v1/", "/mcp"))
    return is_page and (kind == b"application/x-www-form-urlencoded" or scope["path"] == "/logout")


def _unknown(scope: MutableMapping[str, Any], headers: Mapping[bytes, bytes]) -> Refused:
    """A browser is sent to the login page, and comes back afterwards; a program is told what to send."""
    page = scope["method"] == "GET" and b"text/html" in headers.get(b"accept", b"")
    if page and not scope["path"].startswith("/v1/"):
        query = scope.get("query_string", b"").decode("latin-1")
        to = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
        return Refused(
            303, "unauthenticated", "this needs a login", headers={"Location": f"/login?to={to}"}
        )
    return Refused(
        401, "unauthenticated", "this needs a token", "Send the header Authorization: Bearer sordino_...",
        headers={"WWW-Authenticate": 'Bearer realm="sordino"'},
    )  # fmt: skip


def _too_large() -> Refused:
    return Refused(
        413, "body-too-large", f"a request has at most {MOST_BODY // 1024} KiB", "Ask a shorter question.",
        headers={"Connection": "close"},
    )  # fmt: skip


def _place(error: BaseException) -> str:
    """Where in the program it failed: a file and a line, no values."""
    trace, found = error.__traceback__, "?"
    while trace is not None:
        found = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


class _Limited:
    """Receives a body of a limited size within a limited time."""

    def __init__(self, receive: Receive, started: float, sent: _Padded) -> None:
        self._receive, self._started, self._sent = receive, started, sent
        self._size, self._whole = 0, False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        left = self._started + _BODY_TIME - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(left, 0.001))
        except TimeoutError:
            rule = f"its body did not arrive within {_BODY_TIME:.0f} seconds"
            self._sent.instead = Refused(
                408, "invalid-request", rule, headers={"Connection": "close"}
            )
            raise self._sent.instead from None
        self._size += len(message.get("body", b""))
        if self._size > MOST_BODY:
            self._sent.instead = _too_large()
            raise self._sent.instead
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message


class _Padded:
    """Holds a response until it is whole, then sends it with the fixed headers, padded to whole blocks."""

    def __init__(self, send: Send, scope: MutableMapping[str, Any], nonce: str) -> None:
        self._send, self._nonce = send, nonce
        self._secure, self._static = (
            scope.get("scheme") == "https",
            scope["path"].startswith(_STATIC),
        )
        self._start: Message | None = None
        self._body = bytearray()
        self.status = 0
        self.instead: Refused | None = None
        """What is sent in place of whatever the framework makes of a body that broke off."""
        self._done = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await (
                    self._finish(self._start)
                    if self.instead is None
                    else self.problem(self.instead)
                )

    async def problem(self, error: Refused | SordinoError) -> None:
        """Send a refusal, if nothing was sent yet."""
        if self._done:
            return
        facts = as_problem(error)
        more = error.headers if isinstance(error, Refused) else {}
        headers = [(b"content-type", b"application/problem+json")]
        headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
        self._body = bytearray(json.dumps(facts).encode())
        await self._finish(
            {"type": "http.response.start", "status": facts["status"], "headers": headers}
        )

    async def _finish(self, start: Message) -> None:
        own = {name for name, _ in HEADERS} | {b"content-length", b"content-security-policy"}
        headers = [
            (name.lower(), value)
            for name, value in start.get("headers", ())
            if name.lower() not in own
        ]
        if not (self._static and start["status"] == 200):
            headers = [(name, value) for name, value in headers if name != b"cache-control"]
            headers.append((b"cache-control", b"no-store"))
        kind = dict(headers).get(b"content-type", b"").split(b";")[0].strip()
        if self._body and kind in _PADDED:
            self._body += b" " * (-len(self._body) % BLOCK)
        policy = page_policy(self._nonce) if kind == b"text/html" else NO_POLICY
        headers += [
            *HEADERS,
            (b"content-security-policy", policy),
            (b"content-length", str(len(self._body)).encode()),
        ]
        if self._secure:
            headers.append((b"strict-transport-security", b"max-age=31536000"))
        self.status, self._done = start["status"], True
        await self._send(
            {"type": "http.response.start", "status": start["status"], "headers": headers}
        )
        await self._send({"type": "http.response.body", "body": bytes(self._body)})
