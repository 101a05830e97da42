"""What people can do with accounts and tokens: one place for the API and the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from sordino.server.accounts.people import EVERYWHERE, Person, Principal, Role, Scope, Token
from sordino.server.accounts.policy import DAY
from sordino.server.accounts.store import Store
from sordino.server.web.refusals import Refused
from sordino.server.web.sessions import Sessions

__all__ = ["OWNERS_MAKE", "AccountsDesk", "keeps"]

OWNERS_MAKE = frozenset((Role.analyst, Role.agent, Role.auditor))
"""The roles of accounts that an owner opens."""


def keeps(who: Principal, person: Person) -> bool:
    """Whether somebody keeps an account: admins all; owners those without their own power, for datasets of their own.

    A token that is limited to datasets keeps no account beyond them, whoever's it is.
    """
    admin, limits = Role.admin in who.person.roles, [who.token.datasets]
    if not admin:
        limits.append(who.person.datasets)
        if Role.owner not in who.person.roles or not person.roles <= OWNERS_MAKE:
            return False
    return all(
        limit == EVERYWHERE or (bool(person.datasets) and person.datasets <= limit)
        for limit in limits
    )


class AccountsDesk:
    """Accounts and tokens, for whoever may keep them."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store, self._sessions, self._passwords = store, sessions, sessions.passwords

    def people(self, who: Principal) -> list[Person]:
        """All accounts that somebody keeps, also those that are closed."""
        return [each for each in self._store.people() if keeps(who, each)]

    async def add_person(
        self,
        who: Principal,
        person: Person,
        password: str | None = None,
        subject: str | None = None,
    ) -> Person:
        """Open an account. Owners open those of analysts, agents and auditors of their own datasets."""
        if not keeps(who, person):
            rule = "an owner opens accounts of analysts, agents and auditors, for datasets of their own"
            raise Refused(403, "forbidden", rule, "Let an admin open it.")
        hashed = (
            None
            if password is None
            else await self._sessions.hashing(self._passwords.hashed, password)
        )
        await asyncio.to_thread(self._store.add_person, person)
        if hashed is not None:
            await asyncio.to_thread(self._store.set_password, person.name, hashed)
        if subject is not None:
            await asyncio.to_thread(self._store.bind_subject, person.name, subject)
        return person

    async def close_person(self, who: Principal, name: str) -> None:
        """Close an account and all its tokens, at once."""
        person = self._store.person(name)
        if person is None or not keeps(who, person):
            raise Refused(
                404,
                "not-found",
                "there is no such account that is yours to close",
                value=repr(name),
            )
        await asyncio.to_thread(self._store.close_person, name)

    async def set_password(self, who: Principal, password: str, current: str) -> None:
        """Set one's own password: by somebody who logged in, and who shows the current one where there is one."""
        if self._store.password_of(who.name) is not None:
            await self._sessions.expect_password(who.name, current, "a session")
        hashed = await self._sessions.hashing(self._passwords.hashed, password)
        await asyncio.to_thread(self._store.set_password, who.name, hashed)

    def tokens(self, who: Principal) -> list[Token]:
        """One's own tokens; with scope manage also those of the accounts that one keeps."""
        if Scope.manage not in who.token.scopes:
            return self._store.tokens(who.name)
        whose = {who.name, *(each.name for each in self.people(who))}
        return [each for each in self._store.tokens() if each.person in whose]

    async def add_token(
        self,
        who: Principal,
        person: str | None,
        label: str,
        scopes: Collection[Scope],
        datasets: frozenset[str],
        days: float,
    ) -> tuple[str, Token]:
        """A token, for oneself, or for another as one who keeps accounts. It allows no more than the one it is made
        with.

        Made with a bearer token it also ends with that at the latest; what somebody makes on the pages lasts as it
        says.
        """
        target = self._store.person(person or who.name)
        if (
            target is None
            or not target.active
            or (target.name != who.name and not keeps(who, target))
        ):
            raise Refused(
                404,
                "not-found",
                "there is no such account that is yours to keep",
                value=repr(person),
            )
        allowed = frozenset(scopes)
        if target.name != who.name and Scope.manage not in who.token.scopes:
            raise Refused(
                403, "forbidden", "tokens of others are made with a token of scope 'manage'"
            )
        allowed &= who.token.scopes
        datasets = who.token.datasets if datasets == EVERYWHERE else datasets
        if not allowed or not (who.token.datasets == EVERYWHERE or datasets <= who.token.datasets):
            raise Refused(403, "forbidden", "a token makes none that allows more than itself")
        parent = None if who.token.page else who.token
        return await asyncio.to_thread(
            lambda: self._store.add_token(
                target.name, label, allowed, datasets, days * DAY, parent=parent
            )
        )

    async def revoke(self, who: Principal, token: str) -> None:
        """End a token of one's own, or of an account that one keeps, and those that were made with it; at once."""
        if not any(each.id == token for each in self.tokens(who)):
            raise Refused(
                404, "not-found", "there is no such token that is yours to end", value=repr(token)
            )
        await asyncio.to_thread(self._store.revoke, token)
