"""Logging in at an identity provider, against one that really runs; and each way in which its proof can be wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from joserfc.jwk import RSAKey

from server.house import House, house
from server.identity_provider import IdentityProvider, identity_provider
from sordino.server.accounts.oidc import Provider

BACK = "https://sordino.test/v1/oidc/callback"


@pytest.fixture
def there() -> Iterator[tuple[House, IdentityProvider]]:
    with (
        identity_provider() as provider,
        house(provider=Provider(provider.issuer, provider.client, "a secret", BACK)) as home,
    ):
        home.store.bind_subject("owner", f"{provider.issuer}|ana-4711")
        yield home, provider


def come_back(home: House) -> str:
    """Where the provider sends a browser that logged in there."""
    begun = home.http.get("/v1/oidc/login", follow_redirects=False)
    assert begun.status_code == 303
    return httpx.get(begun.headers["location"]).headers["location"]


def test_whoever_has_an_account_gets_in(there: tuple[House, IdentityProvider]) -> None:
    home, _ = there
    place = come_back(home)
    done = home.http.get(place, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert "<span>owner</span>" in home.http.get("/").text
    home.http.cookies.clear()
    assert home.http.get(place, follow_redirects=False).status_code == 403  # once
    assert "Log in with your organisation" in home.http.get("/login").text


def test_whoever_has_none_does_not(there: tuple[House, IdentityProvider]) -> None:
    home, provider = there
    provider.subject = "somebody else"
    assert home.http.get(come_back(home), follow_redirects=False).status_code == 403


@pytest.mark.parametrize(
    "twist",
    [
        {"iss": "http://evil.test"}, {"aud": "another client"}, {"exp": int(time.time()) - 3600}, {"nonce": "another"},
        {"sub": None}, {"nonce": None},
    ],
)  # fmt: skip
def test_a_proof_for_something_else_is_refused(
    there: tuple[House, IdentityProvider], twist: dict[str, Any]
) -> None:
    home, provider = there
    provider.twist = twist
    done = home.http.get(come_back(home), follow_redirects=False)
    assert done.status_code == 403
    assert "set-cookie" not in done.headers


def test_a_proof_signed_by_another_key_is_refused(there: tuple[House, IdentityProvider]) -> None:
    home, provider = there
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert home.http.get(come_back(home), follow_redirects=False).status_code == 403


def test_a_login_that_did_not_begin_here_is_refused(there: tuple[House, IdentityProvider]) -> None:
    home, _ = there
    place = come_back(home)
    for wrong in (
        place.replace("state=", "state=x"),
        place.partition("&state")[0],
        BACK,
        f"{BACK}?error=access_denied",
    ):
        assert home.http.get(wrong, follow_redirects=False).status_code == 403


def test_a_login_that_began_in_another_browser_is_refused(
    there: tuple[House, IdentityProvider],
) -> None:
    home, _ = there
    place = come_back(home)
    home.http.cookies.clear()
    assert home.http.get(place, follow_redirects=False).status_code == 403


def test_a_code_of_another_login_is_refused(there: tuple[House, IdentityProvider]) -> None:
    """By PKCE: the code of one login does not fit the verifier of another."""
    home, _ = there
    one, other = come_back(home), come_back(home)
    mixed = one.partition("&state=")[0] + "&state=" + other.partition("&state=")[2]
    assert home.http.get(mixed, follow_redirects=False).status_code == 502


def test_a_provider_that_does_not_answer() -> None:
    with house(provider=Provider("http://127.0.0.1:9", "c", None, BACK)) as home:
        assert home.http.get("/v1/oidc/login", follow_redirects=False).status_code == 502
