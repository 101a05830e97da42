"""Tokens, passwords and pages: what is kept, what ends, and what strangers can try."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

from server.house import House, add, house
from server.live import live
from sordino.errors import InvalidInput
from sordino.server.accounts.people import EVERYWHERE, Person, Role, Scope
from sordino.server.accounts.policy import Policy
from sordino.server.accounts.secrets_of_people import PREFIX, Passwords, new_token
from sordino.server.accounts.store import Store
from sordino.server.web.refusals import Refused
from sordino.server.web.sessions import Sessions

ALL = frozenset(Scope)


@pytest.fixture
def home() -> Iterator[House]:
    with house() as found:
        yield found


def test_tokens_have_256_bits_and_are_all_different() -> None:
    found = {new_token() for _ in range(1000)}
    assert len(found) == 1000
    assert all(len(token) == len(PREFIX) + 43 for token in found)
    ones = sum(bin(int.from_bytes(token.encode(), "big")).count("1") for token in found)
    assert ones > 0


def test_the_file_holds_no_token_and_no_password_and_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite3"
    store = Store(path)
    token = add(store, "ana", Role.analyst)
    password = "a long sentence of mine"
    store.set_password("ana", Passwords().hashed(password))
    assert store.principal(token) is not None
    store.close()
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert token.encode() not in held
    assert token.removeprefix(PREFIX).encode() not in held
    assert password.encode() not in held
    assert b"$argon2id$" in held
    assert path.stat().st_mode & 0o077 == 0


def test_a_token_expires_and_can_be_revoked(home: House) -> None:
    now = home.store.clock()
    assert home.get("analyst", "/v1/me").status_code == 200
    home.store.clock = lambda: now + 31 * 86_400
    assert home.get("analyst", "/v1/me").status_code == 401
    home.store.clock = lambda: now
    made = home.post("analyst", "/v1/tokens", {"label": "notebook"}).json()
    home.tokens["second"] = made["secret"]
    assert home.get("second", "/v1/me").json()["token"]["label"] == "notebook"
    assert (
        home.http.delete(f"/v1/tokens/{made['id']}", headers=home.as_("other")).status_code == 404
    )
    assert home.get("second", "/v1/me").status_code == 200
    assert (
        home.http.delete(f"/v1/tokens/{made['id']}", headers=home.as_("analyst")).status_code == 204
    )
    assert home.get("second", "/v1/me").status_code == 401
    listed = home.get("analyst", "/v1/tokens").text
    assert made["secret"] not in listed
    assert home.get("analyst", "/v1/tokens").json()["tokens"][-1]["revoked"]


def test_a_change_by_another_process_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite3"
    one, other = Store(path), Store(path)
    token = add(one, "ana", Role.analyst)
    assert other.principal(token) is not None
    assert one.principal(token) is not None
    other.close_person("ana")
    assert one.principal(token) is None
    one.close()
    other.close()


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "web.sqlite3"
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(InvalidInput, match="newer Sordino"):
        Store(path)


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_file_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "web.sqlite3"
    store = Store(path)
    token = add(store, "ana", Role.analyst)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "DROP TABLE secrets; DROP INDEX tokens_by; ALTER TABLE tokens DROP COLUMN parent;"
        )
        if version == 1:
            connection.execute("DROP TABLE pins")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    store = Store(path)
    found = store.principal(token)
    assert found is not None
    text, made = store.add_token("ana", "", ALL, EVERYWHERE, 1e6, parent=found.token)
    assert (store.principal(text) is not None, store.pins("visits")) == (True, [])
    assert store.revoke(found.token.id)
    assert store.principal(text) is None
    with pytest.raises(InvalidInput, match="just ended"):
        store.add_token("ana", "", ALL, EVERYWHERE, 1e6, parent=made)
    store.close()


def test_a_closed_account_stays_closed_and_its_name_is_not_given_again() -> None:
    store = Store()
    token = add(store, "ana", Role.analyst)
    assert store.close_person("ana")
    assert not store.close_person("ana")
    assert store.principal(token) is None
    with pytest.raises(InvalidInput, match="Choose another name"):
        store.add_person(Person("ana", frozenset((Role.analyst,))))
    with pytest.raises(InvalidInput, match="no open account"):
        store.add_token("ana", "", ALL, EVERYWHERE, 100)
    store.close()


def test_logging_in_with_a_password(home: House) -> None:
    password = "correct horse battery"
    with pytest.raises(InvalidInput, match="12 to 1024"):
        Passwords().hashed("short")
    home.store.set_password("analyst", Passwords().hashed(password))
    token = home.http.post("/v1/login", json={"name": "analyst", "password": password}).json()[
        "secret"
    ]
    assert (
        home.http.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).json()["name"]
        == "analyst"
    )
    wrong = home.http.post("/v1/login", json={"name": "analyst", "password": password + "!"})
    unknown = home.http.post("/v1/login", json={"name": "nobody at all", "password": password})
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() == unknown.json()


def test_wrong_passwords_slow_down_those_who_try_them_and_nobody_else() -> None:
    now = [0.0]
    passwords = Passwords(lambda: now[0])
    assert [passwords.wait("ana", "evil") for _ in range(7)] == [0] * 5 + [1, 1]
    assert passwords.wait("ana", "home") == passwords.wait("bob", "evil") == 0
    waits = []
    for _ in range(9):
        now[0] += (left := passwords.wait("ana", "evil"))
        waits.append(left)
        assert passwords.wait("ana", "evil") == 0
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]  # a minute at most: 1,440 tries a day
    passwords.right("ana", "home")
    assert passwords.wait("ana", "evil") > 0  # whose password is right elsewhere helps nobody here
    now[0] += 3601
    assert [passwords.wait("ana", "evil") for _ in range(6)] == [0] * 5 + [1]
    passwords.right("ana", "evil")
    assert [passwords.wait("ana", "evil") for _ in range(6)] == [0] * 5 + [1]


def test_tries_of_very_many_names_are_forgotten_in_time() -> None:
    now = [0.0]
    passwords = Passwords(lambda: now[0])
    for i in range(10_001):
        passwords.wait(f"name {i}", "evil")
    now[0] = 3601
    passwords.wait("ana", "evil")
    assert len(passwords._wrong) == 1


def test_too_many_logins_are_told_to_wait(home: House) -> None:
    found = [
        home.http.post("/v1/login", json={"name": "x", "password": "wrong wrong"}) for _ in range(6)
    ]
    assert [one.status_code for one in found] == [401] * 5 + [429]
    assert found[-1].headers["retry-after"] == "1"


@pytest.mark.parametrize(("proxies", "last"), [(("127.0.0.1",), 401), (("10.0.0.0/8",), 429)])
def test_only_a_proxy_that_is_named_says_where_a_login_came_from(
    tmp_path: Path, proxies: tuple[str, ...], last: int
) -> None:
    with live(tmp_path, proxies=proxies) as there:
        found = [
            httpx.post(
                f"{there.address}/v1/login",
                json={"name": "x", "password": "wrong wrong"},
                headers={"X-Forwarded-For": f"198.51.100.{i}"},
            ).status_code
            for i in range(6)
        ]
    assert found == [401] * 5 + [last]


def test_pages_by_cookie(home: House) -> None:
    home.store.set_password("owner", Passwords().hashed("correct horse battery"))
    assert home.http.get("/", follow_redirects=False).headers["location"] == "/login"
    wrong = home.http.post(
        "/login", data={"name": "owner", "password": "<b>no"}, follow_redirects=False
    )
    assert wrong.status_code == 401
    form = {"name": "owner", "password": "correct horse battery"}
    foreign = home.http.post(
        "/login", data=form, headers={"Origin": "https://evil.test"}, follow_redirects=False
    )
    assert foreign.status_code == 403
    done = home.http.post(
        "/login", data=form, headers={"Origin": "https://sordino.test"}, follow_redirects=False
    )
    cookie = done.headers["set-cookie"]
    assert done.status_code == 303
    assert cookie.startswith("__Host-sordino=")
    assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"))
    secret = cookie.partition("=")[2].partition(";")[0]
    page = home.http.get("/")
    assert "visits" in page.text
    assert ">100 %</data> left" in page.text
    # a browser sends a cookie by itself: it reads, and changes nothing
    assert home.http.put("/v1/datasets/visits/policy", json={}).status_code == 401
    assert home.http.get("/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert home.http.post("/logout", follow_redirects=False).status_code == 303
    home.http.cookies.set("__Host-sordino", secret)
    assert home.http.get("/", follow_redirects=False).headers["location"] == "/login"


def test_names_are_escaped_in_pages(home: House) -> None:
    name = "<script>alert(1)</script>"
    add(home.store, name, Role.owner)
    text, _ = home.store.add_token(name, "", ALL, EVERYWHERE, 1000, page=True)
    page = home.http.get("/", headers={"Cookie": f"__Host-sordino={text}"}).text
    assert name not in page
    assert "&lt;script&gt;" in page


def test_a_suspension_is_not_lost_to_rules_that_are_saved_at_the_same_time(home: House) -> None:
    """The owner suspends after another save of rules has looked, and before it writes."""
    update, began = home.store.update_policy, threading.Event()
    gate = threading.Event()

    def slowly(dataset: str, change: Callable[[Policy], Policy]) -> Policy:
        began.set()
        assert gate.wait(10)
        return update(dataset, change)

    home.store.update_policy = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        saved = pool.submit(home.put, "owner", "/v1/datasets/visits/policy", {"per_day": 5})
        assert began.wait(10)
        update("visits", lambda rules: replace(rules, suspended=True))
        gate.set()
        assert saved.result().status_code == 200
    found = home.store.policy("visits")
    assert found.suspended
    assert found.caps.per_day == Fraction(5)


def test_rules_are_changed_by_one_process_at_a_time(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "web.sqlite3") for _ in range(2)]

    def one_more(rules: Policy) -> Policy:
        time.sleep(0.001)
        return replace(rules, sharing=rules.sharing | {str(len(rules.sharing))})

    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda i: stores[i % 2].update_policy("visits", one_more), range(40)):
            pass
    assert len(stores[0].policy("visits").sharing) == 40
    for store in stores:
        store.close()


def test_strangers_who_log_in_keep_nobody_else_waiting() -> None:
    """Hashes of passwords are slow: at most two at once, few wait, and other work has threads of its own."""
    store, gate = Store(), threading.Event()
    sessions = Sessions(store)
    sessions.passwords.matches = lambda *_: not gate.wait(20)  # type: ignore[method-assign]

    async def flood() -> list[int]:
        tries = [
            asyncio.create_task(sessions.by_password(f"n{i}", "x" * 20, page=False, address=""))
            for i in range(40)
        ]
        await asyncio.sleep(0.05)
        try:
            await asyncio.wait_for(asyncio.to_thread(store.people), 5)
        finally:
            gate.set()
        found = await asyncio.gather(*tries, return_exceptions=True)
        return [each.status for each in found if isinstance(each, Refused)]

    found = asyncio.run(flood())
    assert (found.count(401), found.count(429)) == (22, 18)
    store.close()
