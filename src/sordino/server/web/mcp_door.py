"""The door for agents: MCP over streamable HTTP, at /mcp. Who calls is known by the same tokens as everywhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextvars import Context, ContextVar
from typing import Any

from sordino.answer.answer import Answer
from sordino.errors import InvalidInput
from sordino.server.accounts.people import Principal
from sordino.server.accounts.store import Question
from sordino.server.link import JSON
from sordino.server.mcp_tools import tools_server
from sordino.server.problems import error_of
from sordino.server.web.desk import Desk
from sordino.server.web.refusals import Refused

__all__ = ["McpEndpoint", "answer_view", "mcp_endpoint"]

_caller: ContextVar[Principal] = ContextVar("caller")
_WAIT = 60.0


class _WebDesk:
    """The tools of one caller, at the desk of this process."""

    def __init__(self, desk: Desk, who: Principal) -> None:
        self._desk, self._who = desk, who

    async def datasets(self) -> JSON:
        return {"datasets": self._desk.datasets(self._who)}

    async def describe(self, dataset: str) -> JSON:
        return self._desk.describe(self._who, dataset)

    async def preview(self, dataset: str, sql: str, offer: dict[str, JSON]) -> JSON:
        return await self._desk.preview(self._who, dataset, "sql", sql, offer, "text")

    async def ask(
        self, dataset: str, sql: str, offer: dict[str, JSON], reason: str, key: str | None
    ) -> JSON:
        asked = await self._desk.ask(self._who, dataset, "sql", sql, offer, key=key, reason=reason)
        return _outcome(await self._desk.wait(asked, _WAIT))

    async def budget(self, dataset: str) -> JSON:
        return self._desk.budget(self._who, dataset)


def _outcome(question: Question) -> JSON:
    if question.body is not None:
        shown = answer_view(question.body, free=question.source is not None)
        return {**shown, "request_id": question.key, "status": "answered"}
    if question.problem is not None:
        raise error_of(question.problem)
    if question.status == "denied":
        raise InvalidInput(
            "this question", f"its owner denied it ({question.note or 'no note'})", "Ask for less."
        )
    told = {
        "waiting": "The owner has to approve this question. Call ask again later, with the same request_id.",
        "accepted": "There is no outcome yet. Call ask again, with the same request_id.",
    }
    return {
        "status": question.status,
        "request_id": question.key,
        "remark": told.get(question.status, ""),
    }


def answer_view(body: bytes, *, free: bool) -> dict[str, JSON]:
    """A stored answer for the eye of a model: its rows with intervals, and what has to be known about them."""
    answer = Answer.from_json(body.decode())
    rows: JSON = json.loads(answer.to_records_json())
    paid = "nothing: it was answered before" if free else "as previewed"
    return {
        "rows": rows,
        "privacy": answer.privacy,
        "notes": list(answer.notes),
        "charged": paid,
        "text": str(answer),
    }


class McpEndpoint:
    """The ASGI application at /mcp.

    What it needs is loaded at the first call, so that a restart does not wait for it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._manager: Any = None
        self._task: asyncio.Task[None] | None = None
        self._ready, self._lock = asyncio.Event(), asyncio.Lock()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the application runs."""
        self._ready, self._lock, self._manager = asyncio.Event(), asyncio.Lock(), None
        try:
            yield
        finally:
            if self._task is not None:
                self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task
                self._task = None

    async def _started(self) -> Any:
        async with self._lock:
            if self._manager is None:
                self._manager = await asyncio.to_thread(self._made)
                self._task = asyncio.get_running_loop().create_task(self._keep(), context=Context())
        await self._ready.wait()
        return self._manager

    async def _keep(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()

    def _made(self) -> Any:
        try:
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
            from mcp.server.transport_security import TransportSecuritySettings
        except ModuleNotFoundError:
            hint = "Install it: pip install 'sordino[mcp]'"
            raise Refused(501, "not-built", "this server has no door for agents", hint) from None
        server = tools_server(lambda: _WebDesk(self._desk, _caller.get()))
        return StreamableHTTPSessionManager(
            server._lowlevel_server,
            json_response=True,
            stateless=True,
            # Every call has a bearer token, which no browser sends by itself: names of hosts decide nothing here.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One call of an agent."""
        manager = await self._started()
        token = _caller.set(scope["state"]["who"])
        try:
            await manager.handle_request(scope, receive, send)
        finally:
            _caller.reset(token)


def mcp_endpoint(desk: Desk) -> McpEndpoint:
    """The door for agents to a desk."""
    return McpEndpoint(desk)
