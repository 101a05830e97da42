"""Logging in at an identity provider: OpenID Connect, code flow with PKCE, by Authlib.

The provider says who somebody is; what they may do is said by their account here, which is bound to issuer and subject.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sordino.errors import InvalidInput
from sordino.server.accounts.secrets_of_people import new_token
from sordino.server.web.refusals import Refused

__all__ = ["Provider"]

_PATIENCE = 600.0
_MOST_OPEN = 10_000


@dataclass(frozen=True)
class _Begun:
    verifier: str
    nonce: str
    time: float


class Provider:
    """One identity provider.

    `address` is its issuer; `redirect` is this server's /v1/oidc/callback, as registered there.
    """

    def __init__(
        self, issuer: str, client_id: str, client_secret: str | None, redirect: str
    ) -> None:
        try:
            import authlib  # noqa: F401
            import httpx  # noqa: F401
        except ModuleNotFoundError:
            hint = "Install it: pip install 'sordino[server]'"
            raise InvalidInput(
                "an identity provider", "OpenID Connect needs authlib and httpx", hint
            ) from None
        self.issuer, self._id, self._secret, self._redirect = (
            issuer.rstrip("/"),
            client_id,
            client_secret,
            redirect,
        )
        self._begun: dict[str, _Begun] = {}
        self._facts: Mapping[str, Any] | None = None

    async def _configuration(self) -> Mapping[str, Any]:
        if self._facts is None:
            import httpx

            async with httpx.AsyncClient(timeout=10) as client:
                found = await client.get(f"{self.issuer}/.well-known/openid-configuration")
                facts = found.raise_for_status().json()
            if facts.get("issuer", "").rstrip("/") != self.issuer:
                raise Refused(502, "unexpected", "the identity provider has another name")
            self._facts = facts
        return self._facts

    @staticmethod
    async def _keys(place: str) -> Any:
        import httpx

        async with httpx.AsyncClient(timeout=10) as client:
            return (await client.get(place)).raise_for_status().json()

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        return AsyncOAuth2Client(
            self._id,
            self._secret,
            scope="openid",
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=10,
        )

    async def begin(self) -> tuple[str, str]:
        """The address at the provider to which somebody is sent, and the state that their browser has to bring back."""
        facts = await self._reached(self._configuration())
        now = time.monotonic()
        self._begun = {
            state: begun for state, begun in self._begun.items() if now - begun.time < _PATIENCE
        }
        if len(self._begun) >= _MOST_OPEN:
            raise Refused(
                429, "too-many-requests", "too many are logging in", headers={"Retry-After": "60"}
            )
        verifier, nonce, state = new_token() + new_token(), new_token(), new_token()
        async with self._client() as client:
            address, _ = client.create_authorization_url(
                facts["authorization_endpoint"],
                state=state,
                code_verifier=verifier.replace("_", "-"),
                nonce=nonce,
            )
        self._begun[state] = _Begun(verifier.replace("_", "-"), nonce, now)
        return str(address), state

    async def finish(self, code: str, state: str) -> str:
        """Who came back, as "issuer|subject"; refuses whoever did not begin here, or whose proof does not hold."""
        begun = self._begun.pop(state, None)
        if begun is None or not code or time.monotonic() - begun.time > _PATIENCE:
            raise Refused(
                403, "forbidden", "this login did not begin here, or took too long", "Log in again."
            )
        facts = await self._reached(self._configuration())
        async with self._client() as client:
            tokens = await self._reached(
                client.fetch_token(facts["token_endpoint"], code=code, code_verifier=begun.verifier)
            )  # fmt: skip
        keys = await self._reached(self._keys(facts["jwks_uri"]))
        claims = self._claims(str(tokens.get("id_token", "")), keys)
        if not hmac.compare_digest(str(claims.get("nonce", "")), begun.nonce):
            raise Refused(
                403, "forbidden", "the proof of the identity provider is of another login"
            )
        return f"{self.issuer}|{claims['sub']}"

    def _claims(self, token: str, keys: Any) -> Mapping[str, Any]:
        """What an ID token says, after its signature, issuer, audience and time were checked."""
        from joserfc import jwt
        from joserfc.jwk import KeySet

        try:
            found = jwt.decode(
                token, KeySet.import_key_set(keys), algorithms=["RS256", "ES256", "EdDSA"]
            )
            jwt.JWTClaimsRegistry(
                leeway=60,
                iss={"essential": True, "value": self.issuer},
                aud={"essential": True, "value": self._id},
                exp={"essential": True},
                sub={"essential": True},
            ).validate(found.claims)
        except Exception:
            raise Refused(
                403,
                "forbidden",
                "the proof of the identity provider does not hold",
                "Log in again.",
            ) from None
        claims: Mapping[str, Any] = found.claims
        return claims

    @staticmethod
    async def _reached(step: Any) -> Any:
        try:
            return await step
        except Refused:
            raise
        except Exception:
            raise Refused(
                502,
                "unexpected",
                "the identity provider does not answer as it should",
                "Try again.",
            ) from None
