"""The web application, built from the table of rights: a route without a line in it,
or a line without a route, is a bug.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

import sordino
from sordino.errors import SordinoError
from sordino.server.accounts.oidc import Provider
from sordino.server.accounts.rights import RIGHTS, Right
from sordino.server.accounts.store import Store
from sordino.server.link import JSON, Link
from sordino.server.web.desk import Desk
from sordino.server.web.guard import Guard
from sordino.server.web.hosts import HostCheck, any_host
from sordino.server.web.mcp_door import mcp_endpoint
from sordino.server.web.planning import Planner
from sordino.server.web.refusals import Refused, as_problem, problem
from sordino.server.web.routes import Routes
from sordino.server.web.sessions import Sessions
from sordino.server.web.site.pages import PAGES
from sordino.server.web.site.site import Site, expect_right, reads_pages

__all__ = ["Web", "create_app"]

_UNTOLD = {"oidc_login", "oidc_callback", "openapi"}
"""Routes of the API that its description does not tell."""
_STATUS = {"ask": 202, "add_person": 201, "add_token": 201} | dict.fromkeys(
    ("take_back", "suspend", "resume", "remove_person", "set_password", "revoke_token"), 204
)


class Web(FastAPI):
    """The application, with what belongs to it."""

    desk: Desk
    store: Store


def create_app(
    links: Sequence[Link],
    store: Store,
    *,
    planner: Planner | None = None,
    provider: Provider | None = None,
    hosts: HostCheck = any_host,
) -> Web:
    """The web application over some datasets and one file of accounts. `hosts`: which names it answers to."""
    desk, requests = Desk(links, store, planner), Counter[tuple[str, int]]()
    sessions = Sessions(store, provider=provider is not None)
    routes, site = Routes(desk, store, sessions, requests, provider), Site(desk, store, sessions)
    mcp = mcp_endpoint(desk)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desk.start()
        try:
            async with mcp.running():
                yield
        finally:
            await desk.close()

    app = Web(
        title="Sordino", version=sordino.__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan,
        description="Questions about sensitive tables, answered with differential privacy within a budget.",
        redirect_slashes=False,
    )  # fmt: skip
    app.desk, app.store = desk, store

    async def openapi(_: Request) -> Response:
        """This API, as OpenAPI describes it."""
        return JSONResponse(app.openapi())

    pages = {name: _page(site, name) for name in PAGES}
    handlers: dict[str, Callable[..., Any]] = {
        **routes.by_name, **pages, "static": site.static, "openapi": openapi, "mcp": mcp
    }  # fmt: skip
    if handlers.keys() != RIGHTS.keys():
        raise AssertionError(f"routes and rights differ: {sorted(handlers.keys() ^ RIGHTS.keys())}")
    for name, right in RIGHTS.items():
        if name == "mcp":
            app.router.routes.append(
                Route(right.path, _gated(right, mcp), methods=[right.method], name=name)
            )
            continue
        if name in pages or name == "static":
            app.router.routes.append(
                Route(right.path, handlers[name], methods=[right.method], name=name)
            )
            continue
        app.add_api_route(
            right.path, handlers[name], methods=[right.method], name=name, operation_id=name,
            dependencies=[Depends(_gate(right))], include_in_schema=name not in _UNTOLD, response_class=JSONResponse,
            response_model=None, status_code=_STATUS.get(name, 200), responses=_responses(right),
        )  # fmt: skip
    _tell_security(app)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _plain_by(site))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(SordinoError, _refused)
    app.add_middleware(Guard, store=store, requests=requests, hosts=hosts)
    return app


def _gate(right: Right) -> Callable[[Request], Awaitable[None]]:
    """Lets through whom the table allows."""

    async def check(request: Request) -> None:
        expect_right(right, request.state.who)

    return check


def _gated(right: Right, endpoint: Any) -> Any:
    """The same before an ASGI application."""

    class Gated:
        __name__ = "mcp"

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            expect_right(right, scope["state"]["who"])
            await endpoint(scope, receive, send)

    return Gated()


def _page(site: Site, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return await site.page(name, request)

    page.__name__ = name  # as the security log tells it
    return page


def _responses(right: Right) -> dict[int | str, dict[str, Any]]:
    told = {
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }
    }
    words = {402: "The budget does not allow it", 404: "There is no such thing", 408: "Too slow", 409: "Conflict",
             413: "The body is too large", 422: "Refused; nothing was charged", 429: "Too many at once",
             501: "Not available here", 502: "The identity provider failed", 503: "Not available now"}  # fmt: skip
    if right.roles is not None:
        words |= {401: "No valid token", 403: "Not allowed"}
    elif right.path == "/v1/login":
        words |= {401: "Wrong name or password"}
    return {status: {"description": text, **told} for status, text in sorted(words.items())}


def _tell_security(app: FastAPI) -> None:
    """The bearer scheme, and the form of problems, in the description of the API."""
    make = app.openapi

    def told() -> dict[str, Any]:
        if app.openapi_schema is None:
            facts = make()
            parts = facts.setdefault("components", {})
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            texts = {
                name: {"type": "string"}
                for name in ("type", "title", "detail", "code", "value", "rule", "hint")
            }
            numbers: dict[str, Any] = {name: {"type": "integer"} for name in ("status", "exit")}
            numbers |= {
                "instead": {"type": "string"},
                "place": {"type": "array", "items": {"type": "integer"}},
            }
            needed = ["type", "title", "status", "code"]
            schema = {"type": "object", "properties": {**texts, **numbers}, "required": needed}
            parts.setdefault("schemas", {})["Problem"] = schema
            for right in RIGHTS.values():
                found = facts["paths"].get(right.path, {}).get(right.method.lower())
                if found is not None and right.roles is not None:
                    found["security"] = [{"token": []}]
            app.openapi_schema = facts
        return app.openapi_schema

    app.openapi = told  # type: ignore[method-assign]


async def _refused(_: Request, error: Exception) -> Response:
    if not isinstance(error, Refused | SordinoError):
        raise TypeError
    facts = as_problem(error)
    headers = dict(error.headers) if isinstance(error, Refused) else None
    return _sent(facts, headers)


async def _malformed(_: Request, error: Exception) -> Response:
    """What is wrong with a request, by place and rule: what was sent is not repeated."""
    found = error.errors()[:5] if isinstance(error, RequestValidationError) else []
    places = [
        f"{'.'.join(str(part)[:40] for part in each['loc'])}: {each['msg'][:200]}" for each in found
    ]
    rule = "; ".join(places) or "it cannot be read"
    facts = problem(422, "invalid-request", f"The request is not well formed: {rule}.", rule=rule)
    return _sent(facts)


def _plain_by(site: Site) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What the framework itself refuses, as a page for those who read pages."""

    async def plain(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        code = {404: "not-found", 405: "method-not-allowed"}.get(status, "invalid-request")
        headers = dict(getattr(error, "headers", None) or {})
        rule = {404: "there is no such address", 405: "this address is not used in this way"}.get(
            status, "it cannot be read"
        )
        if reads_pages(request.headers) and not request.url.path.startswith("/v1/"):
            return site.refusal(request, Refused(status, code, rule))
        return _sent(problem(status, code, f"{rule}.", rule=rule), headers)

    return plain


def _sent(facts: dict[str, JSON], headers: dict[str, str] | None = None) -> Response:
    """A problem, in ASCII: what people send may be no proper Unicode."""
    return Response(
        json.dumps(facts), int(str(facts["status"])), headers, "application/problem+json"
    )
