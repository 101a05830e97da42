"""Every route with every role: who gets in, by real requests; and what the table says, spelled out a second time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from server.house import COUNT, House, add, house
from sordino.server.accounts.people import EVERYWHERE, Role, Scope
from sordino.server.accounts.rights import RIGHTS, Right
from sordino.server.web.sessions import form_key
from sordino.server.web.site.static_files import version

SPELLED_OUT = """
healthz          open
openapi          open
login            open
oidc_login       open
oidc_callback    open
home_page        open
login_page       open
login_form       open
logout_form      open
link_page        open
static           open
workbench_start              analyst agent          read
workbench_page               analyst agent          read
ask_form                     analyst agent          ask
workbench_study              analyst agent          read
answer_page                  analyst agent          ask
answer_file                  analyst agent          ask
again_form                   analyst agent          ask
pin_form                     analyst agent          ask
history_page                 analyst agent          ask
board_page                   analyst agent          ask
me               admin owner analyst agent auditor  read
datasets               owner analyst agent auditor  read
dataset                owner analyst agent auditor  read
preview                owner analyst agent auditor  read
curve                  owner analyst agent auditor  read
sketch                 owner analyst agent auditor  read
ask                          analyst agent          ask
questions                    analyst agent          ask
question                     analyst agent          ask
answer                       analyst agent          ask
receipts                     analyst agent          ask
receipt                      analyst agent          ask
checkpoint             owner analyst agent auditor  read
budget                 owner analyst agent auditor  read
allotments             owner               auditor  audit
allot                  owner                        manage
take_back              owner                        manage
policy                 owner analyst agent auditor  read
set_policy             owner                        manage
approvals              owner               auditor  audit
decide                 owner                        manage
suspend                owner                        manage
resume                 owner                        manage
log                    owner               auditor  audit
report                 owner               auditor  audit
people           admin owner                        manage
add_person       admin owner                        manage
remove_person    admin owner                        manage
set_password     admin owner analyst agent auditor  read
tokens           admin owner analyst agent auditor  read
add_token        admin owner analyst agent auditor  read
revoke_token     admin owner analyst agent auditor  read
metrics          admin                              manage
mcp                          analyst agent          ask
theory_page      open
theory_lesson    open
owner_page             owner                        manage
owner_dataset          owner                        manage
owner_allot            owner                        manage
owner_take_back        owner                        manage
owner_rules            owner                        manage
owner_decide           owner                        manage
owner_suspend          owner                        manage
owner_person           owner                        manage
owner_close_person       owner                        manage
declare_page           owner                        manage
declare_form           owner                        manage
audit_page             owner               auditor  audit
audit_dataset          owner               auditor  audit
audit_check            owner               auditor  audit
audit_checkpoint       owner               auditor  audit
agents_page            owner               auditor  audit
agents_connect         owner                        manage
tokens_page      admin owner analyst agent auditor  read
tokens_make      admin owner analyst agent auditor  read
tokens_revoke    admin owner analyst agent auditor  read
tokens_password  admin owner analyst agent auditor  read
"""
BODIES = {
    "preview": {"question": COUNT, "offer": {"epsilon": 0.1}},
    "curve": {"question": COUNT, "epsilons": [0.1]},
    "sketch": {"question": COUNT},
    "ask": {"question": COUNT, "offer": {"epsilon": 0.1}},
    "allot": {"epsilon": 5, "per_question": 1},
    "set_policy": {},
    "decide": {"approve": True},
    "add_person": {"name": "*", "roles": ["analyst"], "datasets": ["visits"]},
    "set_password": {"password": "short"},
    "add_token": {"days": 1},
    "login": {"name": "nobody", "password": "x"},
    "mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}


@pytest.fixture(scope="module")
def home() -> Iterator[House]:
    with house() as found:
        yield found


def test_the_table_is_as_it_is_meant() -> None:
    for line in SPELLED_OUT.strip().splitlines():
        name, *words = line.split()
        right = RIGHTS[name]
        if words == ["open"]:
            assert right.roles is None
        else:
            assert right.roles == frozenset(map(Role, words[:-1])), name
            assert right.scope == words[-1], name
    assert len(SPELLED_OUT.strip().splitlines()) == len(RIGHTS)


def send(home: House, name: str, right: Right, headers: dict[str, str]) -> int:
    parts = {
        "dataset": "visits",
        "question": "0" * 32,
        "analyst": "agent",
        "name": "nobody",
        "token": "none",
    }
    path = right.path.format(**parts, version=version(), file="sordino.css", form="csv")
    accept = {"Accept": "application/json, text/event-stream"} if name == "mcp" else {}
    body = BODIES.get(name) if right.method in ("POST", "PUT") else None
    found = home.http.request(
        right.method, path, json=body, headers={**headers, **accept}, follow_redirects=False
    )
    return found.status_code


@pytest.mark.parametrize("name", RIGHTS)
def test_a_route_lets_in_whom_the_table_names_and_nobody_else(home: House, name: str) -> None:
    right = RIGHTS[name]
    assert (send(home, name, right, {}) in (401,)) == (
        right.roles is not None or name in ("login", "login_form")
    )
    assert (
        send(home, name, right, {"Authorization": "Bearer sordino_" + "A" * 43}) == 401
        or right.roles is None
    )
    for role in Role:
        status = send(home, name, right, home.as_(role))
        if right.roles is None:
            assert status not in (403, 500)
        elif role in right.roles and not right.session:
            assert status not in (401, 403, 405, 500), (name, role)
        else:
            assert status == 403, (name, role)


def test_a_token_of_a_smaller_scope_allows_less(home: House) -> None:
    for scope in Scope:
        for role in Role:
            text, _ = home.store.add_token(role, "small", frozenset((scope,)), EVERYWHERE, 1000)
            for name, right in RIGHTS.items():
                if (
                    right.roles is not None
                    and role in right.roles
                    and name != "add_token"
                    and not right.session
                ):
                    status = send(home, name, right, {"Authorization": f"Bearer {text}"})
                    assert (status == 403) == (right.scope != scope), (name, role, scope)


def test_no_token_sets_a_password(home: House) -> None:
    """Otherwise whoever finds a token for reading has the whole account, for good."""
    for role in Role:
        for path, method in (("/v1/me/password", "PUT"), ("/tokens/password", "POST")):
            found = home.http.request(
                method, path, json={"password": "one of the thief's"}, headers=home.as_(role)
            )
            assert found.status_code == 403
        assert home.store.password_of(role) is None


def test_a_password_is_changed_with_the_current_one_and_from_a_page(home: House) -> None:
    def change(**fields: str) -> int:
        session, _ = home.store.add_token(
            "other", "pages", frozenset(Scope), EVERYWHERE, 1000, page=True
        )
        sent = {**fields, "form_key": form_key(session, home.store.form_secret)}
        headers = {"Cookie": f"__Host-sordino={session}"}
        return home.http.post(
            "/tokens/password", data=sent, headers=headers, follow_redirects=False
        ).status_code

    first, second = "a first long sentence", "a second long sentence"
    assert change(password=first, again=first) == 303  # by a login link, or at an identity provider
    kept = home.store.password_of("other")
    assert change(password=second, again=second) == 401
    assert change(password=second, again=second, current="not this one") == 401
    assert home.store.password_of("other") == kept
    assert change(password=second, again=second, current=first) == 303
    assert home.store.password_of("other") != kept


def test_a_token_for_one_dataset_does_not_see_another(home: House) -> None:
    text, _ = home.store.add_token(
        "analyst", "narrow", frozenset(Scope), frozenset(("elsewhere",)), 1000
    )
    headers = {"Authorization": f"Bearer {text}"}
    assert home.http.get("/v1/datasets", headers=headers).json()["datasets"] == []
    assert home.http.get("/v1/datasets/visits", headers=headers).status_code == 404
    home.tokens["narrow"] = text
    for right in RIGHTS.values():
        if "{dataset}" in right.path and right.roles is not None and Role.analyst in right.roles:
            name = next(key for key, value in RIGHTS.items() if value is right)
            assert send(home, name, right, headers) == 404, name


def test_owners_keep_accounts_of_their_own_datasets_only(home: House) -> None:
    home.tokens["small"] = add(home.store, "small", Role.owner, datasets=frozenset(("visits",)))
    fine = {"name": "ana", "roles": ["analyst"], "datasets": ["visits"]}
    assert home.post("small", "/v1/people", fine).status_code == 201
    assert home.post("small", "/v1/people", fine).status_code == 422  # names are given once
    for body in (
        {"name": "eve", "roles": ["admin"], "datasets": ["visits"]},
        {"name": "eve", "roles": ["analyst", "owner"], "datasets": ["visits"]},
        {"name": "eve", "roles": ["analyst"], "datasets": ["visits", "elsewhere"]},
        {"name": "eve", "roles": ["analyst"], "datasets": ["*"]},
        {"name": "eve", "roles": ["analyst"]},
    ):
        assert home.post("small", "/v1/people", body).status_code == 403, body
    assert home.post("small", "/v1/tokens", {"person": "admin"}).status_code == 404
    assert home.http.delete("/v1/people/admin", headers=home.as_("small")).status_code == 404
    made = home.post("small", "/v1/tokens", {"person": "ana", "scopes": ["read", "ask"]})
    assert made.status_code == 201
    home.tokens["ana"] = made.json()["secret"]
    assert home.get("ana", "/v1/datasets/visits").status_code == 200
    assert home.http.delete("/v1/people/ana", headers=home.as_("small")).status_code == 204
    assert home.get("ana", "/v1/datasets/visits").status_code == 401


def test_only_who_keeps_accounts_makes_tokens_of_others(home: House) -> None:
    """An analyst who sees the same datasets is no keeper: otherwise anybody could ask, and read, in anybody's name."""
    for role in (Role.analyst, Role.agent, Role.auditor):
        for other in ("other", "auditor", "agent", "owner", "admin"):
            if other != role:
                assert home.post(role, "/v1/tokens", {"person": other}).status_code == 404, (
                    role,
                    other,
                )
    assert home.post("owner", "/v1/tokens", {"person": "other"}).status_code == 201


