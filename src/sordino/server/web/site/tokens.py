"""Tokens for programs, shown once; and one's own password."""

from __future__ import annotations

from fastapi import Response

from sordino.errors import InvalidInput
from sordino.privacy.exact import show as shown
from sordino.server.accounts.people import EVERYWHERE, Role, Scope
from sordino.server.web.sessions import sent_out
from sordino.server.web.site.owner import accounts
from sordino.server.web.site.visit import Values, Visit, go_to

__all__ = ["MEANINGS", "make", "revoke", "set_password", "show"]

MEANINGS = {
    Scope.read: "see datasets, prices and budgets",
    Scope.ask: "ask questions and read answers",
    Scope.audit: "read what others asked and spent",
    Scope.manage: "change budgets, rules and accounts",
}
_LONGEST = 400


async def show(visit: Visit) -> Values:
    """One's own tokens, and those of accounts that one keeps."""
    return _tokens(visit)


async def make(visit: Visit) -> Values:
    """A new token; it is shown here and never again."""
    scopes = frozenset(each for each in Scope if each in visit.fields.get("scope", []))
    if not scopes:
        raise InvalidInput("a token", "it has to allow something", "Tick at least one box.")
    days = visit.field("days", "90").strip()
    if not (days.isascii() and days.isdigit() and 1 <= int(days[:6]) <= _LONGEST):
        raise InvalidInput(
            f"days={shown(days[:20])}", f"a token lasts 1 to {_LONGEST} days", "Write 90."
        )
    place = visit.field("dataset")
    datasets = frozenset((place,)) if place else EVERYWHERE
    if place:
        visit.desk.link(visit.who, place)
    person, label = visit.field("person") or None, visit.field("label")[:200]
    text, token = await accounts(visit).add_token(
        visit.who, person, label, scopes, datasets, float(days)
    )
    return {**_tokens(visit), "secret": text, "made": token}


async def revoke(visit: Visit) -> Response:
    """End a token, at once."""
    await accounts(visit).revoke(visit.who, visit.field("token")[:64])
    return go_to("tokens", done="revoked")


async def set_password(visit: Visit) -> Response:
    """A new password of one's own, for the current one; all sessions end, also this one."""
    if visit.field("password") != visit.field("again"):
        raise InvalidInput(
            "the new password", "it was not typed the same twice", "Go back, and type it again."
        )
    await accounts(visit).set_password(
        visit.who, visit.field("password")[:1024], visit.field("current")[:1024]
    )
    return sent_out()


def _tokens(visit: Visit) -> dict[str, object]:
    who, now = visit.who, visit.store.clock()
    found = accounts(visit).tokens(who)
    keeps = bool(who.person.roles & {Role.admin, Role.owner})
    people = (
        [each.name for each in accounts(visit).people(who) if each.active and each.name != who.name]
        if keeps
        else []
    )
    datasets = (
        []
        if who.person.roles == {Role.admin}
        else [str(one["name"]) for one in visit.desk.datasets(who)]  # type: ignore[index, call-overload]
    )
    return {
        "tokens": [each for each in reversed(found) if each.valid(now)], "ended": sum(not each.valid(now) for each in found),
        "people": people, "datasets": datasets, "meanings": MEANINGS, "secret": "", "made": None,
        "done": "The token is ended." if visit.query("done") == "revoked" else "", "own": who.token.id,
        "has_password": visit.store.password_of(who.name) is not None,
    }  # fmt: skip
