"""One request for a page: who sends it, what it says, and what the page may use to answer it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote

from fastapi import Request, Response

from sordino.server.accounts.people import Principal
from sordino.server.accounts.store import Store
from sordino.server.web.desk import Desk
from sordino.server.web.refusals import Refused
from sordino.server.web.sessions import Sessions

__all__ = ["Page", "Shown", "Values", "Visit", "form_fields", "go_to"]

Values: TypeAlias = Mapping[str, Any]
_MOST_FIELDS = 1000


@dataclass(frozen=True)
class Shown:
    """What a template shows, where the status is not 200."""

    values: Values
    status: int = 200


@dataclass(frozen=True)
class Visit:
    """One request. `fields` are those of a form that was sent, each name with all its values in order."""

    request: Request
    desk: Desk
    store: Store
    sessions: Sessions
    fields: Mapping[str, list[str]]

    @property
    def visitor(self) -> Principal | None:
        """Who it is, or nobody."""
        found = self.request.state.who
        return found if isinstance(found, Principal) else None

    @property
    def who(self) -> Principal:
        """Who it is; pages with roles have somebody."""
        if self.visitor is None:
            raise Refused(
                401, "unauthenticated", "this page is for those who are logged in", "Log in."
            )
        return self.visitor

    def part(self, name: str) -> str:
        """A part of the address, such as the dataset."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A parameter behind the question mark."""
        return self.request.query_params.get(name, default)

    def field(self, name: str, default: str = "") -> str:
        """A field of the form; of several the last."""
        return self.fields.get(name, [default])[-1]


@dataclass(frozen=True)
class Page:
    """One page. Its address and who may use it are in the table of rights, under the same name.

    `show` returns what the template shows, or a response of its own, such as `go_to`. `menu` is its name in the menu.
    """

    show: Callable[[Visit], Awaitable[Values | Shown | Response]]
    template: str = ""
    menu: str = ""


def form_fields(body: bytes) -> dict[str, list[str]]:
    """The fields of a form."""
    return parse_qs(
        body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
    )


def go_to(*parts: str, **query: str) -> Response:
    """Send a browser to a page of this server, after a form; the parts of its address are texts as they are."""
    address = "/" + "/".join(quote(part, safe="") for part in parts)
    if query:
        address += "?" + "&".join(
            f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items()
        )
    return Response(status_code=303, headers={"Location": address})