def test_a_limited_token_keeps_no_account_beyond_its_limits(home: House) -> None:
    scopes = frozenset((Scope.manage, Scope.read))
    for role in ("owner", "admin"):
        text, _ = home.store.add_token(role, "narrow", scopes, frozenset(("visits",)), 1000)
        home.tokens["keeper"] = text
        for datasets in (["elsewhere"], ["visits", "elsewhere"], ["*"], []):
            spy = {"name": "spy", "roles": ["auditor"], "datasets": datasets}
            assert home.post("keeper", "/v1/people", spy).status_code == 403, (role, datasets)
        assert home.post("keeper", "/v1/tokens", {"person": "stranger"}).status_code == 404
        name = f"vera of {role}"
        made = {"name": name, "roles": ["analyst", "auditor"], "datasets": ["visits"]}
        assert home.post("keeper", "/v1/people", made).status_code == 201
        token = home.post("keeper", "/v1/tokens", {"person": name}).json()
        assert (token["scopes"], token["datasets"]) == (["manage", "read"], ["visits"])
        assert (
            home.post("keeper", "/v1/tokens", {"person": name, "scopes": ["audit"]}).status_code
            == 403
        )
        assert (
            home.post(
                "keeper", "/v1/tokens", {"person": name, "datasets": ["elsewhere"]}
            ).status_code
            == 403
        )


