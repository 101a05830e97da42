"""Logging in and out."""

from __future__ import annotations

import asyncio

from fastapi import Response

from sordino.server.web.refusals import Refused
from sordino.server.web.sessions import sent_from, sent_home, sent_out
from sordino.server.web.site.visit import Shown, Values, Visit

__all__ = ["by_link", "enter", "leave", "show"]


async def show(visit: Visit) -> Values:
    """The form to log in."""
    return _form(visit)


async def enter(visit: Visit) -> Shown | Response:
    """Log in with name and password."""
    try:
        session, _ = await visit.sessions.by_password(
            visit.field("name"),
            visit.field("password"),
            page=True,
            address=sent_from(visit.request),
        )
    except Refused as error:
        return Shown(_form(visit, error.rule), error.status)
    return sent_home(session, _own_address(visit.field("to")))


async def by_link(visit: Visit) -> Response:
    """Log in with a link that this machine's own command line made; it is used up by it."""
    return sent_home(
        await visit.sessions.by_link(visit.query("code")), _own_address(visit.query("to"))
    )


async def leave(visit: Visit) -> Response:
    """Log out."""
    if visit.visitor is not None and visit.visitor.token.page:
        await asyncio.to_thread(visit.sessions.end, visit.visitor.token)
    return sent_out()


def _form(visit: Visit, wrong: str = "") -> Values:
    to = visit.field("to") or visit.query("to")
    return {"wrong": wrong, "provider": visit.sessions.has_provider, "to": _own_address(to)}


def _own_address(to: str) -> str:
    """A page of this server, never another server's: a path, and no second slash that would name a host."""
    fine = (
        to.startswith("/")
        and not to.startswith(("//", "/\\"))
        and to.isprintable()
        and to.isascii()
        and len(to) < 2000
    )
    return to if fine else "/"
