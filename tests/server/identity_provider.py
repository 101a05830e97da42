"""A small OpenID Connect provider that really runs: discovery, code flow with PKCE, signed ID tokens, a set of keys."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

__all__ = ["IdentityProvider", "identity_provider"]


KEY = RSAKey.generate_key(2048, {"kid": "one"})


class IdentityProvider:
    """Whoever comes is `subject`; `twist` changes the claims before they are signed, `key` is what signs them."""

    def __init__(self) -> None:
        self.subject = "ana-4711"
        self.client = "sordino-web"
        self.twist: dict[str, Any] = {}
        self.key = KEY
        self.published = self.key
        self.issuer = ""
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is sent after somebody has logged in here."""
        assert (query["response_type"], query["client_id"]) == ("code", self.client)
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        query = self._codes.pop(form.get("code", ""), None)
        if query is None or form["redirect_uri"] != query["redirect_uri"]:
            return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != query["code_challenge"]:
            return None
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": self.subject, "aud": self.client, "iat": now, "exp": now + 300,
            "nonce": query["nonce"], **self.twist,
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {
            "access_token": secrets.token_urlsafe(),
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": signed,
        }


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _send(self, body: Any, status: int = 200, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if parts.path == "/.well-known/openid-configuration":
                places = {
                    "authorization_endpoint": "authorize",
                    "token_endpoint": "token",
                    "jwks_uri": "keys",
                }
                own = {name: f"{provider.issuer}/{place}" for name, place in places.items()}
                self._send({"issuer": provider.issuer, **own})
            elif parts.path == "/authorize":
                self._send({}, 302, Location=provider.authorize(query))
            elif parts.path == "/keys":
                self._send({"keys": [provider.published.as_dict(private=False)]})
            else:
                self._send({}, 404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found = provider.token({name: values[0] for name, values in parse_qs(body).items()})
            self._send(
                {"error": "invalid_grant"} if found is None else found,
                400 if found is None else 200,
            )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
