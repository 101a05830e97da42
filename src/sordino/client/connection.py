"""Requests to a Sordino server: a token, JSON, and errors that are those of a session. Nothing but the standard
library.

A request that is safe to repeat is repeated when a connection breaks; a question is, because its key is chosen here.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from sordino.errors import InvalidInput, LedgerUnavailable
from sordino.privacy.exact import show
from sordino.server.link import JSON
from sordino.server.problems import error_of

__all__ = ["Connection", "is_address", "quoted"]

_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
_PATIENCE = 90.0
_MOST = 2**28


def is_address(text: object) -> bool:
    """Whether a text is the address of a server, where a declaration could stand."""
    return isinstance(text, str) and text.lower().startswith(("https://", "http://"))


class Connection:
    """To one server, as one person. Threads may use it at once."""

    def __init__(
        self, address: str, token: str | None, certificate: str | os.PathLike[str] | None = None
    ) -> None:
        if not is_address(address):
            rule = "the address of a server begins with https://"
            raise InvalidInput(
                f"address={show(address)}", rule, "Pass 'https://sordino.example.org/visits'."
            )
        try:
            parts = urlsplit(address)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidInput(
                f"address={show(address)}", "it is not an address", "Pass 'https://host/visits'."
            ) from None
        if parts.username or parts.password or parts.query or parts.fragment or not self._host:
            rule = "it is https://, a host, perhaps a port, and the name of a dataset"
            raise InvalidInput(
                "address", rule, "Pass 'https://sordino.example.org/visits', and the token apart."
            )
        self._secure = parts.scheme.lower() == "https"
        if not self._secure and not _is_here(self._host):
            rule = "without TLS everybody on the way reads the token and the answers"
            raise InvalidInput(
                f"address={show(address)}",
                rule,
                "Write https://; http:// is for this machine only.",
            )
        self._token = token if token is not None else _token_at_hand()
        if not self._token.isascii() or not self._token.isprintable() or " " in self._token:
            raise InvalidInput(
                "token", "a token is a word of letters and digits", "Pass it as it was shown."
            )
        self._tls = _trusted(certificate) if self._secure else None
        self.place = f"{parts.scheme.lower()}://{parts.netloc}"
        self.named = [unquote(part) for part in parts.path.split("/") if part]
        """What stands behind the host: the name of a dataset, if it is given there."""
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def get(self, path: str, **query: Any) -> Any:
        """What a GET gives."""
        return self._json("GET", f"{path}?{urlencode(query)}" if query else path)

    def raw(self, path: str) -> bytes:
        """What a GET gives, as it came."""
        return self._repeated("GET", path, b"", {})

    def post(
        self, path: str, body: Mapping[str, JSON], headers: Mapping[str, str] | None = None
    ) -> Any:
        """What a POST gives; repeated if the connection breaks, so that it must be safe to repeat."""
        return self._json(
            "POST",
            path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _json(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Any:
        found = self._repeated(method, path, body, headers or {})
        try:
            return json.loads(found) if found.strip() else None
        except ValueError:
            raise self._unreached("what answers there is no Sordino server") from None

    def _repeated(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        for pause in (*_PAUSES, None):
            try:
                status, found = self._once(method, path, body, headers)
            except ssl.SSLCertVerificationError:
                raise self._unreached("its certificate is not trusted here") from None
            except (OSError, http.client.HTTPException):
                self.close()
                if pause is None:
                    raise self._unreached("it does not answer") from None
            else:
                if status < 400:
                    return found
                if status not in (429, 502, 503) or pause is None or b'"engine-failed"' in found:
                    raise self._refusal(status, found)
            time.sleep(pause)
        raise AssertionError

    def _once(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        with self._lock:
            line = self._idle.pop() if self._idle else None
        if line is None:
            if self._tls is not None:
                line = http.client.HTTPSConnection(
                    self._host, self._port, timeout=_PATIENCE, context=self._tls
                )
            else:
                line = http.client.HTTPConnection(self._host, self._port, timeout=_PATIENCE)
        try:
            line.request(
                method, path, body or None, {"Authorization": f"Bearer {self._token}", **headers}
            )
            answer = line.getresponse()
            found = answer.status, answer.read(_MOST)
        except BaseException:
            line.close()
            raise
        with self._lock:
            self._idle.append(line)
        return found

    def _refusal(self, status: int, found: bytes) -> Exception:
        try:
            facts = json.loads(found)
            code = str(facts["code"])
        except (ValueError, LookupError, TypeError):
            return self._unreached(f"it answers with status {status}, which no Sordino server does")
        if code in ("unauthenticated", "forbidden", "not-found"):
            value = str(facts.get("value") or "this token")
            return InvalidInput(
                value,
                str(facts.get("rule")),
                str(facts.get("hint") or "Ask whoever runs the server."),
            )
        return error_of(facts)

    def _unreached(self, rule: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            self.place, rule, "Check the address, and whether the server runs."
        )

    def close(self) -> None:
        """Close what is not in use; a later request opens it again."""
        with self._lock:
            lines, self._idle = self._idle, []
        for line in lines:
            line.close()


def _is_here(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token_at_hand() -> str:
    """From the environment: a token does not stand on command lines, which others can see."""
    if token := os.environ.get("SORDINO_TOKEN"):
        return token.strip()
    if path := os.environ.get("SORDINO_TOKEN_FILE"):
        try:
            return Path(path).read_text("utf-8").strip()
        except (OSError, ValueError):
            rule = "the file of the token cannot be read"
            raise InvalidInput(
                "SORDINO_TOKEN_FILE", rule, "Check the path in SORDINO_TOKEN_FILE."
            ) from None
    rule = "a server wants to know who asks"
    raise InvalidInput(
        "no token", rule, "Pass token='sordino_...', or set SORDINO_TOKEN or SORDINO_TOKEN_FILE."
    )


def _trusted(certificate: str | os.PathLike[str] | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if certificate is None else os.fspath(certificate)
        )
    except (OSError, ssl.SSLError):
        rule = "it is not a file of certificates"
        raise InvalidInput(
            f"certificate={show(str(certificate))}", rule, "Pass the file of your own authority."
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def quoted(part: str) -> str:
    """A part of a path."""
    return quote(part, safe="")