def test_a_token_makes_none_that_lasts_longer_and_they_end_with_it(home: House) -> None:
    text, first = home.store.add_token("owner", "first", frozenset(Scope), EVERYWHERE, 1000)
    home.tokens["first"] = text
    second = home.post("first", "/v1/tokens", {"days": 400}).json()
    assert second["expires"] == first.expires
    home.tokens["second"] = second["secret"]
    third = home.post(
        "second", "/v1/tokens", {"person": "other", "scopes": ["read"], "days": 400}
    ).json()
    assert third["expires"] == first.expires
    home.tokens["third"] = third["secret"]
    assert home.get("third", "/v1/datasets").status_code == 200
    assert home.http.delete(f"/v1/tokens/{first.id}", headers=home.as_("owner")).status_code == 204
    assert [home.get(each, "/v1/me").status_code for each in ("first", "second", "third")] == [
        401
    ] * 3
    assert home.get("owner", "/v1/me").status_code == home.get("other", "/v1/me").status_code == 200


def test_an_owner_ends_tokens_of_accounts_that_they_keep(home: House) -> None:
    _, agents = home.store.add_token(
        "agent", "agent", frozenset((Scope.read, Scope.ask)), frozenset(("visits",)), 1000
    )
    _, admins = home.store.add_token("admin", "", frozenset(Scope), EVERYWHERE, 1000)
    home.tokens["reads"], _ = home.store.add_token(
        "owner", "", frozenset((Scope.read,)), EVERYWHERE, 1000
    )
    for name in ("stranger", "analyst", "auditor", "reads"):
        assert agents.id not in home.get(name, "/tokens").text
        assert (
            home.http.delete(f"/v1/tokens/{agents.id}", headers=home.as_(name)).status_code == 404
        ), name
    assert home.http.delete(f"/v1/tokens/{admins.id}", headers=home.as_("owner")).status_code == 404
    assert agents.id in home.get("owner", "/tokens").text
    done = home.http.post(
        "/tokens/revoke",
        data={"token": agents.id},
        headers=home.as_("owner"),
        follow_redirects=False,
    )
    assert done.status_code == 303
    assert [each.revoked for each in home.store.tokens("agent") if each.id == agents.id] == [True]


def test_a_token_makes_none_that_allows_more(home: House) -> None:
    text, _ = home.store.add_token(
        "analyst", "read", frozenset((Scope.read,)), frozenset(("visits",)), 1000
    )
    home.tokens["reader"] = text
    made = home.post("reader", "/v1/tokens", {"scopes": ["read", "ask"], "datasets": ["*"]}).json()
    assert (made["scopes"], made["datasets"]) == (["read"], ["visits"])
    assert home.post("reader", "/v1/tokens", {"scopes": ["ask"]}).status_code == 403
    assert (
        home.post("reader", "/v1/tokens", {"datasets": ["visits", "elsewhere"]}).status_code == 403
    )
    narrow, _ = home.store.add_token("owner", "read", frozenset((Scope.read,)), EVERYWHERE, 1000)
    home.tokens["narrow owner"] = narrow
    assert home.post("narrow owner", "/v1/tokens", {"person": "analyst"}).status_code == 403
