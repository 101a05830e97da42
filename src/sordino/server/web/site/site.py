"""The door of all pages: looks at who sends a request and whether its form is ours, lets the page answer, and renders
it.

Refusals become a page, too, for whoever reads pages; a program gets them as problems.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from sordino.errors import LedgerUnavailable, SordinoError
from sordino.server.accounts.people import Principal
from sordino.server.accounts.rights import RIGHTS, Right
from sordino.server.accounts.store import Store
from sordino.server.web.desk import Desk
from sordino.server.web.refusals import Refused, as_problem
from sordino.server.web.sessions import FORM_FIELD, Sessions, expect_own_origin
from sordino.server.web.site.pages import PAGES
from sordino.server.web.site.rendering import rendered
from sordino.server.web.site.static_files import files, version
from sordino.server.web.site.visit import Page, Shown, Visit, form_fields

__all__ = ["Site", "expect_right", "reads_pages"]


def expect_right(right: Right, who: Principal | None) -> None:
    """Refuse whom the table of rights does not let in."""
    if right.roles is not None and (who is None or not right.allows(who)):
        by = (
            "who logged in to the pages"
            if right.session
            else f"by a token of scope {str(right.scope)!r}"
        )
        needed = f"it is for {', '.join(sorted(right.roles))}, {by}"
        raise Refused(403, "forbidden", f"your role or your token does not allow this: {needed}")


def reads_pages(headers: Mapping[str, str]) -> bool:
    """Whether it is a browser that shows pages."""
    return "text/html" in headers.get("accept", "")


class Site:
    """All pages, by the names in the table of rights."""

    def __init__(self, desk: Desk, store: Store, sessions: Sessions) -> None:
        self._desk, self._store, self._sessions = desk, store, sessions

    async def page(self, name: str, request: Request) -> Response:
        """One page, for one request."""
        page, right = PAGES[name], RIGHTS[name]
        try:
            expect_right(right, request.state.who)
            fields: Mapping[str, list[str]] = {}
            if right.method != "GET":
                fields = await self._sent(request, own_key=name not in _WITHOUT_KEY)
            visit = Visit(request, self._desk, self._store, self._sessions, fields)
            found = await page.show(visit)
        except (Refused, SordinoError) as error:
            if not reads_pages(request.headers):
                raise
            return self.refusal(request, error)
        if isinstance(found, Response):
            return found
        shown = found if isinstance(found, Shown) else Shown(found)
        return await asyncio.to_thread(
            self._response, request, page.template, shown.values, shown.status, page
        )

    def refusal(self, request: Request, error: Refused | SordinoError) -> Response:
        """A refusal as a page."""
        facts = as_problem(error)
        starting = isinstance(error, LedgerUnavailable) and request.method == "GET"
        return self._response(
            request,
            "refused.html",
            {"problem": facts, "starting": starting},
            int(str(facts["status"])),
        )

    async def static(self, request: Request) -> Response:
        """A file of the stylesheet and the scripts."""
        file = files().get(request.path_params["file"])
        if file is None or request.path_params["version"] != version():
            raise Refused(404, "not-found", "there is no such file")
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable",
            "Vary": "Accept-Encoding",
        }
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                file.small, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.kind
            )
        return Response(file.body, headers=headers, media_type=file.kind)

    @staticmethod
    async def _sent(request: Request, *, own_key: bool) -> Mapping[str, list[str]]:
        """The fields of a form that was sent from a page of this session."""
        expect_own_origin(dict(request.scope["headers"]))
        try:
            fields = form_fields(await request.body())
        except ValueError:
            raise Refused(422, "invalid-request", "the form has too many fields") from None
        who, key = request.state.who, request.state.form_key
        if own_key and isinstance(who, Principal) and who.token.page:
            given = fields.get(FORM_FIELD, [""])[-1]
            if not hmac.compare_digest(given.encode(), key.encode()):
                raise Refused(
                    403, "forbidden", "this form is not of your session", "Open the page again."
                )
        return fields

    def _response(
        self,
        request: Request,
        template: str,
        values: Mapping[str, Any],
        status: int,
        page: Page | None = None,
    ) -> Response:
        who = request.state.who
        menu = [
            (RIGHTS[name].path, one.menu, one is page or _is_within(request.url.path, RIGHTS[name].path))
            for name, one in PAGES.items()
            if one.menu and (RIGHTS[name].roles is None or (isinstance(who, Principal) and RIGHTS[name].allows(who)))
        ]  # fmt: skip
        around = {
            "who": who, "menu": menu, "form_key": request.state.form_key, "nonce": request.state.nonce,
            "form_field": FORM_FIELD, "path": request.url.path, "address": f"{request.url.scheme}://{request.url.netloc}",
        }  # fmt: skip
        return Response(rendered(template, {**around, **values}), status, media_type="text/html")


def _is_within(path: str, menu: str) -> bool:
    """Whether a page belongs to an entry of the menu; every path is within "/", which says nothing."""
    return menu != "/" and path.startswith(f"{menu}/")


_WITHOUT_KEY = frozenset(("login_form", "logout_form"))
"""Forms that need no session: whoever sends them from elsewhere is stopped by their origin."""
